/* SPDX-License-Identifier: MIT
 * The options of `rapt attend`. */
#ifndef RAPT_ATTEND_OPTIONS_H
#define RAPT_ATTEND_OPTIONS_H

#include "common/options.h"

/* Paths and names are NULL if not given. */
struct attend_options {
    const char *query, *key, *value, *out, *lse, *attention_out;
    const char *mask, *keep, *bias, *bias_factor, *alibi, *sinks;
    const char *pages, *tree, *key_blocks;
    const char *query_lengths, *kv_lengths, *query_positions, *key_positions;
    const char *layout, *attention_kind, *isa;
    const char *query_type, *key_type, *value_type, *kv_type, *out_type, *numerics;
    const char *expect, *tokens;
    bool causal, check, json, quiet;
    struct option_integer query_offset, threads, repeat, show_head, show_batch, seed;
    struct option_number scale, softcap, mask_fill, drop, tolerance;
    struct option_pair window, block_size;
};

extern const struct option_row attend_option_rows[];

/* argv[0] is the verb. Dies if an option is unknown, malformed, missing, or useless with the others. */
struct attend_options attend_parse(int argc, char **argv);

#endif
