/* SPDX-License-Identifier: MIT
 * What layers do to arrays besides projections and attention. All of it runs on the calling thread. ASSUME a call of a
 * layer is open (call.h), so that the floating-point environment is the normal one. */
#ifndef RAPT_LAYERS_ELEMENTWISE_H
#define RAPT_LAYERS_ELEMENTWISE_H

#include <stdint.h>

#include "rapt/layers.h"

/* x[i] = activation(x[i]) */
void rapt_activate(float *x, int64_t count, rapt_activation activation);

/* out[i] = a[i] + b[i]; out may be a or b. */
void rapt_add(const float *a, const float *b, int64_t count, float *out);

/* x[i] = tanh(x[i]) */
void rapt_tanh_of(float *x, int64_t count);

/* x[i] = x[i] * factor */
void rapt_scale(float *x, int64_t count, double factor);

/* rapt_layer_norm, with valid arguments. */
void rapt_normalise(const rapt_norm *norm, const float *x, int64_t tokens, int64_t width, float *out);

/* sum over k of v[k] * tanh(a[k] + b[k]), each sum in double, rounded once;
 * a and b are sums in float, as projections are. */
void rapt_additive_scores(const float *a, const float *b, const float *v, int64_t rows, int64_t columns,
                          int64_t units, float *scores);

/* p_t of Luong's local-p: keys * sigmoid(v . tanh(x)); x is [rows][units]. */
void rapt_positions(const float *x, const float *v, int64_t rows, int64_t units, int64_t keys, float *position);

/* mask[i][s] = |s - position[i]| <= reach, and the logarithm of the Gaussian
 * with sigma = reach / 2, -(s - position)^2 / (2 sigma^2), added to gauss[i][s].
 * A position that is NaN sees all and makes all NaN. */
void rapt_gauss_window(const float *position, int64_t rows, int64_t keys, int64_t reach, unsigned char *mask,
                       float *gauss);

/* What the Gaussian leaves of a row's weights: the sum of align[s] * g[s] in double, from the first to the last. */
double rapt_gauss_share(const float *align, float position, int64_t keys, int64_t reach);

#endif
