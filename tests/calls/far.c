/* SPDX-License-Identifier: MIT
 * Attention with strides beyond 32 bits wherever there is one (vllm #50427: 32-bit key offsets). */
#include "calls/far_parts.h"
#include "support/cmocka_all.h"

static const struct rapt_table *tables[RAPT_ISA_COUNT];
static int table_count;

static void attend(void *call) {
    rapt_message message = {""};
    if (rapt_attention(call, NULL, &message) != RAPT_OK)
        fail_msg("%s", message.text);
}

static rapt_attention_desc attention(void) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = SEQUENCES;
    desc.query_heads = QUERY_HEADS;
    desc.kv_heads = GROUPS;
    desc.query_length = QUERIES;
    desc.kv_length = KEYS;
    desc.head_dim = WIDTH;
    desc.query = drawn(SEQUENCES, QUERY_HEADS, QUERIES, WIDTH);
    desc.key = drawn(SEQUENCES, GROUPS, KEYS, WIDTH);
    desc.value = drawn(SEQUENCES, GROUPS, KEYS, WIDTH);
    desc.out = drawn(SEQUENCES, QUERY_HEADS, QUERIES, WIDTH);
    return desc;
}

static void test_attention(void **state) {
    (void)state;
    for (int t = 0; t < table_count; t++) {
        rapt_attention_desc desc = attention();
        unsigned char *seen = test_alloc(SEQUENCES * QUERY_HEADS * QUERIES * KEYS);
        for (int i = 0; i < SEQUENCES * QUERY_HEADS * QUERIES * KEYS; i++)
            seen[i] = i % 5 != 0;
        desc.isa = tables[t]->isa;
        desc.mask = desc.keep_mask = rapt_tensor_bhsd(seen, RAPT_BOOL8, SEQUENCES, QUERY_HEADS, QUERIES, KEYS);
        desc.keep_scale = 1.25f;
        desc.bias = drawn(SEQUENCES, QUERY_HEADS, QUERIES, KEYS);
        desc.weights = drawn(SEQUENCES, QUERY_HEADS, QUERIES, KEYS);
        desc.weights_kind = RAPT_WEIGHTS_SOFTMAX;
        desc.lse = drawn(SEQUENCES, QUERY_HEADS, QUERIES, 1);
        const struct part parts[] = {
            {&desc.query, {SEQUENCES, QUERY_HEADS, QUERIES}, WIDTH * 4, false, false},
            {&desc.key, {SEQUENCES, GROUPS, KEYS}, WIDTH * 4, false, false},
            {&desc.value, {SEQUENCES, GROUPS, KEYS}, WIDTH * 4, false, false},
            {&desc.mask, {SEQUENCES, QUERY_HEADS, QUERIES}, KEYS, false, false},
            {&desc.keep_mask, {SEQUENCES, QUERY_HEADS, QUERIES}, KEYS, false, false},
            {&desc.bias, {SEQUENCES, QUERY_HEADS, QUERIES}, KEYS * 4, false, false},
            {&desc.out, {SEQUENCES, QUERY_HEADS, QUERIES}, WIDTH * 4, true, false},
            {&desc.lse, {SEQUENCES, QUERY_HEADS, QUERIES}, 4, true, false},
            {&desc.weights, {SEQUENCES, QUERY_HEADS, QUERIES}, KEYS * 4, true, false}};
        check_parts(parts, sizeof parts / sizeof *parts, attend, &desc);
        test_free_all();
    }
}

/* A call that continues from another's states. */
static void test_states(void **state) {
    (void)state;
    for (int t = 0; t < table_count; t++) {
        rapt_attention_desc desc = attention();
        desc.isa = tables[t]->isa;
        desc.final_state = drawn(SEQUENCES, QUERY_HEADS, QUERIES, 2 + WIDTH);
        attend(&desc);
        desc.initial_state = desc.final_state;
        desc.final_state = drawn(SEQUENCES, QUERY_HEADS, QUERIES, 2 + WIDTH);
        const struct part parts[] = {
            {&desc.initial_state, {SEQUENCES, QUERY_HEADS, QUERIES}, (2 + WIDTH) * 4, false, false},
            {&desc.final_state, {SEQUENCES, QUERY_HEADS, QUERIES}, (2 + WIDTH) * 4, true, false},
            {&desc.out, {SEQUENCES, QUERY_HEADS, QUERIES}, WIDTH * 4, true, false}};
        check_parts(parts, sizeof parts / sizeof *parts, attend, &desc);
        test_free_all();
    }
}

/* Rows of a KV head for narrow and wide tiles; pages of several tokens and of one. */
static void test_pages(void **state) {
    enum { PAGES = 8, TOKENS = 2 };
    static const int32_t entries[PAGES] = {7, 0, 3, 5, 1, 6, 4, 2};
    static const int64_t lengths[] = {TOKENS, 1}, queries[] = {QUERIES, 50};
    (void)state;
    for (int t = 0; t < table_count * 4; t++) {
        const int64_t tokens = lengths[t % 2], rows = queries[t / 2 % 2];
        rapt_attention_desc desc = attention();
        desc.isa = tables[t / 4]->isa;
        desc.query_length = rows;
        desc.query = drawn(SEQUENCES, QUERY_HEADS, rows, WIDTH);
        desc.out = drawn(SEQUENCES, QUERY_HEADS, rows, WIDTH);
        desc.kv_length = tokens * PAGES / SEQUENCES;
        desc.key = in_pages(drawn(PAGES, GROUPS, tokens, WIDTH));
        desc.value = in_pages(drawn(PAGES, GROUPS, tokens, WIDTH));
        desc.key_pages = (rapt_page_table){.kind = RAPT_PAGES_DENSE,
                                           .page_tokens = tokens,
                                           .pages = PAGES,
                                           .batch_stride_bytes = PAGES / SEQUENCES * 4,
                                           .entries = rapt_int32_list(entries, PAGES / SEQUENCES)};
        desc.value_pages = desc.key_pages;
        const struct part parts[] = {{&desc.key, {PAGES, GROUPS, tokens}, WIDTH * 4, false, true},
                                     {&desc.value, {PAGES, GROUPS, tokens}, WIDTH * 4, false, true},
                                     {&desc.out, {SEQUENCES, QUERY_HEADS, rows}, WIDTH * 4, true, false}};
        check_parts(parts, sizeof parts / sizeof *parts, attend, &desc);
        test_free_all();
    }
}

struct scaled_attention {
    rapt_attention_desc desc;
    rapt_tensor scales; /* of keys */
};

static void attend_scaled(void *call) {
    struct scaled_attention *scaled = call;
    set_scales(&scaled->desc.key, &scaled->scales);
    attend(&scaled->desc);
}

static void test_scales(void **state) {
    (void)state;
    for (int t = 0; t < table_count; t++) {
        struct scaled_attention call = {attention(), drawn(SEQUENCES, GROUPS, KEYS, 1)};
        call.desc.isa = tables[t]->isa;
        call.desc.key = drawn_bytes(SEQUENCES, GROUPS, KEYS, WIDTH);
        const struct part parts[] = {
            {&call.desc.key, {SEQUENCES, GROUPS, KEYS}, WIDTH, false, false},
            {&call.scales, {SEQUENCES, GROUPS, KEYS}, 4, false, false},
            {&call.desc.out, {SEQUENCES, QUERY_HEADS, QUERIES}, WIDTH * 4, true, false}};
        check_parts(parts, sizeof parts / sizeof *parts, attend_scaled, &call);
        test_free_all();
    }
}

/* Sequences that choose their batch of the tensors. */
static void test_rows(void **state) {
    static const int32_t entries[SEQUENCES] = {3, 1};
    (void)state;
    for (int t = 0; t < table_count; t++) {
        rapt_attention_desc desc = attention();
        desc.isa = tables[t]->isa;
        desc.key = drawn(4, GROUPS, KEYS, WIDTH);
        desc.key_pages = (rapt_page_table){
            .kind = RAPT_PAGES_ROW, .pages = 4, .entries = rapt_int32_list(entries, SEQUENCES)};
        const struct part parts[] = {{&desc.key, {4, GROUPS, KEYS}, WIDTH * 4, false, false},
                                     {&desc.out, {SEQUENCES, QUERY_HEADS, QUERIES}, WIDTH * 4, true, false}};
        check_parts(parts, sizeof parts / sizeof *parts, attend, &desc);
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_rows),
    };
    table_count = machine_tables(tables);
    return cmocka_run_group_tests_name("far", tests, NULL, NULL);
}
