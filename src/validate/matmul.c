/* SPDX-License-Identifier: MIT
 * Every refusal of a matrix product. */
#include "validate/matmul.h"

#include "validate/parts.h"

/* One of the four arrays. */
struct matrix {
    const char *name;
    const float *data;
    int64_t rows, columns, stride_bytes;
    bool output;
};

static rapt_status check_fields(const rapt_matmul_desc *desc, rapt_message *message) {
    if (!desc)
        return rapt_refuse(message, RAPT_NULL_POINTER, "desc is NULL");
    if (desc->struct_size != sizeof *desc)
        return rapt_refuse(message, RAPT_UNSUPPORTED_VERSION, "struct_size = %u, this library knows %u",
                           (unsigned)desc->struct_size, (unsigned)sizeof *desc);
    const rapt_status status = rapt_check_enum("weight_layout", desc->weight_layout, RAPT_WEIGHT_IN_OUT, message);
    return status == RAPT_OK ? rapt_check_isa(desc->isa, message) : status;
}

static rapt_status check_dtypes(const rapt_matmul_desc *desc, rapt_message *message) {
    static const char *const names[] = {"x", "weight", "out"};
    const int32_t dtypes[] = {desc->x_dtype, desc->weight_dtype, desc->out_dtype};
    for (int i = 0; i < 3; i++)
        if (dtypes[i] != RAPT_NO_DTYPE && dtypes[i] != RAPT_F32)
            return rapt_refuse(message, RAPT_UNSUPPORTED_DTYPE, "%s_dtype = %d: expected float32", names[i],
                               (int)dtypes[i]);
    return RAPT_OK;
}

static rapt_status check_sizes(const rapt_matmul_desc *desc, rapt_message *message) {
    const struct rapt_size sizes[] = {{"rows", desc->rows, 0, RAPT_MAX_SIZE},
                                      {"inner", desc->inner, 0, RAPT_MAX_SIZE},
                                      {"columns", desc->columns, 0, RAPT_MAX_SIZE}};
    return rapt_check_sizes(sizes, sizeof sizes / sizeof *sizes, message);
}

static rapt_status check_stride(const struct matrix *matrix, rapt_message *message) {
    const int64_t stride = matrix->stride_bytes;
    const char *why = stride % 4                      ? "is not a multiple of 4"
                      : matrix->output && stride == 0 ? "on an output"
                      : matrix->output && stride < 0  ? "is negative on an output"
                                                      : NULL;
    if (matrix->rows > 1 && why)
        return rapt_refuse(message, RAPT_INVALID_STRIDE, "%s_stride_bytes = %lld %s", matrix->name,
                           (long long)stride, why);
    return RAPT_OK;
}

/* A single row has no stride that could be at fault. */
static rapt_status refuse_place(const struct matrix *matrix, rapt_message *message) {
    if (matrix->rows == 1)
        return rapt_refuse(message, RAPT_INVALID_STRIDE, "%s = %p: its row leaves the address space", matrix->name,
                           (const void *)matrix->data);
    return rapt_refuse(message, RAPT_INVALID_STRIDE, "%s_stride_bytes = %lld: the rows leave the address space",
                       matrix->name, (long long)matrix->stride_bytes);
}

/* Adds the bytes that the matrix touches to the overlap check. */
static rapt_status add_footprint(struct rapt_validation *v, const struct matrix *matrix) {
    const int64_t row_bytes = matrix->columns * 4, stride = matrix->rows > 1 ? matrix->stride_bytes : 0;
    struct rapt_reach reach = {0, row_bytes};
    struct rapt_footprint *footprint = &v->footprints[v->footprint_count];
    *footprint = (struct rapt_footprint){
        .name = matrix->name, .row_bytes = row_bytes, .size = {1, 1, matrix->rows}, .output = matrix->output};
    if (!rapt_add_reach(matrix->rows, stride, &reach) || !rapt_place(footprint, matrix->data, reach))
        return refuse_place(matrix, v->message);
    footprint->stride[2] = stride < 0 ? -stride : stride;
    v->footprint_count++;
    return RAPT_OK;
}

static rapt_status check_matrix(struct rapt_validation *v, const struct matrix *matrix) {
    if (matrix->rows == 0 || matrix->columns == 0)
        return RAPT_OK;
    if (!matrix->data)
        return rapt_refuse(v->message, RAPT_NULL_POINTER, "%s is NULL", matrix->name);
    if ((uintptr_t)matrix->data % 4)
        return rapt_refuse(v->message, RAPT_MISALIGNED_POINTER, "%s = %p is not aligned to 4 bytes", matrix->name,
                           (const void *)matrix->data);
    rapt_status status = check_stride(matrix, v->message);
    return status == RAPT_OK ? add_footprint(v, matrix) : status;
}

rapt_status rapt_validate_matmul(const rapt_matmul_desc *desc, rapt_message *message) {
    struct rapt_validation v = {.message = message};
    rapt_status status = check_fields(desc, message);
    if (status == RAPT_OK)
        status = check_dtypes(desc, message);
    if (status == RAPT_OK)
        status = check_sizes(desc, message);
    if (status != RAPT_OK)
        return status;
    const bool out_in = desc->weight_layout == RAPT_WEIGHT_OUT_IN, none = desc->rows == 0 || desc->columns == 0;
    const int64_t inner = none ? 0 : desc->inner, columns = none ? 0 : desc->columns;
    const struct matrix matrices[] = {
        {"x", desc->x, desc->rows, inner, desc->x_stride_bytes, false},
        {"weight", desc->weight, out_in ? columns : inner, out_in ? inner : columns, desc->weight_stride_bytes, false},
        {"bias", desc->bias, desc->bias != NULL, columns, 0, false},
        {"out", desc->out, desc->rows, columns, desc->out_stride_bytes, true},
    };
    for (size_t i = 0; status == RAPT_OK && i < sizeof matrices / sizeof *matrices; i++)
        status = check_matrix(&v, &matrices[i]);
    return status == RAPT_OK ? rapt_check_overlaps(&v) : status;
}
