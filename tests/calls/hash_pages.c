/* SPDX-License-Identifier: MIT
 * Page lengths x orders within a page x kinds of table x types x rows x instruction sets: a call with keys and values
 * in pages gives the output of the same call on contiguous ones, bit for bit. Windows begin mid-page. What nothing may
 * read is ff bytes: NaN in most types. */
#include <stdlib.h>

#include "dispatch.h"
#include "rapt/rapt.h"
#include "support/cmocka_all.h"
#include "support/support.h"

enum { BATCH = 2, HEADS = 2, GROUP = 2, KEYS = 700, DIM = 64, GROUPS = 2, MOST_QUERIES = 70 };

static const int64_t lengths[BATCH] = {700, 333};

static const struct type {
    int32_t dtype;
    bool scaled, has_zero_points;
} types[] = {{RAPT_F32, false, false},     {RAPT_F16, false, false},    {RAPT_BF16, false, false},
             {RAPT_Q8_0, false, false},    {RAPT_Q4_0, false, false},   {RAPT_Q4_1, false, false},
             {RAPT_Q5_0, false, false},    {RAPT_Q5_1, false, false},   {RAPT_IQ4_NL, false, false},
             {RAPT_F8_E4M3, false, false}, {RAPT_F8_E4M3, true, false}, {RAPT_F8_E5M2, true, false},
             {RAPT_I8, true, false},       {RAPT_I8, true, true}};

enum { TYPES = sizeof types / sizeof types[0] };

/* Keys or values, contiguous or in pages: rows, and the scales of each. */
struct cache {
    rapt_tensor tensor;
    int64_t bytes;
};

static void *filled(int64_t bytes) {
    void *memory = test_alloc((size_t)bytes);
    memset(memory, 0xff, (size_t)bytes);
    return memory;
}

/* [outer][head][token], or [outer][token][head] if by_token. After the scales of an odd number of tokens there is a
 * gap: rows of a page may continue in the next page while its scales do not. */
static struct cache cache_new(const struct type *type, int64_t outer, int64_t tokens, bool by_token) {
    struct cache cache = {.bytes = rapt_row_bytes(type->dtype, DIM)};
    rapt_tensor *tensor = &cache.tensor;
    const int64_t row = cache.bytes, scales = GROUPS * (int64_t)sizeof(float);
    const int64_t scale_bytes = HEADS * tokens * scales + tokens % 2 * 64;
    tensor->dtype = type->dtype;
    tensor->data = filled(outer * HEADS * tokens * row);
    tensor->head_stride_bytes = by_token ? row : tokens * row;
    tensor->token_stride_bytes = by_token ? HEADS * row : row;
    tensor->batch_stride_bytes = HEADS * tokens * row;
    if (!type->scaled)
        return cache;
    tensor->scale_dtype = RAPT_F32;
    tensor->scales = filled(outer * scale_bytes);
    tensor->zero_point_dtype = type->has_zero_points ? RAPT_I8 : 0;
    tensor->zero_points = type->has_zero_points ? filled(outer * scale_bytes / 4) : NULL;
    tensor->scale_group = DIM / GROUPS;
    tensor->scale_head_stride_bytes = by_token ? scales : tokens * scales;
    tensor->scale_token_stride_bytes = by_token ? HEADS * scales : scales;
    tensor->scale_batch_stride_bytes = scale_bytes;
    return cache;
}

static char *row_of(const struct cache *cache, int64_t outer, int64_t head, int64_t token) {
    const rapt_tensor *t = &cache->tensor;
    return (char *)t->data + outer * t->batch_stride_bytes + head * t->head_stride_bytes +
           token * t->token_stride_bytes;
}

static char *scales_of(const struct cache *cache, int64_t outer, int64_t head, int64_t token) {
    const rapt_tensor *t = &cache->tensor;
    return (char *)(uintptr_t)t->scales + outer * t->scale_batch_stride_bytes + head * t->scale_head_stride_bytes +
           token * t->scale_token_stride_bytes;
}

static char *zero_points_of(const struct cache *cache, int64_t outer, int64_t head, int64_t token) {
    const char *scales = scales_of(cache, outer, head, token);
    return (char *)(uintptr_t)cache->tensor.zero_points + (scales - (const char *)cache->tensor.scales) / 4;
}

static void copy_token(const struct cache *into, int64_t outer, int64_t token, const struct cache *from, int64_t batch,
                       int64_t at) {
    for (int64_t head = 0; head < HEADS; head++) {
        memcpy(row_of(into, outer, head, token), row_of(from, batch, head, at), (size_t)from->bytes);
        if (from->tensor.scales)
            memcpy(scales_of(into, outer, head, token), scales_of(from, batch, head, at), GROUPS * sizeof(float));
        if (from->tensor.zero_points)
            memcpy(zero_points_of(into, outer, head, token), zero_points_of(from, batch, head, at), GROUPS);
    }
}

/* Numbers of ordinary size: random bytes without the bit that makes halves and float8 large. */
static void draw_row(const struct type *type, struct random *random, char *row, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i++)
        row[i] = (char)(random_bits(random) & 0xbf);
    for (int64_t d = 0; type->dtype == RAPT_F32 && d < DIM; d++) {
        const float number = quick_normal(random);
        memcpy(row + d * (int64_t)sizeof number, &number, sizeof number);
    }
}

static struct cache cache_drawn(const struct type *type, struct random *random) {
    const struct cache cache = cache_new(type, BATCH, KEYS, false);
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t head = 0; head < HEADS; head++)
            for (int64_t token = 0; token < lengths[b]; token++) {
                draw_row(type, random, row_of(&cache, b, head, token), cache.bytes);
                for (int64_t g = 0; type->scaled && g < GROUPS; g++)
                    ((float *)(void *)scales_of(&cache, b, head, token))[g] = quick_normal(random) / 64;
                for (int64_t g = 0; type->has_zero_points && g < GROUPS; g++)
                    zero_points_of(&cache, b, head, token)[g] = (char)random_below(random, 128);
            }
    return cache;
}

/* ---- calls */

struct paging {
    int32_t kind; /* rapt_page_kind */
    int64_t page_tokens;
    bool by_token;
};

/* The same rows in pages, shuffled, or most in order. Entries that nothing reads are garbage. */
static struct cache paged(const struct cache *from, const struct type *type, const struct paging *paging,
                          struct random *random, rapt_page_table *table) {
    const int64_t page = paging->page_tokens, columns = (KEYS + page - 1) / page, pages = BATCH * columns + 1;
    struct cache cache = cache_new(type, pages, page, paging->by_token);
    int64_t *order = test_alloc((size_t)pages * sizeof *order);
    int32_t *entries = filled(BATCH * columns * (int64_t)sizeof *entries), used = 0;
    int64_t *offsets = test_alloc((BATCH + 1) * sizeof *offsets);
    const bool in_order = random_chance(random, 50);
    for (int64_t i = 0, other; i < pages; i++) {
        other = in_order && random_chance(random, 90) ? i : random_below(random, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (int64_t b = 0; b < BATCH; b++) {
        int32_t *const row = paging->kind == RAPT_PAGES_DENSE ? entries + b * columns : entries + used;
        offsets[b] = used;
        for (int64_t n = 0; n < (lengths[b] + page - 1) / page; n++)
            row[n] = (int32_t)order[used++];
        for (int64_t token = 0; token < lengths[b]; token++)
            copy_token(&cache, row[token / page], token % page, from, b, token);
    }
    offsets[BATCH] = used;
    cache.tensor.page_stride_bytes = cache.tensor.batch_stride_bytes;
    *table = (rapt_page_table){.kind = paging->kind, .page_tokens = page, .pages = pages};
    table->entries = rapt_int32_list(entries, paging->kind == RAPT_PAGES_DENSE ? columns : used);
    if (paging->kind == RAPT_PAGES_DENSE)
        table->batch_stride_bytes = columns * (int64_t)sizeof *entries;
    else
        table->offsets = rapt_int64_list(offsets, BATCH + 1);
    return cache;
}

static const float *attend(rapt_attention_desc desc, const float *query, int64_t queries) {
    float *out = test_floats(BATCH * HEADS * GROUP * queries * DIM);
    desc.batch = BATCH;
    desc.query_heads = HEADS * GROUP;
    desc.kv_heads = HEADS;
    desc.query_length = queries;
    desc.kv_length = KEYS;
    desc.head_dim = DIM;
    desc.kv_lengths = rapt_int64_list(lengths, BATCH);
    desc.features = RAPT_SCALE | RAPT_CAUSAL | RAPT_WINDOW;
    desc.scale = 1.0f / 256;
    desc.window_left = 300;
    desc.query_origin = RAPT_ORIGIN_BOTTOM_RIGHT;
    desc.query = rapt_input_bhsd(query, BATCH, HEADS * GROUP, queries, DIM);
    desc.out = rapt_output_bhsd(out, BATCH, HEADS * GROUP, queries, DIM);
    rapt_message why;
    if (rapt_attention(&desc, NULL, &why) != RAPT_OK)
        fail_msg("%s", why.text);
    return out;
}

static void check(const struct type *type, const struct paging *paging, int64_t queries, const struct rapt_table *table,
                  struct random *random) {
    const struct cache key = cache_drawn(type, random), value = cache_drawn(type, random);
    const int64_t numbers = BATCH * HEADS * GROUP * queries * DIM;
    const float *query = test_drawn(random, numbers, quick_normal);
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.isa = table->isa;
    desc.key = key.tensor;
    desc.value = value.tensor;
    const float *expected = attend(desc, query, queries);
    desc.key = paged(&key, type, paging, random, &desc.key_pages).tensor;
    desc.value = paged(&value, type, paging, random, &desc.value_pages).tensor;
    const float *got = attend(desc, query, queries);
    for (int64_t i = 0; i < numbers; i++)
        if (bits_of(got[i]) != bits_of(expected[i]) || got[i] != got[i])
            fail_msg("%s, type %d, %lld queries, table %d of pages of %lld, %s: number %lld: %a, expected %a",
                     table->name, type->dtype, (long long)queries, paging->kind, (long long)paging->page_tokens,
                     paging->by_token ? "[token][head]" : "[head][token]", (long long)i, (double)got[i],
                     (double)expected[i]);
    test_free_all();
}

static void test_pages(void **state) {
    static const int64_t page_tokens[] = {1, 2, 3, 5, 16, 17, 32, 64, 100, 128, 256};
    static const int64_t queries[] = {1, 6, MOST_QUERIES}; /* tiles of each kind */
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    struct random random = {71};
    int ran = 0, available = 0;
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++)
        available += rapt_isa_available((rapt_isa)isa) && !rapt_isa_is_unit((rapt_isa)isa);
    if (getenv("RAPT_TEST_ISA")) /* ./dev mutations sets one */
        available = 1;
    assert_int_equal(count, available);
    for (int t = 0; t < count; t++)
        for (int type = 0; type < TYPES; type++)
            for (int p = 0; p < 11; p++)
                for (int way = 0; way < 4; way++, ran++) {
                    const int32_t kind = way % 2 ? RAPT_PAGES_DENSE : RAPT_PAGES_LISTED;
                    const struct paging paging = {kind, page_tokens[p], way > 1};
                    const int64_t some = random_chance(&random, 15) ? 2 : random_below(&random, 2);
                    if (random_below(&random, 100) < 5 + scaled_work(95)) /* all, unless told otherwise */
                        check(&types[type], &paging, queries[some], tables[t], &random);
                }
    assert_int_equal(ran, available * TYPES * 11 * 4);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pages)};
    return cmocka_run_group_tests_name("hash_pages", tests, NULL, NULL);
}
