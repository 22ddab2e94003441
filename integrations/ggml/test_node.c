/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <stdlib.h>

ggml_backend_dev_t rapt_device, cpu_device;

struct node make_node(const struct shape *s) {
    struct node n = {0};
    n.context = ggml_init((struct ggml_init_params){
        .mem_size = 16 * ggml_tensor_overhead() + ggml_graph_overhead(), .no_alloc = true});
    n.q = ggml_new_tensor_4d(n.context, GGML_TYPE_F32, s->dim, s->queries, s->heads, s->batch);
    n.k = ggml_new_tensor_4d(n.context, s->key_type, s->dim, s->keys, s->kv_heads, s->batch);
    n.v = ggml_new_tensor_4d(n.context, s->value_type, s->value_dim, s->keys, s->kv_heads, s->batch);
    if (s->mask)
        n.mask = ggml_new_tensor_4d(n.context, GGML_TYPE_F16, s->keys, s->queries, 1, s->batch);
    if (s->sinks)
        n.sinks = ggml_new_tensor_1d(n.context, GGML_TYPE_F32, s->heads);
    n.out = ggml_flash_attn_ext(n.context, n.q, n.k, n.v, n.mask, 1 / sqrtf((float)s->dim), s->max_bias, s->softcap);
    ggml_flash_attn_ext_add_sinks(n.out, n.sinks);
    n.graph = ggml_new_graph(n.context);
    ggml_build_forward_expand(n.graph, n.out);
    return n;
}

static float draw(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return (float)(*state >> 8) / (float)(1 << 23) - 1;
}

static void fill(struct ggml_tensor *t, uint32_t *state, bool is_mask) {
    const size_t count = (size_t)ggml_nelements(t), bytes = ggml_nbytes(t);
    float *numbers = malloc((count + 1) * sizeof *numbers);
    void *stored = malloc(bytes + 1);
    for (size_t i = 0; i < count; i++)
        numbers[i] = is_mask && draw(state) > 0.5f ? -INFINITY : draw(state);
    if (count > 0)
        ggml_quantize_chunk(t->type, numbers, stored, 0, (int64_t)count / t->ne[0], t->ne[0], NULL);
    if (count > 0)
        ggml_backend_tensor_set(t, t->type == GGML_TYPE_F32 ? (void *)numbers : stored, 0, bytes);
    free(stored);
    free(numbers);
}

void fill_node(struct node *n) {
    uint32_t state = 1;
    n->buffer = ggml_backend_alloc_ctx_tensors_from_buft(n->context, ggml_backend_cpu_buffer_type());
    fill(n->q, &state, false), fill(n->k, &state, false), fill(n->v, &state, false);
    if (n->mask)
        fill(n->mask, &state, true);
    if (n->sinks)
        fill(n->sinks, &state, false);
}

void free_node(struct node *n) {
    if (n->buffer)
        ggml_backend_buffer_free(n->buffer);
    ggml_free(n->context);
}

void *function_of(ggml_backend_dev_t device, const char *name) {
    return ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), name);
}

ggml_backend_t make_backend(ggml_backend_dev_t device, int threads) {
    ggml_backend_t backend = ggml_backend_dev_init(device, NULL);
    ((ggml_backend_set_n_threads_t)function_of(device, "ggml_backend_set_n_threads"))(backend, threads);
    return backend;
}
