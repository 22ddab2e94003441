/* SPDX-License-Identifier: MIT
 * Stored keys and values in float32, number by number. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/reference.h"

/* 2^exponent, from the smallest denormal on: like ldexpf, which takes ten times as long. */
static float power(int exponent) {
    const uint32_t bits = exponent < -126 ? 1u << (exponent + 149) : (uint32_t)(exponent + 127) << 23;
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

/* IEEE 754-2019, 3.4: the values of a binary format with so many bits of exponent and fraction; bits is the number's
 * encoding, its sign the bit above them. */
static float float_of_ieee(unsigned bits, int exponent_bits, int fraction_bits) {
    const int fraction = (int)(bits & ((1u << fraction_bits) - 1));
    const int exponent = (int)(bits >> fraction_bits & ((1u << exponent_bits) - 1));
    const int bias = (1 << (exponent_bits - 1)) - 1, most = (1 << exponent_bits) - 1;
    const float magnitude =
        exponent == most ? (fraction ? NAN : INFINITY)
        : exponent == 0  ? (float)fraction * power(1 - bias - fraction_bits)
                         : (float)((1 << fraction_bits) + fraction) * power(exponent - bias - fraction_bits);
    return bits >> (exponent_bits + fraction_bits) & 1 ? -magnitude : magnitude;
}

static unsigned word_at(const unsigned char *bytes) { return bytes[0] | (unsigned)bytes[1] << 8; }

static float half_at(const unsigned char *bytes) { return float_of_ieee(word_at(bytes), 5, 10); }

/* OCP 8-bit floating point specification, 5.1: the largest exponent holds numbers, all but one. */
static float float_of_e4m3(unsigned byte) {
    const int fraction = (int)(byte & 7), exponent = (int)(byte >> 3 & 15);
    const float magnitude = exponent == 15 && fraction == 7 ? NAN
                            : exponent == 0                 ? (float)fraction * power(-9)
                                                            : (float)(8 + fraction) * power(exponent - 10);
    return byte & 128 ? -magnitude : magnitude;
}

/* ggml's blocks: number i of 32. */
static int nibble(const unsigned char *nibbles, int64_t i) { return i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4; }

static int five(const unsigned char *bits, int64_t i) { return (bits[i / 8] >> i % 8 & 1) * 16 + nibble(bits + 4, i); }

static const int iq4_nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

float rapt_reference_number(int32_t dtype, const void *row, int64_t d) {
    const unsigned char *bytes = row;
    float number;
    switch (dtype) {
    case RAPT_F32: memcpy(&number, bytes + d * 4, sizeof number); return number;
    case RAPT_F16: return half_at(bytes + d * 2);
    case RAPT_BF16: return float_of_ieee(word_at(bytes + d * 2), 8, 7);
    case RAPT_Q8_0:
        bytes += d / 32 * 34;
        return half_at(bytes) * (float)(signed char)bytes[2 + d % 32];
    case RAPT_Q4_0:
        bytes += d / 32 * 18;
        return half_at(bytes) * (float)(nibble(bytes + 2, d % 32) - 8);
    case RAPT_Q4_1:
        bytes += d / 32 * 20;
        return half_at(bytes) * (float)nibble(bytes + 4, d % 32) + half_at(bytes + 2);
    case RAPT_Q5_0:
        bytes += d / 32 * 22;
        return half_at(bytes) * (float)(five(bytes + 2, d % 32) - 16);
    case RAPT_Q5_1:
        bytes += d / 32 * 24;
        return half_at(bytes) * (float)five(bytes + 4, d % 32) + half_at(bytes + 2);
    case RAPT_IQ4_NL:
        bytes += d / 32 * 18;
        return half_at(bytes) * (float)iq4_nl[nibble(bytes + 2, d % 32)];
    case RAPT_F8_E5M2: return float_of_ieee(bytes[d], 5, 2);
    case RAPT_F8_E4M3: return float_of_e4m3(bytes[d]);
    case RAPT_I8: return (float)(signed char)bytes[d];
    default: abort();
    }
}

static int64_t entry(const rapt_index_list *list, int64_t i) {
    const int64_t stride = list->stride_bytes ? list->stride_bytes : list->index_bytes;
    const char *at = (const char *)list->data + i * stride;
    return list->index_bytes == 4 ? *(const int32_t *)(const void *)at : *(const int64_t *)(const void *)at;
}

int64_t rapt_reference_keys(const rapt_attention_desc *desc, int64_t b) {
    if (desc->kv_offsets.data)
        return entry(&desc->kv_offsets, b + 1) - entry(&desc->kv_offsets, b);
    return desc->kv_lengths.data ? entry(&desc->kv_lengths, b) : desc->kv_length;
}

/* The place of key or value j of a sequence: its batch, or its page, and its token there. */
static void find(const rapt_attention_desc *desc, const rapt_page_table *pages, int64_t b, int64_t *batch, int64_t *j) {
    rapt_index_list list = pages->entries;
    *batch = b;
    if (pages->kind == RAPT_PAGES_ROW)
        *batch = entry(&list, b);
    if (pages->kind == RAPT_PAGES_DENSE || pages->kind == RAPT_PAGES_LISTED) {
        int64_t number = *j / pages->page_tokens;
        if (pages->kind == RAPT_PAGES_LISTED)
            number += entry(&pages->offsets, b);
        else
            list.data = (const char *)list.data + b * pages->batch_stride_bytes;
        *batch = entry(&list, number);
        *j %= pages->page_tokens;
    }
    if (pages->kind == RAPT_PAGES_NONE && desc->kv_offsets.data) {
        *batch = 0;
        *j += entry(&desc->kv_offsets, b);
    }
}

/* Bytes from the first key or value of all to j of a sequence, for these strides: batch (or page), head, token. */
static int64_t offset_of(const rapt_attention_desc *desc, const rapt_page_table *pages, const int64_t strides[3],
                         int64_t b, int64_t h, int64_t j) {
    int64_t batch;
    find(desc, pages, b, &batch, &j);
    return batch * strides[0] + h * strides[1] + j * strides[2];
}

/* Number d of a row, with the scale and the zero point of its group. */
static float scaled(const rapt_tensor *from, const char *row, int64_t scales_offset, int64_t d) {
    const float number = rapt_reference_number(from->dtype, row, d);
    const int64_t group = from->scale_group ? d / from->scale_group : 0;
    if (!from->scales)
        return number;
    const float scale = ((const float *)(const void *)((const char *)from->scales + scales_offset))[group];
    const int zero_point = from->zero_points ? ((const signed char *)from->zero_points)[scales_offset / 4 + group] : 0;
    return from->dtype == RAPT_I8 ? (float)((int)number - zero_point) * scale : number * scale;
}

static void widen(const rapt_attention_desc *desc, const rapt_tensor *from, int64_t dim, float *into) {
    const rapt_page_table *pages = from == &desc->key ? &desc->key_pages : &desc->value_pages;
    const bool has_pages = pages->kind == RAPT_PAGES_DENSE || pages->kind == RAPT_PAGES_LISTED;
    const int64_t strides[3] = {has_pages ? from->page_stride_bytes : from->batch_stride_bytes, from->head_stride_bytes,
                                from->token_stride_bytes};
    const int64_t scale_strides[3] = {from->scale_batch_stride_bytes, from->scale_head_stride_bytes,
                                      from->scale_token_stride_bytes};
    for (int64_t b = 0; b < desc->batch; b++)
        for (int64_t h = 0; h < desc->kv_heads; h++)
            for (int64_t j = 0; j < rapt_reference_keys(desc, b); j++) {
                const char *row = (const char *)from->data + offset_of(desc, pages, strides, b, h, j);
                const int64_t of_scales = offset_of(desc, pages, scale_strides, b, h, j);
                for (int64_t d = 0; d < dim; d++)
                    into[((b * desc->kv_heads + h) * desc->kv_length + j) * dim + d] = scaled(from, row, of_scales, d);
            }
}

void (*rapt_reference_no_memory)(void) = abort;

void *rapt_reference_room(int64_t count, size_t bytes) {
    void *memory = calloc((size_t)count + 1, bytes);
    if (!memory)
        rapt_reference_no_memory();
    return memory;
}

static float *replace(const rapt_attention_desc *desc, rapt_tensor *tensor, const rapt_page_table *pages, int64_t dim) {
    if ((tensor->dtype == RAPT_F32 && !desc->kv_offsets.data && !pages->kind) || !tensor->data)
        return NULL;
    float *wide = rapt_reference_room(desc->batch * desc->kv_heads * desc->kv_length * dim, sizeof *wide);
    widen(desc, tensor, dim, wide);
    *tensor = rapt_input_bhsd(wide, desc->batch, desc->kv_heads, desc->kv_length, dim);
    return wide;
}

struct rapt_reference_copy rapt_reference_widen(rapt_attention_desc *desc) {
    return (struct rapt_reference_copy){
        replace(desc, &desc->key, &desc->key_pages, desc->head_dim),
        replace(desc, &desc->value, &desc->value_pages, desc->value_dim ? desc->value_dim : desc->head_dim)};
}
