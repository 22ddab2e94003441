/* SPDX-License-Identifier: MIT
 * Decodes bytes to an attention call: every field plausible or hostile, pointers to real memory of known extent. */
#ifndef RAPT_TESTS_FUZZ_DESCRIPTOR_DECODE_H
#define RAPT_TESTS_FUZZ_DESCRIPTOR_DECODE_H

#include "fuzz.h"
#include "rapt/rapt.h"

enum { MOST_REGIONS = 96, MOST_COMPUTED = 1 << 20 };

struct fuzzed_call {
    rapt_attention_desc desc; /* as the library must read it: fields not given are 0 */
    const rapt_attention_desc *given; /* exactly its struct_size bytes, as the caller gives them */
    struct region regions[MOST_REGIONS]; /* all that the call points to, and `given` */
    int region_count;
    uint8_t way;    /* how to run it */
    bool is_placed; /* sequences are packed, or lie in pages */
};

void fuzzed_call_decode(struct fuzzed_call *call, struct input *input);
void fuzzed_call_free(struct fuzzed_call *call);

/* ---- parts, shared with other targets */

/* Memory of the call. */
struct region *add_region(struct fuzzed_call *call, size_t bytes);

/* Ordinary numbers, special ones, or any bits. */
void fill(const struct region *region, int dtype, uint8_t content);

/* Scales for keys or values of this [batch, head, token, innermost], and zero points for int8, in memory of exactly
 * their size; none for other types. */
void add_scales(struct fuzzed_call *call, rapt_tensor *tensor, const int64_t *counts, uint8_t content);

/* descriptor_lists.c: lists of a descriptor, in memory of exactly the stated size. */
enum { MOST_LISTED = 4096 };
void decode_call_lists(struct fuzzed_call *call, struct input *input);

/* Memory for `count` entries, all 0, of 4 or 8 bytes at a stride, by way; the count is stated, or 0. */
const struct region *make_list(struct fuzzed_call *call, rapt_index_list *list, int64_t count, uint8_t way);
void put_entry(const struct region *region, const rapt_index_list *list, int64_t i, int64_t entry);

/* Makes one field wrong; a count stays at most `most`. */
void spoil_list(rapt_index_list *list, int64_t most, struct input *input);

/* descriptor_places.c: where sequences lie. Batches and tokens for which a tensor has room. */
struct counted {
    int64_t batch, tokens;
};
struct counted queries_of(const rapt_attention_desc *d);
struct counted keys_of(const rapt_attention_desc *d, const rapt_page_table *table);
bool is_paged_tensor(const struct fuzzed_call *call, const rapt_tensor *tensor);
void decode_places(struct fuzzed_call *call, struct input *input);

/* descriptor_select.c: trees and lists of key blocks. */
void decode_selection(struct fuzzed_call *call, struct input *input);

/* One of a list, or, for 0xff, any. */
int64_t take_hostile(struct input *input);
float take_float(struct input *input);

#endif
