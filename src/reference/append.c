/* SPDX-License-Identifier: MIT
 * Append and rotate, one token after the other (docs/numerics.md, rotary embedding). */
#include <math.h>
#include <string.h>

#include "reference/reference.h"

static int64_t entry_of(rapt_index_list list, int64_t i) {
    const char *entry = (const char *)list.data + i * (list.stride_bytes ? list.stride_bytes : list.index_bytes);
    return list.index_bytes == 4 ? *(const int32_t *)(const void *)entry : *(const int64_t *)(const void *)entry;
}

/* ---------------------------------------------------------------- rotary */

static long double correction(const rapt_rotary *rotary, double dim, double turns) {
    const long double two_pi = 2 * acosl(-1);
    return (long double)dim * logl((long double)rotary->original_length / ((long double)turns * two_pi)) /
           (2 * logl((long double)rotary->base));
}

static long double yarn_ramp(const rapt_rotary *rotary, double dim, int64_t pair) {
    const double slow = rotary->low_factor != 0 ? rotary->low_factor : 1;
    const double fast = rotary->high_factor != 0 ? rotary->high_factor : 32;
    const long double low = fmaxl(floorl(correction(rotary, dim, fast)), 0);
    long double high = fminl(ceill(correction(rotary, dim, slow)), (long double)dim - 1);
    if (high <= low)
        high = low + 0.001L;
    return fminl(fmaxl(((long double)pair - low) / (high - low), 0), 1);
}

static long double llama3(const rapt_rotary *rotary, long double f) {
    const long double low = rotary->low_factor != 0 ? rotary->low_factor : 1;
    const long double high = rotary->high_factor != 0 ? rotary->high_factor : 4;
    const long double wavelength = 2 * acosl(-1) / f, length = rotary->original_length, factor = rotary->factor;
    if (wavelength > length / low)
        return f / factor;
    if (wavelength < length / high)
        return f;
    const long double smooth = (length / wavelength - low) / (high - low);
    return (1 - smooth) * f / factor + smooth * f;
}

float rapt_reference_frequency(const rapt_rotary *rotary, int64_t head_dim, int64_t pair) {
    const double dim = (double)(rotary->dim ? rotary->dim : head_dim);
    long double base = rotary->base;
    if (rotary->frequencies)
        return rotary->frequencies[pair];
    if (rotary->scaling == RAPT_ROTARY_NTK && dim > 2)
        base *= powl(rotary->factor, (long double)dim / (dim - 2));
    const long double f = powl(base, -2 * (long double)pair / (long double)dim), factor = rotary->factor;
    switch (rotary->scaling) {
    case RAPT_ROTARY_LINEAR:
        return (float)(f / factor);
    case RAPT_ROTARY_YARN: {
        const long double ramp = yarn_ramp(rotary, dim, pair);
        return (float)(f / factor * ramp + f * (1 - ramp));
    }
    case RAPT_ROTARY_LLAMA3:
        return (float)llama3(rotary, f);
    default:
        return (float)f;
    }
}

static double factor_of(const rapt_rotary *rotary) {
    if (rotary->attention_factor != 0)
        return rotary->attention_factor;
    return rotary->scaling == RAPT_ROTARY_YARN ? (double)(0.1L * logl(rotary->factor) + 1) : 1;
}

void rapt_reference_angle(float frequency, int64_t position, double factor, float *cosine, float *sine) {
    static const double sines[5] = {-0x1.555555555516ap-3, 0x1.1111110fd3935p-7, -0x1.a019fd9a9838bp-13,
                                    0x1.71d9a97cd3c34p-19, -0x1.aa28204b8cc64p-26};
    static const double cosines[5] = {-0x1.fffffffffe691p-2, 0x1.555555514ea4bp-5, -0x1.6c16bae4ef84p-10,
                                      0x1.a0129816d86c7p-16, -0x1.2474b4d8b6dbep-22};
    const double x = (double)position * (double)frequency;
    const double n = rint(x * 0x1.45f306dc9c883p-1);
    double r = x - n * 0x1.921fb4p+0;
    r = r - n * 0x1.4442dp-24;
    r = r - n * 0x1.846988p-48;
    r = r - n * 0x1.8cc51701b839ap-72;
    const double z = r * r;
    double s = sines[4], c = cosines[4];
    for (int i = 3; i >= 0; i--) {
        s = s * z;
        s = s + sines[i];
        c = c * z;
        c = c + cosines[i];
    }
    s = z * s;
    s = r * s;
    s = r + s;
    c = z * c;
    c = 1 + c;
    const int quadrant = (int)((int64_t)n & 3);
    const double all[4] = {s, c, -s, -c};
    *sine = (float)(all[quadrant] * factor);
    *cosine = (float)(all[(quadrant + 1) % 4] * factor);
}

static float one_nan(float x) { return isnan(x) ? NAN : x; }

static void rotate(const rapt_rotary *rotary, int64_t head_dim, int64_t position, float *row) {
    const int64_t dim = rotary->dim ? rotary->dim : head_dim, pairs = dim / 2;
    const int64_t stride = rotary->table_stride_bytes ? rotary->table_stride_bytes : pairs * 4;
    for (int64_t i = 0; i < pairs; i++) {
        const bool halves = rotary->pairing == RAPT_ROTARY_HALVES;
        float *a = row + (halves ? i : 2 * i), *b = row + (halves ? i + pairs : 2 * i + 1), cosine = 1, sine = 0;
        if (rotary->cosines) {
            memcpy(&cosine, (const char *)rotary->cosines + position * stride + i * 4, sizeof cosine);
            memcpy(&sine, (const char *)rotary->sines + position * stride + i * 4, sizeof sine);
        } else {
            rapt_reference_angle(rapt_reference_frequency(rotary, head_dim, i), position, factor_of(rotary), &cosine,
                                 &sine);
        }
        const float first = *a, second = *b;
        const float left = first * cosine, right = second * sine, up = second * cosine, down = first * sine;
        *a = one_nan(left - right);
        *b = one_nan(up + down);
    }
}

/* ---------------------------------------------------------------- tokens */

static void append_row(const rapt_append_desc *d, bool is_key, const char *from, char *into,
                       const struct rapt_reference_scales *scales, int64_t position) {
    const rapt_tensor *source = is_key ? &d->key : &d->value, *cache = is_key ? &d->key_cache : &d->value_cache;
    const int64_t dim = is_key || !d->value_dim ? d->head_dim : d->value_dim;
    const bool rotates = is_key && d->rotary.pairing;
    float row[1024] = {0};
    if (source->dtype == cache->dtype && !rotates) {
        memcpy(into, from, (size_t)rapt_row_bytes(cache->dtype, dim));
        return;
    }
    for (int64_t i = 0; i < dim; i++)
        row[i] = rapt_reference_number(source->dtype, from, i);
    if (rotates)
        rotate(&d->rotary, d->head_dim, position, row);
    rapt_reference_store_scaled(cache->dtype, row, dim, scales, into);
}

static int64_t page_of(const rapt_append_desc *d, int64_t b, int64_t page) {
    rapt_index_list entries = d->pages.entries;
    switch (d->pages.kind) {
    case RAPT_PAGES_ROW:
        return entry_of(entries, b);
    case RAPT_PAGES_LISTED:
        return entry_of(entries, entry_of(d->pages.offsets, b) + page);
    case RAPT_PAGES_DENSE:
        entries.data = (const char *)entries.data + b * d->pages.batch_stride_bytes;
        return entry_of(entries, page);
    default:
        return b;
    }
}

/* The scales of a row. */
static struct rapt_reference_scales scales_of(const rapt_append_desc *d, const rapt_tensor *cache, bool is_key,
                                              int64_t page, int64_t head, int64_t offset) {
    const int64_t bytes = page * cache->scale_batch_stride_bytes + head * cache->scale_head_stride_bytes +
                          offset * cache->scale_token_stride_bytes;
    struct rapt_reference_scales scales = {.group = cache->scale_group};
    if (cache->scales)
        scales.scales = (float *)(void *)((char *)cache->scales + bytes);
    if (cache->zero_points)
        scales.zero_points = (signed char *)cache->zero_points + bytes / 4;
    scales.computes = d->features & (is_key ? RAPT_COMPUTE_KEY_SCALES : RAPT_COMPUTE_VALUE_SCALES);
    return scales;
}

static void append_token(const rapt_append_desc *d, int64_t b, int64_t row, int64_t page, int64_t offset,
                         int64_t position) {
    for (int is_key = 0; is_key < 2; is_key++) {
        const rapt_tensor *source = is_key ? &d->key : &d->value, *cache = is_key ? &d->key_cache : &d->value_cache;
        const bool paged = d->slots.data || d->pages.kind == RAPT_PAGES_DENSE || d->pages.kind == RAPT_PAGES_LISTED;
        const int64_t page_stride = paged ? cache->page_stride_bytes : cache->batch_stride_bytes;
        for (int64_t h = 0; cache->data && h < d->kv_heads; h++) {
            const struct rapt_reference_scales scales = scales_of(d, cache, is_key, page, h, offset);
            append_row(d, is_key,
                       (const char *)source->data + b * source->batch_stride_bytes + h * source->head_stride_bytes +
                           row * source->token_stride_bytes,
                       (char *)cache->data + page * page_stride + h * cache->head_stride_bytes +
                           offset * cache->token_stride_bytes,
                       &scales, position);
        }
    }
}

void rapt_reference_append(const rapt_append_desc *d) {
    for (int64_t b = 0; b < d->batch; b++) {
        const int64_t first = d->offsets.data ? entry_of(d->offsets, b) : 0;
        const int64_t count = d->offsets.data   ? entry_of(d->offsets, b + 1) - first
                              : d->lengths.data ? entry_of(d->lengths, b)
                                                : d->length;
        for (int64_t i = 0; i < count; i++) {
            const int64_t token = d->offsets.data ? first + i : b * d->length + i;
            int64_t page = b, offset = (d->positions.data ? entry_of(d->positions, b) : 0) + i, position = offset;
            if (d->slots.data) {
                const int64_t slot = entry_of(d->slots, token);
                if (slot < 0)
                    continue;
                page = slot / d->pages.page_tokens;
                offset = slot % d->pages.page_tokens;
            }
            if (d->pages.kind) {
                const int64_t room = d->pages.kind == RAPT_PAGES_ROW ? d->cache_length : d->pages.page_tokens;
                page = page_of(d, b, offset / room);
                offset = offset % room;
            }
            if (d->rotary_positions.data)
                position = entry_of(d->rotary_positions, token);
            append_token(d, d->offsets.data ? 0 : b, d->offsets.data ? token : i, page, offset, position);
        }
    }
}

void rapt_reference_rotate(const rapt_rotate_desc *d) {
    const struct rapt_reference_scales none = {NULL, NULL, 0, false};
    const rapt_append_desc append = {.head_dim = d->head_dim, .key = d->in, .key_cache = d->out, .rotary = d->rotary};
    for (int64_t b = 0; b < d->batch; b++) {
        const bool packed = d->offsets.data;
        const int64_t first = packed ? entry_of(d->offsets, b) : b * d->length;
        const int64_t count = packed            ? entry_of(d->offsets, b + 1) - first
                              : d->lengths.data ? entry_of(d->lengths, b)
                                                : d->length;
        for (int64_t i = 0; i < count; i++)
            for (int64_t h = 0; h < d->heads; h++) {
                const int64_t batch = packed ? 0 : b, token = packed ? first + i : i;
                const int64_t position = d->positions.data ? entry_of(d->positions, first + i)
                                                           : entry_of(d->first_positions, b) + i;
                append_row(&append, true,
                           (const char *)d->in.data + batch * d->in.batch_stride_bytes + h * d->in.head_stride_bytes +
                               token * d->in.token_stride_bytes,
                           (char *)d->out.data + batch * d->out.batch_stride_bytes + h * d->out.head_stride_bytes +
                               token * d->out.token_stride_bytes,
                           &none, position);
            }
    }
}
