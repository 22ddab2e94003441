/* SPDX-License-Identifier: MIT
 * The functions of orders 2 and 3 of an instruction set: its unit.c defines them, its table has them. */
#ifndef RAPT_GENERIC_UNIT_TABLE_H
#define RAPT_GENERIC_UNIT_TABLE_H

#include "kernels.h"

#define RAPT_UNIT_PASTE(name, table) rapt_unit_##name##_##table
#define RAPT_UNIT_NAME(name, table) RAPT_UNIT_PASTE(name, table)
#define RAPT_UNIT(name) RAPT_UNIT_NAME(name, RAPT_TABLE)

size_t RAPT_UNIT(panel_bytes)(int rows, int head_dim);
size_t RAPT_UNIT(scores_bytes)(int rows, int dim);
size_t RAPT_UNIT(scores_bytes_in_place)(int rows, int dim);
size_t RAPT_UNIT(packed_bytes)(int side, int dim);
void RAPT_UNIT(pack)(float *panel, const float *const *query_rows, int rows, int head_dim);
unsigned RAPT_UNIT(pack_keys)(void *into, const char *const *rows, int dim, int format);
unsigned RAPT_UNIT(pack_values)(void *into, const char *const *rows, int dim, int format);
void RAPT_UNIT(block)(const struct rapt_block *block);
void RAPT_UNIT(block_in_place)(const struct rapt_block *block);
void RAPT_UNIT(close)(const struct rapt_task *task, float *panel, struct rapt_state state, int rows);
void RAPT_UNIT(score)(const struct rapt_score_args *args);
void RAPT_UNIT(rounded)(const float *y, float *p, int64_t count, float m, float factor, int format);
/* Order 3: */
size_t RAPT_UNIT(panel_bytes_split)(int rows, int head_dim);
size_t RAPT_UNIT(scores_bytes_split)(int rows, int dim);
size_t RAPT_UNIT(packed_bytes_split)(int side, int dim);
void RAPT_UNIT(pack_split)(float *panel, const float *const *query_rows, int rows, int head_dim);
void RAPT_UNIT(score_split)(const struct rapt_score_args *args);

#endif
