/* SPDX-License-Identifier: MIT */
#ifndef RAPT_WEIGHTS_H
#define RAPT_WEIGHTS_H

#include "attend/task.h"

/* Writes the attention weights of a task whose rows are finished, where the descriptor asks for them. */
void rapt_write_weights(struct rapt_task *task);

#endif
