/* SPDX-License-Identifier: MIT
 * The steps of order 2 (docs/numerics.md) that take one number or one state. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "reference/order2.h"

#ifdef __FAST_MATH__
#error "the numeric order needs IEEE arithmetic: build without -ffast-math"
#endif

static const float to_integer = 0x1.8p+23f;

/* Step 5. */

float rapt_order2_exp2(float x, bool is_half) {
    static const float of_bf16[] = {0x1.c2a218p-5f, 0x1.f00c4cp-3f, 0x1.62f5fap-1f, 1.0f};
    static const float of_half[] = {0x1.3a02ccp-7f, 0x1.c9fc46p-5f, 0x1.ec0378p-3f, 0x1.62e12cp-1f, 1.0f};
    if (x < -48.0f) {
        return 0.0f;
    }
    if (x != x) {
        return x;
    }
    const float *factors = is_half ? of_half : of_bf16;
    float n = (x + to_integer) - to_integer;
    float r = x - n;
    float p = factors[0];
    for (int k = 1; k < (is_half ? 5 : 4); k++) {
        p = fmaf(p, r, factors[k]);
    }
    return ldexpf(p, (int)n);
}

/* Step 6: 2^k. */
float rapt_order2_alpha(float k) {
    static const float factors[] = {0x1.5f5af4p-9f, 0x1.3b2db4p-6f, 0x1.c6aecap-4f, 0x1.ebfbd6p-2f,
                                    0x1.62e43p+0f, 2.0f};
    if (!(k >= -64.0f)) {
        return 0.0f;
    }
    float n = (k + to_integer) - to_integer;
    float r = k - n;
    float p = 0x1.425ac8p-12f;
    for (int i = 0; i < 6; i++) {
        p = fmaf(p, r, factors[i]);
    }
    return ldexpf(p, (int)n - 1);
}

/* Step 7: chunks fold left to right. */
void rapt_order2_fold(struct rapt_reference_state *into, const struct rapt_reference_state *next,
                      int64_t value_dim) {
    rapt_reference_fold_by(into, next, value_dim, rapt_order2_alpha);
}

/* A state of order 2: its maximum may be any number. */
void rapt_order2_load_state(struct rapt_reference_state *into, const float *row, int64_t value_dim) {
    into->m = row[0];
    into->l = row[1];
    memcpy(into->o, row + 2, (size_t)value_dim * sizeof(float));
    if (into->l == 0.0f) {
        into->m = -INFINITY;
        into->l = 0.0f;
    } else if (!(into->l >= FLT_MIN && isfinite(into->m))) {
        into->l = NAN;
    }
}

void rapt_order2_sink(struct rapt_reference_state *row, float sink_log2e, int64_t value_dim) {
    if (row->l == 0.0f) {
        return;
    }
    float m = sink_log2e > row->m ? sink_log2e : row->m;
    float alpha = rapt_order2_alpha(row->m - m);
    for (int64_t d = 0; d < value_dim; d++) {
        row->o[d] = row->o[d] * alpha;
    }
    row->l = row->l * alpha + rapt_order2_alpha(sink_log2e - m);
    row->m = m;
}
