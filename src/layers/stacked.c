/* SPDX-License-Identifier: MIT
 * Heads with weights of their own, side by side. Each projection writes its
 * head's columns of a row, as if one projection had made them all. */
#include "layers/call.h"

static void shape(struct rapt_call *call, const rapt_stacked_desc *desc, rapt_attention_desc *all) {
    if (!rapt_call_needs(call, desc->x, "x") || !rapt_call_needs(call, desc->out, "out") ||
        !rapt_call_needs(call, desc->query, "query") || !rapt_call_needs(call, desc->key, "key") ||
        !rapt_call_needs(call, desc->value, "value"))
        return;
    if (all->query_heads != all->kv_heads || all->query_length != all->kv_length)
        rapt_call_refuse(call, RAPT_INVALID_SHAPE,
                         "query_heads = %lld, kv_heads = %lld, query_length = %lld, kv_length = %lld: each pair is "
                         "equal here",
                         (long long)all->query_heads, (long long)all->kv_heads, (long long)all->query_length,
                         (long long)all->kv_length);
    for (int64_t h = 0; h < all->query_heads && call->status == RAPT_OK; h++) {
        const int64_t in = h ? desc->query->in : 0;
        if (!rapt_call_linear(call, "query", &desc->query[h], in, "x has query[0].in =") ||
            !rapt_call_linear(call, "key", &desc->key[h], desc->query->in, "x has query[0].in =") ||
            !rapt_call_linear(call, "value", &desc->value[h], desc->query->in, "x has query[0].in ="))
            return;
        if (desc->query[h].out != desc->query->out || desc->key[h].out != desc->query->out ||
            desc->value[h].out != desc->value->out)
            rapt_call_refuse(call, RAPT_INVALID_SHAPE,
                             "head %lld: query.out = %lld, key.out = %lld, value.out = %lld: expected %lld, %lld, %lld",
                             (long long)h, (long long)desc->query[h].out, (long long)desc->key[h].out,
                             (long long)desc->value[h].out, (long long)desc->query->out, (long long)desc->query->out,
                             (long long)desc->value->out);
    }
    all->head_dim = desc->query->out;
    all->value_dim = desc->value->out;
}

static void project(struct rapt_call *call, const rapt_stacked_desc *desc, const rapt_attention_desc *all,
                    const rapt_linear *linear, const rapt_tensor *to) {
    const int64_t heads = all->query_heads, rows = all->batch * all->query_length;
    for (int64_t h = 0; h < heads && call->status == RAPT_OK; h++)
        rapt_call_project(call, &linear[h], desc->x, rows, (float *)to->data + h * linear[h].out,
                          heads * linear[h].out);
}

rapt_status rapt_stacked_attention(const rapt_stacked_desc *desc, const rapt_run_options *options,
                                   rapt_message *message) {
    struct rapt_call call = rapt_call_begin(message, options, desc, sizeof *desc);
    if (call.status != RAPT_OK)
        return rapt_call_end(&call);
    rapt_attention_desc all = rapt_call_attention(&call, desc->attention);
    if (call.status == RAPT_OK)
        shape(&call, desc, &all);
    const int64_t heads = all.query_heads, tokens = all.query_length, d = all.head_dim, e = all.value_dim;
    float *query = rapt_call_floats(&call, NULL, all.batch * tokens, heads, d);
    float *key = rapt_call_floats(&call, NULL, all.batch * tokens, heads, d);
    float *value = rapt_call_floats(&call, NULL, all.batch * tokens, heads, e);
    rapt_call_product(&call, tokens, heads, d > e ? d : e); /* of an empty batch, too */
    if (call.status != RAPT_OK)
        return rapt_call_end(&call);
    all.query = rapt_input_bshd(query, all.batch, tokens, heads, d);
    all.key = rapt_input_bshd(key, all.batch, tokens, heads, d);
    all.value = rapt_input_bshd(value, all.batch, tokens, heads, e);
    all.out = rapt_output_bshd(desc->out, all.batch, tokens, heads, e);
    rapt_call_check(&call, &all);
    project(&call, desc, &all, desc->query, &all.query);
    project(&call, desc, &all, desc->key, &all.key);
    project(&call, desc, &all, desc->value, &all.value);
    rapt_call_attend(&call, &all);
    return rapt_call_end(&call);
}
