/* SPDX-License-Identifier: MIT */
#ifndef RAPT_WEIGHTS_H
#define RAPT_WEIGHTS_H

#include "attend/task.h"

/* Writes the attention weights of a task whose rows are finished, if the descriptor requests them. */
void rapt_write_weights(struct rapt_task *task);

#endif
