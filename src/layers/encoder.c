/* SPDX-License-Identifier: MIT
 * Layer norm and the encoder block. */
#include "layers/call.h"
#include "layers/elementwise.h"
#include "layers/multi_head.h"
#include "layers/rows.h"

static void check_norm(struct rapt_call *call, const rapt_norm *norm, const char *name) {
    if (!(norm->epsilon > 0 && norm->epsilon <= 0x1.fffffep127f))
        rapt_call_refuse(call, RAPT_INVALID_VALUE, "%s.epsilon = %g: expected a positive, finite number", name,
                         (double)norm->epsilon);
    if (((uintptr_t)norm->gamma | (uintptr_t)norm->beta) % sizeof(float))
        rapt_call_refuse(call, RAPT_MISALIGNED_POINTER, "%s: gamma or beta is not aligned to 4 bytes", name);
}

rapt_status rapt_layer_norm(const rapt_norm *norm, const float *x, int64_t tokens, int64_t width, float *out,
                            rapt_message *message) {
    struct rapt_call call = rapt_call_begin(message, NULL, NULL, 0);
    rapt_call_needs(&call, x, "x");
    rapt_call_needs(&call, out, "out");
    rapt_call_aligned(&call, x, "x");
    rapt_call_aligned(&call, out, "out");
    rapt_call_size(&call, tokens, 0, "tokens");
    rapt_call_size(&call, width, 1, "width");
    rapt_call_product(&call, tokens, width, 1);
    if (rapt_call_needs(&call, norm, "norm"))
        check_norm(&call, norm, "norm");
    if (call.status == RAPT_OK)
        rapt_normalise(norm, x, tokens, width, out);
    return rapt_call_end(&call);
}

/* Attention's result is added to x: that of the output projection, or the heads side by side. */
static void check_attended(struct rapt_call *call, const rapt_multi_head_desc *inner, rapt_attention_desc all,
                           int64_t width) {
    rapt_shape_heads(call, inner, &all);
    if (inner->output.weight && inner->output.out != width)
        rapt_call_refuse(call, RAPT_INVALID_SHAPE, "attention->output.out = %lld, but x has %lld numbers per token",
                         (long long)inner->output.out, (long long)width);
    if (call->status == RAPT_OK && !inner->output.weight && all.query_heads * all.value_dim != width)
        rapt_call_refuse(call, RAPT_INVALID_SHAPE,
                         "attention without output gives query_heads * value_dim = %lld * %lld numbers per token, "
                         "but x has %lld",
                         (long long)all.query_heads, (long long)all.value_dim, (long long)width);
}

/* Checks all of the block that attention does not check itself. */
static void check(struct rapt_call *call, const rapt_encoder_desc *desc, const rapt_attention_desc *all,
                  int64_t width) {
    const rapt_multi_head_desc *inner = desc->attention;
    rapt_call_needs(call, desc->x, "x");
    rapt_call_needs(call, desc->out, "out");
    rapt_call_aligned(call, desc->x, "x");
    rapt_call_aligned(call, desc->out, "out");
    rapt_call_aligned(call, desc->norm1_out, "norm1_out");
    rapt_call_aligned(call, desc->ff_out, "ff_out");
    rapt_call_aligned(call, inner->out, "attention->out");
    if (inner->x || inner->memory || inner->memory_value)
        rapt_call_refuse(call, RAPT_UNUSED_FIELD, "attention has x or memory: the block provides them");
    check_norm(call, &desc->norm1, "norm1");
    check_norm(call, &desc->norm2, "norm2");
    if (desc->activation < RAPT_RELU || desc->activation > RAPT_GELU_TANH)
        rapt_call_refuse(call, RAPT_UNSUPPORTED_FLAG, "activation = %ld is unknown", (long)desc->activation);
    if (desc->pre_norm != 0 && desc->pre_norm != 1)
        rapt_call_refuse(call, RAPT_UNSUPPORTED_FLAG, "pre_norm = %ld is neither 0 nor 1", (long)desc->pre_norm);
    check_attended(call, inner, *all, width); /* first, as it says how wide x is */
    rapt_call_linear(call, "ff1", &desc->ff1, width, "x has");
    rapt_call_linear(call, "ff2", &desc->ff2, desc->ff1.out, "ff1 gives");
    if (desc->ff2.out != width)
        rapt_call_refuse(call, RAPT_INVALID_SHAPE, "ff2.out = %lld, but x has %lld numbers per token",
                         (long long)desc->ff2.out, (long long)width);
}

/* [batch][query_length][width], hidden [..][ff1.out]. */
struct arrays {
    float *attention, *norm1, *norm2, *ff, *hidden, *sum;
};

static struct arrays place(struct rapt_call *call, const rapt_encoder_desc *desc, const rapt_attention_desc *all,
                           int64_t width) {
    const int64_t b = all->batch, tokens = all->query_length;
    struct arrays to;
    to.attention = rapt_call_floats(call, desc->attention->out, b, tokens, width);
    to.norm1 = rapt_call_floats(call, desc->norm1_out, b, tokens, width);
    to.norm2 = desc->pre_norm ? rapt_call_floats(call, NULL, b, tokens, width) : to.norm1;
    to.ff = rapt_call_floats(call, desc->ff_out, b, tokens, width);
    to.hidden = rapt_call_floats(call, NULL, b, tokens, desc->ff1.out);
    to.sum = rapt_call_floats(call, NULL, b, tokens, width);
    return to;
}

/* All that follows the attention, for some rows. */
static void feed_forward(struct rapt_call *call, const rapt_encoder_desc *desc, const struct arrays *to, int64_t width,
                         int64_t first, int64_t rows) {
    const int64_t at = first * width, count = rows * width;
    float *hidden = to->hidden + first * desc->ff1.out, *sum = to->sum + at, *norm2 = to->norm2 + at;
    float *ff = to->ff + at, *out = desc->out + at;
    rapt_add(desc->x + at, to->attention + at, count, sum);
    /* Input of the feed-forward part; without pre_norm also its residual. */
    rapt_normalise(desc->pre_norm ? &desc->norm2 : &desc->norm1, sum, rows, width, norm2);
    rapt_call_project(call, &desc->ff1, norm2, rows, hidden, 0);
    if (call->status != RAPT_OK)
        return;
    rapt_activate(hidden, rows * desc->ff1.out, (rapt_activation)desc->activation);
    rapt_call_project(call, &desc->ff2, hidden, rows, ff, 0);
    if (call->status != RAPT_OK)
        return;
    rapt_add(desc->pre_norm ? sum : norm2, ff, count, desc->pre_norm ? out : sum);
    if (!desc->pre_norm)
        rapt_normalise(&desc->norm2, sum, rows, width, out);
}

static void run(struct rapt_call *call, const rapt_encoder_desc *desc, const rapt_attention_desc *all, int64_t width) {
    rapt_multi_head_desc inner = *desc->attention;
    struct rapt_rows_of_queries rows = {0};
    struct rapt_heads heads;
    const struct arrays to = place(call, desc, all, width);
    if (call->status != RAPT_OK)
        return;
    inner.x = desc->x;
    inner.out = to.attention;
    if (desc->pre_norm)
        inner.x = to.norm1;
    rapt_heads_begin(call, &inner, &heads);
    if (call->status == RAPT_OK && desc->pre_norm) /* every row is a key too */
        rapt_normalise(&desc->norm1, desc->x, all->batch * all->query_length, width, to.norm1);
    rapt_heads_run(call, &inner, &heads);
    while (call->status == RAPT_OK && rapt_next_rows(all, &rows))
        feed_forward(call, desc, &to, width, rows.first, rows.count);
}

rapt_status rapt_encoder_block(const rapt_encoder_desc *desc, const rapt_run_options *options,
                               rapt_message *message) {
    struct rapt_call call = rapt_call_begin(message, options, desc, sizeof *desc);
    if (call.status != RAPT_OK || !rapt_call_needs(&call, desc->attention, "attention"))
        return rapt_call_end(&call);
    const rapt_multi_head_desc *inner = desc->attention;
    if (inner->struct_size != sizeof *inner)
        rapt_call_refuse(&call, RAPT_UNSUPPORTED_VERSION, "attention->struct_size = %lu",
                         (unsigned long)inner->struct_size);
    rapt_attention_desc all = rapt_call_attention(&call, inner->attention);
    const int64_t width = inner->fused.weight ? inner->fused.in : inner->query.in;
    if (call.status == RAPT_OK)
        check(&call, desc, &all, width);
    if (call.status == RAPT_OK)
        run(&call, desc, &all, width);
    return rapt_call_end(&call);
}
