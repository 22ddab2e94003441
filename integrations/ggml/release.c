/* SPDX-License-Identifier: MIT */
#include "release.h"

#include <stdint.h>
#include <string.h>

#include "ggml-backend-impl.h"
#include "ggml.h"
#include "log.h"

static bool refused(const char *what) {
    rapt_ggml_log(GGML_LOG_LEVEL_ERROR, "built for ggml %s, but this is ggml %s, and %s differs: not used",
                  RAPT_GGML_RELEASE, ggml_version(), what);
    return false;
}

static bool operations_agree(void) {
    static const struct {
        enum ggml_op op;
        const char *name;
    } known[] = {{GGML_OP_NONE, "NONE"},
                 {GGML_OP_RESHAPE, "RESHAPE"},
                 {GGML_OP_VIEW, "VIEW"},
                 {GGML_OP_PERMUTE, "PERMUTE"},
                 {GGML_OP_TRANSPOSE, "TRANSPOSE"},
                 {GGML_OP_FLASH_ATTN_EXT, "FLASH_ATTN_EXT"},
                 {GGML_OP_CUSTOM, "CUSTOM"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(ggml_op_name(known[i].op), known[i].name) != 0)
            return false;
    return true;
}

static bool types_agree(void) {
    static const struct {
        enum ggml_type type;
        const char *name;
        size_t bytes;
        int64_t block;
    } known[] = {{GGML_TYPE_F32, "f32", 4, 1},       {GGML_TYPE_F16, "f16", 2, 1},    {GGML_TYPE_BF16, "bf16", 2, 1},
                 {GGML_TYPE_Q8_0, "q8_0", 34, 32},   {GGML_TYPE_Q4_0, "q4_0", 18, 32}, {GGML_TYPE_Q4_1, "q4_1", 20, 32},
                 {GGML_TYPE_Q5_0, "q5_0", 22, 32},   {GGML_TYPE_Q5_1, "q5_1", 24, 32},
                 {GGML_TYPE_IQ4_NL, "iq4_nl", 18, 32}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(ggml_type_name(known[i].type), known[i].name) != 0 ||
            ggml_type_size(known[i].type) != known[i].bytes || ggml_blck_size(known[i].type) != known[i].block)
            return false;
    return true;
}

/* Whether a node, and the view it reads, have in their fields what ggml's functions stored. */
static bool fields_agree(struct ggml_context *context) {
    enum { DIM = 64, KEYS = 5, QUERIES = 3, KV_HEADS = 2, HEADS = 4, VIEW = 16 };
    struct ggml_tensor *q = ggml_new_tensor_4d(context, GGML_TYPE_F32, DIM, QUERIES, HEADS, 1);
    struct ggml_tensor *cache = ggml_new_tensor_4d(context, GGML_TYPE_F16, DIM + VIEW, KEYS, KV_HEADS, 1);
    struct ggml_tensor *k = ggml_view_4d(context, cache, DIM, KEYS, KV_HEADS, 1, cache->nb[1], cache->nb[2],
                                         cache->nb[3], VIEW * sizeof(ggml_fp16_t));
    struct ggml_tensor *mask = ggml_new_tensor_4d(context, GGML_TYPE_F16, KEYS, QUERIES, 1, 1);
    struct ggml_tensor *sinks = ggml_new_tensor_1d(context, GGML_TYPE_F32, HEADS);
    struct ggml_tensor *node = ggml_flash_attn_ext(context, q, k, k, mask, 0.5f, 2.0f, 8.0f);
    const float expected[] = {0.5f, 2.0f, 8.0f};
    ggml_flash_attn_ext_add_sinks(node, sinks);
    ggml_set_name(node, "node");
    return node->op == GGML_OP_FLASH_ATTN_EXT && node->type == GGML_TYPE_F32 && node->src[0] == q &&
           node->src[1] == k && node->src[2] == k && node->src[3] == mask && node->src[4] == sinks && !node->src[5] &&
           memcmp(node->op_params, expected, sizeof expected) == 0 && node->ne[0] == DIM && node->ne[1] == HEADS &&
           node->ne[2] == QUERIES && node->ne[3] == 1 && node->nb[1] == DIM * sizeof(float) &&
           strcmp(node->name, "node") == 0 && k->op == GGML_OP_VIEW && k->view_src == cache &&
           k->view_offs == VIEW * sizeof(ggml_fp16_t) && k->nb[1] == (DIM + VIEW) * sizeof(ggml_fp16_t) && !k->data &&
           ggml_get_name(node) == node->name;
}

bool rapt_ggml_knows_release(void) {
    enum { TENSORS = 8, OBJECT_BYTES = 32 };
    if (strcmp(ggml_version(), RAPT_GGML_RELEASE) != 0)
        return refused("the release");
    if (!operations_agree())
        return refused("an operation");
    if (!types_agree())
        return refused("a type");
    if (ggml_tensor_overhead() != sizeof(struct ggml_tensor) + OBJECT_BYTES)
        return refused("the size of a tensor");
    struct ggml_context *context =
        ggml_init((struct ggml_init_params){.mem_size = TENSORS * ggml_tensor_overhead(), .no_alloc = true});
    const bool agrees = context && fields_agree(context);
    ggml_free(context);
    return agrees || refused("a field of a tensor");
}

bool rapt_ggml_knows_device(ggml_backend_dev_t device) {
    ggml_backend_reg_t registry = ggml_backend_dev_backend_reg(device);
    if (device->reg != registry || registry->api_version != GGML_BACKEND_API_VERSION)
        return refused("the interface of devices");
    ggml_backend_t backend = ggml_backend_dev_init(device, NULL);
    const bool agrees = backend && backend->device == ggml_backend_get_device(backend) && backend->device == device;
    ggml_backend_free(backend);
    return agrees || refused("the interface of backends");
}
