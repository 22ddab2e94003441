/* SPDX-License-Identifier: MIT
 * Multi-head attention with its four projections at GPT-2 small's shape, weights and biases included. The projections
 * reuse their memory, as in a program that calls it per layer: fresh memory in each call costs page faults. */
#include "row_kinds.h"

#include "rapt/layers.h"

enum { GPT2_HEADS = 12, GPT2_HEAD_DIM = 64, GPT2_WIDTH = GPT2_HEADS * GPT2_HEAD_DIM };

struct gpt2 {
    rapt_attention_desc how;
    rapt_multi_head_desc layer;
    rapt_run_options options;
    rapt_status status;
};

static void gpt2_run(void *context) {
    struct gpt2 *gpt2 = context;
    const rapt_status status = rapt_multi_head_attention(&gpt2->layer, &gpt2->options, NULL);
    if (status != RAPT_OK)
        gpt2->status = status;
}

/* Numbers of the arena: x, then four matrices, each with its bias. */
static rapt_linear next_linear(const float **at) {
    const rapt_linear linear = rapt_linear_of(*at, *at + GPT2_WIDTH * GPT2_WIDTH, GPT2_WIDTH, GPT2_WIDTH);
    *at += (GPT2_WIDTH + 1) * GPT2_WIDTH;
    return linear;
}

static void set_up(struct gpt2 *gpt2, const struct row *row, int threads, const struct arena *arena,
                   float *places) {
    const float *at = (const float *)(const void *)arena->base;
    const int64_t tokens = row->shape.query_length;
    gpt2->how = (rapt_attention_desc)RAPT_ATTENTION_DESC_INIT;
    gpt2->how.isa = (int32_t)row->isa;
    gpt2->how.features = row->shape.feature == FEATURE_CAUSAL ? RAPT_CAUSAL : 0;
    gpt2->how.batch = 1;
    gpt2->how.query_heads = gpt2->how.kv_heads = GPT2_HEADS;
    gpt2->how.query_length = gpt2->how.kv_length = tokens;
    gpt2->layer = (rapt_multi_head_desc)RAPT_MULTI_HEAD_DESC_INIT;
    gpt2->options = (rapt_run_options)RAPT_RUN_OPTIONS_INIT;
    gpt2->options.max_threads = threads;
    gpt2->layer.attention = &gpt2->how;
    gpt2->layer.x = at;
    at += tokens * GPT2_WIDTH;
    gpt2->layer.query = next_linear(&at);
    gpt2->layer.key = next_linear(&at);
    gpt2->layer.value = next_linear(&at);
    gpt2->layer.output = next_linear(&at);
    const int64_t count = tokens * GPT2_WIDTH;
    gpt2->layer.out = places;
    gpt2->layer.query_out = places + count;
    gpt2->layer.key_out = places + 2 * count;
    gpt2->layer.value_out = places + 3 * count;
    gpt2->layer.context = places + 4 * count;
    gpt2->status = RAPT_OK;
}

/* The work behind rates. */
static void count_work(struct workload *work, int64_t tokens) {
    const double n = (double)tokens, width = GPT2_WIDTH;
    work->shape.query_heads = GPT2_HEADS;
    work->pairs = GPT2_HEADS * (work->shape.feature == FEATURE_CAUSAL ? n * (n + 1) / 2 : n * n);
    work->flops = 4 * 2 * n * width * width + work->pairs * 4 * GPT2_HEAD_DIM;
    work->bytes = 4 * (2 * n * width + 4 * width * (width + 1));
}

void row_layer(struct bench_state *state, const struct row *row, const struct row_settings *settings,
               struct row_run *run) {
    static struct gpt2 subject, rival;
    const int64_t tokens = row->shape.query_length;
    float *places = buffer_new(5 * (size_t)(tokens * GPT2_WIDTH) * sizeof(float));
    set_up(&subject, row, row->threads, settings->arena, places);
    set_up(&rival, row, 1, settings->arena, places);
    run->workload.shape = row->shape;
    count_work(&run->workload, tokens);
    run->subject = (struct contender){.run = gpt2_run, .context = &subject, .calls_per_round = 1};
    run->rival = (struct contender){.run = gpt2_run, .context = &rival, .calls_per_round = 1};
    fma_peak_init(&run->fma_peak, row->isa, row->threads);
    struct contender *contenders[] = {&run->subject, &run->fma_peak.contender, &run->rival};
    measure(contenders, row->threads > 1 ? 3 : 2, settings->seconds, settings->min_rounds);
    if (row->threads > 1) {
        bench_counter(state, "speedup", run->rival.best_seconds / run->subject.best_seconds);
        bench_counter(state, "speedup_median", run->rival.median_seconds / run->subject.median_seconds);
    }
    report_rates(state, row, run);
    report_remark(state, row, run, "");
    report_failure(state, subject.status, rival.status);
    buffer_free(places);
}
