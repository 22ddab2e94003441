/* SPDX-License-Identifier: MIT */
#include "layers/call.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/project.h"

static const int64_t MAX_SIZE = (int64_t)1 << 40, MAX_HEADS = (int64_t)1 << 20, MAX_WIDTH = (int64_t)1 << 31;

void rapt_call_isa(struct rapt_call *call, int32_t isa) {
    rapt_matmul_desc nothing = RAPT_MATMUL_DESC_INIT;
    call->isa = nothing.isa = isa;
    if (call->status == RAPT_OK)
        call->status = rapt_matmul(&nothing, call->options, call->message);
}

struct rapt_call rapt_call_begin(rapt_message *message, const rapt_run_options *options, const void *desc,
                                 size_t desc_bytes) {
    struct rapt_call call = {
        .status = RAPT_OK, .message = message, .options = options, .environment = rapt_fpenv_enter()};
    uint32_t struct_size;
    if (message)
        message->text[0] = '\0';
    if (desc_bytes == 0 || !rapt_call_needs(&call, desc, "desc"))
        return call;
    memcpy(&struct_size, desc, sizeof struct_size);
    if (struct_size != desc_bytes)
        rapt_call_refuse(&call, RAPT_UNSUPPORTED_VERSION, "struct_size = %lu, this library knows %lu",
                         (unsigned long)struct_size, (unsigned long)desc_bytes);
    return call;
}

rapt_status rapt_call_end(struct rapt_call *call) {
    while (call->blocks > 0)
        free(call->block[--call->blocks]);
    rapt_fpenv_leave(call->environment);
    return call->status;
}

bool rapt_call_refuse(struct rapt_call *call, rapt_status status, const char *format, ...) {
    if (call->status != RAPT_OK)
        return false;
    call->status = status;
    if (call->message) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(call->message->text, sizeof call->message->text, format, arguments);
        va_end(arguments);
    }
    return false;
}

bool rapt_call_needs(struct rapt_call *call, const void *data, const char *name) {
    if (!data)
        return rapt_call_refuse(call, RAPT_NULL_POINTER, "%s = NULL", name);
    return call->status == RAPT_OK;
}

bool rapt_call_aligned(struct rapt_call *call, const float *data, const char *name) {
    if ((uintptr_t)data % sizeof(float))
        return rapt_call_refuse(call, RAPT_MISALIGNED_POINTER, "%s = %p is not aligned to 4 bytes", name,
                                (const void *)data);
    return call->status == RAPT_OK;
}

bool rapt_call_size(struct rapt_call *call, int64_t size, int64_t first, const char *name) {
    if (size < first || size > MAX_SIZE)
        return rapt_call_refuse(call, RAPT_INVALID_SHAPE, "%s = %lld is outside %lld ... 2^40", name, (long long)size,
                                (long long)first);
    return call->status == RAPT_OK;
}

static void check_sizes(struct rapt_call *call, const rapt_attention_desc *desc) {
    const int64_t longest = desc->query_length > desc->kv_length ? desc->query_length : desc->kv_length;
    int64_t tokens;
    rapt_call_size(call, desc->batch, 0, "attention->batch");
    rapt_call_size(call, desc->query_heads, 1, "attention->query_heads");
    rapt_call_size(call, desc->kv_heads, 1, "attention->kv_heads");
    rapt_call_size(call, desc->query_length, 0, "attention->query_length");
    rapt_call_size(call, desc->kv_length, 0, "attention->kv_length");
    if (desc->query_heads > MAX_HEADS || desc->kv_heads > MAX_HEADS)
        rapt_call_refuse(call, RAPT_INVALID_SHAPE, "attention->query_heads = %lld, kv_heads = %lld exceed 2^20",
                         (long long)desc->query_heads, (long long)desc->kv_heads);
    if (call->status == RAPT_OK &&
        (__builtin_mul_overflow(desc->batch, longest, &tokens) || tokens > (int64_t)1 << 60))
        rapt_call_refuse(call, RAPT_SIZE_OVERFLOW, "attention->batch * length = %lld * %lld overflows",
                         (long long)desc->batch, (long long)longest);
}

rapt_attention_desc rapt_call_attention(struct rapt_call *call, const rapt_attention_desc *attention) {
    const rapt_attention_desc none = RAPT_ATTENTION_DESC_INIT;
    if (!rapt_call_needs(call, attention, "attention"))
        return none;
    if (attention->struct_size != sizeof none)
        rapt_call_refuse(call, RAPT_UNSUPPORTED_VERSION, "attention->struct_size = %lu, this library knows %lu",
                         (unsigned long)attention->struct_size, (unsigned long)sizeof none);
    else if (rapt_call_has(&attention->query) || rapt_call_has(&attention->key) || rapt_call_has(&attention->value) ||
             rapt_call_has(&attention->out) || attention->head_dim || attention->value_dim)
        rapt_call_refuse(call, RAPT_UNUSED_FIELD,
                         "attention has a query, key, value, out, head_dim or value_dim: the layer makes them");
    else if (attention->query_offsets.data || attention->kv_offsets.data || attention->key_pages.kind ||
             attention->value_pages.kind)
        rapt_call_refuse(call, RAPT_UNUSED_FIELD, "attention has offsets or page tables: not in a layer");
    else
        check_sizes(call, attention);
    if (call->status != RAPT_OK)
        return none;
    rapt_call_isa(call, attention->isa);
    return *attention;
}

/* Numbers in a row of the weight. */
static int64_t width_of(const rapt_linear *linear) {
    return linear->layout == RAPT_WEIGHT_IN_OUT ? linear->out : linear->in;
}

/* Whether rows of width numbers at this stride end within the address space. */
static bool rows_fit(const float *data, int64_t rows, int64_t stride_bytes, int64_t width) {
    int64_t bytes;
    return !__builtin_mul_overflow(rows - 1, stride_bytes, &bytes) &&
           !__builtin_add_overflow(bytes, width * (int64_t)sizeof(float), &bytes) &&
           (uint64_t)bytes <= UINTPTR_MAX - (uintptr_t)data;
}

/* So that the product does not refuse later, when out may be written already. */
static bool check_memory(struct rapt_call *call, const char *name, const rapt_linear *linear) {
    const int64_t width = width_of(linear), rows = linear->layout == RAPT_WEIGHT_IN_OUT ? linear->in : linear->out;
    const int64_t stride = linear->weight_stride_bytes ? linear->weight_stride_bytes : width * (int64_t)sizeof(float);
    if (((uintptr_t)linear->weight | (uintptr_t)linear->bias) % sizeof(float))
        return rapt_call_refuse(call, RAPT_MISALIGNED_POINTER, "%s: weight or bias is not aligned to 4 bytes", name);
    if (!rows_fit(linear->weight, rows, stride, width) || !rows_fit(linear->bias, 1, 0, linear->out))
        return rapt_call_refuse(call, RAPT_INVALID_STRIDE,
                                "%s.weight_stride_bytes = %lld: weight or bias leaves the address space", name,
                                (long long)linear->weight_stride_bytes);
    return call->status == RAPT_OK;
}

bool rapt_call_linear(struct rapt_call *call, const char *name, const rapt_linear *linear, int64_t in,
                      const char *reads) {
    if (!linear->weight)
        return rapt_call_refuse(call, RAPT_NULL_POINTER, "%s.weight = NULL", name);
    if (linear->in < 1 || linear->in > MAX_WIDTH || linear->out < 1 || linear->out > MAX_WIDTH)
        return rapt_call_refuse(call, RAPT_INVALID_SHAPE, "%s: in = %lld, out = %lld are outside 1 ... 2^31", name,
                                (long long)linear->in, (long long)linear->out);
    if (in && linear->in != in)
        return rapt_call_refuse(call, RAPT_INVALID_SHAPE, "%s.in = %lld, but %s %lld numbers per token", name,
                                (long long)linear->in, reads, (long long)in);
    if (linear->layout != RAPT_WEIGHT_OUT_IN && linear->layout != RAPT_WEIGHT_IN_OUT)
        return rapt_call_refuse(call, RAPT_UNSUPPORTED_FLAG, "%s.layout = %ld is unknown", name, (long)linear->layout);
    if (linear->dtype != RAPT_NO_DTYPE && linear->dtype != RAPT_F32)
        return rapt_call_refuse(call, RAPT_UNSUPPORTED_DTYPE, "%s.dtype = %ld: expected float32", name,
                                (long)linear->dtype);
    const int64_t width = width_of(linear), stride = linear->weight_stride_bytes;
    if (stride && (stride % 4 || stride / 4 < width))
        return rapt_call_refuse(call, RAPT_INVALID_STRIDE, "%s.weight_stride_bytes = %lld: rows have %lld numbers",
                                name, (long long)stride, (long long)width);
    return check_memory(call, name, linear);
}

bool rapt_call_product(struct rapt_call *call, int64_t a, int64_t b, int64_t c) {
    int64_t count, bytes;
    if (__builtin_mul_overflow(a + !a, b + !b, &count) || __builtin_mul_overflow(count, c + !c, &count) ||
        __builtin_mul_overflow(count, (int64_t)sizeof(float), &bytes) || (uint64_t)bytes > SIZE_MAX - 1)
        return rapt_call_refuse(call, RAPT_SIZE_OVERFLOW, "an array of %lld x %lld x %lld numbers is too large",
                                (long long)a, (long long)b, (long long)c);
    return call->status == RAPT_OK;
}

float *rapt_call_floats(struct rapt_call *call, float *given, int64_t a, int64_t b, int64_t c) {
    /* Also for the caller's memory: later steps multiply these sizes. */
    if (call->status != RAPT_OK || !rapt_call_product(call, a, b, c))
        return NULL;
    if (given)
        return given;
    void *block = call->blocks < RAPT_CALL_BLOCKS ? malloc((size_t)(a * b * c) * sizeof(float) + 1) : NULL;
    if (!block) {
        const long long count = a * b * c;
        rapt_call_refuse(call, RAPT_OUT_OF_MEMORY, "out of memory: scratch memory for %lld numbers", count);
        return NULL;
    }
    call->block[call->blocks++] = block;
    return block;
}

/* Inputs first ... first + width - 1 of linear. */
static rapt_matmul_desc product(const struct rapt_call *call, const rapt_linear *linear, int64_t first, int64_t width,
                                const float *x, int64_t rows, float *out, int64_t out_stride) {
    const int64_t stride = linear->weight_stride_bytes ? linear->weight_stride_bytes / 4 : width_of(linear);
    rapt_matmul_desc desc = RAPT_MATMUL_DESC_INIT;
    desc.weight_layout = linear->layout;
    desc.rows = rows;
    desc.inner = width;
    desc.columns = linear->out;
    desc.x = x;
    desc.x_stride_bytes = width * (int64_t)sizeof(float);
    desc.weight = linear->weight + (linear->layout == RAPT_WEIGHT_IN_OUT ? first * stride : first);
    desc.weight_stride_bytes = stride * (int64_t)sizeof(float);
    desc.bias = first ? NULL : linear->bias;
    desc.out = out;
    desc.out_stride_bytes = out_stride * (int64_t)sizeof(float);
    desc.isa = call->isa;
    return desc;
}

static void run_product(struct rapt_call *call, const rapt_matmul_desc *desc) {
    rapt_fpenv_leave(call->environment);
    call->status = rapt_project(desc, call->options, call->message);
    call->environment = rapt_fpenv_enter();
}

void rapt_call_project(struct rapt_call *call, const rapt_linear *linear, const float *x, int64_t rows, float *out,
                       int64_t out_stride) {
    if (call->status != RAPT_OK)
        return;
    const rapt_matmul_desc desc =
        product(call, linear, 0, linear->in, x, rows, out, out_stride ? out_stride : linear->out);
    run_product(call, &desc);
}

void rapt_call_project_part(struct rapt_call *call, const rapt_linear *linear, int64_t first, int64_t width,
                            const float *x, int64_t rows, float *out) {
    if (call->status != RAPT_OK)
        return;
    const rapt_matmul_desc desc = product(call, linear, first, width, x, rows, out, linear->out);
    run_product(call, &desc);
}

void rapt_call_check(struct rapt_call *call, const rapt_attention_desc *desc) {
    rapt_plan plan;
    if (call->status == RAPT_OK)
        call->status = rapt_plan_init(&plan, desc, call->message);
}

void rapt_call_attend(struct rapt_call *call, const rapt_attention_desc *desc) {
    if (call->status != RAPT_OK)
        return;
    rapt_fpenv_leave(call->environment);
    call->status = rapt_attention(desc, call->options, call->message);
    call->environment = rapt_fpenv_enter();
}

void rapt_call_scores(struct rapt_call *call, const rapt_attention_desc *desc, float *scores) {
    rapt_attention_desc raw = RAPT_ATTENTION_DESC_INIT;
    if (!scores || call->status != RAPT_OK)
        return;
    raw.numerics = desc->numerics;
    raw.isa = desc->isa;
    raw.batch = desc->batch;
    raw.query_heads = desc->query_heads;
    raw.kv_heads = desc->kv_heads;
    raw.query_length = desc->query_length;
    raw.kv_length = desc->kv_length;
    raw.query_lengths = desc->query_lengths;
    raw.head_dim = desc->head_dim;
    raw.value_dim = desc->value_dim;
    raw.query = desc->query;
    raw.key = desc->key;
    raw.value = desc->value;
    raw.out = desc->out;
    raw.features = RAPT_SCALE;
    raw.scale = 1;
    raw.weights = rapt_output_bhsd(scores, desc->batch, desc->query_heads, desc->query_length, desc->kv_length);
    raw.weights_kind = RAPT_WEIGHTS_RAW;
    rapt_call_attend(call, &raw);
}
