/* SPDX-License-Identifier: MIT
 * The types that rapt.h uses: statuses, tensors, lists. rapt.h includes it. */
#ifndef RAPT_TYPES_H
#define RAPT_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* RAPT_STATIC: the library is linked as an archive that was built with RAPT_STATIC, too. Its symbols are hidden, so a
 * shared object that contains rapt does not export it. */
#if defined(RAPT_STATIC) && defined(__GNUC__) && !defined(_WIN32)
#define RAPT_API __attribute__((visibility("hidden")))
#elif defined(RAPT_STATIC)
#define RAPT_API
#elif defined(_WIN32) && defined(RAPT_BUILD)
#define RAPT_API __declspec(dllexport)
#elif defined(_WIN32)
#define RAPT_API __declspec(dllimport)
#else
#define RAPT_API __attribute__((visibility("default")))
#endif

/* C++ programs may have warnings of C's casts. */
#ifdef __cplusplus
#define RAPT_CAST(type, value) static_cast<type>(value)
#else
#define RAPT_CAST(type, value) ((type)(value))
#endif

/* A struct of zeros, with its struct_size where it has one; static, since plug-ins may have structs of two releases. */
#ifdef __cplusplus
extern "C++" {
template <typename type> static inline type rapt_sized() {
    type value = {};
    value.struct_size = RAPT_CAST(uint32_t, sizeof(type));
    return value;
}
}
#define RAPT_INIT(type) rapt_sized<type>()
#define RAPT_ZERO {}
#else
#define RAPT_INIT(type) {.struct_size = (uint32_t)sizeof(type)}
#define RAPT_ZERO {0}
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- status */

typedef enum rapt_status {
    RAPT_OK = 0,
    RAPT_NULL_POINTER,          /* required data is NULL */
    RAPT_UNSUPPORTED_VERSION,   /* not a valid struct_size, or that of a later release whose fields are in use */
    RAPT_UNSUPPORTED_FLAG,      /* unknown feature bit or enum value */
    RAPT_UNSUPPORTED_DTYPE,     /* a dtype that this tensor cannot have */
    RAPT_INVALID_SHAPE,         /* negative, absurd or inconsistent dims */
    RAPT_INVALID_STRIDE,        /* overflowing, misaligned or 0 on an output */
    RAPT_INVALID_VALUE,         /* a number outside its range, NaN, infinite */
    RAPT_MISALIGNED_POINTER,    /* below the alignment of its type */
    RAPT_OUT_OF_EXTENT,         /* a tensor reaches beyond its extent_bytes, a list beyond its count */
    RAPT_OVERLAPPING_OUTPUT,    /* an output overlaps itself, another, or an input */
    RAPT_UNSTATED_POSITION,     /* causal, window or ALiBi require query_origin */
    RAPT_UNUSED_FIELD,          /* a field is set that nothing uses */
    RAPT_UNSUPPORTED_ISA,       /* this machine or build lacks the instructions */
    RAPT_INVALID_ENVIRONMENT,   /* RAPT_ISA names no instruction set */
    RAPT_SIZE_OVERFLOW,         /* a size does not fit its type */
    RAPT_WORKSPACE_TOO_SMALL,   /* fewer bytes than one scratch slot needs */
    RAPT_BUSY,                  /* more tasks at once than scratch slots */
    RAPT_OUT_OF_MEMORY,         /* one-call form only */
    RAPT_PARALLEL_FOR_FAILED,   /* the callback returned non-zero, or before all tasks were done */
    RAPT_INVALID_PLAN,          /* not a plan: its rapt_plan_init failed, or another library or process made it */
    RAPT_NOT_PREPARED,          /* the workspace was not prepared with this plan */
    RAPT_NOT_BOUND,             /* the plan was made without data and has not been bound */
    RAPT_STOPPED                /* should_stop ended the run; results are undefined */
} rapt_status;

/* One line of text for a status; never NULL. */
RAPT_API const char *rapt_status_text(rapt_status status);

/* Names the field and its wrong value; empty after RAPT_OK. */
typedef struct rapt_message {
    char text[256];
} rapt_message;

/* --------------------------------------------------------------- tensors */

typedef enum rapt_dtype {
    RAPT_NO_DTYPE = 0,
    RAPT_F32 = 1,   /* IEEE-754 binary32, aligned to 4 bytes */
    RAPT_BOOL8 = 2, /* one byte: 0 = false, any other value = true */
    RAPT_F16 = 3,   /* IEEE-754 binary16, aligned to 2 bytes */
    RAPT_BF16 = 4,  /* the upper half of a binary32, aligned to 2 bytes */
    /* Keys and values only: ggml's blocks of 32 numbers, byte for byte, aligned to 2 bytes. d, m: binary16. Nibbles:
     * numbers 0 ... 15 are the lower halves of 16 bytes, numbers 16 ... 31 the upper halves. */
    RAPT_Q8_0 = 5,   /* d, 32 int8 q:                        d * q */
    RAPT_Q4_0 = 6,   /* d, nibbles q:                        d * (q - 8) */
    RAPT_Q4_1 = 7,   /* d, m, nibbles q:                     d * q + m */
    RAPT_Q5_0 = 8,   /* d, 32 fifth bits, nibbles, both q:   d * (q - 16) */
    RAPT_Q5_1 = 9,   /* d, m, 32 fifth bits, nibbles:        d * q + m */
    RAPT_IQ4_NL = 10, /* d, nibbles q:                       d * (number q of a table of 16) */
    /* Keys and values only: bytes with scales. */
    RAPT_F8_E4M3 = 11, /* no infinities; NaN is 0x7f and 0xff (the variant "fn"); number * scale */
    RAPT_F8_E5M2 = 12, /* the upper half of a binary16; number * scale */
    RAPT_I8 = 13       /* (number - zero point) * scale; has scales */
} rapt_dtype;

/* Bytes of a row of dim elements; 0 for an unknown dtype, or a dim outside 0 ... 2^59 - 2 or not of whole blocks. */
RAPT_API int64_t rapt_row_bytes(int32_t dtype, int64_t dim);

/* An array [batch, head, token, innermost] whose innermost dimension is contiguous. The sizes come from the descriptor.
 * Strides are in bytes; those of inputs may be 0 (broadcast) or negative. The stride of a dimension of size 1 is
 * ignored. A tensor with dtype = 0 is absent; all its fields are 0.
 *
 * extent_bytes, when not 0, is the number of bytes that may be touched from data on; shapes that reach further (or
 * before data) are refused.
 *
 * Scales are for F8_E4M3, F8_E5M2 and I8; scale_dtype = 0 means none, which I8 does not allow. Each group of
 * scale_group elements of a row has a scale and, optionally, a zero point (I8 only). The last group may be shorter;
 * scale_group = 0: the row is one group. Their strides may be 0: one scale per tensor, or one per head.
 * scale_extent_bytes, when not 0, is the number of bytes that may be touched from scales on, and a quarter of it from
 * zero_points on. page_stride_bytes is for pages; with these, scale_batch_stride_bytes is the stride from page to
 * page. */
typedef struct rapt_tensor {
    void *data;
    int32_t dtype; /* rapt_dtype */
    int32_t reserved_zero;
    int64_t batch_stride_bytes;
    int64_t head_stride_bytes;
    int64_t token_stride_bytes;
    int64_t extent_bytes;
    int32_t scale_dtype;      /* RAPT_F32, or 0 = no scales */
    int32_t zero_point_dtype; /* RAPT_I8, or 0 = no zero points */
    void *scales;             /* [batch, head, token, groups], any numbers */
    void *zero_points;        /* one per scale, laid out as the scales, element for element */
    int64_t scale_group;      /* 0, or a multiple of 16 */
    int64_t scale_batch_stride_bytes;
    int64_t scale_head_stride_bytes;
    int64_t scale_token_stride_bytes;
    int64_t page_stride_bytes;
    int64_t scale_extent_bytes;
    uint64_t reserved[1];
} rapt_tensor;

/* An address without its const: the same struct describes arrays to read and to write. */
static inline void *rapt_writable(const void *data) {
#ifdef __cplusplus
    return const_cast<void *>(data);
#else
    return (void *)(uintptr_t)data;
#endif
}

/* A stride over count steps of bytes. An overflow wraps; calls of such sizes are refused. */
static inline int64_t rapt_stride_over(int64_t count, int64_t bytes) {
    return RAPT_CAST(int64_t, RAPT_CAST(uint64_t, count) * RAPT_CAST(uint64_t, bytes));
}

/* Contiguous arrays with their extent: bhsd is [batch, heads, tokens, dim], bshd is [batch, tokens, heads, dim]. data =
 * NULL is for plans without data. */
static inline rapt_tensor rapt_tensor_bhsd(const void *data, int32_t dtype, int64_t batch, int64_t heads,
                                           int64_t tokens, int64_t dim) {
    rapt_tensor tensor = RAPT_ZERO;
    tensor.data = rapt_writable(data);
    tensor.dtype = dtype;
    tensor.token_stride_bytes = rapt_row_bytes(dtype, dim);
    tensor.head_stride_bytes = rapt_stride_over(tokens, tensor.token_stride_bytes);
    tensor.batch_stride_bytes = rapt_stride_over(heads, tensor.head_stride_bytes);
    tensor.extent_bytes = rapt_stride_over(batch, tensor.batch_stride_bytes);
    return tensor;
}

static inline rapt_tensor rapt_tensor_bshd(const void *data, int32_t dtype, int64_t batch, int64_t tokens,
                                           int64_t heads, int64_t dim) {
    rapt_tensor tensor = RAPT_ZERO;
    tensor.data = rapt_writable(data);
    tensor.dtype = dtype;
    tensor.head_stride_bytes = rapt_row_bytes(dtype, dim);
    tensor.token_stride_bytes = rapt_stride_over(heads, tensor.head_stride_bytes);
    tensor.batch_stride_bytes = rapt_stride_over(tokens, tensor.token_stride_bytes);
    tensor.extent_bytes = rapt_stride_over(batch, tensor.batch_stride_bytes);
    return tensor;
}

/* The same for float32, to read or to write. */
static inline rapt_tensor rapt_input_bhsd(const float *data, int64_t batch, int64_t heads, int64_t tokens,
                                          int64_t dim) {
    return rapt_tensor_bhsd(data, RAPT_F32, batch, heads, tokens, dim);
}

static inline rapt_tensor rapt_input_bshd(const float *data, int64_t batch, int64_t tokens, int64_t heads,
                                          int64_t dim) {
    return rapt_tensor_bshd(data, RAPT_F32, batch, tokens, heads, dim);
}

static inline rapt_tensor rapt_output_bhsd(float *data, int64_t batch, int64_t heads, int64_t tokens, int64_t dim) {
    return rapt_tensor_bhsd(data, RAPT_F32, batch, heads, tokens, dim);
}

static inline rapt_tensor rapt_output_bshd(float *data, int64_t batch, int64_t tokens, int64_t heads, int64_t dim) {
    return rapt_tensor_bshd(data, RAPT_F32, batch, tokens, heads, dim);
}

/* A list of integers, often one per sequence; absent where data is NULL. */
typedef struct rapt_index_list {
    const void *data;
    int32_t index_bytes;  /* 4: int32_t, 8: int64_t */
    int32_t reserved_zero;
    int64_t count;        /* number of entries, at least as many as are read; 0 = exactly as many */
    int64_t stride_bytes; /* from entry to entry, a positive multiple of index_bytes; 0 = index_bytes */
} rapt_index_list;

static inline rapt_index_list rapt_int32_list(const int32_t *data, int64_t count) {
    rapt_index_list list = {data, 4, 0, count, 0};
    return list;
}

static inline rapt_index_list rapt_int64_list(const int64_t *data, int64_t count) {
    rapt_index_list list = {data, 8, 0, count, 0};
    return list;
}

/* Where the keys or values of a sequence are when they are not contiguous. Each of the two has its own table, or none.
 *
 * A page holds page_tokens tokens of every KV head. With pages, the tensor's data is page 0, page_stride_bytes is from
 * page to page, and batch_stride_bytes is ignored. Its head and token strides apply within a page, in either order.
 * Token t of a sequence is in its page t / page_tokens. Entries beyond a sequence's length are not read; the others are
 * in 0 ... pages - 1. Sequences may share pages. For pages [pages, page_tokens, heads, dim], use rapt_tensor_bshd and
 * set page_stride_bytes to its batch_stride_bytes. RAPT_PAGES_ROW has no pages: its rows are batches of the tensor. */
typedef enum rapt_page_kind {
    RAPT_PAGES_NONE = 0,   /* no table: sequence b is batch b of the tensor */
    RAPT_PAGES_DENSE = 1,  /* entries [batch][entries.count], rows at batch_stride_bytes (vLLM's block table);
                              count 0 = as many as kv_length takes; rapt_append requires a count */
    RAPT_PAGES_LISTED = 2, /* entries offsets[b] ... offsets[b + 1] - 1 (FlashInfer's and SGLang's indptr, indices);
                              entries.count says how many there are in all */
    RAPT_PAGES_ROW = 3     /* entries [batch]: sequence b is batch entries[b] of the tensor (cache_batch_idx) */
} rapt_page_kind;

typedef struct rapt_page_table {
    int32_t kind; /* rapt_page_kind */
    int32_t reserved_zero;
    int64_t page_tokens;        /* any number >= 1, not only powers of two; ROW: 0 */
    int64_t pages;              /* of the tensor; ROW: its batches */
    rapt_index_list entries;    /* page numbers */
    int64_t batch_stride_bytes; /* DENSE, from row to row; 0 = all sequences share the first row */
    rapt_index_list offsets;    /* LISTED: [batch + 1], monotone */
    uint64_t reserved[2];
} rapt_page_table;

/* Which key blocks each query block attends to, per sequence and KV head: the block-sparse rows of FlashInfer, the
 * selections of NSA and MoBA. Query i of sequence b belongs to query block i / query_tokens, its stored key j to key
 * block j / key_tokens. List n = b * batch_stride + kv_head * head_stride + query block has the key blocks
 * entries[offsets[n]] ... entries[offsets[n + 1] - 1], ascending; a list may be empty. Keys of other blocks are not
 * seen. offsets and entries may change until the run, and never lead it outside the tensors. A call that continues from
 * a state counts its own stored keys. */
typedef struct rapt_block_list {
    int64_t query_tokens;    /* >= 1; 0 = there is no list, and everything else is 0 */
    int64_t key_tokens;      /* >= 1 */
    int64_t batch_stride;    /* lists from sequence to sequence; 0 = all sequences share them */
    int64_t head_stride;     /* from KV head to KV head, likewise */
    rapt_index_list offsets; /* monotone, 0 ... entries.count */
    rapt_index_list entries; /* key blocks; its count must be stated */
    uint64_t reserved[2];
} rapt_block_list;

#ifdef __cplusplus
}
#endif
#endif
