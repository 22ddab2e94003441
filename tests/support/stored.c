/* SPDX-License-Identifier: MIT */
#include "support/stored.h"

#include <math.h>

#include "reference/reference.h"

int32_t stored_dtype(int format) {
    static const int32_t dtypes[] = {
#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment, uses) RAPT_##NAME,
#include "format.def"
#undef RAPT_FORMAT
    };
    return dtypes[format];
}

const char *stored_name(int format) {
    static const char *const names[] = {
#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment, uses) #name,
#include "format.def"
#undef RAPT_FORMAT
    };
    return names[format];
}

/* The largest number of a block; NaN if one is. */
static float largest(int format, const void *block) {
    float most = 0;
    for (int d = 0; d < rapt_format_info(format)->elements; d++) {
        const float number = fabsf(rapt_reference_number(stored_dtype(format), block, d));
        most = number <= most ? most : number;
        if (isnan(number))
            return number;
    }
    return most;
}

/* A number of 0.25 ... 4, in a format without blocks: sign, exponent, fraction. */
static void draw_number(struct random *random, int format, unsigned char *into) {
    const int bytes = rapt_format_info(format)->bytes;
    const int fraction = format == RAPT_FORMAT_F32       ? 23
                         : format == RAPT_FORMAT_F16     ? 10
                         : format == RAPT_FORMAT_BF16    ? 7
                         : format == RAPT_FORMAT_F8_E4M3 ? 3
                                                         : 2;
    const uint32_t bias = (1u << (8 * bytes - 2 - fraction)) - 1;
    const uint64_t bits = random_bits(random);
    const uint32_t sign = (uint32_t)(bits >> 63), exponent = bias - 2 + (uint32_t)(bits >> 32 & 3);
    const uint32_t number = sign << (8 * bytes - 1) | exponent << fraction | ((uint32_t)bits & ((1u << fraction) - 1));
    memcpy(into, &number, (size_t)bytes);
}

/* Whether the scale of a block, multiplied by up to 127, leaves no number near 0.25 ... 4. */
static bool is_far(const unsigned char *block) { return (block[1] & 0x7f) < 0x18 || (block[1] & 0x7f) > 0x43; }

static void draw_bytes(struct random *random, unsigned char *into, int bytes) {
    for (int i = 0; i < bytes; i += 8) {
        const uint64_t bits = random_bits(random);
        memcpy(into + i, &bits, bytes - i < 8 ? (size_t)(bytes - i) : 8);
    }
}

/* Numbers of any kind, all finite, or of ordinary size; the last two redraw the scale until it fits. */
static void draw_block(struct random *random, int format, unsigned char *block, bool special) {
    const struct rapt_format_info *info = rapt_format_info(format);
    const bool is_any = special && random_chance(random, 2), is_finite = special && random_chance(random, 2);
    const bool is_ordinary = !is_any && !is_finite && !(info->uses & RAPT_MUST_SCALE);
    if (is_ordinary && info->elements == 1) {
        draw_number(random, format, block);
        return;
    }
    draw_bytes(random, block, info->bytes);
    for (int tries = 0; tries < 1000; tries++, draw_bytes(random, block, info->bytes < 4 ? info->bytes : 4)) {
        if (is_any || (info->uses & RAPT_MUST_SCALE))
            return;
        if (is_ordinary && is_far(block))
            continue;
        const float most = largest(format, block);
        if (is_ordinary ? most > 0.25f && most < 4 : most < 0x1p120f)
            return;
    }
    memset(block, 0, (size_t)info->bytes);
}

void stored_draw(struct random *random, int format, void *blocks, int64_t count, bool special) {
    for (int64_t i = 0; i < count; i++)
        draw_block(random, format, (unsigned char *)blocks + i * rapt_format_info(format)->bytes, special);
}
