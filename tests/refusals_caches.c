/* SPDX-License-Identifier: MIT
 * Packed sequences: what is refused, and the odd ones that are right. */
#include "refusals.h"

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
    static const int64_t absurd[3] = {0, INT64_MAX, 3}, wrapped[3] = {0, 3, INT64_C(1) << 32}, least[3] = {0, INT64_MIN, 1};
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
    REFUSED(RAPT_INVALID_STRIDE, "query: its strides times its sizes overflow", pack_queries(d),
            d->query_tokens = INT64_C(1) << 40, d->query.token_stride_bytes = INT64_C(1) << 30);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps itself", pack_queries(d), d->out.token_stride_bytes = 32);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key", pack_keys(d), d->key.data = d->out.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key", pack_keys(d), d->kv_tokens = 22,
            d->key.data = (float *)d->out.data - 2 * 8 * 21); /* the last token, which no sequence has */
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
    END_OF_ROWS;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_packed_memory),
        cmocka_unit_test(test_packed_is_legal),
    };
    return cmocka_run_group_tests_name("refusals_caches", tests, NULL, NULL);
}
