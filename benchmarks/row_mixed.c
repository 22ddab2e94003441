/* SPDX-License-Identifier: MIT
 *
 * One call of a server's step: sequences with many queries beside sequences with one, padded to one size. It takes
 * turns with its parts, each alone in the same memory: the prefills in one call, the decodes in another. Decodes of
 * many lengths have one part: as many of their mean length. */
#include "row_kinds.h"

#include <math.h>
#include <string.h>

enum { MIXED_MAX_SEQUENCES = 256, MIXED_MAX_PARTS = 2 };

/* A call, and what it computes. */
struct step {
    rapt_plan plan;
    void *workspace;
    size_t workspace_bytes;
    int threads;
    rapt_status status;
    double flops, bytes, pairs;
    int32_t query_lengths[MIXED_MAX_SEQUENCES], kv_lengths[MIXED_MAX_SEQUENCES];
};

/* Tensors [sequence, head, token, dim] with room for the longest. */
struct memory {
    int64_t sequences, query_heads, kv_heads, query_room, kv_room, head_dim;
    rapt_dtype kv_dtype;
    int64_t page_tokens, page_count; /* 0 = keys and values are contiguous */
    int32_t *pages;                  /* [sequence][kv_room / page_tokens], shuffled */
    void *query, *out, *key, *value;
};

static struct step whole, parts[MIXED_MAX_PARTS];
static struct contender part_times[MIXED_MAX_PARTS];

static void step_run(void *context) {
    struct step *step = context;
    const rapt_run_options options = {.struct_size = sizeof options, .max_threads = step->threads};
    rapt_status status = rapt_run(&step->plan, step->workspace, step->workspace_bytes, &options);
    if (status != RAPT_OK)
        step->status = status;
}

/* Keys of the decodes: between the shortest and the longest, log-uniform. */
static void set_lengths(struct step *step, const struct mixed_shape *shape) {
    uint32_t seed = 1;
    for (int64_t i = 0; i < shape->prefills; i++)
        step->query_lengths[i] = step->kv_lengths[i] = (int32_t)shape->prefill_length;
    for (int64_t i = shape->prefills; i < shape->prefills + shape->decodes; i++) {
        seed = seed * 1664525 + 1013904223;
        const double part = (double)(seed >> 8) / (1 << 24), range = (double)shape->longest / (double)shape->shortest;
        step->query_lengths[i] = 1;
        step->kv_lengths[i] = (int32_t)lrint((double)shape->shortest * pow(range, part));
    }
}

static int64_t longest_of(const int32_t *lengths, int64_t count) {
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++)
        longest = lengths[i] > longest ? lengths[i] : longest;
    return longest;
}

static void count_work(struct step *step, const struct memory *memory, int64_t count) {
    double query_tokens = 0, kv_tokens = 0;
    for (int64_t i = 0; i < count; i++) {
        const double queries = step->query_lengths[i], keys = step->kv_lengths[i];
        step->pairs += (double)memory->query_heads * (queries * (keys - queries) + queries * (queries + 1) / 2);
        query_tokens += queries;
        kv_tokens += keys;
    }
    step->flops = 4 * (double)memory->head_dim * step->pairs;
    step->bytes = 2 * ((double)rapt_row_bytes(RAPT_F32, memory->head_dim) * query_tokens * (double)memory->query_heads +
                       (double)rapt_row_bytes(memory->kv_dtype, memory->head_dim) * kv_tokens *
                           (double)memory->kv_heads);
}

static rapt_tensor tensor(const struct memory *memory, void *data, rapt_dtype dtype, int64_t first, int64_t heads,
                          int64_t room) {
    const int64_t row_bytes = rapt_row_bytes(dtype, memory->head_dim);
    return (rapt_tensor){.data = (char *)data + first * heads * room * row_bytes,
                         .dtype = dtype,
                         .batch_stride_bytes = heads * room * row_bytes,
                         .head_stride_bytes = room * row_bytes,
                         .token_stride_bytes = row_bytes};
}

/* Keys or values of the sequences from `first` on. */
static rapt_tensor cache(const struct memory *memory, void *data, int64_t first) {
    if (!memory->page_tokens)
        return tensor(memory, data, memory->kv_dtype, first, memory->kv_heads, memory->kv_room);
    rapt_tensor pages = tensor(memory, data, memory->kv_dtype, 0, memory->kv_heads, memory->page_tokens);
    pages.page_stride_bytes = pages.batch_stride_bytes;
    pages.batch_stride_bytes = 0;
    return pages;
}

static rapt_page_table table_of(const struct memory *memory, int64_t first) {
    if (!memory->page_tokens)
        return (rapt_page_table){0};
    const int64_t row = memory->kv_room / memory->page_tokens;
    return (rapt_page_table){.kind = RAPT_PAGES_DENSE,
                             .page_tokens = memory->page_tokens,
                             .pages = memory->page_count,
                             .entries = rapt_int32_list(memory->pages + first * row, row),
                             .batch_stride_bytes = row * (int64_t)sizeof(int32_t)};
}

/* Plans the sequences [first, first + count) of memory, whose lengths are in the step. */
static rapt_status step_plan(struct step *step, const struct row *row, const struct memory *memory, int64_t first,
                             int64_t count, rapt_message *why) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.isa = row->isa;
    desc.features = RAPT_CAUSAL;
    desc.query_origin = RAPT_ORIGIN_BOTTOM_RIGHT;
    desc.batch = count;
    desc.query_heads = memory->query_heads;
    desc.kv_heads = memory->kv_heads;
    desc.query_length = longest_of(step->query_lengths, count);
    desc.kv_length = longest_of(step->kv_lengths, count);
    desc.head_dim = memory->head_dim;
    workload_scale(&desc, memory->kv_dtype);
    desc.query_lengths = (rapt_index_list){.data = step->query_lengths, .index_bytes = 4};
    desc.kv_lengths = (rapt_index_list){.data = step->kv_lengths, .index_bytes = 4};
    desc.query = tensor(memory, memory->query, RAPT_F32, first, memory->query_heads, memory->query_room);
    desc.out = tensor(memory, memory->out, RAPT_F32, first, memory->query_heads, memory->query_room);
    desc.key = cache(memory, memory->key, first);
    desc.value = cache(memory, memory->value, first);
    desc.key_pages = desc.value_pages = table_of(memory, first);
    step->threads = row->threads;
    count_work(step, memory, count);
    rapt_status status = rapt_plan_init(&step->plan, &desc, why);
    if (status == RAPT_OK)
        status = rapt_plan_workspace_bytes(&step->plan, step->threads, &step->workspace_bytes);
    if (status == RAPT_OK)
        step->workspace = buffer_new(step->workspace_bytes);
    return status;
}

/* Random numbers where a sequence has tokens; the rest is never touched. */
static void *new_tensor(const struct memory *memory, const struct arena *arena, rapt_dtype dtype,
                        const int32_t *lengths, int64_t heads, int64_t room) {
    const size_t row_bytes = (size_t)rapt_row_bytes(dtype, memory->head_dim), head_bytes = (size_t)room * row_bytes;
    char *tensor = buffer_reserve((size_t)(memory->sequences * heads) * head_bytes);
    size_t from = 0;
    for (int64_t i = 0; i < memory->sequences * heads; i++) {
        const size_t bytes = (size_t)lengths[i / heads] * row_bytes;
        from = from + bytes > arena->bytes ? 0 : from;
        memcpy(tensor + (size_t)i * head_bytes, arena->base + from, bytes);
        from += bytes;
    }
    return tensor;
}

/* Tables of shuffled pages for the keys that are touched, and as many pages. */
static void set_pages(struct memory *memory, const int32_t *touched) {
    const int64_t page = memory->page_tokens, row = memory->kv_room / page;
    memory->pages = buffer_new((size_t)(memory->sequences * row) * sizeof *memory->pages);
    int32_t *order = buffer_new((size_t)(memory->sequences * row) * sizeof *order);
    uint32_t state = 1;
    for (int64_t i = 0; i < memory->sequences; i++)
        memory->page_count += (touched[i] + page - 1) / page;
    for (int64_t i = 0; i < memory->page_count; i++) {
        state = state * 1664525u + 1013904223u;
        const int64_t other = (int64_t)((uint64_t)state * (uint64_t)(i + 1) >> 32);
        order[i] = order[other];
        order[other] = (int32_t)i;
    }
    for (int64_t i = 0, used = 0; i < memory->sequences; i++)
        for (int64_t n = 0; n < (touched[i] + page - 1) / page; n++)
            memory->pages[i * row + n] = order[used++];
    buffer_free(order);
}

static void *new_cache(const struct memory *memory, const struct arena *arena, const int32_t *touched) {
    if (!memory->page_tokens)
        return new_tensor(memory, arena, memory->kv_dtype, touched, memory->kv_heads, memory->kv_room);
    const size_t bytes = (size_t)(memory->page_count * memory->kv_heads * memory->page_tokens *
                                  rapt_row_bytes(memory->kv_dtype, memory->head_dim));
    char *pages = buffer_reserve(bytes);
    for (size_t at = 0; at < bytes; at += arena->bytes)
        memcpy(pages + at, arena->base, bytes - at < arena->bytes ? bytes - at : arena->bytes);
    return pages;
}

/* touched: tokens of each sequence that any step reads. */
static struct memory memory_of(const struct row *row, const struct arena *arena, const int32_t *touched) {
    struct memory memory = {.sequences = row->mixed.prefills + row->mixed.decodes,
                            .query_heads = row->shape.query_heads,
                            .kv_heads = row->shape.kv_heads,
                            .head_dim = row->shape.head_dim,
                            .kv_dtype = row->shape.kv_dtype,
                            .page_tokens = row->shape.page_tokens};
    const int32_t *queries = whole.query_lengths;
    memory.query_room = longest_of(queries, memory.sequences);
    memory.kv_room = longest_of(touched, memory.sequences);
    memory.query = new_tensor(&memory, arena, RAPT_F32, queries, memory.query_heads, memory.query_room);
    memory.out = new_tensor(&memory, arena, RAPT_F32, queries, memory.query_heads, memory.query_room);
    if (memory.page_tokens) {
        memory.kv_room = (memory.kv_room + memory.page_tokens - 1) / memory.page_tokens * memory.page_tokens;
        set_pages(&memory, touched);
    }
    memory.key = new_cache(&memory, arena, touched);
    memory.value = new_cache(&memory, arena, touched);
    return memory;
}

static void copy_lengths(struct step *step, int64_t first, int64_t count) {
    memcpy(step->query_lengths, whole.query_lengths + first, (size_t)count * sizeof(int32_t));
    memcpy(step->kv_lengths, whole.kv_lengths + first, (size_t)count * sizeof(int32_t));
}

/* Plans the whole and its parts; returns the number of parts, 0 if rapt refuses. */
static int plan_all(const struct row *row, const struct arena *arena, struct memory *memory, rapt_message *why) {
    const struct mixed_shape *shape = &row->mixed;
    const int64_t count = shape->prefills + shape->decodes;
    int32_t touched[MIXED_MAX_SEQUENCES];
    int64_t keys = 0;
    whole = parts[0] = parts[1] = (struct step){.status = RAPT_OK};
    set_lengths(&whole, shape);
    memcpy(touched, whole.kv_lengths, sizeof touched);
    for (int64_t i = 0; i < count; i++)
        keys += whole.kv_lengths[i];
    copy_lengths(&parts[0], 0, shape->prefills ? shape->prefills : count);
    copy_lengths(&parts[1], shape->prefills, shape->decodes);
    for (int64_t i = 0; !shape->prefills && i < count; i++) {
        parts[0].kv_lengths[i] = (int32_t)((keys + count / 2) / count);
        touched[i] = touched[i] > parts[0].kv_lengths[i] ? touched[i] : parts[0].kv_lengths[i];
    }
    *memory = memory_of(row, arena, touched);
    const int64_t first_count = shape->prefills ? shape->prefills : count;
    rapt_status status = step_plan(&whole, row, memory, 0, count, why);
    if (status == RAPT_OK)
        status = step_plan(&parts[0], row, memory, 0, first_count, why);
    if (status == RAPT_OK && shape->prefills)
        status = step_plan(&parts[1], row, memory, shape->prefills, shape->decodes, why);
    return status != RAPT_OK ? 0 : shape->prefills ? 2 : 1;
}

/* Each part has its own limit; the whole has the sum of them. */
static void report(struct bench_state *state, const struct row *row, struct row_run *run, int count) {
    const double fma_rate = fma_peak_rate(&run->fma_peak), stream_rate = stream_peak_rate(&run->stream_peak);
    const double best = run->subject.best_seconds, median = run->subject.median_seconds;
    double limit = 0, parts_best = 0, parts_median = 0;
    for (int i = 0; i < count; i++) {
        const double by_fma = parts[i].flops / fma_rate, by_stream = parts[i].bytes / stream_rate;
        limit += by_fma > by_stream ? by_fma : by_stream;
        parts_best += part_times[i].best_seconds;
        parts_median += part_times[i].median_seconds;
    }
    report_time(state, &run->subject);
    bench_counter(state, "gflops", whole.flops / best * 1e-9);
    bench_counter(state, "gbps", whole.bytes / best * 1e-9);
    bench_counter(state, "of_limit", limit / best);
    bench_counter(state, "of_limit_median", limit / median);
    bench_counter(state, "of_parts", best / parts_best);
    bench_counter(state, "of_parts_median", median / parts_median);
    bench_counter(state, "heads", (double)row->shape.query_heads);
    bench_counter(state, "threads", row->threads);
}

static void measure_all(const struct row *row, const struct row_settings *settings, struct row_run *run, int count) {
    size_t cursor = 0;
    struct contender *contenders[3 + MIXED_MAX_PARTS] = {&run->subject};
    run->subject = (struct contender){.run = step_run, .context = &whole, .calls_per_round = 1};
    for (int i = 0; i < count; i++) {
        part_times[i] = (struct contender){.run = step_run, .context = &parts[i], .calls_per_round = 1};
        contenders[1 + i] = &part_times[i];
    }
    fma_peak_init(&run->fma_peak, row->isa, row->threads);
    stream_peak_init(&run->stream_peak, settings->arena, settings->arena->bytes / 8, &cursor, row->threads);
    contenders[1 + count] = &run->fma_peak.contender;
    contenders[2 + count] = &run->stream_peak.contender;
    measure(contenders, 3 + count, settings->seconds, settings->min_rounds);
}

void row_mixed(struct bench_state *state, const struct row *row, const struct row_settings *settings,
               struct row_run *run) {
    struct memory memory;
    rapt_message why = {""};
    const int count = plan_all(row, settings->arena, &memory, &why);
    if (count > 0) {
        measure_all(row, settings, run, count);
        report(state, row, run, count);
        run->workload.flops = whole.flops;
        report_remark(state, row, run, "");
    } else {
        bench_fail(state, why.text);
    }
    for (const struct step *step = parts; step < parts + count; step++)
        if (step->status != RAPT_OK)
            bench_fail(state, rapt_status_text(step->status));
    if (whole.status != RAPT_OK)
        bench_fail(state, rapt_status_text(whole.status));
    buffer_free(whole.workspace);
    buffer_free(parts[0].workspace);
    buffer_free(parts[1].workspace);
    buffer_free(memory.query);
    buffer_free(memory.out);
    buffer_free(memory.key);
    buffer_free(memory.value);
    buffer_free(memory.pages);
}
