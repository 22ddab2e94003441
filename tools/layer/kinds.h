/* SPDX-License-Identifier: MIT
 * One function for each kind of `rapt layer`. */
#ifndef RAPT_LAYER_KINDS_H
#define RAPT_LAYER_KINDS_H

#include "layer/options.h"

void layer_simplified(const struct layer_options *options);
void layer_dot(const struct layer_options *options);
void layer_self(const struct layer_options *options);
void layer_stacked(const struct layer_options *options);
void layer_multi_head(const struct layer_options *options);
void layer_cross(const struct layer_options *options);
void layer_fused(const struct layer_options *options);
void layer_encoder(const struct layer_options *options);
void layer_embedding(const struct layer_options *options);
void layer_additive(const struct layer_options *options);
void layer_luong(const struct layer_options *options);
void layer_minilm(const struct layer_options *options);

#endif
