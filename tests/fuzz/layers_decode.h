/* SPDX-License-Identifier: MIT
 * Decodes bytes to a call of a layer: every number plausible or hostile, every array in memory of exactly the size that
 * the call leads to. */
#ifndef RAPT_TESTS_FUZZ_LAYERS_DECODE_H
#define RAPT_TESTS_FUZZ_LAYERS_DECODE_H

#include "descriptor_decode.h"
#include "rapt/layers.h"

enum layer_kind {
    DOT_PRODUCT, MULTI_HEAD, STACKED, ENCODER, ADDITIVE, LUONG, LAYER_NORM, EMBEDDING, KEEP, LAYER_KINDS
};

/* Arguments of the functions that have no descriptor. */
struct norm_call {
    rapt_norm norm;
    const float *x;
    int64_t tokens, width;
    float *out;
};
struct embedding_call {
    rapt_index_list ids;
    int64_t count, rows, width;
    const float *table;
    float *out;
};
struct keep_call {
    unsigned char *keep;
    int64_t count;
    double drop;
    uint64_t seed, stream, first;
};

/* A refused call may have written optional results, and nothing else. */
enum role { READ, OPTIONAL, OUT };

/* An array. */
struct array {
    const char *name; /* the beginning of its field's, as messages have it */
    void *place;      /* where the descriptor has the pointer */
    size_t bytes;
    enum role role;
    int dtype;
};

enum { MOST_ARRAYS = 40 };

struct fuzzed_layer {
    struct fuzzed_call call;     /* its memory, and how to attend, without what the layer fills in */
    rapt_attention_desc *how;    /* the latter, as given */
    int64_t head_dim, value_dim; /* plausible ones */
    enum layer_kind kind;
    void *desc; /* of the kind, or its arguments */
    struct array arrays[MOST_ARRAYS];
    int count;
    uint8_t content;    /* of all arrays */
    double work;        /* roughly the multiply-adds */
    bool must_refuse;   /* no such layer is legal */
    bool lacks_memory;  /* it may be legal, but is too large to try */
    bool overlaps;      /* a result lies on another array, so it is undefined */
    const char *spoilt; /* the array that is absent or misaligned */
};

void fuzzed_layer_decode(struct fuzzed_layer *layer, struct input *input);

/* The pointer at a place. */
void *pointer_at(const void *place);

/* The value_dim that projections lead to. */
int64_t value_dim_of(const rapt_attention_desc *how, const rapt_multi_head_desc *heads);

/* layers_model.c: writes what a legal call, a struct fuzzed_layer, writes by docs/layers.md. */
void layer_model(const void *layer);

/* ---- shared by the decoders */

/* Sizes are double, which does not overflow; -1 if a factor is negative. */
double times(double a, int64_t b);
double product(int64_t a, int64_t b, int64_t c);
int64_t take_size(struct input *input);

/* Zeros, in the memory of the call. */
void *new_room(struct fuzzed_layer *layer, size_t bytes);

/* Gives a pointer memory for so many numbers; for none if the call must be refused, or would be too large. */
void lay(struct fuzzed_layer *layer, const char *name, const void *place, enum role role, int dtype, double numbers);

/* An array of float32 of the layer l. */
#define READS(name, place, numbers) lay(l, name, &(place), READ, RAPT_F32, numbers)
#define WRITES(role, name, place, numbers) lay(l, name, &(place), role, RAPT_F32, numbers)

/* Perhaps makes one of these any number. */
void spoil_number(struct input *input, int64_t *const *numbers, int count);

/* layers_decode_plain.c */
void decode_dot_product(struct fuzzed_layer *layer, struct input *input);
void decode_layer_norm(struct fuzzed_layer *layer, struct input *input);
void decode_embedding(struct fuzzed_layer *layer, struct input *input);
void decode_keep(struct fuzzed_layer *layer, struct input *input);
void lay_norm(struct fuzzed_layer *layer, const char *name, rapt_norm *norm, int64_t width, uint8_t way,
              struct input *input);

#endif
