/* SPDX-License-Identifier: MIT
 * Bahdanau's additive attention. */
#include "layers/additive.h"

#include "layers/elementwise.h"
#include "layers/rows.h"

void rapt_attend_to_scores(struct rapt_call *call, rapt_attention_desc *all, const float *scores) {
    static const float zero = 0;
    if (all->weights_kind == RAPT_WEIGHTS_RAW || all->weights_kind == RAPT_WEIGHTS_SOFTCAP)
        rapt_call_refuse(call, RAPT_UNSUPPORTED_FLAG,
                         "attention->weights_kind = %d: scores are a bias here, so there are MASKED and SOFTMAX",
                         (int)all->weights_kind);
    all->head_dim = 1;
    all->features |= RAPT_SCALE;
    all->scale = 1;
    all->query = all->key = rapt_input_bhsd(&zero, 0, 0, 0, 0); /* strides of 0: one zero for all */
    all->bias = rapt_input_bhsd(scores, all->batch, 1, all->query_length, all->kv_length);
}

void rapt_check_values(struct rapt_call *call, int64_t width, const char *name) {
    enum { MOST = 1024 }; /* as value_dim of rapt_attention_desc */
    if (width < 1 || width > MOST)
        rapt_call_refuse(call, RAPT_INVALID_SHAPE, "%s = %lld is outside 1 ... %d", name, (long long)width, MOST);
}

void rapt_check_single(struct rapt_call *call, const rapt_attention_desc *all) {
    if (call->status != RAPT_OK)
        return;
    if (all->query_heads != 1 || all->kv_heads != 1)
        rapt_call_refuse(call, RAPT_INVALID_SHAPE, "query_heads = %lld, kv_heads = %lld: this layer has one head",
                         (long long)all->query_heads, (long long)all->kv_heads);
    /* scale without RAPT_SCALE, too: the layer's own takes its place before the plan could refuse it. */
    if (rapt_call_has(&all->bias) || all->bias_head_factor || all->softcap != 0 || all->scale != 0 ||
        all->features & RAPT_SCALE)
        rapt_call_refuse(call, RAPT_UNUSED_FIELD, "attention has a bias, softcap or scale: not in this layer");
}

rapt_status rapt_additive_attention(const rapt_additive_desc *desc, const rapt_run_options *options,
                                    rapt_message *message) {
    struct rapt_call call = rapt_call_begin(message, options, desc, sizeof *desc);
    if (call.status != RAPT_OK)
        return rapt_call_end(&call);
    rapt_attention_desc all = rapt_call_attention(&call, desc->attention);
    rapt_check_single(&call, &all);
    rapt_call_needs(&call, desc->state, "state");
    rapt_call_needs(&call, desc->memory, "memory");
    rapt_call_needs(&call, desc->v, "v");
    rapt_call_aligned(&call, desc->state, "state");
    rapt_call_aligned(&call, desc->memory, "memory");
    rapt_call_aligned(&call, desc->v, "v");
    rapt_call_aligned(&call, desc->scores, "scores");
    rapt_call_needs(&call, desc->out, "out");
    rapt_call_linear(&call, "w", &desc->w, 0, "");
    rapt_call_linear(&call, "u", &desc->u, 0, "");
    if (desc->w.out != desc->u.out)
        rapt_call_refuse(&call, RAPT_INVALID_SHAPE, "w.out = %lld, u.out = %lld: they must be equal",
                         (long long)desc->w.out, (long long)desc->u.out);
    const int64_t b = all.batch, tq = all.query_length, tk = all.kv_length, units = desc->w.out, e = desc->u.in;
    float *a = rapt_call_floats(&call, NULL, b, tq, units), *k = rapt_call_floats(&call, NULL, b, tk, units);
    float *scores = rapt_call_floats(&call, desc->scores, b, tq, tk);
    rapt_call_product(&call, b, tq > tk ? tq : tk, e);
    rapt_check_values(&call, e, "u.in");
    if (call.status != RAPT_OK)
        return rapt_call_end(&call);
    all.value_dim = e;
    all.value = rapt_input_bhsd(desc->memory, b, 1, tk, e);
    all.out = rapt_output_bhsd(desc->out, b, 1, tq, e);
    rapt_attend_to_scores(&call, &all, scores);
    rapt_call_check(&call, &all);
    rapt_project_queries(&call, &all, &desc->w, desc->state, a);
    rapt_call_project(&call, &desc->u, desc->memory, b * tk, k, 0);
    for (int64_t i = 0; tq > 0 && i < b && call.status == RAPT_OK; i++)
        rapt_additive_scores(a + i * tq * units, k + i * tk * units, desc->v, rapt_queries_of(&all, i), tk, units,
                             scores + i * tq * tk);
    rapt_call_attend(&call, &all);
    return rapt_call_end(&call);
}
