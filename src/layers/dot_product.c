/* SPDX-License-Identifier: MIT
 * Attention without weights of its own: simplified self-attention (query = key
 * = value, scale 1), scaled dot products with a mask, generalised attention.
 * The last two leading dimensions are the engine's batch and heads; it runs
 * once for each index of those before them. */
#include <stdio.h>

#include "layers/call.h"

struct block {
    int64_t runs, batch, heads;
    int64_t mask_stride[RAPT_MAX_LEADING + 1]; /* bytes; of the leading dimensions and of the queries */
    int64_t mask_bytes;
};

/* Computes the strides of the mask; refuses one that does not fit. */
static void lay_mask(struct rapt_call *call, const rapt_dot_product_desc *desc, struct block *block) {
    if (!desc->mask && desc->mask_shape)
        rapt_call_refuse(call, RAPT_UNUSED_FIELD, "mask_shape is set, but mask is absent");
    if (!desc->mask || !rapt_call_needs(call, desc->mask_shape, "mask_shape"))
        return;
    int64_t stride = 1;
    for (int i = desc->leading + 1; i >= 0; i--) {
        const int64_t has = desc->mask_shape[i];
        const int64_t expected = i < desc->leading    ? desc->shape[i]
                                 : i == desc->leading ? desc->query_length
                                                      : desc->kv_length;
        if (has != expected && (has != 1 || i > desc->leading)) {
            rapt_call_refuse(call, RAPT_INVALID_SHAPE, "mask_shape[%d] = %lld, expected %lld%s", i, (long long)has,
                             (long long)expected, i > desc->leading ? "" : " or 1");
            return;
        }
        if (i <= desc->leading)
            block->mask_stride[i] = has == 1 ? 0 : stride;
        if (__builtin_mul_overflow(stride, has, &stride)) {
            rapt_call_refuse(call, RAPT_SIZE_OVERFLOW, "the product of mask_shape overflows");
            return;
        }
    }
    block->mask_bytes = stride;
}

static struct block block_of(struct rapt_call *call, const rapt_dot_product_desc *desc) {
    struct block block = {.runs = 1, .batch = 1, .heads = 1};
    if (desc->leading < 0 || desc->leading > RAPT_MAX_LEADING)
        rapt_call_refuse(call, RAPT_INVALID_SHAPE, "leading = %ld is outside 0 ... %d", (long)desc->leading,
                         RAPT_MAX_LEADING);
    if (desc->features & ~(RAPT_SCALE | RAPT_CAUSAL | RAPT_MASK_FILL))
        rapt_call_refuse(call, RAPT_UNSUPPORTED_FLAG,
                         "features = 0x%llx: only SCALE, CAUSAL and MASK_FILL are supported here",
                         (unsigned long long)desc->features);
    if (desc->query_origin < RAPT_ORIGIN_UNSTATED || desc->query_origin > RAPT_ORIGIN_BOTTOM_RIGHT)
        rapt_call_refuse(call, RAPT_UNSUPPORTED_FLAG, "query_origin = %ld: there are TOP_LEFT and BOTTOM_RIGHT here",
                         (long)desc->query_origin);
    if (call->status != RAPT_OK || (desc->leading && !rapt_call_needs(call, desc->shape, "shape")))
        return block;
    for (int i = 0; i < desc->leading; i++) {
        const int64_t size = desc->shape[i];
        char name[24];
        snprintf(name, sizeof name, "shape[%d]", i);
        rapt_call_size(call, size, 0, name);
        if (i == desc->leading - 1)
            block.heads = size;
        else if (i == desc->leading - 2)
            block.batch = size;
        else if (__builtin_mul_overflow(block.runs, size, &block.runs))
            rapt_call_refuse(call, RAPT_SIZE_OVERFLOW, "the product of shape overflows");
    }
    lay_mask(call, desc, &block);
    return block;
}

static rapt_attention_desc describe(const rapt_dot_product_desc *desc, const struct block *block) {
    rapt_attention_desc all = RAPT_ATTENTION_DESC_INIT;
    const int n = desc->leading;
    all.isa = desc->isa;
    all.features = desc->features;
    all.scale = desc->scale;
    all.mask_fill = desc->mask_fill;
    all.query_origin = desc->query_origin;
    all.batch = block->batch;
    all.query_heads = all.kv_heads = block->heads;
    all.query_length = desc->query_length;
    all.kv_length = desc->kv_length;
    all.head_dim = desc->head_dim;
    all.value_dim = desc->value_dim;
    if (desc->mask)
        all.mask = rapt_bool_mask(desc->mask, n > 1 ? block->mask_stride[n - 2] : 0,
                                  n > 0 ? block->mask_stride[n - 1] : 0, block->mask_stride[n]);
    return all;
}

/* Where the mask of a run begins. */
static int64_t mask_offset(const rapt_dot_product_desc *desc, const struct block *block, int64_t run) {
    int64_t offset = 0;
    for (int i = desc->leading - 3; i >= 0 && run > 0; i--) {
        offset += run % desc->shape[i] * block->mask_stride[i];
        run /= desc->shape[i];
    }
    return offset;
}

/* Points at a run's parts of the arrays. */
static void point(rapt_attention_desc *all, const rapt_dot_product_desc *desc, const struct block *block, int64_t run,
                  float **scores) {
    const int64_t batch = block->batch, heads = block->heads, each = batch * heads * run;
    const int64_t tq = desc->query_length, tk = desc->kv_length, d = desc->head_dim;
    const int64_t e = desc->value_dim ? desc->value_dim : d;
    all->query = rapt_input_bhsd(desc->query + each * tq * d, batch, heads, tq, d);
    all->key = rapt_input_bhsd(desc->key + each * tk * d, batch, heads, tk, d);
    all->value = rapt_input_bhsd(desc->value + each * tk * e, batch, heads, tk, e);
    all->out = rapt_output_bhsd(desc->out + each * tq * e, batch, heads, tq, e);
    if (desc->mask)
        all->mask.data = (void *)(uintptr_t)(desc->mask + mask_offset(desc, block, run));
    if (desc->weights) {
        all->weights = rapt_output_bhsd(desc->weights + each * tq * tk, batch, heads, tq, tk);
        all->weights_kind = RAPT_WEIGHTS_SOFTMAX;
    }
    *scores = desc->scores ? desc->scores + each * tq * tk : NULL;
}

static void check(struct rapt_call *call, const rapt_dot_product_desc *desc, const struct block *block) {
    const int64_t widest = desc->value_dim > desc->head_dim ? desc->value_dim : desc->head_dim;
    const int64_t longest = desc->query_length > desc->kv_length ? desc->query_length : desc->kv_length;
    rapt_call_needs(call, desc->query, "query");
    rapt_call_needs(call, desc->key, "key");
    rapt_call_needs(call, desc->value, "value");
    rapt_call_needs(call, desc->out, "out");
    rapt_call_aligned(call, desc->query, "query");
    rapt_call_aligned(call, desc->key, "key");
    rapt_call_aligned(call, desc->value, "value");
    rapt_call_aligned(call, desc->out, "out");
    rapt_call_aligned(call, desc->weights, "weights");
    rapt_call_aligned(call, desc->scores, "scores");
    rapt_call_size(call, desc->query_length, 0, "query_length");
    rapt_call_size(call, desc->kv_length, 0, "kv_length");
    rapt_call_size(call, desc->head_dim, 1, "head_dim");
    rapt_call_size(call, desc->value_dim, 0, "value_dim");
    /* As in rapt_call_product, 0 counts as 1. */
    const int64_t runs = block->runs + !block->runs, batch = block->batch + !block->batch;
    int64_t each = 0, rows = 0;
    if (call->status == RAPT_OK && (__builtin_mul_overflow(runs, batch, &each) ||
                                    __builtin_mul_overflow(each, block->heads + !block->heads, &each) ||
                                    __builtin_mul_overflow(each, desc->query_length, &rows)))
        rapt_call_refuse(call, RAPT_SIZE_OVERFLOW, "the product of shape overflows");
    rapt_call_product(call, each, 1, 1);
    rapt_call_product(call, each, longest, widest);
    rapt_call_product(call, rows, desc->kv_length, 1);
}

struct array {
    const char *name;
    const void *data;
    int64_t bytes;
};

/* The engine sees one run at a time, and scores apart from weights. */
static void check_overlaps(struct rapt_call *call, const rapt_dot_product_desc *desc, const struct block *block) {
    enum { OUTPUTS = 3, ARRAYS = 7 };
    const int64_t each = block->runs * block->batch * block->heads * (int64_t)sizeof(float);
    const int64_t tq = desc->query_length, tk = desc->kv_length, d = desc->head_dim;
    const int64_t e = desc->value_dim ? desc->value_dim : d;
    const struct array arrays[ARRAYS] = {
        {"out", desc->out, each * tq * e},         {"weights", desc->weights, each * tq * tk},
        {"scores", desc->scores, each * tq * tk},  {"query", desc->query, each * tq * d},
        {"key", desc->key, each * tk * d},         {"value", desc->value, each * tk * e},
        {"mask", desc->mask, block->mask_bytes},
    };
    for (int i = 0; i < OUTPUTS; i++)
        for (int j = i + 1; j < ARRAYS; j++)
            if (rapt_call_overlap(arrays[i].data, arrays[i].bytes, arrays[j].data, arrays[j].bytes))
                rapt_call_refuse(call, RAPT_OVERLAPPING_OUTPUT, "%s overlaps %s at %p", arrays[i].name, arrays[j].name,
                                 arrays[j].data);
}

rapt_status rapt_dot_product_attention(const rapt_dot_product_desc *desc, const rapt_run_options *options,
                                       rapt_message *message) {
    struct rapt_call call = rapt_call_begin(message, options, desc, sizeof *desc);
    if (call.status != RAPT_OK)
        return rapt_call_end(&call);
    rapt_call_isa(&call, desc->isa);
    struct block block = block_of(&call, desc);
    check(&call, desc, &block);
    if (call.status != RAPT_OK)
        return rapt_call_end(&call);
    if (block.runs == 0 || block.heads == 0)
        block.batch = 0, block.heads = 1; /* the plan refuses no heads */
    rapt_attention_desc all = describe(desc, &block);
    const bool has_rows = block.batch > 0 && desc->query_length > 0; /* else one run, for its refusals */
    for (int64_t run = 0; run < (has_rows ? block.runs : 1) && call.status == RAPT_OK; run++) {
        float *scores;
        point(&all, desc, &block, run, &scores);
        if (run == 0) {
            rapt_call_check(&call, &all);
            check_overlaps(&call, desc, &block);
        }
        rapt_call_scores(&call, &all, scores);
        rapt_call_attend(&call, &all);
    }
    return rapt_call_end(&call);
}
