/* SPDX-License-Identifier: MIT
 * Every refusal of rotary embeddings, by rapt_append and rapt_rotate. */
#include "append/refused.h"

static void refuse_rotary(void) {
    REFUSED(RAPT_UNSUPPORTED_FLAG, "rotary.pairing = 3", d->rotary.pairing = 3);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "rotary.scaling = 5", d->rotary.scaling = 5);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "rotary.pairing = -1", with_rotary(d), d->rotary.pairing = -1);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "rotary.scaling = -1", with_rotary(d), d->rotary.scaling = -1);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.scaling is set", d->rotary.scaling = 1);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.cosines is set", d->rotary.cosines = table);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.sines is set", d->rotary.sines = table);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.table_positions is set", d->rotary.table_positions = 1);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.table_stride_bytes is set", d->rotary.table_stride_bytes = 16);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.factor is set", d->rotary.factor = 2);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.original_length is set", d->rotary.original_length = 2);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.low_factor is set", d->rotary.low_factor = 1);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.high_factor is set", d->rotary.high_factor = 1);
    REFUSED(RAPT_INVALID_VALUE, "rotary.factor = 5.6", with_scaling(d, RAPT_ROTARY_LINEAR), d->rotary.factor = 0x1p49);
    REFUSED(RAPT_INVALID_VALUE, "rotary.original_length = 5.6", with_scaling(d, RAPT_ROTARY_YARN),
            d->rotary.original_length = 0x1p49);
    REFUSED(RAPT_INVALID_VALUE, "rotary.high_factor = 5.6", with_scaling(d, RAPT_ROTARY_LLAMA3),
            d->rotary.high_factor = 0x1p49);
    REFUSED(RAPT_INVALID_VALUE, "rotary.attention_factor = -5.6", with_rotary(d), d->rotary.attention_factor = -0x1p49);
    REFUSED(RAPT_INVALID_SHAPE, "rotary.table_positions = 281474976710657", with_cosines(d),
            d->rotary.table_positions = (INT64_C(1) << 48) + 1);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.reserved[3] = 1", d->rotary.reserved[3] = 1);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.base is set", d->rotary.base = 10000);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.dim is set", d->rotary.dim = 8);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.frequencies is set", d->rotary.frequencies = table);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.attention_factor is set", d->rotary.attention_factor = 1);
    REFUSED(RAPT_INVALID_SHAPE, "rotary.dim = 3", with_rotary(d), d->rotary.dim = 3);
    REFUSED(RAPT_INVALID_SHAPE, "rotary.dim = 10", with_rotary(d), d->rotary.dim = 10);
    REFUSED(RAPT_INVALID_SHAPE, "rotary.dim = -2", with_rotary(d), d->rotary.dim = -2);
    REFUSED(RAPT_INVALID_VALUE, "rotary.base = 1 is", with_rotary(d), d->rotary.base = 1);
    REFUSED(RAPT_INVALID_VALUE, "rotary.base = 0", with_rotary(d), d->rotary.base = 0);
    REFUSED(RAPT_INVALID_VALUE, "rotary.base = nan", with_rotary(d), d->rotary.base = (double)float_of(0x7fc00000));
    REFUSED(RAPT_INVALID_VALUE, "rotary.base = inf", with_rotary(d), d->rotary.base = (double)float_of(0x7f800000));
    REFUSED(RAPT_UNUSED_FIELD, "rotary.factor is set", with_rotary(d), d->rotary.factor = 2);
    REFUSED(RAPT_INVALID_VALUE, "rotary.factor = 0.5", with_scaling(d, RAPT_ROTARY_LINEAR), d->rotary.factor = 0.5);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.original_length", with_scaling(d, RAPT_ROTARY_NTK),
            d->rotary.original_length = 9);
    REFUSED(RAPT_INVALID_VALUE, "rotary.original_length = 0", with_scaling(d, RAPT_ROTARY_YARN),
            d->rotary.original_length = 0);
    REFUSED(RAPT_INVALID_VALUE, "rotary.low_factor = -1", with_scaling(d, RAPT_ROTARY_YARN), d->rotary.low_factor = -1);
    REFUSED(RAPT_INVALID_VALUE, "rotary.low_factor = 4", with_scaling(d, RAPT_ROTARY_LLAMA3), d->rotary.low_factor = 4);
    REFUSED(RAPT_INVALID_VALUE, "rotary.attention_factor = inf", with_rotary(d),
            d->rotary.attention_factor = (double)float_of(0x7f800000));
    REFUSED(RAPT_NULL_POINTER, "rotary.sines is NULL", with_cosines(d), d->rotary.sines = NULL);
    REFUSED(RAPT_NULL_POINTER, "rotary.cosines is NULL", with_cosines(d), d->rotary.cosines = NULL);
    REFUSED(RAPT_INVALID_SHAPE, "rotary.table_positions = -1", with_cosines(d), d->rotary.table_positions = -1);
    REFUSED(RAPT_INVALID_STRIDE, "rotary.table_stride_bytes = 12", with_cosines(d), d->rotary.table_stride_bytes = 12);
    REFUSED(RAPT_INVALID_STRIDE, "rotary.table_stride_bytes = 18", with_cosines(d), d->rotary.table_stride_bytes = 18);
    REFUSED(RAPT_INVALID_STRIDE, "rotary.cosines: 65536 positions at rotary.table_stride_bytes = 281474976710656",
            with_cosines(d), d->rotary.table_positions = 1 << 16, d->rotary.table_stride_bytes = INT64_C(1) << 48);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.base is set", with_cosines(d), d->rotary.base = 10000);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.scaling is set", with_cosines(d), d->rotary.scaling = 1);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.attention_factor", with_cosines(d), d->rotary.attention_factor = 1);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.frequencies is set", with_cosines(d), d->rotary.frequencies = table);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.table_positions is set", with_rotary(d), d->rotary.table_positions = 1);
    REFUSED(RAPT_MISALIGNED_POINTER, "rotary.cosines", with_cosines(d),
            d->rotary.cosines = (const float *)(const void *)((const char *)table + 1));
    REFUSED(RAPT_INVALID_SHAPE, "rotary.sines", with_cosines(d), d->rotary.sines = (const float *)(UINTPTR_MAX - 7));
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "key_cache overlaps rotary.sines", with_cosines(d),
            d->key_cache.data = table + 179); /* the last of 20 rows of 4 */
    REFUSED(RAPT_INVALID_VALUE, "positions[0] = 2: the last of its 3 tokens is outside 0 ... 3", with_cosines(d),
            d->rotary.table_positions = 4);
    REFUSED(RAPT_INVALID_VALUE, "rotary.frequencies[3] = 2", with_rotary(d), d->rotary.base = 0, table[3] = 2,
            d->rotary.frequencies = table);
    REFUSED(RAPT_INVALID_VALUE, "rotary.frequencies[3] = -0.5", with_rotary(d), d->rotary.base = 0, table[3] = -0.5f,
            d->rotary.frequencies = table);
    table[3] = 0;
    REFUSED(RAPT_MISALIGNED_POINTER, "rotary.frequencies = ", with_rotary(d), d->rotary.base = 0,
            d->rotary.frequencies = (const float *)(const void *)((const char *)table + 1));
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "key_cache overlaps rotary.frequencies", with_rotary(d), d->rotary.base = 0,
            d->rotary.frequencies = table, d->key_cache.data = table);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.high_factor is set", with_rotary(d), d->rotary.base = 0,
            d->rotary.frequencies = table, d->rotary.high_factor = 1);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.scaling is set, but rotary.frequencies", with_rotary(d), d->rotary.base = 0,
            d->rotary.frequencies = table, d->rotary.scaling = RAPT_ROTARY_LINEAR);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.table_stride_bytes is set, but rotary.cosines", with_rotary(d),
            d->rotary.table_stride_bytes = 16);
    REFUSED(RAPT_UNUSED_FIELD, "rotary.base is set", with_rotary(d), d->rotary.frequencies = table);
    REFUSED(RAPT_NULL_POINTER, "rotary_positions.data is NULL", with_slots(d), with_rotary(d));
    REFUSED(RAPT_INVALID_VALUE, "rotary_positions[4] = 536870913", with_rotary(d), rotary_positions[4] = (1 << 29) + 1,
            d->rotary_positions = rapt_int64_list(rotary_positions, 6));
    REFUSED(RAPT_INVALID_VALUE, "rotary_positions[4] = -1", with_cosines(d), rotary_positions[4] = -1,
            d->rotary_positions = rapt_int64_list(rotary_positions, 6));
    REFUSED(RAPT_UNUSED_FIELD, "rotary.pairing is set, but key is absent", with_rotary(d),
            d->key = d->key_cache = (rapt_tensor){0});
}

static void refuse_rotate(void) {
    ROTATE_REFUSED(RAPT_UNSUPPORTED_VERSION, "struct_size = 4", d->struct_size = 4);
    ROTATE_REFUSED(RAPT_UNSUPPORTED_FLAG, "numerics = 1", d->numerics = 1);
    ROTATE_REFUSED(RAPT_UNUSED_FIELD, "reserved[0] = 1", d->reserved[0] = 1);
    ROTATE_REFUSED(RAPT_UNSUPPORTED_FLAG, "rotary.pairing = 0", d->rotary.pairing = 0);
    ROTATE_REFUSED(RAPT_INVALID_SHAPE, "heads = 0", d->heads = 0);
    ROTATE_REFUSED(RAPT_NULL_POINTER, "in.data is NULL", d->in = (rapt_tensor){0});
    ROTATE_REFUSED(RAPT_NULL_POINTER, "out is absent", d->out = (rapt_tensor){0});
    ROTATE_REFUSED(RAPT_UNUSED_FIELD, "reserved_zero = 1", d->reserved_zero = 1);
    ROTATE_REFUSED(RAPT_NULL_POINTER, "first_positions.data is NULL, and so is positions.data",
                   d->positions = (rapt_index_list){0});
    ROTATE_REFUSED(RAPT_UNUSED_FIELD, "first_positions is set", d->first_positions = rapt_int64_list(positions, 2));
    ROTATE_REFUSED(RAPT_INVALID_VALUE, "first_positions[1] = 536870912: the last of its 2 tokens", with_first(d),
                   positions[1] = 1 << 29);
    ROTATE_REFUSED(RAPT_INVALID_VALUE, "first_positions[1] = -536870913", with_first(d),
                   positions[1] = -(1 << 29) - 1);
    ROTATE_REFUSED(RAPT_OUT_OF_EXTENT, "first_positions.count = 1", with_first(d), d->first_positions.count = 1);
    ROTATE_REFUSED(RAPT_INVALID_VALUE, "lengths[1] = 3", d->lengths = rapt_int64_list(lengths, 2), lengths[1] = 3);
    ROTATE_REFUSED(RAPT_INVALID_VALUE, "offsets[2] = 5", with_packed(d), offsets[2] = 5);
    ROTATE_REFUSED(RAPT_UNUSED_FIELD, "tokens is set", d->tokens = 4);
    ROTATE_REFUSED(RAPT_OUT_OF_EXTENT, "out.extent_bytes", with_packed(d), d->tokens = 5, d->in.extent_bytes = 0);
    ROTATE_REFUSED(RAPT_UNSUPPORTED_DTYPE, "out.dtype = 5: expected float32, float16, bfloat16, got",
                   d->out.dtype = RAPT_Q8_0);
    ROTATE_REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps in", d->in.data = out);
    ROTATE_REFUSED(RAPT_INVALID_VALUE, "positions[3] = -536870913", rotary_positions[3] = -(1 << 29) - 1);
    ROTATE_REFUSED(RAPT_OUT_OF_EXTENT, "positions.count = 3", d->positions.count = 3);
}

static void test_refusals(void **state) {
    (void)state;
    refuse_rotary();
    refuse_rotate();
    assert_int_equal(rapt_rotate(NULL, NULL, NULL), RAPT_NULL_POINTER);
    assert_int_equal(wrong_rows, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests_name("append_refusals_rotary", tests, NULL, NULL);
}
