/* SPDX-License-Identifier: MIT */
#include "stored.h"

#include <math.h>

#include "reference.h"

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

/* The largest number of a block; NaN where one is. */
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

/* Whether a number of bfloat16 is not even near 0.25 ... 4. */
static bool is_far(const unsigned char *number) { return (number[1] & 0x7f) < 0x3e || (number[1] & 0x7f) > 0x40; }

/* Tries bytes until their numbers are of the kind: all types have ordinary ones among few tries, but for bfloat16,
 * where one look is enough for most. */
static void draw_block(struct random *random, int format, unsigned char *block, bool special) {
    const int bytes = rapt_format_info(format)->bytes;
    const bool is_any = special && random_chance(random, 2), is_finite = special && random_chance(random, 2);
    for (int tries = 0; tries < 1000; tries++) {
        for (int i = 0; i < bytes; i++)
            block[i] = (unsigned char)random_bits(random);
        if (format == RAPT_FORMAT_BF16 && !is_any && !is_finite && is_far(block))
            continue;
        const float most = largest(format, block);
        if (rapt_format_info(format)->uses & RAPT_MUST_SCALE)
            return;
        if (is_any || (is_finite ? most < 0x1p120f : most > 0.25f && most < 4))
            return;
    }
    memset(block, 0, (size_t)bytes);
}

void stored_draw(struct random *random, int format, void *blocks, int64_t count, bool special) {
    for (int64_t i = 0; i < count; i++)
        draw_block(random, format, (unsigned char *)blocks + i * rapt_format_info(format)->bytes, special);
}
