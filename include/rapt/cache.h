/* SPDX-License-Identifier: MIT
 *
 * Appends keys and values to the caches that attention reads, in any storage type, and rotates keys and queries:
 *
 *     rapt_append_desc desc = RAPT_APPEND_DESC_INIT;
 *     desc.batch = 4;  desc.kv_heads = 2;  desc.length = 1;
 *     desc.cache_length = capacity;
 *     desc.head_dim = 128;
 *     desc.key   = rapt_input_bshd(key, 4, 1, 2, 128);
 *     desc.value = rapt_input_bshd(value, 4, 1, 2, 128);
 *     desc.key_cache   = rapt_tensor_bhsd(keys, RAPT_F16, 4, 2, capacity, 128);
 *     desc.value_cache = rapt_tensor_bhsd(values, RAPT_F16, 4, 2, capacity, 128);
 *     desc.positions = rapt_int32_list(lengths, 4);
 *     desc.rotary.pairing = RAPT_ROTARY_HALVES;
 *     desc.rotary.base = 10000;
 *     rapt_message message;
 *     if (rapt_append(&desc, NULL, &message) != RAPT_OK) puts(message.text);
 *
 * Stored rows have the same bits on every instruction set and for any number of threads (docs/numerics.md): ggml's
 * blocks are those of its reference quantisers, and the sines and cosines are rapt's own.
 */
#ifndef RAPT_CACHE_H
#define RAPT_CACHE_H

#include "rapt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------- rotary embedding */

/* Which two elements of a row rotate together. */
typedef enum rapt_rotary_pairing {
    RAPT_ROTARY_NONE = 0,       /* no rotary embedding; all other fields of rapt_rotary are 0 then */
    RAPT_ROTARY_HALVES = 1,     /* i and i + dim / 2: GPT-NeoX, Llama in Transformers, Qwen */
    RAPT_ROTARY_INTERLEAVED = 2 /* 2i and 2i + 1: GPT-J, Llama as published and in GGUF files */
} rapt_rotary_pairing;

/* How the frequencies base^(-2i / dim) are scaled for texts longer than the model was trained on. */
typedef enum rapt_rotary_scaling {
    RAPT_ROTARY_UNSCALED = 0,
    RAPT_ROTARY_LINEAR = 1, /* all divided by factor (position interpolation) */
    RAPT_ROTARY_NTK = 2,    /* base * factor^(dim / (dim - 2)) instead of base */
    RAPT_ROTARY_YARN = 3,   /* low frequencies divided by factor, high ones kept, a ramp between them */
    RAPT_ROTARY_LLAMA3 = 4  /* likewise, by wavelength */
} rapt_rotary_scaling;

/* Rotates pair i of a row at position p by the angle p * f_i: (a, b) becomes (a cos - b sin, b cos + a sin). The
 * frequencies f_i are given or come from base and scaling, or cosines and sines are given. */
typedef struct rapt_rotary {
    int32_t pairing; /* rapt_rotary_pairing */
    int32_t scaling; /* rapt_rotary_scaling */
    int64_t dim;     /* even, 2 ... head_dim; elements from dim on are copied, NaN as 7fc00000; 0 = head_dim */

    /* Cosines and sines, [table_positions][dim / 2] each; NULL: computed. The numbers of a row are contiguous. */
    const float *cosines;
    const float *sines;
    int64_t table_positions;
    int64_t table_stride_bytes; /* from position to position, of both; 0 = rows are contiguous */

    /* Frequencies, [dim / 2], each 0 ... 1; NULL: base^(-2i / dim), then scaled. */
    const float *frequencies;

    double base;             /* > 1: often 10000, 500000 or 1000000 */
    double factor;           /* with scaling, >= 1 */
    double original_length;  /* YaRN, Llama 3: positions that the model was trained on; >= 1 */
    double low_factor;       /* YaRN: beta_slow, 0 = 1. Llama 3: low_freq_factor, 0 = 1 */
    double high_factor;      /* YaRN: beta_fast, 0 = 32. Llama 3: high_freq_factor, 0 = 4. More than low_factor */
    double attention_factor; /* multiplies cosines and sines, unless those are given; 0 = with YaRN
                                0.1 ln(factor) + 1, otherwise 1 */
    uint64_t reserved[4];
} rapt_rotary;

/* ----------------------------------------------------------------- append */

/* Bits of `features`. Without them, the scales and zero points of a float8 or int8 cache are read; with strides of 0
 * they may be per tensor or per head. With them, each row has its own, computed from its numbers in groups of
 * scale_group and written with it. */
#define RAPT_COMPUTE_KEY_SCALES (UINT32_C(1) << 0)
#define RAPT_COMPUTE_VALUE_SCALES (UINT32_C(1) << 1)

/* Appends rows of key and value to the caches. Either of the two may be absent, with its cache.
 *
 * Sequence b has lengths[b] new tokens (length where the list is absent). They go to stored positions positions[b] + i
 * of the sequence, in its batch, pages or row of the caches; or token by token to slots, whatever sequence they belong
 * to. A slot is page * page_tokens + offset; a negative one skips its token. If two tokens go to the same place, the
 * last one remains.
 *
 * Caches may have any type of keys and values that rapt_attention reads. Rows are converted from float32: rounded to
 * the nearest, ties to even; ggml's blocks as its reference quantisers make them; see docs/numerics.md. Rows of the
 * cache's own type that are not rotated keep every bit.
 *
 * For float8 and int8, numbers are divided by their scale, then rounded. Larger numbers and infinities saturate to the
 * largest number of the type; NaN stays NaN, and in int8 becomes 0. Computed scales are max |x| / 448 (e4m3), 57344
 * (e5m2), 127 (int8); with zero points (max - min) / 255, over the numbers and 0. A number that is not finite makes its
 * group's scale NaN. With pages, scale_batch_stride_bytes is from page to page. */
typedef struct rapt_append_desc {
    uint32_t struct_size; /* sizeof(rapt_append_desc) */
    int32_t numerics;     /* 0: stored rows have the same bits for every order of operations */
    int32_t isa;          /* rapt_isa */
    uint32_t features;    /* RAPT_COMPUTE_... */

    int64_t batch;        /* sequences, >= 0 */
    int64_t kv_heads;     /* >= 1 */
    int64_t length;       /* new tokens of a sequence, >= 0; with lengths or offsets, at most */
    int64_t tokens;       /* with offsets: new tokens of all sequences */
    int64_t cache_length; /* capacity of a batch of the caches, in tokens, also with RAPT_PAGES_ROW; 0 with other kinds
                             of pages, or slots */
    int64_t head_dim;     /* of key, 1 ... 1024 */
    int64_t value_dim;    /* of value; 0 = head_dim */

    rapt_tensor key;         /* f32, f16 or bf16 [batch, kv_heads, length, head_dim] */
    rapt_tensor value;       /* likewise [batch, kv_heads, length, value_dim] */
    rapt_tensor key_cache;   /* output [batch, kv_heads, cache_length, head_dim], or pages of page_tokens; scales and
                                zero points are read, or written, by features */
    rapt_tensor value_cache; /* output, likewise */

    rapt_page_table pages;     /* of both caches. With slots: kind 0, page_tokens and pages, and nothing else */
    rapt_index_list positions; /* [batch], >= 0 */
    rapt_index_list slots;     /* [batch * length], or [tokens]; in place of positions */
    rapt_index_list lengths;   /* [batch], each 0 ... length */
    rapt_index_list offsets;   /* [batch + 1], monotone, 0 ... tokens: sequences are packed in key and value, whose
                                  batch is 1 and whose length is tokens */

    rapt_rotary rotary;               /* of keys */
    rapt_index_list rotary_positions; /* [batch * length], or [tokens]; absent: the stored positions. With slots they
                                         are required */
    uint64_t reserved[8];
} rapt_append_desc;

#define RAPT_APPEND_DESC_INIT RAPT_INIT(rapt_append_desc)

/* Everything is checked before anything is written. options may be NULL: OpenMP with as many threads as it would use;
 * small calls run on the calling thread, or as one task of parallel_for where there is one. Allocates nothing. Calls on
 * several threads may write different rows of a cache at the same time. message may be NULL.
 *
 * Lists must not change during the call. If they do, some rows are not written, or written twice, but nothing outside
 * the caches is touched. After RAPT_STOPPED and RAPT_PARALLEL_FOR_FAILED the rows to write are undefined. */
RAPT_API rapt_status rapt_append(const rapt_append_desc *desc, const rapt_run_options *options, rapt_message *message);

/* ----------------------------------------------------------------- rotate */

/* Rotates queries as rapt_append rotates keys, into other memory. Sequence b has lengths[b] tokens (length where the
 * list is absent), at the positions first_positions[b] + i, or each at its own entry of positions. With offsets,
 * sequences are packed as in rapt_attention with query_offsets. */
typedef struct rapt_rotate_desc {
    uint32_t struct_size; /* sizeof(rapt_rotate_desc) */
    int32_t numerics;     /* 0 */
    int32_t isa;          /* rapt_isa */
    int32_t reserved_zero;

    int64_t batch;    /* >= 0 */
    int64_t heads;    /* >= 1 */
    int64_t length;   /* tokens of a sequence, >= 0; with lengths or offsets, at most */
    int64_t tokens;   /* with offsets: tokens of all sequences */
    int64_t head_dim; /* 1 ... 1024 */

    rapt_tensor in;  /* f32, f16 or bf16 [batch, heads, length, head_dim]; with offsets [1, heads, tokens, head_dim] */
    rapt_tensor out; /* likewise, output */

    rapt_index_list positions;       /* [batch * length], or [tokens] */
    rapt_index_list first_positions; /* [batch], in place of positions */
    rapt_index_list lengths;         /* [batch], each 0 ... length; tokens after it are not written */
    rapt_index_list offsets;         /* [batch + 1], as in rapt_append_desc */
    rapt_rotary rotary;
    uint64_t reserved[8];
} rapt_rotate_desc;

#define RAPT_ROTATE_DESC_INIT RAPT_INIT(rapt_rotate_desc)

/* As rapt_append. */
RAPT_API rapt_status rapt_rotate(const rapt_rotate_desc *desc, const rapt_run_options *options, rapt_message *message);

#ifdef __cplusplus
}
#endif
#endif
