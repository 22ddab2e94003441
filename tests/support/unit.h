/* SPDX-License-Identifier: MIT
 * Random batches for the engine's units, planned on the scalar table, and what docs/inputs.md says about them, as
 * plainly as possible. Only unit_cut calls the engine. */
#ifndef RAPT_TESTS_UNIT_H
#define RAPT_TESTS_UNIT_H

#include "attend/source.h"
#include "dispatch.h"
#include "support/support.h"

enum { UNIT_MOST_BATCH = 6 };

struct unit {
    rapt_plan plan;
    struct rapt_plan_body *body; /* of the plan */
    rapt_attention_desc desc;
    struct unit_list {
        int64_t wide[UNIT_MOST_BATCH];
        int32_t narrow[UNIT_MOST_BATCH];
    } query_lengths, kv_lengths, query_position, key_position;
};

/* Sizes, positions and lists; no tensors. */
void unit_draw(struct unit *unit, struct random *random, int64_t most_queries, int64_t most_keys);

/* Writes entry i of a list in both widths. */
void unit_set(struct unit_list *list, int64_t i, int64_t number);

/* Memory for a tensor of a dtype, in random order of dimensions and with gaps; every byte is ff. read: tokens may be
 * stored last to first, sequences and heads shared. */
rapt_tensor unit_tensor(struct random *random, int32_t dtype, int64_t batch, int64_t heads, int64_t tokens, int64_t dim,
                        bool read);

/* Tensors of queries, keys and values; keys and values hold numbers. */
void unit_add_inputs(struct unit *unit, struct random *random, int32_t dtype);

/* unit_masks.c: some of all that acts on scores. */
void unit_add_masks(struct unit *unit, struct random *random);

/* Plans. Without tensors nothing may run. */
void unit_cut(struct unit *unit);

/* ---- as plainly as possible */

struct rapt_sequence unit_sequence(const struct unit *unit, int64_t batch);

/* Whether query i sees key j of a sequence by their positions. */
bool unit_sees(const struct unit *unit, const struct rapt_sequence *sequence, int64_t i, int64_t j);

/* A row's first byte. */
const char *unit_row(const rapt_tensor *tensor, int64_t batch, int64_t head, int64_t token);

/* A half as float32. */
float unit_widen(uint16_t half);

/* Element d of a row of a dtype. */
float unit_number(int32_t dtype, const char *row, int64_t d);

#endif
