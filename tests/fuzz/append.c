/* SPDX-License-Identifier: MIT
 * Appends and rotations of all kinds: a status with a text and no byte written, or the reference's bytes; and nothing
 * accessed outside the memory that the call describes. Every pointer has real memory of the stated extent. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "rapt/cache.h"
#include "reference/reference.h"
#include "support/support.h"

enum { PLAUSIBLE = 216, CACHE_BYTES = 1 << 15, TABLE_FLOATS = 1 << 12, MOST_REGIONS = 24 };
enum { ENTRIES = 64, MOST_PAGES = 13 }; /* per list; per sequence */

struct fuzzed {
    rapt_append_desc desc;
    rapt_rotate_desc rotation; /* of keys into their cache, instead of the append */
    bool rotates;
    struct region regions[MOST_REGIONS];
    int count;
};

static struct region *add_region(struct fuzzed *f, size_t bytes) {
    struct region *region = &f->regions[f->count++];
    *region = region_new(bytes);
    return region;
}

/* Mostly one of a few numbers, else anything. */
static int64_t take_number(struct input *input, const int64_t *plausible, int count) {
    static const int64_t hostile[] = {
        -1, 0, 1, -2, 2, 1025, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, (1 << 29) + 1, (int64_t)1 << 40,
        (int64_t)1 << 62, -4, 3, ((int64_t)1 << 40) + 1};
    const uint8_t choice = take_byte(input);
    if (choice < PLAUSIBLE)
        return plausible[choice % count];
    return choice == 255 ? (int64_t)take_word(input) : hostile[choice % 16];
}

#define TAKE(input, ...)                                                                                               \
    take_number(input, (const int64_t[]){__VA_ARGS__}, (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)))

static void fill(const struct region *region, uint8_t content) {
    struct random random = {content};
    for (size_t i = 0; i + 4 <= region->bytes; i += 4) {
        const uint32_t any = (uint32_t)random_bits(&random);
        const float x = content % 4 == 3 ? float_of(any) : random_uniform(&random);
        memcpy(region->data + i, &x, sizeof x);
    }
}

static void take_tensor(struct fuzzed *f, struct input *input, rapt_tensor *tensor, bool output, int64_t dim) {
    const int kind = f->desc.pages.kind;
    const bool paged = f->desc.slots.data || kind == RAPT_PAGES_DENSE || kind == RAPT_PAGES_LISTED;
    const struct region *region = add_region(f, CACHE_BYTES);
    if (take_byte(input) % 16 == 15)
        return;
    tensor->dtype = (int32_t)(output ? TAKE(input, RAPT_F16, RAPT_F32, RAPT_BF16, RAPT_Q8_0, 6, 7, 8, 9, 10)
                                     : TAKE(input, RAPT_F32, RAPT_F32, RAPT_F16, RAPT_BF16));
    if (output && tensor->dtype >= RAPT_Q8_0 && tensor->dtype <= 10 && (dim % 32 || !rapt_row_bytes(tensor->dtype, 32)))
        tensor->dtype = RAPT_F16;
    const int64_t whole = rapt_row_bytes(tensor->dtype, dim), row = whole < CACHE_BYTES ? whole : CACHE_BYTES;
    tensor->token_stride_bytes = TAKE(input, row, row, row * 2, row + 4);
    tensor->head_stride_bytes = TAKE(input, row * 8, row * 16, row * 24, row);
    tensor->batch_stride_bytes = TAKE(input, row * 48, row * 64);
    tensor->page_stride_bytes = output && paged ? TAKE(input, row * 32, row * 48) : output ? TAKE(input, 0) : 0;
    tensor->extent_bytes = CACHE_BYTES - take_byte(input) % 4;
    tensor->data = region->data + (take_byte(input) % 32 == 31) * 4;
    fill(region, take_byte(input));
    if (tensor->data != region->data)
        tensor->extent_bytes = CACHE_BYTES - 4;
}

/* Memory of exactly the stated count. */
static rapt_index_list list_of(struct fuzzed *f, const int64_t *numbers, int64_t count, bool wide) {
    const struct region *region = add_region(f, (size_t)count * (wide ? 8 : 4));
    for (int64_t i = 0; i < count; i++)
        if (wide)
            memcpy(region->data + 8 * i, &numbers[i], 8);
        else
            memcpy(region->data + 4 * i, &(int32_t){(int32_t)numbers[i]}, 4);
    return wide ? rapt_int64_list((const int64_t *)(const void *)region->data, count)
                : rapt_int32_list((const int32_t *)(const void *)region->data, count);
}

static rapt_index_list take_list(struct fuzzed *f, struct input *input, int64_t most, bool ascending) {
    const bool wide = take_byte(input) % 2;
    int64_t before = 0, numbers[ENTRIES];
    for (int i = 0; i < ENTRIES; i++) {
        const int64_t plain = ascending ? before + take_byte(input) % 4 : most ? take_byte(input) % most : 0;
        numbers[i] = take_byte(input) < 250 ? plain : TAKE(input, -1, most);
        before = plain;
    }
    return list_of(f, numbers, ENTRIES - take_byte(input) % 16, wide);
}

/* Entries for each sequence, in rows that overlap, follow each other, or are one. */
static void take_entries(struct fuzzed *f, struct input *input, int64_t each) {
    rapt_append_desc *d = &f->desc;
    rapt_page_table *table = &d->pages;
    int64_t numbers[(ENTRIES + 1) * MOST_PAGES], offsets[ENTRIES + 1], count = 0;
    const uint8_t way = take_byte(input);
    const bool dense = table->kind == RAPT_PAGES_DENSE;
    const int64_t batch = d->batch < 0 || d->batch > ENTRIES ? 3 : d->batch; /* more than lists hold are refused */
    const int64_t row = dense ? each - (way & 2 ? 1 : 0) : each;
    for (int64_t b = 0; b <= batch; b++) {
        offsets[b] = way & 16 && take_byte(input) > 128 ? TAKE(input, 0, b * each - 1) : b * each;
        count = dense && b == batch ? count : b * row + (dense ? each : 0);
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t plain = table->pages > 0 ? i % table->pages : 0;
        numbers[i] = take_byte(input) % 16 == 15 ? TAKE(input, table->pages, -1) : plain;
    }
    table->entries = list_of(f, numbers, count, way & 4);
    if (dense) {
        table->entries.count = each;
        table->batch_stride_bytes = row * table->entries.index_bytes;
    }
    if (table->kind == RAPT_PAGES_LISTED)
        table->offsets = list_of(f, offsets, batch + 1, way & 8);
}

/* Other strides, however large, would reach unmapped memory: a list states no extent. */
static const int64_t refused_strides[] = {-4, 2, INT64_MIN};

static void take_table(struct fuzzed *f, struct input *input) {
    rapt_page_table *table = &f->desc.pages;
    const uint8_t wrong = take_byte(input);
    const int64_t less = wrong < 200 ? 0 : TAKE(input, 0, 1, 4, 8); /* a smaller stride, within memory */
    table->kind = 1 + take_byte(input) % 3;
    table->page_tokens = table->kind == RAPT_PAGES_ROW ? TAKE(input, 0) : TAKE(input, 8, 4, 1, 3);
    table->pages = TAKE(input, 2, 1, 3);
    if (table->kind != RAPT_PAGES_ROW)
        f->desc.cache_length = TAKE(input, 0);
    take_entries(f, input, table->kind == RAPT_PAGES_ROW ? 1 : 2 + take_byte(input) % (MOST_PAGES - 1));
    switch (wrong < 200 ? 0 : wrong % 8) {
    case 1: table->entries.data = NULL; break;
    case 2: table->offsets.data = NULL; break;
    case 3: table->entries.count -= 1; break;
    case 4: table->batch_stride_bytes = less < table->batch_stride_bytes ? less : 0; break;
    case 5: table->entries.stride_bytes = refused_strides[take_byte(input) % 3]; break;
    case 6: table->offsets.index_bytes = 2; break;
    case 7: table->reserved[wrong / 8 % 2] = 1; break;
    default: break;
    }
}

static double take_double(struct input *input, double plausible) {
    static const double others[] = {0, 1, -1, 0.5, 1e300, 1e-300, 64, 1.0000001};
    const uint8_t choice = take_byte(input);
    double any;
    const uint64_t bits = take_byte(input) == 255 ? take_word(input) : 0;
    memcpy(&any, &bits, sizeof any);
    return bits ? any : choice < PLAUSIBLE ? plausible : others[choice % 8];
}

static void take_rotary(struct fuzzed *f, struct input *input, rapt_rotary *rotary) {
    const struct region *table = add_region(f, TABLE_FLOATS * sizeof(float));
    const uint8_t way = take_byte(input) % 4;
    rotary->pairing = (int32_t)TAKE(input, 1, 2);
    rotary->dim = TAKE(input, 0, 0, 2, 4);
    fill(table, take_byte(input));
    if (way == 0) { /* rows within the table */
        rotary->cosines = (const float *)(const void *)table->data;
        rotary->sines = take_byte(input) % 16 == 15 ? NULL : rotary->cosines + take_byte(input);
        rotary->table_positions = take_byte(input) % 16;
        rotary->table_stride_bytes = take_byte(input) % 4 ? 512 : 516;
        rotary->dim = TAKE(input, 2, 4, 6);
        return;
    }
    if (way == 1) {
        for (size_t i = 0; i < TABLE_FLOATS; i++) {
            const float frequency = (float)(i % 100) / 99;
            memcpy(table->data + 4 * i, &frequency, sizeof frequency);
        }
        rotary->frequencies = (const float *)(const void *)table->data;
        rotary->attention_factor = take_double(input, 0);
        return;
    }
    rotary->scaling = (int32_t)TAKE(input, 0, 1, 2, 3, 4);
    rotary->base = take_double(input, 10000);
    rotary->factor = take_double(input, rotary->scaling ? 4 : 0);
    rotary->original_length = take_double(input, rotary->scaling > 2 ? 1024 : 0);
    rotary->low_factor = take_double(input, 0);
    rotary->high_factor = take_double(input, 0);
    rotary->attention_factor = take_double(input, 0);
}

/* A byte cache, with scales for its whole shape: contiguous, or shared if only read. */
static void take_scales(struct fuzzed *f, struct input *input, rapt_tensor *tensor, int64_t dim, uint32_t feature) {
    const rapt_append_desc *d = &f->desc;
    const bool by_row = d->pages.kind == RAPT_PAGES_ROW || (!d->slots.data && d->pages.kind == RAPT_PAGES_NONE);
    const int64_t first = d->slots.data || d->pages.kind ? d->pages.pages : d->batch;
    const int64_t tokens = by_row ? d->cache_length : d->pages.page_tokens, group = TAKE(input, 0, 16, 32, 24);
    const bool is_plain = first >= 0 && first <= 3 && d->kv_heads > 0 && d->kv_heads <= 2 && tokens >= 0 &&
                          tokens <= 12 && dim > 0 && dim <= 64;
    if (!tensor->data || !is_plain)
        return;
    const int64_t groups = group > 0 ? 1 + (dim - 1) / group : 1, rows = first * d->kv_heads * tokens;
    const uint8_t way = take_byte(input);
    const int64_t stride = way & 1 ? groups * 4 : way & 2 ? 0 : TAKE(input, groups * 4);
    tensor->dtype = (int32_t)TAKE(input, RAPT_F8_E4M3, RAPT_F8_E5M2, RAPT_I8, RAPT_I8);
    tensor->token_stride_bytes = dim, tensor->head_stride_bytes = dim * 16, tensor->batch_stride_bytes = dim * 48;
    tensor->page_stride_bytes = by_row ? 0 : dim * 32;
    tensor->scale_dtype = (int32_t)TAKE(input, RAPT_F32);
    tensor->scale_group = group;
    tensor->scale_token_stride_bytes = stride > groups * 64 ? -1 : stride;
    tensor->scale_head_stride_bytes = tensor->scale_token_stride_bytes * tokens;
    tensor->scale_batch_stride_bytes = tensor->scale_head_stride_bytes * d->kv_heads;
    const struct region *scales = add_region(f, (size_t)(rows * groups * 4));
    if (way & 32 || stride < 0 || stride > groups * 4)
        tensor->scale_extent_bytes = rows ? rows * groups * 4 : 4;
    fill(scales, take_byte(input));
    tensor->scales = way & 4 && take_byte(input) % 8 == 0 ? NULL : scales->data;
    if (way & 8) {
        tensor->zero_point_dtype = RAPT_I8;
        tensor->zero_points = add_region(f, (size_t)(rows * groups))->data;
    }
    if (way & 16)
        f->desc.features |= feature;
}

static void decode(struct fuzzed *f, struct input *input) {
    rapt_append_desc *d = &f->desc;
    const uint8_t lists = take_byte(input);
    *d = (rapt_append_desc)RAPT_APPEND_DESC_INIT;
    d->batch = TAKE(input, 1, 2, 3, 0);
    d->kv_heads = TAKE(input, 1, 2);
    d->length = TAKE(input, 1, 2, 5, 8, 0);
    d->head_dim = TAKE(input, 32, 64, 33, 7);
    d->value_dim = TAKE(input, 0, 0, 32, 64);
    d->numerics = (int32_t)(take_byte(input) == 255);
    d->isa = (int32_t)TAKE(input, 0, 0, 1);
    if (lists & 1) {
        d->pages.page_tokens = TAKE(input, 8, 4, 1, 3);
        d->pages.pages = TAKE(input, 2, 1, 3);
        d->slots = take_list(f, input, 8, false);
    } else {
        d->cache_length = TAKE(input, 8, 8, 12);
        d->positions = take_list(f, input, 5, false);
        if (lists & 64)
            take_table(f, input);
    }
    const int64_t value_dim = d->value_dim > 0 && d->value_dim <= 1024 ? d->value_dim : d->head_dim;
    take_tensor(f, input, &d->key, false, d->head_dim);
    take_tensor(f, input, &d->value, false, value_dim);
    take_tensor(f, input, &d->key_cache, true, d->head_dim);
    take_tensor(f, input, &d->value_cache, true, value_dim);
    if (lists & 128) {
        take_scales(f, input, &d->key_cache, d->head_dim, RAPT_COMPUTE_KEY_SCALES);
        take_scales(f, input, &d->value_cache, value_dim, RAPT_COMPUTE_VALUE_SCALES);
        d->features |= take_byte(input) == 255 ? 4 : 0;
    }
    if (lists & 2)
        d->lengths = take_list(f, input, 5, false);
    if (lists & 4) {
        d->tokens = TAKE(input, 8, 16, 40);
        d->offsets = take_list(f, input, 8, true);
    }
    if (lists & 8)
        take_rotary(f, input, &d->rotary);
    if (lists & 16 && d->rotary.pairing)
        d->rotary_positions = take_list(f, input, 10, false);
    if (lists & 32 && take_byte(input) % 8 == 0)
        d->pages.kind = (int32_t)TAKE(input, 1, 2, 3);
}

/* Last, because exhausted inputs read as zeros: without these bytes it appends. */
static void decode_rotation(struct fuzzed *f, struct input *input) {
    const rapt_append_desc *d = &f->desc;
    f->rotates = take_byte(input) == 'r';
    const uint8_t way = take_byte(input);
    rapt_rotate_desc *r = &f->rotation;
    *r = (rapt_rotate_desc)RAPT_ROTATE_DESC_INIT;
    r->numerics = d->numerics, r->isa = d->isa, r->reserved_zero = way == 255;
    r->batch = d->batch, r->heads = d->kv_heads, r->length = d->length, r->tokens = d->tokens;
    r->head_dim = d->head_dim, r->in = d->key, r->out = d->key_cache;
    r->out.page_stride_bytes = way & 2 ? d->key_cache.page_stride_bytes : 0;
    r->positions = d->rotary_positions, r->lengths = d->lengths, r->offsets = d->offsets, r->rotary = d->rotary;
    if (way & 1 || !d->rotary_positions.data)
        r->first_positions = d->positions;
}

static rapt_status run(const struct fuzzed *f, rapt_message *message) {
    return f->rotates ? rapt_rotate(&f->rotation, NULL, message) : rapt_append(&f->desc, NULL, message);
}

/* Batches without tokens may be large. */
static void run_reference(const struct fuzzed *f) {
    if (f->desc.length == 0 && !f->desc.offsets.data)
        return;
    if (f->rotates)
        rapt_reference_rotate(&f->rotation);
    else
        rapt_reference_append(&f->desc);
}

/* Copies all regions. */
static char *copy_of(const struct fuzzed *f) {
    size_t bytes = 0;
    for (int i = 0; i < f->count; i++)
        bytes += f->regions[i].bytes;
    char *copy = malloc(bytes + 1), *at = copy;
    if (!copy)
        fuzz_fail("out of memory");
    for (int i = 0; i < f->count; at += f->regions[i++].bytes)
        memcpy(at, f->regions[i].data, f->regions[i].bytes);
    return copy;
}

static void put_back(const struct fuzzed *f, const char *copy) {
    for (int i = 0; i < f->count; copy += f->regions[i++].bytes)
        memcpy(f->regions[i].data, copy, f->regions[i].bytes);
}

static void expect_same(const struct fuzzed *f, const char *copy, const char *what) {
    for (int i = 0; i < f->count; copy += f->regions[i++].bytes)
        if (memcmp(f->regions[i].data, copy, f->regions[i].bytes) != 0)
            fuzz_fail("region %d %s", i, what);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct input input = {data, data + bytes};
    struct fuzzed f = {.count = 0};
    rapt_message message;
    decode(&f, &input);
    decode_rotation(&f, &input);
    char *before = copy_of(&f);
    memset(&message, 'x', sizeof message);
    const rapt_status status = run(&f, &message);
    if (!memchr(message.text, 0, sizeof message.text) || (status == RAPT_OK) != (message.text[0] == 0))
        fuzz_fail("status %d with a wrong text", (int)status);
    if (status == RAPT_OK) {
        char *after = copy_of(&f);
        put_back(&f, before);
        run_reference(&f);
        expect_same(&f, after, "has not the bytes of the reference");
        free(after);
    } else {
        expect_same(&f, before, "was written by a refused call");
    }
    *(status == RAPT_OK ? &fuzz_taken : &fuzz_refused) += 1;
    free(before);
    while (f.count > 0)
        region_free(&f.regions[--f.count]);
    return 0;
}
