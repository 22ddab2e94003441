/* SPDX-License-Identifier: MIT
 * The options of `rapt layer` and its kinds. */
#ifndef RAPT_LAYER_OPTIONS_H
#define RAPT_LAYER_OPTIONS_H

#include "common/options.h"

/* Paths and names are NULL if not given. */
struct layer_options {
    const char *weights, *prefix, *weights_layout;
    const char *input, *memory, *memory_value, *query, *key, *value, *ids, *lengths;
    const char *out, *attention_out, *attentional_out, *all_outputs;
    const char *mask, *keep, *fused_order, *activation, *score, *locality, *isa;
    bool causal, pre_norm, unscaled, quiet;
    struct option_integer heads, reach, seed, threads, query_offset;
    struct option_number mask_fill, drop, epsilon;
};

extern const struct option_row layer_option_rows[];

/* A kind of layer: its name, required and allowed options (words separated by spaces; --out, --isa and --threads go
 * with all). */
struct layer_kind {
    const char *name, *needs, *takes;
    void (*run)(const struct layer_options *options);
    const char *help;
};

/* Ends with a NULL name. */
extern const struct layer_kind layer_kinds[];

/* The kind of this name; dies if unknown. */
const struct layer_kind *layer_find(const char *name);

/* Whether the option is required for the kind; whether it is allowed. */
bool layer_needs(const struct layer_kind *kind, const char *option);
bool layer_takes(const struct layer_kind *kind, const char *option);

/* argv[0] is the kind. Dies if an option is unknown, malformed, missing, or not the kind's. */
struct layer_options layer_parse(const struct layer_kind *kind, int argc, char **argv);

#endif
