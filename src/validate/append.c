/* SPDX-License-Identifier: MIT
 * Every refusal of rapt_append and rapt_rotate, in the order of the checks in rapt_validate_append.
 * docs/inputs.md is the same list for users. */
#include "validate/append.h"

#include "append/lists.h"
#include "checked.h"
#include "format.h"
#include "validate/tensor.h"

/* One run through the checks. */
struct checks {
    const rapt_append_desc *d;
    const struct rapt_append_names *names;
    bool is_rotate;
    rapt_message *message;
    struct rapt_validation memory; /* footprints */
};

static rapt_status refuse_unused(struct checks *c, const char *name, const char *why) {
    return rapt_refuse(c->message, RAPT_UNUSED_FIELD, "%s is set, but %s", name, why);
}

static rapt_status check_flags(struct checks *c) {
    const rapt_append_desc *d = c->d;
    if (d->numerics)
        return rapt_refuse(c->message, RAPT_UNSUPPORTED_FLAG,
                           "numerics = %d: the rows of caches have one order of operations, which is 0",
                           (int)d->numerics);
    const rapt_status status = rapt_check_isa(d->isa, c->message);
    if (status != RAPT_OK)
        return status;
    if (!c->is_rotate && d->features & ~(RAPT_COMPUTE_KEY_SCALES | RAPT_COMPUTE_VALUE_SCALES))
        return rapt_refuse(c->message, RAPT_UNSUPPORTED_FLAG, "features = %#lx has unknown bits",
                           (unsigned long)d->features);
    return RAPT_CHECK_RESERVED("reserved", d->reserved, c->message);
}

static rapt_status check_sizes(struct checks *c) {
    const rapt_append_desc *d = c->d;
    const struct rapt_size sizes[] = {
        {"batch", d->batch, 0, RAPT_MAX_SIZE},
        {c->names->heads, d->kv_heads, 1, RAPT_MAX_SIZE},
        {"length", d->length, 0, RAPT_MAX_SIZE},
        {"tokens", d->tokens, 0, RAPT_MAX_SIZE},
        {"cache_length", d->cache_length, 0, RAPT_MAX_SIZE},
        {"head_dim", d->head_dim, 1, RAPT_MAX_HEAD_DIM},
        {"value_dim", d->value_dim, 1, RAPT_MAX_HEAD_DIM},
        {"pages.page_tokens", d->pages.page_tokens, 0, RAPT_MAX_SIZE},
        {"pages.pages", d->pages.pages, 0, RAPT_MAX_SIZE},
    };
    return rapt_check_sizes(sizes, sizeof sizes / sizeof *sizes, c->message);
}

/* Whether contiguous rows of the largest head_dim fit int64. 0 counts as 1. */
static bool rows_fit(int64_t heads, int64_t batch, int64_t tokens) {
    int64_t rows;
    return rapt_mul_fits(heads, batch + !batch, &rows) && rapt_mul_fits(rows, tokens + !tokens, &rows) &&
           rapt_mul_fits(rows, 16 * RAPT_MAX_HEAD_DIM, &rows);
}

static rapt_status check_products(struct checks *c) {
    const rapt_append_desc *d = c->d;
    if (!rows_fit(d->kv_heads, d->batch, d->length) || !rows_fit(d->kv_heads, 1, d->tokens))
        return rapt_refuse(c->message, RAPT_SIZE_OVERFLOW,
                           "batch = %lld, %s = %lld, length = %lld, tokens = %lld: their product overflows",
                           (long long)d->batch, c->names->heads, (long long)d->kv_heads, (long long)d->length,
                           (long long)d->tokens);
    if (!rows_fit(d->kv_heads, d->batch, d->cache_length) ||
        !rows_fit(d->kv_heads, d->pages.pages, d->pages.page_tokens))
        return rapt_refuse(c->message, RAPT_SIZE_OVERFLOW,
                           "%s = %lld, batch = %lld, cache_length = %lld, pages.pages = %lld, pages.page_tokens = "
                           "%lld: the rows of a cache overflow int64",
                           c->names->heads, (long long)d->kv_heads, (long long)d->batch, (long long)d->cache_length,
                           (long long)d->pages.pages, (long long)d->pages.page_tokens);
    return RAPT_OK;
}

/* The first field set that locates pages; NULL = none. */
static const char *field_of_pages(const rapt_page_table *table) {
    return table->kind                                               ? "pages.kind"
           : !rapt_is_zero(&table->entries, sizeof table->entries)   ? "pages.entries"
           : table->batch_stride_bytes                               ? "pages.batch_stride_bytes"
           : !rapt_is_zero(&table->offsets, sizeof table->offsets)   ? "pages.offsets"
           : table->reserved_zero                                    ? "pages.reserved_zero"
           : !rapt_is_zero(table->reserved, sizeof table->reserved)  ? "pages.reserved"
                                                                     : NULL;
}

/* With slots, the page table only gives the shape of the caches. */
static rapt_status check_pages(struct checks *c) {
    const rapt_append_desc *d = c->d;
    const rapt_page_table *table = &d->pages;
    const bool by_slots = rapt_is_by_slots(d);
    const char *const useless = by_slots ? field_of_pages(table) : NULL;
    if (useless)
        return refuse_unused(c, useless, "slots say where tokens go");
    if (by_slots && table->page_tokens == 0)
        return rapt_refuse(c->message, RAPT_INVALID_SHAPE, "pages.page_tokens = 0, but the caches have pages");
    const rapt_status status = by_slots ? RAPT_OK : rapt_check_page_fields(&c->memory, "pages", table);
    if (status != RAPT_OK)
        return status;
    if (rapt_cache_shape_of(d).paged && d->cache_length)
        return refuse_unused(c, "cache_length", "the caches have pages");
    if (table->kind && !table->entries.data && rapt_append_count(d))
        return rapt_refuse(c->message, RAPT_NULL_POINTER, "pages.entries.data is NULL");
    return RAPT_OK;
}

static rapt_status check_addressing(struct checks *c) {
    const rapt_append_desc *d = c->d;
    if (d->slots.data && d->positions.data)
        return refuse_unused(c, "positions", "slots say where tokens go");
    const char *other = c->is_rotate ? c->names->rotary_positions : "slots";
    const bool has_other = c->is_rotate ? d->rotary_positions.data : d->slots.data;
    if (c->is_rotate && has_other && d->positions.data)
        return refuse_unused(c, c->names->positions, "positions has those of all tokens");
    if (!has_other && !d->positions.data && rapt_append_count(d))
        return rapt_refuse(c->message, RAPT_NULL_POINTER, "%s.data is NULL, and so is %s.data", c->names->positions,
                           other);
    if (d->offsets.data && d->lengths.data)
        return refuse_unused(c, "lengths", "offsets has the lengths");
    if (!d->offsets.data && d->tokens)
        return refuse_unused(c, "tokens", "offsets is absent");
    return check_pages(c);
}

/* ---------------------------------------------------------------- tensors */

/* New rows, and the cache that they go to. */
struct side {
    const char *from_name, *into_name;
    const rapt_tensor *from, *into;
    int64_t dim;
    const char *computes; /* the flag by which scales are computed; NULL = they are not */
};

static struct side side_of(const struct checks *c, int side) {
    const rapt_append_desc *d = c->d;
    const bool keys = side == RAPT_KEYS;
    const bool computes = d->features & (keys ? RAPT_COMPUTE_KEY_SCALES : RAPT_COMPUTE_VALUE_SCALES);
    const char *flag = keys ? "RAPT_COMPUTE_KEY_SCALES" : "RAPT_COMPUTE_VALUE_SCALES";
    return (struct side){.from_name = c->names->from[side],
                         .into_name = c->names->into[side],
                         .from = keys ? &d->key : &d->value,
                         .into = keys ? &d->key_cache : &d->value_cache,
                         .dim = keys ? d->head_dim : d->value_dim,
                         .computes = computes ? flag : NULL};
}

/* Both are there, or neither is. */
static rapt_status check_presence(struct checks *c, const struct side *side) {
    const bool no_rows = rapt_absent(side->from), no_cache = rapt_absent(side->into);
    if (no_rows != no_cache)
        return rapt_refuse(c->message, RAPT_NULL_POINTER, "%s is absent, but %s is not",
                           no_rows ? side->from_name : side->into_name, no_rows ? side->into_name : side->from_name);
    if (side->computes && !side->into->scale_dtype)
        return rapt_refuse(c->message, RAPT_UNUSED_FIELD, "features has %s, but %s.scale_dtype = 0", side->computes,
                           side->into_name);
    return RAPT_OK;
}

/* Absent ones must have no field set. Caches have any type; what rapt_rotate writes, only those of sources. */
static rapt_status check_side(struct checks *c, const struct side *side) {
    const rapt_append_desc *d = c->d;
    const bool packed = d->offsets.data, absent = rapt_absent(side->from);
    const struct rapt_cache_shape shape = rapt_cache_shape_of(d);
    const int64_t from_size[] = {packed ? 1 : d->batch, d->kv_heads, packed ? d->tokens : d->length};
    const int64_t into_size[] = {shape.pages, d->kv_heads, shape.page_tokens};
    const int output = side->computes ? RAPT_ROLE_OUTPUT | RAPT_ROLE_SCALES_OUT : RAPT_ROLE_OUTPUT;
    const struct rapt_tensor_rule rules[] = {{.name = side->from_name,
                                              .tensor = side->from,
                                              .size = from_size,
                                              .row = side->dim,
                                              .uses = RAPT_USE_ENDS,
                                              .role = absent ? RAPT_ROLE_OPTIONAL : RAPT_ROLE_INPUT},
                                             {.name = side->into_name,
                                              .tensor = side->into,
                                              .size = into_size,
                                              .row = side->dim,
                                              .uses = c->is_rotate ? RAPT_USE_ENDS : RAPT_USE_KEY_VALUE,
                                              .role = absent ? RAPT_ROLE_OPTIONAL : output,
                                              .paged = shape.paged}};
    rapt_status status = check_presence(c, side);
    for (int i = 0; status == RAPT_OK && i < 2; i++)
        status = rapt_check_tensor(&c->memory, &rules[i]);
    return status;
}

static rapt_status check_tensors(struct checks *c) {
    const rapt_append_desc *d = c->d;
    if (rapt_absent(&d->key) && rapt_absent(&d->value) && rapt_append_count(d))
        return rapt_refuse(c->message, RAPT_NULL_POINTER,
                           c->is_rotate ? "in.data is NULL" : "key.data is NULL, and so is value.data");
    if (d->rotary.pairing && rapt_absent(&d->key) && rapt_append_count(d))
        return refuse_unused(c, "rotary.pairing", "key is absent");
    rapt_status status = RAPT_OK;
    for (int i = 0; status == RAPT_OK && i < RAPT_SIDES; i++) {
        const struct side side = side_of(c, i);
        status = check_side(c, &side);
    }
    return status;
}

static rapt_status check_rotary(struct checks *c) {
    return rapt_check_rotary(&c->d->rotary, c->d->head_dim, c->message);
}

static rapt_status check_lists(struct checks *c) { return rapt_check_append_lists(&c->memory, c->d, c->names); }

static rapt_status check_overlaps(struct checks *c) { return rapt_check_overlaps(&c->memory); }

rapt_status rapt_validate_append(const rapt_append_desc *desc, enum rapt_append_kind kind, rapt_message *message) {
    typedef rapt_status (*check)(struct checks *);
    static const check checks[] = {check_flags,   check_sizes,  check_products, check_addressing,
                                   check_tensors, check_rotary, check_lists,    check_overlaps};
    /* Memory is checked as for a call with rows. */
    static const rapt_attention_desc rows = {.batch = 1, .query_length = 1};
    static const struct rapt_append_names names[] = {
        {{"key", "value"}, {"key_cache", "value_cache"}, "kv_heads", "positions", "rotary_positions"},
        {{"in", ""}, {"out", ""}, "heads", "first_positions", "positions"}};
    struct checks c = {.d = desc, .names = &names[kind], .is_rotate = kind == RAPT_KIND_ROTATE, .message = message};
    c.memory = (struct rapt_validation){.desc = &rows, .message = message, .memory = RAPT_MEMORY_GIVEN};
    rapt_status status = RAPT_OK;
    for (size_t i = 0; status == RAPT_OK && i < sizeof checks / sizeof *checks; i++)
        status = checks[i](&c);
    return status;
}
