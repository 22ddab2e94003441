/* SPDX-License-Identifier: MIT
 * The tensors of docs/inputs.md: refusals, with status and text. */
#include "api/refusals.h"

static void test_tensors(void **state) {
    (void)state;
    REFUSED(RAPT_NULL_POINTER, "query.data", d->query.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "key.data", d->key.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "value.data", d->value.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "out.data", d->out.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "out.data", d->kv_length = 0, d->out.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "weights.data", d->weights_kind = RAPT_WEIGHTS_RAW);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "query.dtype = 0: expected float32, float16, bfloat16, got none",
            d->query.dtype = RAPT_NO_DTYPE);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "key.dtype = 2: expected float32, float16, ", d->key.dtype = RAPT_BOOL8);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "got none", d->value.dtype = 99);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "query.dtype = 5: expected float32, float16, bfloat16, got q8_0",
            d->query.dtype = RAPT_Q8_0);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "out.dtype = 2: expected float32, float16, bfloat16", d->out.dtype = RAPT_BOOL8);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "lse.dtype = 3: expected float32, got float16", with_lse(d),
            d->lse.dtype = RAPT_F16);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "weights.dtype = 3: expected float32, got", with_weights(d),
            d->weights.dtype = RAPT_F16);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "mask.dtype = 3: expected bool8, got", with_mask(d), d->mask.dtype = RAPT_F16);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "out.dtype = -1", d->out.dtype = -1);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "mask.dtype = 1", with_mask(d), d->mask.dtype = RAPT_F32);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "bias.dtype = 2: expected float32, float16, bfloat16", with_bias(d),
            d->bias.dtype = RAPT_BOOL8);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "keep_mask.dtype = 0", with_keep(d), d->keep_mask.dtype = 0);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "lse.dtype = 2", with_lse(d), d->lse.dtype = RAPT_BOOL8);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "weights.dtype = 2", with_weights(d), d->weights.dtype = RAPT_BOOL8);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "mask.dtype = 1", d->kv_length = 0, with_mask(d),
            d->mask.dtype = RAPT_F32);
    REFUSED(RAPT_MISALIGNED_POINTER, "key.data", d->key.data = (char *)d->key.data + 2);
    REFUSED(RAPT_MISALIGNED_POINTER, "is not aligned to 2 bytes", d->key.dtype = RAPT_F16,
            d->key.data = (char *)d->key.data + 1);
    REFUSED(RAPT_MISALIGNED_POINTER, "is not aligned to 2 bytes", d->query.dtype = RAPT_F16,
            d->query.data = (char *)d->query.data + 1);
    REFUSED(RAPT_MISALIGNED_POINTER, "is not aligned to 2 bytes", d->out.dtype = RAPT_F16,
            d->out.data = (char *)d->out.data + 3);
    REFUSED(RAPT_MISALIGNED_POINTER, "is not aligned to 2 bytes", with_bias(d), d->bias.dtype = RAPT_F16,
            d->bias.data = (char *)d->bias.data + 1);
    REFUSED(RAPT_MISALIGNED_POINTER, "out.data", d->out.data = (char *)d->out.data + 1);
    REFUSED(RAPT_MISALIGNED_POINTER, "lse.data", with_lse(d), d->lse.data = (char *)d->lse.data + 3);
    REFUSED(RAPT_UNUSED_FIELD, "query.reserved_zero", d->query.reserved_zero = 1);
    REFUSED(RAPT_UNUSED_FIELD, "key.scales", d->key.scales = d);
    REFUSED(RAPT_UNUSED_FIELD, "key.scale_batch_stride_bytes", d->key.scale_batch_stride_bytes = 4);
    REFUSED(RAPT_UNUSED_FIELD, "value.scale_head_stride_bytes", d->value.scale_head_stride_bytes = 4);
    REFUSED(RAPT_UNUSED_FIELD, "value.scale_token_stride_bytes", d->value.scale_token_stride_bytes = 4);
    REFUSED(RAPT_UNUSED_FIELD, "value.page_stride_bytes", d->value.page_stride_bytes = 4);
    REFUSED(RAPT_UNUSED_FIELD, "key.zero_points", d->key.zero_points = d);
    REFUSED(RAPT_UNUSED_FIELD, "key.scale_dtype", d->key.scale_dtype = RAPT_F32);
    REFUSED(RAPT_UNUSED_FIELD, "value.zero_point_dtype", d->value.zero_point_dtype = RAPT_F32);
    REFUSED(RAPT_UNUSED_FIELD, "value.scale_group", d->value.scale_group = 32);
    REFUSED(RAPT_UNUSED_FIELD, "key.scale_extent_bytes", d->key.scale_extent_bytes = 80);
    REFUSED(RAPT_UNUSED_FIELD, "out.reserved", d->out.reserved[0] = 4);
    REFUSED(RAPT_UNUSED_FIELD, "mask.reserved", d->mask.reserved[0] = 1);
    REFUSED(RAPT_UNUSED_FIELD, "mask.data is NULL, but its dtype = 2", with_mask(d), d->mask.data = NULL);
    REFUSED(RAPT_UNUSED_FIELD, "bias.data is NULL, but its token_stride_bytes = 4", d->bias.token_stride_bytes = 4);
    REFUSED(RAPT_UNUSED_FIELD, "bias.data is NULL, but its head_stride_bytes = 4", d->bias.head_stride_bytes = 4);
    REFUSED(RAPT_UNUSED_FIELD, "bias.data is NULL, but its batch_stride_bytes = 4", d->bias.batch_stride_bytes = 4);
    REFUSED(RAPT_UNUSED_FIELD, "lse.data is NULL, but its extent_bytes = 4", d->lse.extent_bytes = 4);
    END_OF_ROWS;
}

/* int8 keys and values with a scale per row. */
static void with_int8(rapt_attention_desc *d) {
    d->key = rapt_tensor_bhsd(d->key.data, RAPT_I8, 2, 2, 5, 8);
    d->key.scale_dtype = RAPT_F32;
    d->key.scales = (void *)(uintptr_t)zeros;
    d->key.scale_token_stride_bytes = 4;
    d->key.scale_head_stride_bytes = 20;
    d->key.scale_batch_stride_bytes = 40;
    d->value = d->key;
}

static void with_zero_points(rapt_attention_desc *d) {
    with_int8(d);
    d->key.zero_point_dtype = RAPT_I8;
    d->key.zero_points = (void *)(uintptr_t)zeros;
}

static void test_blocks(void **state) {
    (void)state;
    REFUSED(RAPT_INVALID_SHAPE, "key: rows of 8 are not whole blocks of 32, as q8_0 has them",
            d->key.dtype = RAPT_Q8_0);
    REFUSED(RAPT_INVALID_SHAPE, "value: rows of 48", d->value_dim = 48, d->value.dtype = RAPT_IQ4_NL);
    REFUSED(RAPT_INVALID_SHAPE, "key: rows of 8", d->kv_length = 0, d->key.dtype = RAPT_Q4_0);
    REFUSED(RAPT_INVALID_STRIDE, "key.token_stride_bytes = 33 is not a multiple of 2", d->head_dim = 32,
            d->key.dtype = RAPT_Q5_1, d->key.token_stride_bytes = 33);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "out.dtype = 5: expected float32, float16, bfloat16, got q8_0",
            d->out.dtype = RAPT_Q8_0);
    END_OF_ROWS;
}

static void test_scales(void **state) {
    (void)state;
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "key.scale_dtype = 0: expected float32", with_int8(d), d->key.scale_dtype = 0);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "value.scale_dtype = 3: expected float32", with_int8(d),
            d->value.scale_dtype = RAPT_F16);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "key.scale_dtype = -1", with_int8(d), d->key.scale_dtype = -1);
    REFUSED(RAPT_NULL_POINTER, "key.scales is NULL", with_int8(d), d->key.scales = NULL);
    REFUSED(RAPT_NULL_POINTER, "key.zero_points is NULL", with_zero_points(d), d->key.zero_points = NULL);
    REFUSED(RAPT_UNUSED_FIELD, "key.scales is set, but key.data is NULL", with_int8(d),
            d->query.data = d->key.data = d->value.data = d->out.data = NULL);
    REFUSED(RAPT_UNUSED_FIELD, "key.scales is set, but its scale_dtype = 0", with_int8(d),
            d->key.dtype = RAPT_F8_E4M3, d->key.scale_dtype = 0);
    REFUSED(RAPT_UNUSED_FIELD, "value.scale_group is set, but its scale_dtype = 0",
            d->value = rapt_tensor_bhsd(d->value.data, RAPT_F8_E5M2, 2, 2, 5, 8), d->value.scale_group = 16);
    REFUSED(RAPT_UNUSED_FIELD, "key.zero_point_dtype is set, but float8_e4m3 has no zero points", with_zero_points(d),
            d->key.dtype = RAPT_F8_E4M3);
    REFUSED(RAPT_UNUSED_FIELD, "key.zero_point_dtype is set, but float8_e4m3 has no zero points", with_zero_points(d),
            d->key.dtype = RAPT_F8_E4M3, d->key.zero_points = NULL);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "key.scale_dtype = 3: expected float32", with_zero_points(d),
            d->key.dtype = RAPT_F8_E4M3, d->key.zero_point_dtype = 0, d->key.zero_points = NULL,
            d->key.scale_dtype = RAPT_F16); /* of a type that may lack scales */
    REFUSED(RAPT_UNUSED_FIELD, "key.zero_points is set, but its zero_point_dtype = 0", with_zero_points(d),
            d->key.zero_point_dtype = 0);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "key.zero_point_dtype = 1: expected int8 or 0", with_zero_points(d),
            d->key.zero_point_dtype = RAPT_F32);
    REFUSED(RAPT_INVALID_VALUE, "key.scale_group = 24 is not 0 or a multiple of 16", with_int8(d),
            d->key.scale_group = 24);
    REFUSED(RAPT_INVALID_VALUE, "key.scale_group = -16", with_int8(d), d->key.scale_group = -16);
    REFUSED(RAPT_MISALIGNED_POINTER, "value.scales", with_int8(d), d->value.scales = (char *)d->value.scales + 2);
    REFUSED(RAPT_INVALID_STRIDE, "key.scale_token_stride_bytes = 6 is not a multiple of 4", with_int8(d),
            d->key.scale_token_stride_bytes = 6);
    REFUSED(RAPT_INVALID_STRIDE, "key.scale_batch_stride_bytes = 9223372036854775804 overflows", with_int8(d),
            d->key.scale_batch_stride_bytes = INT64_MAX - 3);
    REFUSED(RAPT_INVALID_STRIDE, "value.scales = ", with_int8(d),
            d->value.scale_head_stride_bytes = INT64_MIN);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key.scales", with_int8(d), d->key.scales = d->out.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key.zero_points", with_zero_points(d),
            d->key.zero_points = d->out.data);
    REFUSED(RAPT_UNUSED_FIELD, "query.scale_dtype", d->query.scale_dtype = RAPT_F32);
    END_OF_ROWS;
}

static void test_scale_extents(void **state) {
    (void)state;
    REFUSED(RAPT_INVALID_VALUE, "key.scale_extent_bytes = -4: expected", with_int8(d),
            d->key.scale_extent_bytes = -4);
    REFUSED(RAPT_INVALID_VALUE, "value.scale_extent_bytes = 81", with_int8(d), d->value.scale_extent_bytes = 81);
    REFUSED(RAPT_OUT_OF_EXTENT, "key.scales: scale_extent_bytes = 76, but the strides reach bytes 0 ... 80",
            with_int8(d), d->key.scale_extent_bytes = 76);
    REFUSED(RAPT_OUT_OF_EXTENT, "key.scales: scale_extent_bytes = 76, but the strides reach bytes 0 ... 80",
            with_int8(d), d->key.scale_group = 16, d->key.scale_extent_bytes = 76); /* a partial group */
    REFUSED(RAPT_OUT_OF_EXTENT, "key.scales: scale_extent_bytes = 80, but the strides reach bytes -16 ... 56",
            with_int8(d), d->key.scale_token_stride_bytes = -4, d->key.scale_head_stride_bytes = 12,
            d->key.scales = (void *)(uintptr_t)(zeros + 20), d->key.scale_extent_bytes = 80);
    REFUSED(RAPT_OUT_OF_EXTENT, "key.scales: scale_extent_bytes = 76", with_zero_points(d),
            d->key.scale_extent_bytes = 76);
    REFUSED(RAPT_UNUSED_FIELD, "value.scale_extent_bytes is set, but its scale_dtype = 0",
            d->value = rapt_tensor_bhsd(d->value.data, RAPT_F8_E5M2, 2, 2, 5, 8), d->value.scale_extent_bytes = 4);
    REFUSED(RAPT_UNUSED_FIELD, "mask.scale_extent_bytes", d->mask.scale_extent_bytes = 4);
    END_OF_ROWS;
}

static void test_strides(void **state) {
    (void)state;
    const int64_t huge = INT64_MAX - 3;
    REFUSED(RAPT_INVALID_STRIDE, "query.token_stride_bytes = 33", d->query.token_stride_bytes = 33);
    REFUSED(RAPT_INVALID_STRIDE, "value.token_stride_bytes = 33 is not a multiple of 2", d->value.dtype = RAPT_F16,
            d->value.token_stride_bytes = 33);
    REFUSED(RAPT_INVALID_STRIDE, "out.token_stride_bytes = 17 is not a multiple of 2", d->out.dtype = RAPT_F16,
            d->out.token_stride_bytes = 17);
    REFUSED(RAPT_INVALID_STRIDE, "bias.head_stride_bytes = 31 is not a multiple of 2", with_bias(d),
            d->bias.dtype = RAPT_F16, d->bias.head_stride_bytes = 31);
    REFUSED(RAPT_INVALID_STRIDE, "key.head_stride_bytes = 2", d->key.head_stride_bytes = 2);
    REFUSED(RAPT_INVALID_STRIDE, "bias.batch_stride_bytes = -6", with_bias(d),
            d->bias.batch_stride_bytes = -6);
    REFUSED(RAPT_INVALID_STRIDE, "key.token_stride_bytes = 9223372036854775804", d->key.token_stride_bytes = huge);
    REFUSED(RAPT_INVALID_STRIDE, "key.token_stride_bytes = -9223372036854775804", d->key.token_stride_bytes = -huge);
    REFUSED(RAPT_INVALID_STRIDE, "mask.data = ", with_mask(d), d->mask.batch_stride_bytes = INT64_MIN);
    REFUSED(RAPT_INVALID_STRIDE, "value.batch_stride_bytes = 9223372036854775804 overflows",
            d->value.batch_stride_bytes = d->value.head_stride_bytes = huge);
    REFUSED(RAPT_INVALID_STRIDE, "key.batch_stride_bytes = 9223372036854775804", d->key.batch_stride_bytes = huge,
            d->key.head_stride_bytes = -huge);
    REFUSED(RAPT_INVALID_STRIDE, "value.data = 0xffffffffffffffc0: the strides reach bytes 0 ... 640, beyond",
            d->value.data = (void *)(UINTPTR_MAX - 63));
    REFUSED(RAPT_INVALID_STRIDE, "query.data = 0x40: the strides reach bytes -128 ... ", d->query.data = (void *)64,
            d->query.token_stride_bytes = -64);
    REFUSED(RAPT_INVALID_STRIDE, "beyond the address space",
            d->query.data = (void *)(uintptr_t)(INT64_MAX / 2 + 1),
            d->query.batch_stride_bytes = INT64_MAX / 2 - 3,
            d->query.token_stride_bytes = -(INT64_MAX / 4 - 3));
    REFUSED(RAPT_INVALID_STRIDE, "out.token_stride_bytes = 0 on an output", d->out.token_stride_bytes = 0);
    REFUSED(RAPT_INVALID_STRIDE, "lse.head_stride_bytes = 0", with_lse(d), d->lse.head_stride_bytes = 0);
    REFUSED(RAPT_INVALID_STRIDE, "weights.batch_stride_bytes = 0", with_weights(d),
            d->weights.batch_stride_bytes = 0);
    REFUSED(RAPT_INVALID_STRIDE, "out.token_stride_bytes = -32 is negative",
            d->out.data = (float *)d->out.data + 1000, d->out.token_stride_bytes = -32);
    REFUSED(RAPT_OUT_OF_EXTENT, "key.extent_bytes = 636", d->key.extent_bytes = 636);
    REFUSED(RAPT_OUT_OF_EXTENT, "key.extent_bytes = 318", d->key = rapt_tensor_bhsd(d->key.data, RAPT_F16, 2, 2, 5, 8),
            d->key.extent_bytes = 318);
    REFUSED(RAPT_OUT_OF_EXTENT, "out.extent_bytes = 4", d->out.extent_bytes = 4);
    REFUSED(RAPT_OUT_OF_EXTENT, "out.extent_bytes = 382", d->out = rapt_tensor_bhsd(d->out.data, RAPT_F16, 2, 4, 3, 8),
            d->out.extent_bytes = 382);
    REFUSED(RAPT_OUT_OF_EXTENT, "bias.extent_bytes = 238", with_bias(d),
            d->bias = rapt_tensor_bhsd(d->bias.data, RAPT_F16, 2, 4, 3, 5), d->bias.extent_bytes = 238);
    REFUSED(RAPT_OUT_OF_EXTENT, "mask.extent_bytes = 119", with_mask(d), d->mask.extent_bytes = 119);
    REFUSED(RAPT_OUT_OF_EXTENT, "bytes -128 ...", d->key.extent_bytes = 4096, d->key.token_stride_bytes = -32,
            d->key.data = (float *)d->key.data + 64);
    REFUSED(RAPT_INVALID_VALUE, "query.extent_bytes = -1", d->query.extent_bytes = -1);
    END_OF_ROWS;
}

static void test_overlaps(void **state) {
    (void)state;
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps itself", d->out.token_stride_bytes = 28);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps itself", d->out.head_stride_bytes = 92);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps itself", d->out.dtype = RAPT_F16, d->out.token_stride_bytes = 14);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps itself",
            d->out.batch_stride_bytes = d->out.head_stride_bytes);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "lse overlaps itself", with_lse(d), d->lse.head_stride_bytes = 8);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "weights overlaps itself", with_weights(d),
            d->weights.token_stride_bytes = 16);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps query", d->out.data = d->query.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key", d->out.data = (float *)d->key.data + 159);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps value", d->value.data = (float *)d->out.data + 191);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps mask", with_mask(d), d->mask.data = d->out.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps mask", with_mask(d),
            d->mask.data = (char *)d->out.data + 767);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps mask", with_mask(d), d->mask.data = (char *)d->out.data + 383,
            d->out = rapt_tensor_bhsd(d->out.data, RAPT_F16, 2, 4, 3, 8));
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps mask", with_mask(d),
            d->mask.data = (char *)d->out.data + 1, d->out.data = (char *)d->out.data + 120);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps bias", with_bias(d), d->bias.data = d->out.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps keep_mask", with_keep(d), d->keep_mask.data = d->out.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps lse", with_lse(d), d->lse.data = d->out.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "lse overlaps weights", with_lse(d), with_weights(d),
            d->lse.data = d->weights.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "lse overlaps query", with_lse(d), d->lse.data = d->query.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "weights overlaps key", with_weights(d), d->weights.data = d->key.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps sinks", d->sinks = zeros,
            d->out.data = (void *)(uintptr_t)zeros);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps kv_lengths", d->kv_lengths = list32(zeros),
            d->out.data = (void *)(uintptr_t)zeros);
    /* Fused [token][query heads | out heads], but out begins inside the query's part. */
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps query", fuse(d, 31));
    /* Interleaved rows, with strides so large that their sums do not tell. */
    const int64_t far = (int64_t)1 << 59;
    LEGAL_PLAN(fuse(d, 32), d->query.batch_stride_bytes = d->out.batch_stride_bytes = far);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps query", fuse(d, 32),
            d->query.batch_stride_bytes = d->out.batch_stride_bytes = 4 * far);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps query", fuse(d, 32), d->query.batch_stride_bytes = 8 * far);
    END_OF_ROWS;
}

static void test_states(void **state) {
    (void)state;
    static const rapt_tensor no_tensor;
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "initial_state.dtype = 3: expected float32, got float16", with_states(d),
            d->initial_state.dtype = RAPT_F16);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "final_state.dtype = 0", with_states(d), d->final_state.dtype = 0);
    REFUSED(RAPT_UNUSED_FIELD, "initial_state.data is NULL, but", with_states(d), d->initial_state.data = NULL);
    REFUSED(RAPT_UNUSED_FIELD, "final_state.data is NULL, but", with_states(d), d->final_state.data = NULL);
    REFUSED(RAPT_UNUSED_FIELD, "out.data is NULL, but", with_states(d), d->out.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "out.data is NULL", with_states(d), d->out = d->final_state = no_tensor);
    REFUSED(RAPT_UNUSED_FIELD, "sinks is set, but out is absent", with_states(d), d->out = no_tensor, d->sinks = zeros);
    REFUSED(RAPT_UNUSED_FIELD, "initial_state.scales", with_states(d), d->initial_state.scales = d);
    REFUSED(RAPT_MISALIGNED_POINTER, "initial_state.data", with_states(d),
            d->initial_state.data = (char *)d->initial_state.data + 2);
    REFUSED(RAPT_INVALID_STRIDE, "final_state.token_stride_bytes = 0 on an output", with_states(d),
            d->final_state.token_stride_bytes = 0);
    REFUSED(RAPT_INVALID_STRIDE, "initial_state.head_stride_bytes = 3", with_states(d),
            d->initial_state.head_stride_bytes = 3);
    REFUSED(RAPT_OUT_OF_EXTENT, "initial_state.extent_bytes = 956", with_states(d),
            d->initial_state.extent_bytes = 956);
    REFUSED(RAPT_OUT_OF_EXTENT, "final_state.extent_bytes = 956", with_states(d), d->final_state.extent_bytes = 956);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "final_state overlaps itself", with_states(d),
            d->final_state.token_stride_bytes = 36);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "final_state overlaps query", with_states(d),
            d->final_state.data = d->query.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps initial_state", with_states(d), d->initial_state.data = d->out.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps final_state", with_states(d), d->final_state.data = d->out.data);
    /* In place means the same rows, not others of the same memory. */
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "final_state overlaps initial_state", with_states(d),
            d->initial_state.data = (float *)d->final_state.data + 10);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "final_state overlaps initial_state", with_states(d),
            d->initial_state = d->final_state, d->initial_state.batch_stride_bytes = 0);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "final_state overlaps initial_state", with_states(d),
            d->initial_state = d->final_state, d->initial_state.head_stride_bytes += 4);
    END_OF_ROWS;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tensors), cmocka_unit_test(test_blocks),
                                       cmocka_unit_test(test_scales), cmocka_unit_test(test_scale_extents),
                                       cmocka_unit_test(test_strides),
                                       cmocka_unit_test(test_overlaps), cmocka_unit_test(test_states)};
    return cmocka_run_group_tests_name("refusals_tensors", tests, NULL, NULL);
}
