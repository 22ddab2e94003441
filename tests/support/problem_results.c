/* SPDX-License-Identifier: MIT
 * What a call has written: results, and nothing else. */
#include <stdio.h>
#include <stdlib.h>

#include "support/problem_data.h"
#include "support/stored.h"

static const char *const output_names[] = {"out", "lse", "weights", "final_state"};

void problem_reset(struct problem *problem) {
    for (enum array_name name = ARRAY_OUT; name < ARRAYS; name++)
        if (problem->arrays[name].memory.data)
            memset(problem->arrays[name].memory.data, CANARY, problem->arrays[name].memory.bytes);
}

/* Results are the rows below the query lengths. Advances to the next; false if there is none. */
struct row {
    const struct problem *problem;
    enum array_name name;
    int64_t b, h, i;
};

static bool next_row(struct row *row) {
    const struct problem_call *call = &row->problem->call;
    for (row->i++; row->name < ARRAYS; row->name++, row->b = row->h = row->i = 0) {
        if (!row->problem->arrays[row->name].memory.data)
            continue;
        for (; row->b < call->batch; row->b++, row->h = 0)
            for (; row->h < call->query_heads; row->h++, row->i = 0)
                if (row->i < problem_query_length(row->problem, row->b))
                    return true;
    }
    return false;
}

static struct row before_rows(const struct problem *problem) { return (struct row){problem, ARRAY_OUT, 0, 0, -1}; }

static char *bytes_of(const struct row *row, const struct problem *problem) {
    return problem_at(&problem->arrays[row->name], row->b, row->h, row->i);
}

static int64_t numbers_in(const struct row *row) { return row->problem->arrays[row->name].count[3]; }

static size_t bytes_in(const struct row *row) {
    return (size_t)(numbers_in(row) * row->problem->arrays[row->name].element_bytes);
}

/* The bits of a result; a 16-bit type's are the upper half. */
static uint32_t word_at(const struct row *row, const struct problem *problem, int64_t i) {
    const char *bytes = bytes_of(row, problem);
    uint32_t word;
    uint16_t half;
    memcpy(&half, bytes + 2 * i, sizeof half);
    if (problem->arrays[row->name].element_bytes == 2)
        return (uint32_t)half << 16;
    memcpy(&word, bytes + 4 * i, sizeof word);
    return word;
}

bool problem_same(const struct problem *got, const struct problem *expected) {
    for (struct row row = before_rows(expected); next_row(&row);)
        for (int64_t i = 0; i < numbers_in(&row); i++) {
            const uint32_t x = word_at(&row, got, i), y = word_at(&row, expected, i);
            if (same_bits(float_of(x), float_of(y), NAN_CANONICAL))
                continue;
            fprintf(stderr,
                    "%s of sequence %lld, head %lld, query %lld, element %lld: got %a (%08x), expected %a (%08x)\n%s\n",
                    output_names[row.name - ARRAY_OUT], (long long)row.b, (long long)row.h, (long long)row.i,
                    (long long)i, (double)float_of(x), x, (double)float_of(y), y, problem_text(&expected->call));
            return false;
        }
    return true;
}

uint64_t problem_hash(uint64_t hash, const struct problem *problem) {
    for (struct row row = before_rows(problem); next_row(&row);)
        for (int64_t i = 0; i < numbers_in(&row); i++)
            hash = hash_word(hash, word_at(&row, problem, i));
    return hash;
}

/* ---- unwritten bytes */

static bool is_canary(const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if ((unsigned char)bytes[i] != CANARY)
            return false;
    return true;
}

/* Whether all output bytes outside of results are canaries, by copies without the results. */
static bool gaps_are_clean(const struct problem *problem) {
    char *copies[ARRAYS] = {NULL};
    bool clean = true;
    for (enum array_name name = ARRAY_OUT; name < ARRAYS; name++) {
        const struct guarded *memory = &problem->arrays[name].memory;
        copies[name] = calloc(memory->bytes + 1, 1);
        if (memory->data)
            memcpy(copies[name], memory->data, memory->bytes);
    }
    for (struct row row = before_rows(problem); next_row(&row);) {
        const char *data = problem->arrays[row.name].memory.data;
        memset(copies[row.name] + (bytes_of(&row, problem) - data), CANARY, bytes_in(&row));
    }
    for (enum array_name name = ARRAY_OUT; name < ARRAYS; name++) {
        clean = clean && is_canary(copies[name], problem->arrays[name].memory.bytes);
        free(copies[name]);
    }
    return clean;
}

bool problem_is_clean(const struct problem *problem) {
    for (int name = 0; name < ARRAYS; name++)
        if (problem->arrays[name].memory.data && !guarded_is_clean(&problem->arrays[name].memory)) {
            fprintf(stderr, "bytes beside array %d were written\n%s\n", name, problem_text(&problem->call));
            return false;
        }
    if (!gaps_are_clean(problem)) {
        fprintf(stderr, "bytes between results were written\n%s\n", problem_text(&problem->call));
        return false;
    }
    return true;
}

bool problem_is_untouched(const struct problem *problem) {
    for (enum array_name name = ARRAY_OUT; name < ARRAYS; name++)
        if (!is_canary(problem->arrays[name].memory.data, problem->arrays[name].memory.bytes))
            return false;
    return true;
}

const char *problem_text(const struct problem_call *call) {
    static const char *const data[] = {"normal",   "huge rows", "NaN rows", "infinite", "minus infinite",
                                       "denormal", "special",   "loud",     "big",      "tiny",
                                       "small"};
    static const char *const uses[] = {"scale",          "softcap", "causal", "window",        "alibi",
                                       "standard alibi", "mask",    "fill",   "bias",          "factor",
                                       "keep",           "sinks",   "lse",    "query_lengths", "kv_lengths",
                                       "key_position",   "weights", "view",   "initial_state", "final_state",
                                       "no out",         "query 16", "bias 16", "out 16",      "tree",
                                       "blocks",         "sparse"};
    static char text[600];
    int length = snprintf(
        text, sizeof text,
        "seed %llu: batch %lld, heads %lld/%lld, lengths %lld/%lld, dims %lld/%lld, data %s, origin %d, "
        "weights_kind %d, order %d, %s keys, %s values, with",
        (unsigned long long)call->seed, (long long)call->batch, (long long)call->query_heads,
        (long long)call->kv_heads, (long long)call->query_length, (long long)call->kv_length,
        (long long)call->head_dim, (long long)call->value_dim, data[call->data], call->origin, call->weights_kind,
        call->numerics ? call->numerics : 1, stored_name(call->key_format), stored_name(call->value_format));
    for (int use = 0; use < USE_COUNT; use++)
        if (call->use >> use & 1)
            length += snprintf(text + length, sizeof text - (size_t)length, " %s", uses[use]);
    return text;
}
