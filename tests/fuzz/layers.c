/* SPDX-License-Identifier: MIT
 * Layers, valid and hostile: a status with a text that names a field of the caller's, and nothing but optional results
 * written, or the bits of the model; and nothing accessed outside the memory that the call describes. */
#include <string.h>

#include "descriptor_run.h"
#include "layers_decode.h"

static const double most_work = 5e4;

/* A BLAS has bits of its own. */
#ifdef RAPT_BLAS
static const bool has_model = false;
#else
static const bool has_model = true;
#endif

static rapt_status run(const struct fuzzed_layer *l, rapt_message *message) {
    const struct norm_call *norm = l->desc;
    const struct embedding_call *ids = l->desc;
    const struct keep_call *keep = l->desc;
    switch (l->kind) {
    case DOT_PRODUCT: return rapt_dot_product_attention(l->desc, NULL, message);
    case MULTI_HEAD: return rapt_multi_head_attention(l->desc, NULL, message);
    case STACKED: return rapt_stacked_attention(l->desc, NULL, message);
    case ENCODER: return rapt_encoder_block(l->desc, NULL, message);
    case ADDITIVE: return rapt_additive_attention(l->desc, NULL, message);
    case LUONG: return rapt_luong_attention(l->desc, NULL, message);
    case LAYER_NORM: return rapt_layer_norm(&norm->norm, norm->x, norm->tokens, norm->width, norm->out, message);
    case EMBEDDING:
        return rapt_embedding(ids->ids, ids->count, ids->table, ids->rows, ids->width, ids->out, message);
    default: return rapt_dropout_keep(keep->keep, keep->count, keep->drop, keep->seed, keep->stream, keep->first);
    }
}

/* Puts back the memory of a result, wherever that is. */
static void forget_at(const struct fuzzed_layer *l, const struct snapshot *before, const char *data) {
    for (int i = 0; i < l->call.region_count; i++) {
        const struct region *region = &l->call.regions[i];
        if (data >= region->data && data < region->data + region->bytes)
            memcpy(region->data, before->bytes[i], region->bytes);
    }
}

/* Puts back what results may have overwritten: after a refusal all but `out`. */
static void forget_results(const struct fuzzed_layer *l, const struct snapshot *before, bool refused) {
    const rapt_attention_desc *how = &l->call.desc;
    const rapt_tensor *const tensors[] = {&how->lse, &how->weights, &how->final_state};
    for (int i = 0; i < l->count; i++)
        if (l->arrays[i].role == OPTIONAL || (l->arrays[i].role == OUT && !refused))
            forget_at(l, before, pointer_at(l->arrays[i].place));
    for (int i = 0; i < 3; i++)
        if (tensors[i]->data)
            forget_at(l, before, tensors[i]->data);
}

/* The text of a refusal names the array that is absent or misaligned, or one of the attention's, and not what the layer
 * makes of the caller's for attention and products. */
static void expect_message(const struct fuzzed_layer *l, rapt_status status, const rapt_message *message) {
    const rapt_attention_desc *how = &l->call.desc;
    const char *const made[] = {"query", "key", "value", "out", "x", "weight", how->bias.data ? NULL : "bias",
                                how->weights.data || how->weights_kind ? NULL : "weights"};
    expect_text(status, message);
    const size_t length = strcspn(message->text, ".: ");
    if ((status != RAPT_NULL_POINTER && status != RAPT_MISALIGNED_POINTER) ||
        (l->spoilt && strncmp(message->text, l->spoilt, strlen(l->spoilt)) == 0))
        return;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (made[i] && strlen(made[i]) == length && memcmp(message->text, made[i], length) == 0)
            fuzz_fail("\"%s\", but %s is wrong", message->text, l->spoilt ? l->spoilt : "nothing of this name");
}

static void run_and_check(const struct fuzzed_layer *l) {
    rapt_message message;
    struct snapshot before = snapshot_of(&l->call);
    memset(&message, 'x', sizeof message);
    const rapt_status status = run(l, &message);
    if (l->kind != KEEP) /* which has none */
        expect_message(l, status, &message);
    if (status == RAPT_OK && l->must_refuse)
        fuzz_fail("a layer of kind %d was taken, but should be refused", (int)l->kind);
    if (status == RAPT_OK && !l->overlaps && has_model) {
        expect_result(&l->call, layer_model, l, &before);
    } else {
        forget_results(l, &before, status != RAPT_OK && !l->overlaps);
        expect_memory(&l->call, &before, "beside results");
    }
    *(status == RAPT_OK ? &fuzz_taken : &fuzz_refused) += 1;
    snapshot_free(&before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct input input = {data, data + bytes};
    struct fuzzed_layer layer;
    fuzzed_layer_decode(&layer, &input);
    if (!layer.lacks_memory && (layer.must_refuse || layer.work <= most_work))
        run_and_check(&layer);
    fuzzed_call_free(&layer.call);
    return 0;
}
