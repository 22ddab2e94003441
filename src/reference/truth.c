/* SPDX-License-Identifier: MIT
 *
 * Attention as textbooks have it, in double, and the plain float32 form that
 * its error is compared with. It shares stored numbers and entries of lists
 * with reference.c, but no masks, positions or constants.
 */
#include "reference/reference.h"

#include <math.h>
#include <stdlib.h>

#include "internal.h"

/* One (sequence, head, query). */
struct row {
    const rapt_attention_desc *desc;
    int64_t b, h, i, kv_head, keys;
    float *query; /* [head_dim], in float32 */
};

static int64_t listed(rapt_index_list list, int64_t b, int64_t otherwise) {
    return list.data ? rapt_index_at(list, b) : otherwise;
}

static const void *at(const rapt_tensor *tensor, int64_t b, int64_t h, int64_t token) {
    return (const char *)tensor->data + b * tensor->batch_stride_bytes + h * tensor->head_stride_bytes +
           token * tensor->token_stride_bytes;
}

/* This query's row of a tensor with one row per query. */
static const void *at_query(const struct row *row, const rapt_tensor *tensor) {
    const rapt_index_list offsets = row->desc->query_offsets;
    return offsets.data ? at(tensor, 0, row->h, rapt_index_at(offsets, row->b) + row->i)
                        : at(tensor, row->b, row->h, row->i);
}

static int64_t queries_of(const rapt_attention_desc *desc, int64_t b) {
    return desc->query_offsets.data ? rapt_index_at(desc->query_offsets, b + 1) - rapt_index_at(desc->query_offsets, b)
                                    : listed(desc->query_lengths, b, desc->query_length);
}

static struct row row_at(const rapt_attention_desc *desc, int64_t b, int64_t h, int64_t i, float *query) {
    struct row row = {desc, b, h, i, h * desc->kv_heads / desc->query_heads, rapt_reference_keys(desc, b), query};
    for (int64_t d = 0; d < desc->head_dim; d++) {
        query[d] = rapt_reference_number(desc->query.dtype, at_query(&row, &desc->query), d);
    }
    return row;
}

static float bias_at(const struct row *row, int64_t j) {
    const rapt_tensor *bias = &row->desc->bias;
    return rapt_reference_number(bias->dtype, at_query(row, bias), j);
}

/* How far key j lies before the query; negative after it. */
static int64_t keys_back(const struct row *row, int64_t j) {
    const rapt_attention_desc *desc = row->desc;
    switch (desc->query_origin) {
    case RAPT_ORIGIN_GIVEN:
        return rapt_index_at(desc->query_position, row->b) + row->i -
               (listed(desc->key_position, row->b, 0) + j);
    case RAPT_ORIGIN_BOTTOM_RIGHT:
        return row->keys - queries_of(desc, row->b) + row->i - j;
    default:
        return row->i - j;
    }
}

static bool mask_allows(const struct row *row, int64_t j) {
    const rapt_tensor *mask = &row->desc->mask;
    return !mask->data || ((const unsigned char *)at_query(row, mask))[j];
}

/* Whether trees and lists of key blocks let the query see key j. */
static bool is_selected(const struct row *row, int64_t j) {
    const rapt_attention_desc *desc = row->desc;
    const rapt_block_list *lists = &desc->key_blocks;
    int64_t from_end = row->keys - j; /* 1 for the last key, whose bit is tree_tokens - 1 */
    if (desc->tree_tokens && from_end <= desc->tree_tokens) {
        int64_t before = desc->query_offsets.data ? rapt_index_at(desc->query_offsets, row->b)
                                                  : row->b * desc->query_length;
        int64_t mask = rapt_index_at(desc->tree_masks, before + row->i);
        if (!((uint64_t)mask & UINT64_C(1) << (desc->tree_tokens - from_end))) {
            return false;
        }
    }
    if (!lists->query_tokens) {
        return true;
    }
    int64_t list = row->i / lists->query_tokens + row->b * lists->batch_stride + row->kv_head * lists->head_stride;
    int64_t at = rapt_index_at(lists->offsets, list), end = rapt_index_at(lists->offsets, list + 1);
    while (at < end && rapt_index_at(lists->entries, at) != j / lists->key_tokens) {
        at++;
    }
    return at < end;
}

static bool takes_part(const struct row *row, int64_t j) {
    const rapt_attention_desc *desc = row->desc;
    int64_t back = keys_back(row, j);
    bool causal = desc->features & RAPT_CAUSAL;
    bool window = desc->features & RAPT_WINDOW;
    bool fill = desc->features & RAPT_MASK_FILL;
    bool far_left = window && desc->window_left >= 0 && back > desc->window_left;
    bool far_right = window && desc->window_right >= 0 && back < -desc->window_right;
    bool biased_away = false;
    if (desc->bias.data) {
        float bias = bias_at(row, j);
        biased_away = isinf(bias) && bias < 0;
    }
    return !(causal && back < 0) && !far_left && !far_right && !biased_away && (fill || mask_allows(row, j)) &&
           is_selected(row, j);
}

static double slope_of(const rapt_attention_desc *desc, int64_t h) {
    if (desc->alibi_slopes) {
        return desc->alibi_slopes[h];
    }
    if (!(desc->features & RAPT_ALIBI_STANDARD)) {
        return 0;
    }
    double n = exp2(floor(log2((double)desc->query_heads)));
    return (double)h < n ? pow(2, -8.0 * (double)(h + 1) / n) : pow(2, -4.0 * (2 * ((double)h - n) + 1) / n);
}

static double scale_of(const rapt_attention_desc *desc) {
    return desc->features & RAPT_SCALE ? desc->scale : 1 / sqrt((double)desc->head_dim);
}

/* Scaled dot product of the row's query with key j. */
static double scaled_score(const struct row *row, int64_t j) {
    const rapt_attention_desc *desc = row->desc;
    const float *key = at(&desc->key, row->b, row->kv_head, j);
    double sum = 0;
    for (int64_t d = 0; d < desc->head_dim; d++) {
        sum += (double)row->query[d] * key[d];
    }
    return sum * scale_of(desc);
}

static float scaled_score_float(const struct row *row, int64_t j) {
    const rapt_attention_desc *desc = row->desc;
    const float *key = at(&desc->key, row->b, row->kv_head, j);
    float sum = 0;
    for (int64_t d = 0; d < desc->head_dim; d++) {
        sum += row->query[d] * key[d];
    }
    return sum * (float)scale_of(desc);
}

static double capped(const rapt_attention_desc *desc, double score) {
    return desc->softcap != 0 ? desc->softcap * tanh(score / desc->softcap) : score;
}

/* What enters the softmax for a score after softcap. */
static double logit(const struct row *row, int64_t j, double score) {
    const rapt_attention_desc *desc = row->desc;
    if ((desc->features & RAPT_MASK_FILL) && !mask_allows(row, j)) {
        return desc->mask_fill;
    }
    if (desc->bias.data) {
        double factor = desc->bias_head_factor ? desc->bias_head_factor[row->h] : 1;
        double bias = bias_at(row, j);
        double limit = 0x1p126; /* of a finite bias: the lowest float stays finite in base 2 */
        score += factor * (isfinite(bias) && fabs(bias) > limit ? copysign(limit, bias) : bias);
    }
    double slope = slope_of(desc, row->h);
    return slope != 0 ? score - slope * fabs((double)keys_back(row, j)) : score;
}

static double kept(const struct row *row, int64_t j, double p) {
    const rapt_tensor *keep = &row->desc->keep_mask;
    if (!keep->data) {
        return p;
    }
    return ((const unsigned char *)at_query(row, keep))[j] ? p * row->desc->keep_scale : 0;
}

/* p = exp(t - maximum) of every key; returns their sum. */
static double exponentials(const struct row *row, double *p, double *maximum) {
    for (int64_t j = 0; j < row->keys; j++) {
        if (takes_part(row, j)) {
            p[j] = logit(row, j, capped(row->desc, scaled_score(row, j)));
            *maximum = fmax(*maximum, p[j]);
        }
    }
    double sum = 0;
    double shift = isinf(*maximum) && *maximum < 0 ? 0 : *maximum;
    for (int64_t j = 0; j < row->keys; j++) {
        p[j] = takes_part(row, j) ? exp(p[j] - shift) : 0;
        sum += p[j];
    }
    return sum;
}

static double truth_weight(const struct row *row, int64_t j, double probability) {
    bool stored = j < row->keys;
    switch (row->desc->weights_kind) {
    case RAPT_WEIGHTS_RAW:
        return stored ? scaled_score(row, j) : 0;
    case RAPT_WEIGHTS_SOFTCAP:
        return stored ? capped(row->desc, scaled_score(row, j)) : 0;
    case RAPT_WEIGHTS_MASKED:
        if (!stored || !takes_part(row, j)) {
            return -INFINITY;
        }
        return logit(row, j, capped(row->desc, scaled_score(row, j)));
    default:
        return probability;
    }
}

/* out += weight of key j * its value, for the keys that take part. */
static void weighted_values(const struct row *row, const double *p, double sum, double *out,
                            int64_t value_dim) {
    for (int64_t j = 0; j < row->keys; j++) {
        if (takes_part(row, j)) {
            const float *value = at(&row->desc->value, row->b, row->kv_head, j);
            double weight = kept(row, j, p[j] / sum);
            for (int64_t d = 0; d < value_dim; d++) {
                out[d] += weight * value[d];
            }
        }
    }
}

static void truth_row(const struct row *row, double *p, double *out, double *lse, double *weights) {
    const rapt_attention_desc *desc = row->desc;
    int64_t value_dim = desc->value_dim ? desc->value_dim : desc->head_dim;
    double maximum = -INFINITY;
    double sum = exponentials(row, p, &maximum);
    bool empty = sum == 0;
    if (lse) {
        *lse = empty ? -INFINITY : maximum + log(sum);
    }
    if (desc->sinks && !empty) {
        double with_sink = fmax(maximum, desc->sinks[row->h]);
        double shrink = exp(maximum - with_sink);
        for (int64_t j = 0; j < row->keys; j++) {
            p[j] *= shrink;
        }
        sum = sum * shrink + exp(desc->sinks[row->h] - with_sink);
    }
    if (!empty) {
        weighted_values(row, p, sum, out, value_dim);
    }
    for (int64_t j = 0; weights && j < desc->kv_length; j++) {
        /* Also where a NaN made the sum NaN, excluded pairs are 0. */
        const bool counts = j < row->keys && !empty && takes_part(row, j);
        weights[j] = truth_weight(row, j, counts ? p[j] / sum : 0);
    }
}

static void truth(const rapt_attention_desc *desc, double *out, double *lse, double *weights) {
    int64_t value_dim = desc->value_dim ? desc->value_dim : desc->head_dim;
    int64_t queries = desc->query_length;
    double *p = rapt_reference_room(desc->kv_length, sizeof *p);
    float *query = rapt_reference_room(desc->head_dim, sizeof *query);
    for (int64_t r = 0; r < desc->batch * desc->query_heads * queries; r++) {
        int64_t b = r / queries / desc->query_heads;
        int64_t h = r / queries % desc->query_heads;
        int64_t i = r % queries;
        for (int64_t d = 0; d < value_dim; d++) {
            out[r * value_dim + d] = 0;
        }
        if (lse) {
            lse[r] = 0;
        }
        for (int64_t j = 0; weights && j < desc->kv_length; j++) {
            weights[r * desc->kv_length + j] = 0;
        }
        if (i < queries_of(desc, b)) {
            struct row row = row_at(desc, b, h, i, query);
            truth_row(&row, p, out + r * value_dim, lse ? lse + r : NULL,
                      weights ? weights + r * desc->kv_length : NULL);
        }
    }
    free(query);
    free(p);
}

static void plain_row(const struct row *row, float *p, float *out, int64_t value_dim) {
    float maximum = -INFINITY;
    float sum = 0;
    for (int64_t j = 0; j < row->keys; j++) {
        if (takes_part(row, j)) {
            p[j] = (float)logit(row, j, capped(row->desc, scaled_score_float(row, j)));
            maximum = fmaxf(maximum, p[j]);
        }
    }
    for (int64_t j = 0; j < row->keys; j++) {
        p[j] = takes_part(row, j) ? expf(p[j] - maximum) : 0;
        sum += p[j];
    }
    if (row->desc->sinks && sum != 0) {
        sum += expf(row->desc->sinks[row->h] - maximum);
    }
    for (int64_t j = 0; j < row->keys && sum != 0; j++) {
        if (takes_part(row, j)) {
            const float *value = at(&row->desc->value, row->b, row->kv_head, j);
            float weight = (float)kept(row, j, p[j] / sum);
            for (int64_t d = 0; d < value_dim; d++) {
                out[d] += weight * value[d];
            }
        }
    }
}

static void plain(const rapt_attention_desc *desc, float *out) {
    int64_t value_dim = desc->value_dim ? desc->value_dim : desc->head_dim;
    int64_t queries = desc->query_length;
    float *p = rapt_reference_room(desc->kv_length, sizeof *p);
    float *query = rapt_reference_room(desc->head_dim, sizeof *query);
    for (int64_t r = 0; r < desc->batch * desc->query_heads * queries; r++) {
        int64_t b = r / queries / desc->query_heads;
        int64_t i = r % queries;
        for (int64_t d = 0; d < value_dim; d++) {
            out[r * value_dim + d] = 0;
        }
        if (i < queries_of(desc, b)) {
            struct row row = row_at(desc, b, r / queries % desc->query_heads, i, query);
            plain_row(&row, p, out + r * value_dim, value_dim);
        }
    }
    free(query);
    free(p);
}

void rapt_truth_attention(const rapt_attention_desc *desc, double *out, double *lse, double *weights) {
    rapt_attention_desc wide = *desc;
    const struct rapt_reference_copy copy = rapt_reference_widen(&wide);
    truth(&wide, out, lse, weights);
    free(copy.key);
    free(copy.value);
}

void rapt_plain_attention(const rapt_attention_desc *desc, float *out) {
    rapt_attention_desc wide = *desc;
    const struct rapt_reference_copy copy = rapt_reference_widen(&wide);
    plain(&wide, out);
    free(copy.key);
    free(copy.value);
}
