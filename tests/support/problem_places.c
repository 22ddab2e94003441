/* SPDX-License-Identifier: MIT
 * Layouts in which a sequence is not a batch of the tensor: packed by offsets, or keys and values in pages or rows of a
 * pool. Each array then has a table of its tokens' places. */
#include <stdio.h>
#include <stdlib.h>

#include "support/problem_data.h"

static bool is_query_side(enum array_name name) {
    return name == ARRAY_QUERY || (name >= ARRAY_MASK && name <= ARRAY_KEEP) || name == ARRAY_INITIAL_STATE ||
           name >= ARRAY_OUT;
}

static bool is_kv_side(enum array_name name) {
    return name == ARRAY_KEY || name == ARRAY_VALUE || (name >= ARRAY_KEY_SCALES && name <= ARRAY_VALUE_ZEROS);
}

static int side_of(enum array_name name) {
    return name == ARRAY_KEY || name == ARRAY_KEY_SCALES || name == ARRAY_KEY_ZEROS ? 0 : 1;
}

bool has_places(const struct problem_layout *layout, enum array_name name) {
    return (is_query_side(name) && (layout->packed & PACKED_QUERIES)) ||
           (is_kv_side(name) && ((layout->packed & PACKED_KEYS) || layout->page_kind));
}

/* ---- lists */

static void make_list(struct problem_list *list, int64_t count, struct random *random) {
    list->count = count;
    list->width = random_chance(random, 50) ? 4 : 8;
    list->memory = guarded_new((size_t)(count * list->width), GUARD_END, 0, 0);
}

static void put(struct problem_list *list, int64_t i, int64_t number) {
    if (list->width == 4)
        ((int32_t *)(void *)list->memory.data)[i] = (int32_t)number;
    else
        ((int64_t *)(void *)list->memory.data)[i] = number;
}

static int64_t get(const struct problem_list *list, int64_t i) {
    return list->width == 4 ? ((const int32_t *)(const void *)list->memory.data)[i]
                            : ((const int64_t *)(const void *)list->memory.data)[i];
}

static rapt_index_list described(const struct problem_list *list, bool count) {
    return (rapt_index_list){
        .data = list->memory.data, .index_bytes = list->width, .count = count ? list->count : 0};
}

/* Tokens before the first sequence and after the last one belong to none. */
static int64_t make_offsets(struct problem_list *list, const struct problem *plain,
                            int64_t (*length)(const struct problem *, int64_t), struct random *random) {
    const int64_t batch = plain->call.batch;
    int64_t offset = random_chance(random, 30) ? random_below(random, 4) : 0;
    make_list(list, batch + 1, random);
    for (int64_t b = 0; b <= batch; b++) {
        put(list, b, offset);
        offset += b < batch ? length(plain, b) : 0;
    }
    guarded_make_read_only(&list->memory);
    return offset + (random_chance(random, 30) ? random_below(random, 4) : 0);
}

/* ---- page tables */

static int64_t pages_of(const struct problem *plain, const struct problem_layout *layout, int64_t b) {
    const int64_t keys = problem_kv_length(plain, b);
    return layout->page_kind == RAPT_PAGES_ROW ? keys > 0 : (keys + layout->page_tokens - 1) / layout->page_tokens;
}

/* An entry's index in the list. */
static int64_t entry_number(const struct problem_table *table, int64_t b, int64_t page) {
    return table->kind == RAPT_PAGES_LISTED ? get(&table->offsets, b) + page
           : table->kind == RAPT_PAGES_ROW  ? b
                                            : b * table->columns + page;
}

/* Sequences sometimes share a page, like a prefix. Entries that nothing reads are garbage. */
static void make_table(struct problem_table *table, const struct problem *plain, const struct problem_layout *layout,
                       struct random *random) {
    static const int64_t garbage[] = {-1, INT32_MAX, INT32_MIN, 1000000};
    const int64_t batch = plain->call.batch;
    int64_t total = 0, most = 0;
    for (int64_t b = 0; b < batch; b++) {
        const int64_t count = pages_of(plain, layout, b);
        total += count;
        most = most > count ? most : count;
    }
    table->kind = layout->page_kind;
    table->columns = most + random_below(random, 3);
    table->pages = total + 1 + random_below(random, 3);
    table->page_tokens = layout->page_kind == RAPT_PAGES_ROW ? plain->call.kv_length : layout->page_tokens;
    if (table->kind == RAPT_PAGES_LISTED) {
        int64_t first = random_below(random, 3);
        make_list(&table->offsets, batch + 1, random);
        for (int64_t b = 0; b <= batch; b++) {
            put(&table->offsets, b, first);
            first += b < batch ? pages_of(plain, layout, b) + random_below(random, 2) : 0;
        }
        make_list(&table->entries, first, random);
    } else {
        make_list(&table->entries, table->kind == RAPT_PAGES_ROW ? batch : batch * table->columns, random);
    }
    for (int64_t i = 0; i < table->entries.count; i++)
        put(&table->entries, i, garbage[random_below(random, 4)]);
    int64_t *free_pages = calloc((size_t)table->pages + 1, sizeof *free_pages), next = 0;
    for (int64_t i = 0; i < table->pages; i++) { /* shuffled, or sometimes in order */
        const int64_t other = random_chance(random, 80) ? random_below(random, i + 1) : i;
        free_pages[i] = free_pages[other];
        free_pages[other] = i;
    }
    for (int64_t b = 0; b < batch; b++)
        for (int64_t page = 0; page < pages_of(plain, layout, b); page++)
            put(&table->entries, entry_number(table, b, page), free_pages[next++]);
    free(free_pages);
    guarded_make_read_only(&table->entries.memory);
    if (table->offsets.memory.data)
        guarded_make_read_only(&table->offsets.memory);
}

void draw_tables(struct problem *problem, const struct problem *plain, const struct problem_layout *layout) {
    struct random random = {layout->seed * 77 + 1000};
    struct problem_tables *tables = &problem->tables;
    if (layout->packed & PACKED_QUERIES)
        tables->query_tokens = make_offsets(&tables->query_offsets, plain, problem_query_length, &random);
    if (layout->packed & PACKED_KEYS)
        tables->kv_tokens = make_offsets(&tables->kv_offsets, plain, problem_kv_length, &random);
    for (int side = 0; side < 2 && layout->page_kind; side++)
        make_table(&tables->kv[side], plain, layout, &random);
}

void free_tables(struct problem *problem) {
    struct problem_tables *tables = &problem->tables;
    guarded_free(&tables->query_offsets.memory);
    guarded_free(&tables->kv_offsets.memory);
    for (int side = 0; side < 2; side++) {
        guarded_free(&tables->kv[side].entries.memory);
        guarded_free(&tables->kv[side].offsets.memory);
    }
    for (int name = 0; name < ARRAYS; name++)
        free(problem->arrays[name].places);
}

/* ---- places */

void shape_in_memory(const struct problem *problem, enum array_name name, int64_t count[4]) {
    const struct problem_table *table = &problem->tables.kv[side_of(name)];
    logical_counts(&problem->call, name, count);
    if (is_kv_side(name) && table->kind) {
        count[0] = table->pages;
        count[2] = table->page_tokens;
    } else {
        count[0] = 1;
        count[2] = is_kv_side(name) ? problem->tables.kv_tokens : problem->tables.query_tokens;
    }
}

/* Bytes from token 0 of batch or page 0 to a token. */
static int64_t place(const struct problem *problem, const struct problem *plain, enum array_name name,
                     const int64_t stride[4], int64_t b, int64_t token) {
    const struct problem_tables *tables = &problem->tables;
    const struct problem_table *table = &tables->kv[side_of(name)];
    if (token >= (is_kv_side(name) ? problem_kv_length(plain, b) : problem_query_length(plain, b)))
        return NO_PLACE;
    if (!is_kv_side(name) || !table->kind)
        return (get(is_kv_side(name) ? &tables->kv_offsets : &tables->query_offsets, b) + token) * stride[2];
    const int64_t page = get(&table->entries, entry_number(table, b, token / table->page_tokens));
    return page * stride[0] + token % table->page_tokens * stride[2];
}

void set_places(const struct problem *problem, const struct problem *plain, struct problem_array *array,
                enum array_name name) {
    logical_counts(&problem->call, name, array->count);
    const int64_t tokens = array->count[2];
    array->places = malloc((size_t)(array->count[0] * tokens + 1) * sizeof *array->places);
    if (!array->places) {
        perror("places");
        exit(1);
    }
    for (int64_t b = 0; b < array->count[0]; b++)
        for (int64_t token = 0; token < tokens; token++)
            array->places[b * tokens + token] = place(problem, plain, name, array->stride_bytes, b, token);
}

void copy_packed_trees(const struct problem *plain, struct problem *problem) {
    const struct problem_array *from = &plain->arrays[ARRAY_TREE_MASKS], *to = &problem->arrays[ARRAY_TREE_MASKS];
    const int64_t bytes = from->element_bytes;
    for (int64_t b = 0; b < plain->call.batch; b++)
        memcpy(to->memory.data + get(&problem->tables.query_offsets, b) * bytes,
               from->memory.data + b * plain->call.query_length * bytes,
               (size_t)(problem_query_length(plain, b) * bytes));
}

/* ---- the descriptor */

static rapt_page_table described_table(const struct problem_table *table, bool count) {
    rapt_page_table result = {0};
    if (!table->kind)
        return result;
    result.kind = table->kind;
    result.pages = table->pages;
    result.page_tokens = table->kind == RAPT_PAGES_ROW ? 0 : table->page_tokens;
    result.entries = described(&table->entries, count || table->kind == RAPT_PAGES_LISTED);
    if (table->kind == RAPT_PAGES_DENSE) {
        result.entries.count = table->columns;
        result.batch_stride_bytes = table->columns * table->entries.width;
    }
    if (table->kind == RAPT_PAGES_LISTED)
        result.offsets = described(&table->offsets, count);
    return result;
}

void describe_tables(struct problem *problem, const struct problem_layout *layout) {
    const struct problem_tables *tables = &problem->tables;
    const bool count = layout->seed % 2;
    rapt_attention_desc *desc = &problem->desc;
    if (tables->query_offsets.memory.data) {
        desc->query_lengths = (rapt_index_list){0};
        desc->query_offsets = described(&tables->query_offsets, count);
        desc->query_tokens = tables->query_tokens;
    }
    if (tables->kv_offsets.memory.data) {
        desc->kv_lengths = (rapt_index_list){0};
        desc->kv_offsets = described(&tables->kv_offsets, count);
        desc->kv_tokens = tables->kv_tokens;
    }
    desc->key_pages = described_table(&tables->kv[0], count);
    desc->value_pages = described_table(&tables->kv[problem->call.use & USE_VIEW ? 0 : 1], count);
}
