/* SPDX-License-Identifier: MIT
 * Every refusal of a rotary embedding, except its memory, which append_lists.c checks. */
#include "internal.h"
#include "validate/append.h"
#include "validate/parts.h"

/* One number and its range. */
struct range {
    const char *name;
    double value, least, most;
};

static rapt_status refuse_unused(rapt_message *message, const char *name, const char *why) {
    return rapt_refuse(message, RAPT_UNUSED_FIELD, "rotary.%s is set, but %s", name, why);
}

static rapt_status check_range(const struct range *range, rapt_message *message) {
    if (range->value >= range->least && range->value <= range->most)
        return RAPT_OK;
    return rapt_refuse(message, RAPT_INVALID_VALUE, "rotary.%s = %g is outside %g ... %g", range->name, range->value,
                       range->least, range->most);
}

static rapt_status check_unset(const struct range *numbers, int count, const char *why, rapt_message *message) {
    for (int i = 0; i < count; i++)
        if (numbers[i].value != 0)
            return refuse_unused(message, numbers[i].name, why);
    return RAPT_OK;
}

static rapt_status check_enums(const rapt_rotary *rotary, rapt_message *message) {
    rapt_status status = rapt_check_enum("rotary.pairing", rotary->pairing, RAPT_ROTARY_INTERLEAVED, message);
    if (status == RAPT_OK)
        status = rapt_check_enum("rotary.scaling", rotary->scaling, RAPT_ROTARY_LLAMA3, message);
    return status == RAPT_OK ? RAPT_CHECK_RESERVED("rotary.reserved", rotary->reserved, message) : status;
}

/* The caller's cosines and sines. */
static rapt_status check_table(const rapt_rotary *rotary, const struct range *numbers, int count,
                               rapt_message *message) {
    const int64_t row_bytes = rotary->dim / 2 * (int64_t)sizeof(float);
    if (!rotary->cosines || !rotary->sines)
        return rapt_refuse(message, RAPT_NULL_POINTER, "rotary.%s is NULL, but rotary.%s is not",
                           rotary->cosines ? "sines" : "cosines", rotary->cosines ? "cosines" : "sines");
    if (rotary->frequencies)
        return refuse_unused(message, "frequencies", "rotary.cosines are given");
    if (rotary->scaling)
        return refuse_unused(message, "scaling", "rotary.cosines are given");
    if (rotary->table_positions < 0 || rotary->table_positions > RAPT_MAX_POSITION)
        return rapt_refuse(message, RAPT_INVALID_SHAPE, "rotary.table_positions = %lld is outside 0 ... %lld",
                           (long long)rotary->table_positions, (long long)RAPT_MAX_POSITION);
    if (rotary->table_stride_bytes < row_bytes || rotary->table_stride_bytes % (int64_t)sizeof(float))
        return rapt_refuse(message, RAPT_INVALID_STRIDE,
                           "rotary.table_stride_bytes = %lld is not a multiple of 4 from %lld on",
                           (long long)rotary->table_stride_bytes, (long long)row_bytes);
    return check_unset(numbers, count, "rotary.cosines are given", message);
}

static rapt_status check_frequencies(const rapt_rotary *rotary, const struct range *numbers, rapt_message *message) {
    if (rotary->scaling)
        return refuse_unused(message, "scaling", "rotary.frequencies are given");
    if ((uintptr_t)rotary->frequencies % _Alignof(float))
        return rapt_refuse(message, RAPT_MISALIGNED_POINTER, "rotary.frequencies = %p is not aligned to 4 bytes",
                           (const void *)rotary->frequencies);
    for (int64_t i = 0; i < rotary->dim / 2; i++)
        if (!(rotary->frequencies[i] >= 0 && rotary->frequencies[i] <= 1))
            return rapt_refuse(message, RAPT_INVALID_VALUE, "rotary.frequencies[%lld] = %g is outside 0 ... 1",
                               (long long)i, (double)rotary->frequencies[i]);
    return check_unset(numbers, 5, "rotary.frequencies are given", message);
}

static rapt_status check_scaling(const rapt_rotary *rotary, const struct range *numbers, rapt_message *message) {
    const bool lengths = rotary->scaling == RAPT_ROTARY_YARN || rotary->scaling == RAPT_ROTARY_LLAMA3;
    const int used = rotary->scaling == RAPT_ROTARY_UNSCALED ? 1 : lengths ? 5 : 2;
    if (!(rotary->base > 1))
        return rapt_refuse(message, RAPT_INVALID_VALUE, "rotary.base = %g is not above 1", rotary->base);
    for (int i = 0; i < used; i++) {
        const rapt_status status = check_range(&numbers[i], message);
        if (status != RAPT_OK)
            return status;
    }
    if (lengths && !(rotary->low_factor < rotary->high_factor))
        return rapt_refuse(message, RAPT_INVALID_VALUE, "rotary.low_factor = %g is not below rotary.high_factor = %g",
                           rotary->low_factor, rotary->high_factor);
    return check_unset(numbers + used, 5 - used, "rotary.scaling has no use for it", message);
}

/* RAPT_ROTARY_NONE uses no field. */
static rapt_status check_none(const rapt_rotary *rotary, rapt_message *message) {
    const char *field = rotary->scaling                 ? "scaling"
                        : rotary->dim                   ? "dim"
                        : rotary->cosines               ? "cosines"
                        : rotary->sines                 ? "sines"
                        : rotary->table_positions       ? "table_positions"
                        : rotary->table_stride_bytes    ? "table_stride_bytes"
                        : rotary->frequencies           ? "frequencies"
                        : rotary->base != 0             ? "base"
                        : rotary->factor != 0           ? "factor"
                        : rotary->original_length != 0  ? "original_length"
                        : rotary->low_factor != 0       ? "low_factor"
                        : rotary->high_factor != 0      ? "high_factor"
                        : rotary->attention_factor != 0 ? "attention_factor"
                                                        : NULL;
    return field ? refuse_unused(message, field, "rotary.pairing = 0") : RAPT_OK;
}

rapt_status rapt_check_rotary(const rapt_rotary *rotary, int64_t head_dim, rapt_message *message) {
    const double large = 0x1p48, huge = 0x1p1000;
    const struct range numbers[] = {
        {"base", rotary->base, 1, huge},
        {"factor", rotary->factor, 1, large},
        {"original_length", rotary->original_length, 1, large},
        {"low_factor", rotary->low_factor, 1 / large, large},
        {"high_factor", rotary->high_factor, 1 / large, large},
        {"attention_factor", rotary->attention_factor, -large, large},
    };
    rapt_status status = check_enums(rotary, message);
    if (status != RAPT_OK)
        return status;
    if (rotary->pairing == RAPT_ROTARY_NONE)
        return check_none(rotary, message);
    if (rotary->dim < 2 || rotary->dim > head_dim || rotary->dim % 2)
        return rapt_refuse(message, RAPT_INVALID_SHAPE,
                           "rotary.dim = %lld is not an even number from 2 to head_dim = %lld", (long long)rotary->dim,
                           (long long)head_dim);
    if (rotary->cosines || rotary->sines)
        return check_table(rotary, numbers, 6, message);
    if (rotary->table_positions || rotary->table_stride_bytes)
        return refuse_unused(message, rotary->table_positions ? "table_positions" : "table_stride_bytes",
                             "rotary.cosines is NULL");
    status =
        rotary->frequencies ? check_frequencies(rotary, numbers, message) : check_scaling(rotary, numbers, message);
    return status == RAPT_OK ? check_range(&numbers[5], message) : status;
}
