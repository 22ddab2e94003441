/* SPDX-License-Identifier: MIT
 * Token ids to rows of a table. */
#include <string.h>

#include "layers/call.h"

/* Reads ids[i], once; 0 if it is refused. */
static int64_t id_at(struct rapt_call *call, rapt_index_list ids, int64_t i, int64_t rows) {
    const int64_t id = rapt_call_index(ids, i);
    if (id >= 0 && id < rows)
        return id;
    rapt_call_refuse(call, RAPT_INVALID_VALUE, "ids[%lld] = %lld, but the table has %lld rows", (long long)i,
                     (long long)id, (long long)rows);
    return 0;
}

static bool fits_memory(rapt_index_list ids, int64_t count) {
    const int64_t stride = ids.stride_bytes ? ids.stride_bytes : ids.index_bytes;
    int64_t bytes;
    return count <= 0 || (!__builtin_mul_overflow(count - 1, stride, &bytes) &&
                          !__builtin_add_overflow(bytes, (int64_t)ids.index_bytes, &bytes) &&
                          (uint64_t)bytes <= UINTPTR_MAX - (uintptr_t)ids.data);
}

rapt_status rapt_embedding(rapt_index_list ids, int64_t count, const float *table, int64_t rows, int64_t width,
                           float *out, rapt_message *message) {
    struct rapt_call call = rapt_call_begin(message, NULL, NULL, 0);
    rapt_call_needs(&call, ids.data, "ids.data");
    rapt_call_needs(&call, table, "table");
    rapt_call_needs(&call, out, "out");
    rapt_call_aligned(&call, table, "table");
    rapt_call_aligned(&call, out, "out");
    rapt_call_size(&call, count, 0, "count");
    rapt_call_size(&call, rows, 0, "rows");
    rapt_call_size(&call, width, 1, "width");
    rapt_call_product(&call, count, width, 1);
    rapt_call_product(&call, rows, width, 1);
    if (ids.reserved_zero)
        rapt_call_refuse(&call, RAPT_UNUSED_FIELD, "ids.reserved_zero = %ld is not 0", (long)ids.reserved_zero);
    else if (ids.index_bytes != 4 && ids.index_bytes != 8)
        rapt_call_refuse(&call, RAPT_INVALID_VALUE, "ids.index_bytes = %ld is neither 4 nor 8",
                         (long)ids.index_bytes);
    else if (ids.count && ids.count < count)
        rapt_call_refuse(&call, RAPT_OUT_OF_EXTENT, "ids.count = %lld, but count = %lld", (long long)ids.count,
                         (long long)count);
    else if (ids.stride_bytes && (ids.stride_bytes < ids.index_bytes || ids.stride_bytes % ids.index_bytes))
        rapt_call_refuse(&call, RAPT_INVALID_STRIDE, "ids.stride_bytes = %lld is not a positive multiple of %ld",
                         (long long)ids.stride_bytes, (long)ids.index_bytes);
    else if (!fits_memory(ids, count))
        rapt_call_refuse(&call, RAPT_INVALID_SHAPE, "ids.stride_bytes = %lld: %lld entries leave the address space",
                         (long long)ids.stride_bytes, (long long)count);
    else if ((uintptr_t)ids.data % (uintptr_t)ids.index_bytes)
        rapt_call_refuse(&call, RAPT_MISALIGNED_POINTER, "ids.data is not aligned to %ld bytes", (long)ids.index_bytes);
    for (int64_t i = 0; i < count && call.status == RAPT_OK; i++)
        id_at(&call, ids, i, rows);
    /* Ids may have changed since: each is checked again as it is used. */
    for (int64_t i = 0; i < count && call.status == RAPT_OK; i++) {
        const int64_t id = id_at(&call, ids, i, rows);
        if (call.status == RAPT_OK)
            memcpy(out + i * width, table + id * width, (size_t)width * sizeof(float));
    }
    return rapt_call_end(&call);
}
