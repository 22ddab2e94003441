/* SPDX-License-Identifier: MIT
 * Every refusal of rapt_append and rapt_rotate: status, the field in the message, nothing written; and legal oddities.
 */
#include "append/refused.h"
#include "support/cmocka_all.h"
#include "support/support.h"

static void refuse_fields(void) {
    REFUSED(RAPT_UNSUPPORTED_VERSION, "struct_size = 0", d->struct_size = 0);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "numerics = 1: the rows of caches have one order", d->numerics = 1);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "isa = -1", d->isa = -1);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "isa = 99", d->isa = 99);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "features = 0x7 has unknown bits", d->features = 7);
    REFUSED(RAPT_UNUSED_FIELD, "features has RAPT_COMPUTE_KEY_SCALES, but key_cache.scale_dtype = 0",
            d->features = RAPT_COMPUTE_KEY_SCALES);
    REFUSED(RAPT_UNUSED_FIELD, "features has RAPT_COMPUTE_VALUE_SCALES, but value_cache.scale_dtype = 0",
            d->features = RAPT_COMPUTE_VALUE_SCALES, d->value = d->value_cache = (rapt_tensor){0});
    REFUSED(RAPT_UNUSED_FIELD, "reserved[7] = 2", d->reserved[7] = 2);
    REFUSED(RAPT_INVALID_SHAPE, "batch = -1", d->batch = -1);
    REFUSED(RAPT_INVALID_SHAPE, "batch = 4611686018427387904", d->batch = INT64_C(1) << 62, d->length = 3,
            d->positions = (rapt_index_list){0}, d->pages.page_tokens = 16);
    REFUSED(RAPT_INVALID_SHAPE, "kv_heads = 0", d->kv_heads = 0);
    REFUSED(RAPT_INVALID_SHAPE, "length = -1", d->length = -1);
    REFUSED(RAPT_INVALID_SHAPE, "tokens = -1", d->tokens = -1);
    REFUSED(RAPT_INVALID_SHAPE, "cache_length = -1", d->cache_length = -1);
    REFUSED(RAPT_INVALID_SHAPE, "head_dim = 0", d->head_dim = 0);
    REFUSED(RAPT_INVALID_SHAPE, "head_dim = 1025", d->head_dim = 1025);
    REFUSED(RAPT_INVALID_SHAPE, "value_dim = -4", d->value_dim = -4);
    REFUSED(RAPT_INVALID_SHAPE, "pages.page_tokens = -1", d->pages.page_tokens = -1);
    REFUSED(RAPT_INVALID_SHAPE, "pages.pages = -1", d->pages.pages = -1);
    REFUSED(RAPT_SIZE_OVERFLOW, "length = 1099511627776", d->length = (int64_t)1 << 40, d->batch = (int64_t)1 << 40);
    REFUSED(RAPT_SIZE_OVERFLOW, "tokens = 1099511627776", d->tokens = (int64_t)1 << 40, d->kv_heads = (int64_t)1 << 20);
    REFUSED(RAPT_SIZE_OVERFLOW, "cache_length = 1099511627776", d->cache_length = (int64_t)1 << 40,
            d->batch = (int64_t)1 << 20);
    REFUSED(RAPT_SIZE_OVERFLOW, "batch = 0, kv_heads = 1048576, length = 1099511627776", d->batch = 0,
            d->length = (int64_t)1 << 40, d->kv_heads = (int64_t)1 << 20);
    REFUSED(RAPT_SIZE_OVERFLOW, "page_tokens = 1099511627776", with_slots(d),
            d->pages.pages = d->pages.page_tokens = (int64_t)1 << 40);
}

static void refuse_addressing(void) {
    REFUSED(RAPT_NULL_POINTER, "positions.data is NULL", d->positions = (rapt_index_list){0});
    REFUSED(RAPT_UNUSED_FIELD, "positions is set", with_slots(d), d->positions = rapt_int64_list(positions, 2));
    REFUSED(RAPT_UNUSED_FIELD, "cache_length is set", with_slots(d), d->cache_length = 10);
    REFUSED(RAPT_UNUSED_FIELD, "lengths is set", with_offsets(d), d->lengths = rapt_int64_list(lengths, 2));
    REFUSED(RAPT_UNUSED_FIELD, "tokens is set", d->tokens = 4);
    REFUSED(RAPT_UNUSED_FIELD, "pages is set, but its kind is 0", d->pages.page_tokens = 4);
    REFUSED(RAPT_UNUSED_FIELD, "pages is set, but its kind is 0", d->pages.pages = 4);
    REFUSED(RAPT_INVALID_SHAPE, "pages.page_tokens = 0", with_slots(d), d->pages.page_tokens = 0);
    REFUSED(RAPT_INVALID_VALUE, "pages.entries.count = 0, but 6 tokens", with_table(d, RAPT_PAGES_DENSE),
            d->pages.entries.count = 0);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "pages.kind = 9", d->pages.kind = 9);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "pages.kind = -1", d->pages.kind = -1);
    REFUSED(RAPT_UNUSED_FIELD, "pages.reserved[1] = 1 is not 0", with_table(d, RAPT_PAGES_LISTED),
            d->pages.reserved[1] = 1);
    REFUSED(RAPT_UNUSED_FIELD, "pages", d->pages.entries = rapt_int64_list(positions, 2));
    REFUSED(RAPT_UNUSED_FIELD, "pages.batch_stride_bytes is set, but slots", with_slots(d),
            d->pages.batch_stride_bytes = 8);
    REFUSED(RAPT_UNUSED_FIELD, "pages.entries is set, but slots", with_slots(d),
            d->pages.entries = rapt_int64_list(pages, 2));
    REFUSED(RAPT_UNUSED_FIELD, "pages.offsets is set, but slots", with_slots(d),
            d->pages.offsets = rapt_int64_list(page_offsets, 3));
    REFUSED(RAPT_UNUSED_FIELD, "pages.entries is set, but slots", with_slots(d), d->pages.entries.index_bytes = 4);
    REFUSED(RAPT_UNUSED_FIELD, "pages.offsets is set, but slots", with_slots(d), d->pages.offsets.stride_bytes = 8);
    REFUSED(RAPT_UNUSED_FIELD, "pages.reserved is set, but slots", with_slots(d), d->pages.reserved[1] = 1);
    REFUSED(RAPT_UNUSED_FIELD, "pages.reserved_zero is set, but slots", with_slots(d), d->pages.reserved_zero = 1);
    REFUSED(RAPT_UNUSED_FIELD, "pages is set, but its kind is 0", d->length = 0, d->pages.page_tokens = 4);
    REFUSED(RAPT_UNUSED_FIELD, "pages.kind is set", with_slots(d), d->pages.kind = RAPT_PAGES_DENSE);
    REFUSED(RAPT_UNUSED_FIELD, "cache_length is set", with_table(d, RAPT_PAGES_DENSE), d->cache_length = 5);
    REFUSED(RAPT_UNUSED_FIELD, "pages.page_tokens = 5 is set", with_table(d, RAPT_PAGES_ROW),
            d->pages.page_tokens = 5);
    REFUSED(RAPT_UNUSED_FIELD, "pages.offsets is set", with_table(d, RAPT_PAGES_ROW),
            d->pages.offsets = rapt_int64_list(page_offsets, 3));
    REFUSED(RAPT_UNUSED_FIELD, "pages.batch_stride", with_table(d, RAPT_PAGES_LISTED), d->pages.batch_stride_bytes = 8);
    REFUSED(RAPT_INVALID_SHAPE, "pages.page_tokens = 0", with_table(d, RAPT_PAGES_DENSE), d->pages.page_tokens = 0);
    REFUSED(RAPT_NULL_POINTER, "pages.entries.data", with_table(d, RAPT_PAGES_ROW),
            d->pages.entries = (rapt_index_list){0});
    REFUSED(RAPT_NULL_POINTER, "pages.offsets.data", with_table(d, RAPT_PAGES_LISTED),
            d->pages.offsets = (rapt_index_list){0});
    REFUSED(RAPT_INVALID_STRIDE, "pages.batch_stride_bytes = -16", with_table(d, RAPT_PAGES_DENSE),
            d->pages.batch_stride_bytes = -16);
    REFUSED(RAPT_INVALID_STRIDE, "pages.batch_stride_bytes = 4", with_table(d, RAPT_PAGES_DENSE),
            d->pages.batch_stride_bytes = 4);
    REFUSED(RAPT_INVALID_SHAPE, "pages.batch_stride_bytes: 2 rows", with_table(d, RAPT_PAGES_DENSE),
            d->pages.batch_stride_bytes = INT64_MAX - 7);
    for (int64_t count = 1; count <= 2; count++)
        REFUSED(RAPT_UNUSED_FIELD, "key_cache.scale_batch_stride_bytes is set", with_slots(d), d->pages.pages = count,
                slots[0] = slots[1] = slots[2] = slots[3] = slots[4] = slots[5] = -1,
                d->key_cache.scale_batch_stride_bytes = 4);
    REFUSED(RAPT_INVALID_STRIDE, "key_cache.page_stride_bytes = 0 on an output", with_slots(d),
            d->key_cache.page_stride_bytes = 0);
    REFUSED(RAPT_INVALID_VALUE, "page 0 of sequence 1", with_table(d, RAPT_PAGES_DENSE), pages[2] = 4);
    REFUSED(RAPT_INVALID_VALUE, "page 0 of sequence 0", with_table(d, RAPT_PAGES_DENSE), pages[0] = -1);
    REFUSED(RAPT_INVALID_VALUE, "positions[0] = 8 takes its page 2", with_table(d, RAPT_PAGES_DENSE), positions[0] = 8);
    REFUSED(RAPT_INVALID_VALUE, "positions[1] = 3 takes its page 1", with_table(d, RAPT_PAGES_LISTED),
            positions[1] = 3);
    REFUSED(RAPT_INVALID_VALUE, "pages.offsets[1] = 1 and the next, 5, do not grow within 0 ... entries.count = ",
            with_table(d, RAPT_PAGES_LISTED), page_offsets[2] = 5);
    REFUSED(RAPT_INVALID_VALUE, "pages.offsets[0] = -1 and the next, 1, do not grow", with_table(d, RAPT_PAGES_LISTED),
            page_offsets[0] = -1);
    REFUSED(RAPT_INVALID_VALUE, "page 0 of sequence 1", with_table(d, RAPT_PAGES_ROW), pages[1] = 4);
    REFUSED(RAPT_INVALID_VALUE, "positions[1] = 3: its 3 new", with_table(d, RAPT_PAGES_ROW), positions[1] = 3);
    REFUSED(RAPT_OUT_OF_EXTENT, "pages.entries.count = 1", with_table(d, RAPT_PAGES_ROW), d->pages.entries.count = 1);
}

static void refuse_tensors(void) {
    REFUSED(RAPT_NULL_POINTER, "key.data is NULL, and so is value.data", d->key = d->value = (rapt_tensor){0});
    REFUSED(RAPT_NULL_POINTER, "key is absent", d->key = (rapt_tensor){0});
    REFUSED(RAPT_NULL_POINTER, "value_cache is absent", d->value_cache = (rapt_tensor){0});
    REFUSED(RAPT_NULL_POINTER, "key.data is NULL", d->key.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "key_cache.data is NULL", d->key_cache.data = NULL);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "key.dtype = 2", d->key.dtype = RAPT_BOOL8);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "value.dtype = 5: expected float32, float16, bfloat16, got q8_0",
            d->value.dtype = RAPT_Q8_0);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "key.dtype = 0", d->key.dtype = 0);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "key_cache.dtype = 2", d->key_cache.dtype = RAPT_BOOL8);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "value_cache.dtype = 99", d->value_cache.dtype = 99);
    REFUSED(RAPT_INVALID_SHAPE, "value_cache: rows of 8", d->value_cache.dtype = RAPT_Q8_0);
    REFUSED(RAPT_MISALIGNED_POINTER, "key.data", d->key.data = (char *)key + 2);
    REFUSED(RAPT_MISALIGNED_POINTER, "key_cache.data", d->key_cache.data = (char *)key_cache + 1);
    REFUSED(RAPT_INVALID_STRIDE, "key.token_stride_bytes = 6", d->key.token_stride_bytes = 6);
    REFUSED(RAPT_INVALID_STRIDE, "key_cache.token_stride_bytes = 0", d->key_cache.token_stride_bytes = 0);
    REFUSED(RAPT_INVALID_STRIDE, "value_cache.head_stride_bytes = -320", d->value_cache.head_stride_bytes *= -1);
    REFUSED(RAPT_INVALID_STRIDE, "key", d->key.extent_bytes = 0, d->key.batch_stride_bytes = INT64_MAX - 3);
    REFUSED(RAPT_OUT_OF_EXTENT, "key.extent_bytes", d->key.extent_bytes -= 4);
    REFUSED(RAPT_OUT_OF_EXTENT, "key_cache.extent_bytes", d->key_cache.extent_bytes -= 4);
    REFUSED(RAPT_OUT_OF_EXTENT, "key_cache.extent_bytes", with_table(d, RAPT_PAGES_ROW), d->pages.pages = 5);
    REFUSED(RAPT_INVALID_VALUE, "value.extent_bytes = -1", d->value.extent_bytes = -1);
    REFUSED(RAPT_UNUSED_FIELD, "key.scales", d->key.scales = key);
    REFUSED(RAPT_UNUSED_FIELD, "key_cache.page_stride_bytes", d->key_cache.page_stride_bytes = 8);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "key_cache overlaps itself", d->key_cache.token_stride_bytes = 16);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "key_cache overlaps value_cache", d->value_cache.data = key_cache + 8);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "key_cache overlaps key", d->key.data = key_cache);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "key_cache overlaps slots", with_slots(d), d->slots.data = key_cache);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "key_cache overlaps rotary.sines", with_cosines(d), d->rotary.sines = key_cache);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "value_cache overlaps slots", with_slots(d), d->slots.data = value_cache + 20);
}

static void refuse_scales(void) {
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "value_cache.scale_dtype = 0: expected float32", d->value_cache.dtype = RAPT_I8);
    REFUSED(RAPT_UNUSED_FIELD, "key_cache.scale_dtype is set", d->key_cache.scale_dtype = RAPT_F32);
    REFUSED(RAPT_UNUSED_FIELD, "key_cache.scale_group is set, but its scale_dtype = 0", with_scales(d),
            d->key_cache = rapt_tensor_bhsd(key_cache, RAPT_F8_E5M2, 2, 2, 10, 8), d->key_cache.scale_group = 16,
            d->features = 0);
    REFUSED(RAPT_UNUSED_FIELD, "key_cache.zero_point_dtype is set, but float8_e4m3", with_scales(d),
            d->key_cache.dtype = RAPT_F8_E4M3);
    REFUSED(RAPT_NULL_POINTER, "key_cache.scales is NULL", with_scales(d), d->key_cache.scales = NULL);
    REFUSED(RAPT_NULL_POINTER, "value_cache.zero_points is NULL", with_scales(d), d->value_cache.zero_points = NULL);
    REFUSED(RAPT_INVALID_VALUE, "value_cache.scale_group = 8", with_scales(d), d->value_cache.scale_group = 8);
    REFUSED(RAPT_MISALIGNED_POINTER, "key_cache.scales", with_scales(d), d->key_cache.scales = (char *)scales + 2);
    REFUSED(RAPT_INVALID_STRIDE, "key_cache.scale_token_stride_bytes = 0 on an output", with_scales(d),
            d->key_cache.scale_token_stride_bytes = 0);
    REFUSED(RAPT_INVALID_STRIDE, "value_cache.scale_head_stride_bytes = -40", with_scales(d),
            d->value_cache.scale_head_stride_bytes = -40);
    REFUSED(RAPT_INVALID_STRIDE, "key_cache.scale_token_stride_bytes = 6 is not a multiple of 4", with_scales(d),
            d->features = 0, d->key_cache.scale_token_stride_bytes = 6);
    REFUSED(RAPT_OUT_OF_EXTENT, "key_cache.scales: scale_extent_bytes = 156", with_scales(d),
            d->key_cache.scale_extent_bytes = 156);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "key_cache.scales overlaps itself", with_scales(d),
            d->key_cache.scale_head_stride_bytes = 36);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "key_cache.scales overlaps value_cache.scales", with_scales(d),
            d->value_cache.scales = scales + 39);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "key_cache.scales overlaps key at", with_scales(d), d->key.data = scales);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "key_cache.zero_points overlaps value_cache.zero_points", with_scales(d),
            d->value_cache.zero_points = zero_points);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "key_cache overlaps key_cache.scales", with_scales(d), d->features = 0,
            d->key_cache.scales = key_cache + 1);
    REFUSED(RAPT_INVALID_VALUE, "positions[0] = 8", with_scales(d), positions[0] = 8);
}

static void refuse_lists(void) {
    REFUSED(RAPT_INVALID_VALUE, "positions[1] = -1", positions[1] = -1);
    REFUSED(RAPT_INVALID_VALUE, "positions[0] = -1", positions[0] = -1, lengths[0] = 0,
            d->lengths = rapt_int64_list(lengths, 2)); /* also of a sequence without new tokens */
    REFUSED(RAPT_INVALID_VALUE, "positions[1] = 8: its 3 new tokens", positions[1] = 8);
    REFUSED(RAPT_INVALID_VALUE, "positions[0] = 9223372036854775807", positions[0] = INT64_MAX);
    REFUSED(RAPT_INVALID_VALUE, "page 0 of sequence 1, for positions[1] = 2, is entry 5, outside 0 ... 3",
            with_table(d, RAPT_PAGES_DENSE), positions[1] = 2, pages[2] = 5);
    REFUSED(RAPT_INVALID_VALUE, "sequence 0 has 2 entries, but positions[0] = 9 takes its page 2",
            with_table(d, RAPT_PAGES_DENSE), positions[0] = 9);
    REFUSED(RAPT_INVALID_VALUE, "sequence 1 has 0 entries, but positions[1] = 2 takes its page 0",
            with_table(d, RAPT_PAGES_LISTED), positions[1] = 2, page_offsets[2] = 1);
    REFUSED(RAPT_INVALID_VALUE, "slots[5] = 20", with_slots(d), slots[5] = 20);
    REFUSED(RAPT_INVALID_VALUE, "slots[0] = 9223372036854775807", with_slots(d), slots[0] = INT64_MAX);
    REFUSED(RAPT_INVALID_VALUE, "slots[0] = 0 is outside 0 ... -1", with_slots(d), d->pages.pages = 0);
    REFUSED(RAPT_INVALID_VALUE, "lengths[0] = 4", d->lengths = rapt_int64_list(lengths, 2), lengths[0] = 4);
    REFUSED(RAPT_INVALID_VALUE, "lengths[1] = -1", d->lengths = rapt_int64_list(lengths, 2), lengths[1] = -1);
    REFUSED(RAPT_INVALID_VALUE, "offsets[0] = -1", with_offsets(d), offsets[0] = -1);
    REFUSED(RAPT_INVALID_VALUE, "offsets[1] = 0", with_offsets(d), offsets[0] = 1, offsets[1] = 0);
    REFUSED(RAPT_INVALID_VALUE, "offsets[2] = 5", with_offsets(d), offsets[2] = 5);
    REFUSED(RAPT_INVALID_VALUE, "offsets[1] = 4 is 4 after", with_offsets(d), offsets[1] = offsets[2] = 4);
    REFUSED(RAPT_OUT_OF_EXTENT, "positions.count = 1", d->positions.count = 1);
    REFUSED(RAPT_OUT_OF_EXTENT, "slots.count = 5", with_slots(d), d->slots.count = 5);
    REFUSED(RAPT_OUT_OF_EXTENT, "offsets.count = 2", with_offsets(d), d->offsets.count = 2);
    REFUSED(RAPT_OUT_OF_EXTENT, "positions.count = -1 is negative", d->positions.count = -1);
    REFUSED(RAPT_INVALID_VALUE, "slots.index_bytes = 2", with_slots(d), d->slots.index_bytes = 2);
    REFUSED(RAPT_INVALID_STRIDE, "positions.stride_bytes = 12", d->positions.stride_bytes = 12);
    REFUSED(RAPT_MISALIGNED_POINTER, "positions = ", d->positions.data = (char *)positions + 4);
    REFUSED(RAPT_UNUSED_FIELD, "positions.reserved_zero = 1", d->positions.reserved_zero = 1);
    REFUSED(RAPT_UNUSED_FIELD, "lengths.data is NULL", d->lengths.count = 2);
    REFUSED(RAPT_INVALID_SHAPE, "leave the address space", d->positions.count = 0,
            d->positions.stride_bytes = INT64_MAX - 7);
    REFUSED(RAPT_UNUSED_FIELD, "rotary_positions is set", d->rotary_positions = rapt_int64_list(rotary_positions, 6));
}

static void test_refusals(void **state) {
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    rapt_append_desc d = fresh();
    (void)state;
    refuse_fields();
    refuse_addressing();
    refuse_tensors();
    refuse_scales();
    refuse_lists();
    options.max_threads = -1;
    assert_int_equal(rapt_append(&d, &options, NULL), RAPT_INVALID_VALUE);
    assert_int_equal(rapt_append(NULL, NULL, NULL), RAPT_NULL_POINTER);
    assert_int_equal(wrong_rows, 0);
}

static void test_legal(void **state) {
    (void)state;
    LEGAL((void)d);
    LEGAL(d->batch = 0);
    LEGAL(d->length = 0, d->positions = (rapt_index_list){0});
    LEGAL(d->length = 0, d->key = d->value = d->key_cache = d->value_cache = (rapt_tensor){0});
    LEGAL(d->length = 0, d->key = d->key_cache = (rapt_tensor){0}, with_rotary(d));
    LEGAL(d->length = d->cache_length = 0, d->batch = INT64_C(1) << 40,
          d->positions = (rapt_index_list){0}); /* at once */
    LEGAL(d->key = d->key_cache = (rapt_tensor){0});
    LEGAL(d->value = d->value_cache = (rapt_tensor){0}, with_rotary(d));
    LEGAL(d->key.token_stride_bytes = d->key.batch_stride_bytes = 0);
    LEGAL(d->key.data = (char *)key + d->key.extent_bytes - 96, d->key.extent_bytes = 0,
          d->key.token_stride_bytes = -64, d->key.batch_stride_bytes = 0);
    LEGAL(positions[0] = 7);
    LEGAL(positions[0] = 10, lengths[0] = 0, d->lengths = rapt_int64_list(lengths, 2));
    LEGAL(with_slots(d));
    LEGAL(with_slots(d), d->length = 0, d->slots = (rapt_index_list){0});
    LEGAL(with_slots(d), with_rotary(d), d->length = 0);
    LEGAL(with_slots(d), d->length = 0, d->slots = (rapt_index_list){0}, d->pages.pages = 0,
          d->key_cache.data = d->value_cache.data = NULL, d->key_cache.extent_bytes = d->value_cache.extent_bytes = 0);
    LEGAL(with_slots(d), slots[0] = -1, slots[3] = INT64_MIN);
    LEGAL(with_slots(d), slots[0] = slots[1] = slots[2] = 7);
    LEGAL(with_slots(d), with_rotary(d), d->rotary_positions = rapt_int64_list(rotary_positions, 6), slots[1] = -1,
          rotary_positions[1] = INT64_MAX);
    LEGAL(with_slots(d), d->pages.pages = 0, d->key_cache.data = d->value_cache.data = NULL,
          d->key_cache.extent_bytes = d->value_cache.extent_bytes = 0, memset(slots, 0xff, sizeof slots));
    LEGAL(with_offsets(d));
    LEGAL(with_table(d, RAPT_PAGES_DENSE), positions[0] = 7);
    LEGAL(with_table(d, RAPT_PAGES_DENSE), positions[0] = 5, pages[0] = -7); /* not written to */
    LEGAL(with_table(d, RAPT_PAGES_DENSE), d->length = 0, d->pages.entries = (rapt_index_list){0});
    LEGAL(with_table(d, RAPT_PAGES_DENSE), d->length = 0, d->positions = (rapt_index_list){0});
    LEGAL(with_table(d, RAPT_PAGES_DENSE), d->batch = 1, d->pages.batch_stride_bytes = 3);
    LEGAL(with_table(d, RAPT_PAGES_LISTED));
    LEGAL(with_table(d, RAPT_PAGES_LISTED), d->length = 0, d->pages.offsets = (rapt_index_list){0});
    LEGAL(with_table(d, RAPT_PAGES_ROW), pages[0] = pages[1] = 3);
    LEGAL(with_scales(d));
    LEGAL(with_scales(d), d->features = RAPT_COMPUTE_VALUE_SCALES, d->key_cache.scale_token_stride_bytes = 0);
    LEGAL(with_scales(d), d->features = 0, d->value_cache.scales = d->key_cache.scales,
          d->value_cache.zero_points = d->key_cache.zero_points);
    LEGAL(with_scales(d), d->features = 0, d->key_cache.scale_head_stride_bytes = -4,
          d->key_cache.scales = scales + 20, d->key_cache.zero_points = zero_points + 20);
    LEGAL(with_rotary(d), rotary_positions[0] = 1 << 29, rotary_positions[1] = -(1 << 29),
          d->rotary_positions = rapt_int64_list(rotary_positions, 6));
    LEGAL(with_scaling(d, RAPT_ROTARY_YARN), d->rotary.factor = 1);
    LEGAL(with_scaling(d, RAPT_ROTARY_NTK), d->rotary.dim = 2);
    LEGAL(with_cosines(d), d->rotary.table_stride_bytes = 20);
    LEGAL(with_cosines(d), d->rotary.table_stride_bytes = 20, d->rotary.table_positions = 0, d->length = 0);
    LEGAL(with_cosines(d), d->rotary.table_positions = 1, memset(rotary_positions, 0, sizeof rotary_positions),
          d->rotary_positions = rapt_int64_list(rotary_positions, 6)); /* positions are those in the cache */
    LEGAL(d->value_cache = d->value, d->value_cache.data = value_cache, d->cache_length = 3,
          d->key_cache = rapt_output_bhsd(key_cache, 2, 2, 3, 8), positions[0] = positions[1] = 0);
    ROTATE_LEGAL((void)d);
    ROTATE_LEGAL(d->batch = 0, d->positions = (rapt_index_list){0});
    ROTATE_LEGAL(with_first(d), positions[0] = -(1 << 29), positions[1] = (1 << 29) - 1);
    ROTATE_LEGAL(with_first(d), positions[0] = INT64_C(1) << 29, d->lengths = rapt_int64_list(lengths, 2));
    ROTATE_LEGAL(with_first(d), lengths[0] = 0, positions[0] = INT64_MIN, d->lengths = rapt_int64_list(lengths, 2));
    ROTATE_LEGAL(with_packed(d));
    ROTATE_LEGAL(with_packed(d), with_first(d), offsets[1] = offsets[2] = 2);
    ROTATE_LEGAL(d->rotary.dim = 2, d->in.batch_stride_bytes = 0);
    assert_int_equal(wrong_rows, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusals), cmocka_unit_test(test_legal)};
    return cmocka_run_group_tests_name("append_refusals", tests, NULL, NULL);
}
