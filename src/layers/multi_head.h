/* SPDX-License-Identifier: MIT */
#ifndef RAPT_LAYERS_MULTI_HEAD_H
#define RAPT_LAYERS_MULTI_HEAD_H

#include "layers/call.h"

/* rapt_multi_head_attention as a step of another layer. */
void rapt_multi_head(struct rapt_call *call, const rapt_multi_head_desc *desc);

#endif
