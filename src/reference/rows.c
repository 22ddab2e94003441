/* SPDX-License-Identifier: MIT */
#include "reference/rows.h"

#include <math.h>

static const float log2e = 0x1.715476p+0f;
static const float ln2 = 0x1.62e43p-1f;

int64_t rapt_reference_entry(rapt_index_list list, int64_t n, int64_t if_absent) {
    if (list.data == NULL) {
        return if_absent;
    }
    const char *at = (const char *)list.data + n * (list.stride_bytes ? list.stride_bytes : list.index_bytes);
    return list.index_bytes == 4 ? *(const int32_t *)(const void *)at : *(const int64_t *)(const void *)at;
}

char *rapt_reference_row(const rapt_tensor *tensor, int64_t b, int64_t h, int64_t token) {
    return (char *)tensor->data + b * tensor->batch_stride_bytes + h * tensor->head_stride_bytes +
           token * tensor->token_stride_bytes;
}

char *rapt_reference_query_row(const rapt_attention_desc *desc, const rapt_tensor *tensor, int64_t b, int64_t h,
                               int64_t i) {
    return desc->query_offsets.data
               ? rapt_reference_row(tensor, 0, h, rapt_reference_entry(desc->query_offsets, b, 0) + i)
               : rapt_reference_row(tensor, b, h, i);
}

int64_t rapt_reference_queries(const rapt_attention_desc *desc, int64_t b) {
    const rapt_index_list offsets = desc->query_offsets;
    return offsets.data ? rapt_reference_entry(offsets, b + 1, 0) - rapt_reference_entry(offsets, b, 0)
                        : rapt_reference_entry(desc->query_lengths, b, desc->query_length);
}

int64_t rapt_reference_kv_head(const rapt_attention_desc *desc, int64_t h) {
    return h / (desc->query_heads / desc->kv_heads);
}

int64_t rapt_reference_first_key(const rapt_attention_desc *desc, int64_t b) {
    return rapt_reference_entry(desc->key_position, b, 0);
}

/* The logical position of query i, counted like those of keys. */
static int64_t query_position_of(const rapt_attention_desc *desc, int64_t b, int64_t i) {
    int64_t first_key = rapt_reference_first_key(desc, b);
    if (desc->query_origin == RAPT_ORIGIN_BOTTOM_RIGHT) {
        return first_key + rapt_reference_keys(desc, b) - rapt_reference_queries(desc, b) + i;
    }
    if (desc->query_origin == RAPT_ORIGIN_GIVEN) {
        return rapt_reference_entry(desc->query_position, b, 0) + i;
    }
    return first_key + i;
}

static bool in_range(const rapt_attention_desc *desc, int64_t distance) {
    if ((desc->features & RAPT_CAUSAL) && distance < 0) {
        return false;
    }
    if (!(desc->features & RAPT_WINDOW)) {
        return true;
    }
    return (desc->window_left == -1 || distance <= desc->window_left) &&
           (desc->window_right == -1 || -distance <= desc->window_right);
}

/* Whether the tree of query i lets it see key j. A tree covers the last keys of the sequence. */
static bool in_tree(const rapt_attention_desc *desc, int64_t b, int64_t i, int64_t j) {
    int64_t bit = j - (rapt_reference_keys(desc, b) - desc->tree_tokens);
    int64_t first =
        desc->query_offsets.data ? rapt_reference_entry(desc->query_offsets, b, 0) : b * desc->query_length;
    if (desc->tree_tokens == 0 || bit < 0) {
        return true;
    }
    return (uint64_t)rapt_reference_entry(desc->tree_masks, first + i, 0) >> bit & 1;
}

/* Whether the list of query i's block has the block of key j. */
static bool in_blocks(const rapt_attention_desc *desc, int64_t b, int64_t kv_head, int64_t i, int64_t j) {
    const rapt_block_list *blocks = &desc->key_blocks;
    if (blocks->query_tokens == 0) {
        return true;
    }
    int64_t list = b * blocks->batch_stride + kv_head * blocks->head_stride + i / blocks->query_tokens;
    int64_t end = rapt_reference_entry(blocks->offsets, list + 1, 0);
    for (int64_t n = rapt_reference_entry(blocks->offsets, list, 0); n < end; n++) {
        if (rapt_reference_entry(blocks->entries, n, 0) == j / blocks->key_tokens) {
            return true;
        }
    }
    return false;
}

bool rapt_reference_is_visible(const rapt_attention_desc *desc, int64_t distance, int64_t b, int64_t h, int64_t i,
                               int64_t j) {
    return in_range(desc, distance) && in_tree(desc, b, i, j) &&
           in_blocks(desc, b, rapt_reference_kv_head(desc, h), i, j);
}

struct rapt_reference_pair rapt_reference_pair_of_head(const rapt_attention_desc *desc, int64_t h) {
    struct rapt_reference_pair pair = {0};
    pair.softcap_log2e = desc->softcap * log2e;
    pair.has_bias = desc->bias.data != NULL;
    pair.bias_factor = (desc->bias_head_factor ? desc->bias_head_factor[h] : 1.0f) * log2e;
    pair.has_mask = desc->mask.data != NULL;
    pair.has_fill = (desc->features & RAPT_MASK_FILL) != 0;
    pair.fill_log2e = desc->mask_fill * log2e;
    if (desc->alibi_slopes || (desc->features & RAPT_ALIBI_STANDARD)) {
        float slope =
            desc->alibi_slopes ? desc->alibi_slopes[h] : rapt_reference_alibi_slope(h, desc->query_heads);
        pair.has_alibi = true;
        pair.alibi_factor = -(slope * log2e);
    }
    return pair;
}

void rapt_reference_pair_at(const rapt_attention_desc *desc, struct rapt_reference_pair *pair, int64_t b, int64_t h,
                            int64_t i, int64_t j) {
    pair->distance = query_position_of(desc, b, i) - (rapt_reference_first_key(desc, b) + j);
    if (pair->has_bias) {
        pair->bias = rapt_reference_number(desc->bias.dtype, rapt_reference_query_row(desc, &desc->bias, b, h, i), j);
    }
    if (pair->has_mask) {
        pair->mask = rapt_reference_query_row(desc, &desc->mask, b, h, i)[j] != 0;
    }
}

void rapt_reference_put_state(const rapt_attention_desc *desc, int64_t b, int64_t h, int64_t i,
                              const struct rapt_reference_state *row, int64_t value_dim) {
    if (desc->lse.data != NULL) {
        *(float *)(void *)rapt_reference_query_row(desc, &desc->lse, b, h, i) = rapt_reference_lse(row->m, row->l);
    }
    if (desc->final_state.data != NULL) {
        float *state = (float *)(void *)rapt_reference_query_row(desc, &desc->final_state, b, h, i);
        rapt_reference_store_state(row, state, value_dim);
    }
}

void rapt_reference_put_out(const rapt_attention_desc *desc, int64_t b, int64_t h, int64_t i, const float *out,
                            int64_t value_dim) {
    if (desc->out.data != NULL) {
        rapt_reference_store(desc->out.dtype, out, value_dim, rapt_reference_query_row(desc, &desc->out, b, h, i));
    }
}

static float weight(const rapt_attention_desc *desc, float softcap_log2e, const struct rapt_reference_scores *scores,
                    int64_t j) {
    switch (desc->weights_kind) {
    case RAPT_WEIGHTS_MASKED:
        return scores->attended[j] ? scores->t[j] * ln2 : -INFINITY;
    case RAPT_WEIGHTS_SOFTMAX:
        return scores->softmax[j];
    case RAPT_WEIGHTS_SOFTCAP:
        if (softcap_log2e != 0.0f) {
            return softcap_log2e * rapt_reference_tanh(scores->s[j] * scores->factor) * ln2;
        }
        return scores->s[j] * scores->scale;
    default:
        return scores->s[j] * scores->scale;
    }
}

void rapt_reference_put_weights(const rapt_attention_desc *desc, int64_t b, int64_t h, int64_t i,
                                const struct rapt_reference_scores *scores) {
    if (desc->weights_kind == RAPT_WEIGHTS_NONE || desc->kv_length == 0) {
        return;
    }
    float softcap_log2e = rapt_reference_pair_of_head(desc, h).softcap_log2e;
    float *weights = (float *)(void *)rapt_reference_query_row(desc, &desc->weights, b, h, i);
    float beyond = desc->weights_kind == RAPT_WEIGHTS_MASKED ? -INFINITY : 0.0f;
    int64_t keys = rapt_reference_keys(desc, b);
    for (int64_t j = 0; j < desc->kv_length; j++) {
        weights[j] = j < keys ? rapt_reference_export(weight(desc, softcap_log2e, scores, j)) : beyond;
    }
}
