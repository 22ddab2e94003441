/* SPDX-License-Identifier: MIT */
#include "descriptor_decode.h"

void add_scales(struct fuzzed_call *call, rapt_tensor *tensor, const int64_t *n, uint8_t content) {
    const int64_t group = content / 2 % 3 * 16, dims = n[3] > 0 && n[3] < MOST_COMPUTED ? n[3] : 1;
    const int64_t groups = group ? (dims + group - 1) / group : 1;
    const bool is_int8 = tensor->dtype == RAPT_I8;
    int64_t rows = 1;
    if (!is_int8 && (content % 2 || (tensor->dtype != RAPT_F8_E4M3 && tensor->dtype != RAPT_F8_E5M2)))
        return;
    for (int dim = 0; dim < 3; dim++) {
        if (n[dim] < 0 || n[dim] > MOST_COMPUTED || rows * n[dim] > MOST_COMPUTED)
            return;
        rows *= n[dim];
    }
    const struct region *scales = add_region(call, (size_t)(rows * groups * 4));
    fill(scales, RAPT_F32, content);
    tensor->scale_dtype = RAPT_F32;
    tensor->scales = scales->data;
    tensor->scale_group = group;
    tensor->scale_extent_bytes = content & 64 ? (int64_t)scales->bytes : 0;
    tensor->scale_token_stride_bytes = groups * 4;
    tensor->scale_head_stride_bytes = n[2] * groups * 4;
    tensor->scale_batch_stride_bytes = n[1] * n[2] * groups * 4;
    if (!is_int8 || content & 8)
        return;
    const struct region *zero_points = add_region(call, (size_t)(rows * groups));
    fill(zero_points, RAPT_I8, content);
    tensor->zero_point_dtype = RAPT_I8;
    tensor->zero_points = zero_points->data;
}
