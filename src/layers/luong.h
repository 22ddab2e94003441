/* SPDX-License-Identifier: MIT */
#ifndef RAPT_LAYERS_LUONG_H
#define RAPT_LAYERS_LUONG_H

#include "layers/call.h"

/* Attention around predicted positions; all has query, key, value, out and,
 * for scores of the layer's own, a bias. */
void rapt_luong_local_p(struct rapt_call *call, const rapt_luong_desc *desc, const rapt_attention_desc *all);

#endif
