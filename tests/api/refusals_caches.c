/* SPDX-License-Identifier: MIT
 * Packed sequences and pages: refusals, and odd valid ones. */
#include "api/refusals.h"

#include <math.h>

/* The same 3 queries and 5 keys of each sequence, packed. */
static void pack_queries(rapt_attention_desc *d) {
    static const int32_t offsets[3] = {0, 3, 6};
    d->query_offsets = rapt_int32_list(offsets, 3);
    d->query_tokens = 6;
    d->query = rapt_input_bshd(d->query.data, 1, 6, 4, 8);
    d->out = rapt_output_bshd(d->out.data, 1, 6, 4, 8);
    d->query.extent_bytes = d->out.extent_bytes = 0;
}

static void pack_keys(rapt_attention_desc *d) {
    static const int64_t offsets[3] = {0, 5, 10};
    d->kv_offsets = rapt_int64_list(offsets, 3);
    d->kv_tokens = 10;
    d->key = rapt_input_bshd(d->key.data, 1, 10, 2, 8);
    d->value = rapt_input_bshd(d->value.data, 1, 10, 2, 8);
    d->key.extent_bytes = d->value.extent_bytes = 0;
}

static void test_offsets(void **state) {
    (void)state;
    static const int32_t negative[3] = {-1, 2, 4}, falling[3] = {0, 3, 2}, longer[3] = {0, 2, 6}, beyond[3] = {1, 4, 7};
    static const int32_t lowest[3] = {INT32_MIN, 0, 3}, lengths[2] = {1, 1}, threes[3] = {0, 3, 6};
    static const int64_t absurd[3] = {0, INT64_MAX, 3}, wrapped[3] = {0, 3, INT64_C(1) << 32};
    static const int64_t least[3] = {0, INT64_MIN, 1};
    REFUSED(RAPT_INVALID_VALUE, "query_offsets[0] = -1 is outside 0 ... query_tokens = 6", pack_queries(d),
            d->query_offsets = list32(negative));
    REFUSED(RAPT_INVALID_VALUE, "query_offsets[0] = -2147483648", pack_queries(d), d->query_offsets = list32(lowest));
    REFUSED(RAPT_INVALID_VALUE, "query_offsets[2] = 2 is outside 3 ... query_tokens = 6", pack_queries(d),
            d->query_offsets = list32(falling));
    REFUSED(RAPT_INVALID_VALUE, "query_offsets[2] = 6 is 4 after the one before; query_length = 3", pack_queries(d),
            d->query_offsets = list32(longer));
    REFUSED(RAPT_INVALID_VALUE, "query_offsets[2] = 7 is outside 4 ... query_tokens = 6", pack_queries(d),
            d->query_offsets = list32(beyond));
    REFUSED(RAPT_INVALID_VALUE, "query_offsets[2] = 4294967296", pack_queries(d), d->query_offsets = list64(wrapped));
    REFUSED(RAPT_INVALID_VALUE, "kv_offsets[1] = 9223372036854775807 is outside 0 ... kv_tokens = 10", pack_keys(d),
            d->kv_offsets = list64(absurd));
    REFUSED(RAPT_INVALID_VALUE, "kv_offsets[1] = -9223372036854775808", pack_keys(d), d->kv_offsets = list64(least));
    REFUSED(RAPT_INVALID_VALUE, "kv_offsets[1] = 5 is 5 after the one before; kv_length = 4", pack_keys(d),
            d->kv_length = 4);
    REFUSED(RAPT_INVALID_VALUE, "kv_offsets[2] = 10 is outside 5 ... kv_tokens = 9", pack_keys(d), d->kv_tokens = 9);
    REFUSED(RAPT_INVALID_SHAPE, "query_tokens = -1", pack_queries(d), d->query_tokens = -1);
    REFUSED(RAPT_INVALID_SHAPE, "kv_tokens", pack_keys(d), d->kv_tokens = INT64_MAX);
    REFUSED(RAPT_OUT_OF_EXTENT, "query_offsets.count = 2, but batch = 2 takes one more", pack_queries(d),
            d->query_offsets.count = 2);
    REFUSED(RAPT_INVALID_VALUE, "kv_offsets.index_bytes = 2", pack_keys(d), d->kv_offsets.index_bytes = 2);
    REFUSED(RAPT_MISALIGNED_POINTER, "query_offsets", pack_queries(d),
            d->query_offsets = list32((const char *)falling + 2));
    REFUSED(RAPT_INVALID_STRIDE, "kv_offsets.stride_bytes = -8", pack_keys(d), d->kv_offsets.stride_bytes = -8);
    REFUSED(RAPT_UNUSED_FIELD, "query_tokens is set, but query_offsets", d->query_tokens = 6);
    REFUSED(RAPT_UNUSED_FIELD, "kv_tokens is set, but kv_offsets", d->kv_tokens = 10);
    REFUSED(RAPT_UNUSED_FIELD, "query_lengths is set, but query_offsets", pack_queries(d),
            d->query_lengths = list32(lengths));
    REFUSED(RAPT_UNUSED_FIELD, "kv_lengths is set, but kv_offsets", pack_keys(d), d->kv_lengths = list32(lengths));
    REFUSED(RAPT_UNUSED_FIELD, "query_offsets.data is NULL", d->query_offsets.count = 3);
    REFUSED(RAPT_UNSTATED_POSITION, "offsets", pack_queries(d), d->kv_length = 3, d->features = RAPT_CAUSAL);
    REFUSED(RAPT_UNSTATED_POSITION, "offsets", pack_keys(d), d->kv_length = 3,
            d->kv_offsets = list32(threes), d->features = RAPT_CAUSAL);
    END_OF_ROWS;
}

static void test_packed_memory(void **state) {
    (void)state;
    REFUSED(RAPT_OUT_OF_EXTENT, "query.extent_bytes = 767", pack_queries(d), d->query.extent_bytes = 767);
    REFUSED(RAPT_OUT_OF_EXTENT, "key.extent_bytes = 639", pack_keys(d), d->key.extent_bytes = 639);
    REFUSED(RAPT_OUT_OF_EXTENT, "key.extent_bytes = 640", pack_keys(d), d->kv_tokens = 11, d->key.extent_bytes = 640);
    REFUSED(RAPT_INVALID_STRIDE, "query.token_stride_bytes = 1073741824 overflows int64 with a size of 1099511627776",
            pack_queries(d),
            d->query_tokens = INT64_C(1) << 40, d->query.token_stride_bytes = INT64_C(1) << 30);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps itself", pack_queries(d), d->out.token_stride_bytes = 32);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key", pack_keys(d), d->key.data = d->out.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key", pack_keys(d), d->kv_tokens = 22,
            d->key.data = (float *)d->out.data - 2 * 8 * 21); /* the last token, of no sequence */
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps query_offsets", pack_queries(d),
            d->query_offsets = list32(zeros), d->out.data = (void *)(uintptr_t)(zeros + 2));
    END_OF_ROWS;
}

static void test_packed_is_legal(void **state) {
    (void)state;
    static const int32_t empty[3] = {0, 0, 0}, gaps[3] = {1, 2, 2}, one[2] = {2, 5};
    const rapt_tensor none = {0};
    float plain[2 * 3 * 4 * 8];
    LEGAL(d->query = rapt_input_bshd(d->query.data, 2, 3, 4, 8), d->out = rapt_output_bshd(d->out.data, 2, 3, 4, 8),
          d->key = rapt_input_bshd(d->key.data, 2, 5, 2, 8), d->value = rapt_input_bshd(d->value.data, 2, 5, 2, 8));
    memcpy(plain, fresh_out(), sizeof plain);
    LEGAL(pack_queries(d), pack_keys(d));
    assert_memory_equal(fresh_out(), plain, sizeof plain);
    LEGAL(pack_queries(d), d->query.batch_stride_bytes = INT64_MIN, d->out.batch_stride_bytes = 0);
    LEGAL(pack_queries(d), pack_keys(d), d->query.extent_bytes = 768, d->key.extent_bytes = 640);
    LEGAL(pack_queries(d), d->query_length = 1 << 20); /* only an upper bound */
    LEGAL(pack_keys(d), d->kv_length = 1 << 20);
    LEGAL(pack_queries(d), d->query_offsets = list32(gaps));
    LEGAL(pack_queries(d), d->query_offsets = list32(empty));
    LEGAL(pack_queries(d), d->query_offsets = list32(empty), d->query_tokens = 0, d->query = d->out = none);
    assert_true(outputs_untouched());
    LEGAL(pack_queries(d), d->batch = 1, d->query_offsets = list32(one));
    LEGAL(pack_keys(d), d->kv_offsets = list32(empty), d->kv_tokens = 0, d->key = d->value = none, with_lse(d));
    for (int i = 0; i < 2 * 4 * 3; i++)
        assert_true(fresh_lse()[i] == -INFINITY);
    LEGAL(pack_queries(d), d->batch = 0);
    LEGAL(pack_queries(d), d->batch = 0,
          d->kv_lengths = list32((float *)d->out.data + 1)); /* no entry that out could overlap */
    END_OF_ROWS;
}

/* ---- pages: 4 pages of 3 tokens, [page][head][token]; sequence 0 has pages 1 and 3, sequence 1 has 2 and 0 */

static void page_keys(rapt_attention_desc *d) {
    static const int32_t entries[4] = {1, 3, 2, 0};
    d->key_pages = (rapt_page_table){.kind = RAPT_PAGES_DENSE, .page_tokens = 3, .pages = 4};
    d->key_pages.entries = rapt_int32_list(entries, 2);
    d->key_pages.batch_stride_bytes = 8;
    d->key = rapt_input_bhsd(d->key.data, 4, 2, 3, 8);
    d->key.page_stride_bytes = d->key.batch_stride_bytes;
    d->key.extent_bytes = 0;
}

static void page_both(rapt_attention_desc *d) {
    page_keys(d);
    d->value_pages = d->key_pages;
    d->value = d->key;
}

static void list_keys(rapt_attention_desc *d) {
    static const int64_t entries[5] = {-1, 1, 3, 2, 0};
    static const int32_t offsets[3] = {1, 3, 5};
    page_keys(d);
    d->key_pages.kind = RAPT_PAGES_LISTED;
    d->key_pages.entries = rapt_int64_list(entries, 5);
    d->key_pages.offsets = rapt_int32_list(offsets, 3);
    d->key_pages.batch_stride_bytes = 0;
}

static void row_keys(rapt_attention_desc *d) {
    static const int32_t entries[2] = {2, 0};
    d->key_pages = (rapt_page_table){.kind = RAPT_PAGES_ROW, .pages = 3, .entries = rapt_int32_list(entries, 2)};
}

static void test_table_fields(void **state) {
    (void)state;
    REFUSED(RAPT_UNSUPPORTED_FLAG, "key_pages.kind = 4 is outside 0 ... 3", page_keys(d), d->key_pages.kind = 4);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "value_pages.kind = -1", d->value_pages.kind = -1);
    REFUSED(RAPT_UNUSED_FIELD, "key_pages is set, but its kind is 0", page_keys(d), d->key_pages.kind = 0);
    REFUSED(RAPT_UNUSED_FIELD, "key_pages.reserved[1] = 3 is not 0", page_keys(d), d->key_pages.reserved[1] = 3);
    REFUSED(RAPT_UNUSED_FIELD, "value_pages.reserved_zero = 1 is not 0", page_both(d),
            d->value_pages.reserved_zero = 1);
    REFUSED(RAPT_INVALID_SHAPE, "key_pages.pages = -1", page_keys(d), d->key_pages.pages = -1);
    REFUSED(RAPT_INVALID_SHAPE, "key_pages.pages", page_keys(d), d->key_pages.pages = INT64_MAX);
    REFUSED(RAPT_INVALID_SHAPE, "key_pages.page_tokens = 0 is outside 1 ... 2^40", page_keys(d),
            d->key_pages.page_tokens = 0);
    REFUSED(RAPT_INVALID_SHAPE, "value_pages.page_tokens = -16", page_both(d), d->value_pages.page_tokens = -16);
    REFUSED(RAPT_INVALID_SHAPE, "key_pages.page_tokens = 9223372036854775807", page_keys(d),
            d->key_pages.page_tokens = INT64_MAX);
    REFUSED(RAPT_UNUSED_FIELD, "key_pages.page_tokens = 5 is set, but kind = 3", row_keys(d),
            d->key_pages.page_tokens = 5);
    REFUSED(RAPT_UNUSED_FIELD, "key_pages.batch_stride_bytes = 8 is set", list_keys(d),
            d->key_pages.batch_stride_bytes = 8);
    REFUSED(RAPT_UNUSED_FIELD, "key_pages.offsets is set", page_keys(d), d->key_pages.offsets = list32(zeros));
    REFUSED(RAPT_UNUSED_FIELD, "key.page_stride_bytes is set", d->key.page_stride_bytes = 64);
    REFUSED(RAPT_UNUSED_FIELD, "value.page_stride_bytes is set", page_keys(d), d->value.page_stride_bytes = 64);
    REFUSED(RAPT_UNUSED_FIELD, "query.page_stride_bytes is set", page_keys(d), d->query.page_stride_bytes = 64);
    REFUSED(RAPT_UNUSED_FIELD, "key.page_stride_bytes is set", row_keys(d), d->key.page_stride_bytes = 64);
    REFUSED(RAPT_INVALID_STRIDE, "key.page_stride_bytes = 0 for more than one page", page_keys(d),
            d->key.page_stride_bytes = 0);
    REFUSED(RAPT_INVALID_STRIDE, "key.page_stride_bytes = 194 is not a multiple of 4", page_keys(d),
            d->key.page_stride_bytes = 194);
    END_OF_ROWS;
}

static void test_table_lists(void **state) {
    (void)state;
    static const int32_t falling[3] = {3, 1, 5}, beyond[3] = {1, 3, 6}, negative[3] = {-2, 3, 5}, few[3] = {1, 2, 5};
    static const int64_t absurd[3] = {1, INT64_MAX, 5};
    REFUSED(RAPT_NULL_POINTER, "key_pages.entries.data is NULL", page_keys(d),
            d->key_pages.entries = (rapt_index_list){0});
    REFUSED(RAPT_NULL_POINTER, "key_pages.offsets.data is NULL", list_keys(d),
            d->key_pages.offsets = (rapt_index_list){0});
    REFUSED(RAPT_NULL_POINTER, "key_pages.entries.data is NULL", row_keys(d),
            d->key_pages.entries = (rapt_index_list){0});
    REFUSED(RAPT_INVALID_VALUE, "key_pages.entries.index_bytes = 3", page_keys(d),
            d->key_pages.entries.index_bytes = 3);
    REFUSED(RAPT_MISALIGNED_POINTER, "value_pages.entries", page_both(d),
            d->value_pages.entries.data = (const char *)d->value_pages.entries.data + 1);
    REFUSED(RAPT_INVALID_STRIDE, "key_pages.batch_stride_bytes = -8", page_keys(d),
            d->key_pages.batch_stride_bytes = -8);
    REFUSED(RAPT_INVALID_STRIDE, "key_pages.batch_stride_bytes = 6", page_keys(d),
            d->key_pages.batch_stride_bytes = 6);
    REFUSED(RAPT_INVALID_SHAPE, "key_pages.batch_stride_bytes: 2 rows", page_keys(d),
            d->key_pages.batch_stride_bytes = INT64_MAX - 7);
    REFUSED(RAPT_OUT_OF_EXTENT, "key_pages: sequence 0 has keys in 2 pages, entries.count = 1", page_keys(d),
            d->key_pages.entries.count = 1);
    REFUSED(RAPT_OUT_OF_EXTENT, "key_pages.entries.count = -1 is negative", page_keys(d),
            d->key_pages.entries.count = -1);
    REFUSED(RAPT_INVALID_SHAPE, "key_pages.entries", page_keys(d), d->key_pages.entries.count = INT64_MAX);
    REFUSED(RAPT_OUT_OF_EXTENT, "key_pages.offsets.count = 2, but 3 entries are read", list_keys(d),
            d->key_pages.offsets.count = 2);
    REFUSED(RAPT_INVALID_VALUE, "key_pages.offsets[0] = 3 and the next, 1, do not grow", list_keys(d),
            d->key_pages.offsets = list32(falling));
    REFUSED(RAPT_INVALID_VALUE, "within 0 ... entries.count = 5", list_keys(d), d->key_pages.offsets = list32(beyond));
    REFUSED(RAPT_INVALID_VALUE, "key_pages.offsets[0] = -2", list_keys(d), d->key_pages.offsets = list32(negative));
    REFUSED(RAPT_INVALID_VALUE, "9223372036854775807", list_keys(d), d->key_pages.offsets = list64(absurd));
    REFUSED(RAPT_INVALID_VALUE, "entries.count = 0", list_keys(d), d->key_pages.entries.count = 0);
    REFUSED(RAPT_OUT_OF_EXTENT, "key_pages: sequence 0 has 1 pages, but 2 with keys", list_keys(d),
            d->key_pages.offsets = list32(few));
    REFUSED(RAPT_OUT_OF_EXTENT, "key_pages.entries.count = 1, but 2 entries are read", row_keys(d),
            d->key_pages.entries.count = 1);
    END_OF_ROWS;
}

static void test_table_entries(void **state) {
    (void)state;
    static const int32_t low[4] = {1, -1, 2, 0}, high[4] = {1, 3, 4, 0}, lowest[4] = {1, 3, 2, INT32_MIN};
    static const int32_t from_0[3] = {0, 2, 5}, longer[2] = {3, 4};
    static const int64_t highest[4] = {INT64_MAX, 3, 2, 0}, wrapped[2] = {0, INT64_C(1) << 32}, row[2] = {3, 0};
    REFUSED(RAPT_INVALID_VALUE, "key_pages: page 1 of sequence 0 is -1, outside 0 ... 3", page_keys(d),
            d->key_pages.entries.data = low);
    REFUSED(RAPT_INVALID_VALUE, "value_pages: page 0 of sequence 1 is 4, outside 0 ... 3", page_both(d),
            d->value_pages.entries.data = high);
    REFUSED(RAPT_INVALID_VALUE, "key_pages: page 1 of sequence 1 is -2147483648", page_both(d),
            d->key_pages.entries.data = lowest);
    REFUSED(RAPT_INVALID_VALUE, "key_pages: page 0 of sequence 0 is 9223372036854775807", page_keys(d),
            d->key_pages.entries = rapt_int64_list(highest, 2), d->key_pages.batch_stride_bytes = 16);
    REFUSED(RAPT_INVALID_VALUE, "key_pages: page 1 of sequence 0 is 3, outside 0 ... 2", page_keys(d),
            d->key_pages.pages = 3);
    /* Rows that overlap, interleave, or are one, of which the second sequence reads more. */
    REFUSED(RAPT_INVALID_VALUE, "key_pages: page 1 of sequence 1 is 4", page_keys(d), d->key_pages.entries.data = high,
            d->key_pages.batch_stride_bytes = 4);
    REFUSED(RAPT_INVALID_VALUE, "key_pages: page 0 of sequence 1 is -1", page_keys(d), d->key_pages.entries.data = low,
            d->key_pages.entries.stride_bytes = 8, d->key_pages.batch_stride_bytes = 4);
    REFUSED(RAPT_INVALID_VALUE, "key_pages: page 1 of sequence 1 is -1", page_keys(d), d->key_pages.entries.data = low,
            d->key_pages.batch_stride_bytes = 0, d->kv_lengths = list32(longer));
    REFUSED(RAPT_INVALID_VALUE, "key_pages: page 0 of sequence 0 is -1, outside 0 ... 3", list_keys(d),
            d->key_pages.offsets = list32(from_0));
    REFUSED(RAPT_INVALID_VALUE, "key_pages.entries[0] = 3 is outside 0 ... 2", row_keys(d),
            d->key_pages.entries = list64(row));
    REFUSED(RAPT_INVALID_VALUE, "key_pages.entries[1] = 4294967296", row_keys(d),
            d->key_pages.entries = list64(wrapped));
    END_OF_ROWS;
}

static void test_paged_memory(void **state) {
    (void)state;
    static const int32_t none[2] = {0, 0};
    REFUSED(RAPT_OUT_OF_EXTENT, "key.extent_bytes = 767", page_keys(d), d->key.extent_bytes = 767);
    REFUSED(RAPT_OUT_OF_EXTENT, "key.extent_bytes = 768", page_keys(d), d->key_pages.pages = 5,
            d->key.extent_bytes = 768);
    REFUSED(RAPT_OUT_OF_EXTENT, "key.extent_bytes = 639", row_keys(d), d->key.extent_bytes = 639);
    REFUSED(RAPT_INVALID_STRIDE, "key.page_stride_bytes = 1099511627776 overflows int64", page_keys(d),
            d->key_pages.pages = INT64_C(1) << 40, d->key.page_stride_bytes = INT64_C(1) << 40);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key", page_keys(d), d->key.data = d->out.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps value", page_both(d), d->value_pages.pages = 9,
            d->value.data = (float *)d->out.data - 8 * 48); /* the last page, of no sequence */
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key_pages.entries", page_keys(d),
            d->key_pages.entries.data = zeros, d->key_pages.batch_stride_bytes = 1024,
            d->out.data = (void *)(uintptr_t)(zeros + 257));
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key_pages.entries", page_keys(d),
            d->key_pages.entries.data = zeros, d->key_pages.batch_stride_bytes = 1024,
            d->out.data = (void *)(uintptr_t)(zeros + 1)); /* the first of its rows */
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key_pages.offsets", list_keys(d),
            d->key_pages.offsets = list32(zeros),
            d->kv_lengths = list32(none), d->out.data = (void *)(uintptr_t)(zeros + 2));
    END_OF_ROWS;
}

/* The same keys and values, 5 per sequence, in pages of 3 and in place. */
static void fill_pages(rapt_attention_desc *d, const float *rows, int64_t batch_stride) {
    static const int page_of[2][2] = {{1, 3}, {2, 0}};
    for (int b = 0; b < 2; b++)
        for (int h = 0; h < 2; h++)
            for (int j = 0; j < 5; j++)
                memcpy((float *)d->key.data + page_of[b][j / 3] * 48 + h * 24 + j % 3 * 8,
                       rows + b * batch_stride + h * 40 + j * 8, 8 * sizeof(float));
}

static void test_paged_is_legal(void **state) {
    (void)state;
    const int64_t many = INT64_C(1) << 33;
    static const int32_t unread[4] = {1, -7, INT32_MAX, 0}, three[2] = {3, 0}, none[2] = {-1, -1}, empty[2] = {0, 0};
    float rows[2 * 2 * 5 * 8], expected[2 * 4 * 3 * 8];
    const rapt_tensor absent = {0};
    memcpy(rows, fresh()->key.data, sizeof rows);
    LEGAL(d->value = d->key);
    memcpy(expected, fresh_out(), sizeof expected);
    LEGAL(page_both(d), fill_pages(d, rows, 80));
    assert_memory_equal(fresh_out(), expected, sizeof expected);
    LEGAL(page_both(d), fill_pages(d, rows, 80), d->key_pages.entries.count = d->value_pages.entries.count = 0);
    assert_memory_equal(fresh_out(), expected, sizeof expected);
    LEGAL(d->value = d->key, page_keys(d), fill_pages(d, rows, 80), d->value = d->key, d->value_pages = d->key_pages);
    assert_memory_equal(fresh_out(), expected, sizeof expected);
    LEGAL(list_keys(d));
    LEGAL(row_keys(d));
    LEGAL(page_keys(d), d->key_pages.entries.data = unread, d->kv_lengths = list32(three));
    LEGAL(row_keys(d), d->key_pages.entries = list32(none), d->kv_lengths = list32(empty));
    LEGAL(page_both(d), d->kv_lengths = list32(empty), d->key_pages.pages = d->value_pages.pages = 0,
          d->key = d->value = absent);
    LEGAL(page_keys(d), d->key_pages.batch_stride_bytes = 0); /* both sequences share a row */
    LEGAL_PLAN(page_both(d), d->key_pages.batch_stride_bytes = d->value_pages.batch_stride_bytes = 0,
               d->batch = many, d->query_length = 0); /* instantly, */
    LEGAL_PLAN(page_both(d), d->key_pages.batch_stride_bytes = d->value_pages.batch_stride_bytes = 0, d->batch = many,
               d->query.data = d->key.data = d->value.data = d->out.data = NULL); /* without a look at each */
    enum { BATCH = 1 << 14, PAGES = 1 << 20 };
    static int32_t pages[PAGES + BATCH], lengths[BATCH];
    for (int b = 0; b < BATCH; b++)
        lengths[b] = PAGES - b % 3;
    for (int stride = 0; stride < 2; stride++) /* each page once, too, if rows are one or overlap */
        LEGAL_PLAN(page_both(d), d->batch = BATCH, d->kv_length = PAGES, d->key_pages.page_tokens = 1,
                   d->key_pages.entries = rapt_int32_list(pages, PAGES), d->value_pages = d->key_pages,
                   d->key_pages.batch_stride_bytes = d->value_pages.batch_stride_bytes = 4 * stride,
                   d->kv_lengths = rapt_int32_list(lengths, BATCH),
                   d->query.data = d->key.data = d->value.data = d->out.data = NULL);
    LEGAL(page_keys(d), d->key.batch_stride_bytes = INT64_MIN + 2);
    LEGAL(page_keys(d), d->key.page_stride_bytes = -192, d->key.data = (float *)d->key.data + 3 * 48);
    LEGAL(page_keys(d), d->key.extent_bytes = 768);
    LEGAL(page_keys(d), pack_queries(d));
    LEGAL(pack_keys(d), page_keys(d)); /* offsets give the lengths, and the places of values */
    LEGAL(page_keys(d), d->batch = 1, d->key_pages.batch_stride_bytes = -3);
    LEGAL(page_keys(d), d->batch = 0);
    END_OF_ROWS;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_packed_memory),
        cmocka_unit_test(test_packed_is_legal),
        cmocka_unit_test(test_table_fields),
        cmocka_unit_test(test_table_lists),
        cmocka_unit_test(test_table_entries),
        cmocka_unit_test(test_paged_memory),
        cmocka_unit_test(test_paged_is_legal),
    };
    return cmocka_run_group_tests_name("refusals_caches", tests, NULL, NULL);
}
