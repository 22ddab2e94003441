/* SPDX-License-Identifier: MIT
 * Shared by the kinds of `rapt layer`: inputs, weights, how to attend, results. Everything dies if files are wrong or
 * do not fit, naming both sides. */
#ifndef RAPT_LAYER_JOB_H
#define RAPT_LAYER_JOB_H

#include "layer/options.h"
#include "layer/weights.h"
#include "rapt/layers.h"

struct layer_job {
    const struct layer_options *options;
    struct weights weights;
    rapt_attention_desc how;
    rapt_run_options run;
    struct npy_array results[16]; /* what job_finish writes */
    int result_count;
};

/* [batch, tokens, width], or without the batch. */
struct tokens {
    struct npy_array array;
    const float *data;
    int64_t batch, tokens, width;
    bool has_batch;
};

struct layer_job job_begin(const struct layer_options *options);

struct tokens job_tokens(const char *path);
/* Dies unless b is a batch of as many sequences as a. */
void job_same_batch(const struct tokens *a, const struct tokens *b);

/* w_NAME and, if it exists, b_NAME, for the in numbers per token of `reader`; in = 0: any. */
rapt_linear job_linear(const struct layer_job *job, const char *name, int64_t in, const struct npy_array *reader);
/* The same by other names; bias may be NULL. */
rapt_linear job_linear_named(const struct layer_job *job, const char *weight, const char *bias, int64_t in,
                             const struct npy_array *reader);
/* A vector of count numbers. */
const float *job_vector(const struct layer_job *job, const char *name, int64_t count);

/* Sets how's sizes, causal, mask and dropout. */
void job_attend(struct layer_job *job, int64_t heads, const struct tokens *queries, const struct tokens *keys);
/* [batch, tokens, width] in the queries' form; filled by the layer. */
float *job_result(struct layer_job *job, const char *path, const struct tokens *queries, int64_t width);
/* Sets how.weights if --attention-out or --all-outputs is given. one_head: without a dimension for heads. */
void job_weights(struct layer_job *job, const struct tokens *queries, bool one_head);

/* Memory for the output called name if --all-outputs is given; else NULL. Shaped as job_result; as the attention
 * weights; as given. */
float *job_extra(struct layer_job *job, const char *name, const struct tokens *queries, int64_t width);
float *job_extra_scores(struct layer_job *job, const char *name, const struct tokens *queries, bool one_head);
float *job_extra_shaped(struct layer_job *job, const char *name, int dims, const int64_t *shape);
/* Memory for the attention weights, which go into the file of --attention-out and the folder of --all-outputs; NULL
 * with neither. */
float *job_attention(struct layer_job *job, int dims, const int64_t *shape);

/* Dies if the status is an error; else gives results their names and prints their shapes. */
void job_finish(struct layer_job *job, rapt_status status, const rapt_message *message);

#endif
