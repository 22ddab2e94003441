/* SPDX-License-Identifier: MIT */
#include "files/npy_parse.h"

#include <string.h>

struct cursor {
    const char *at, *end;
};

static char peek(struct cursor *cursor) {
    while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) && *cursor->at) cursor->at++;
    return cursor->at < cursor->end ? *cursor->at : '\0';
}

static bool take(struct cursor *cursor, char expected) {
    if (peek(cursor) != expected || expected == '\0') return false;
    cursor->at++;
    return true;
}

static bool take_word(struct cursor *cursor, const char *word) {
    size_t length = strlen(word);
    peek(cursor);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length) != 0) return false;
    cursor->at += length;
    return true;
}

/* A quoted string without escapes. */
static bool take_string(struct cursor *cursor, char *text, size_t text_bytes) {
    char quote = peek(cursor);
    if (quote != '\'' && quote != '"') return false;
    const char *begin = ++cursor->at;
    while (cursor->at < cursor->end && *cursor->at != quote) cursor->at++;
    size_t length = (size_t)(cursor->at - begin);
    if (cursor->at == cursor->end || length >= text_bytes) return false;
    memcpy(text, begin, length);
    text[length] = '\0';
    cursor->at++;
    return true;
}

static const char *take_dimension(struct cursor *cursor, int64_t *dimension) {
    if (peek(cursor) == '-') return "a dimension is negative";
    const char *begin = cursor->at;
    *dimension = 0;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
        if (__builtin_mul_overflow(*dimension, 10, dimension) ||
            __builtin_add_overflow(*dimension, *cursor->at - '0', dimension)) {
            return "a dimension overflows 64 bits";
        }
    }
    return cursor->at == begin ? "the shape is not a tuple of integers" : NULL;
}

static const char *take_shape(struct cursor *cursor, struct npy_parsed *parsed) {
    if (!take(cursor, '(')) return "the shape is not a tuple of integers";
    for (parsed->dims = 0; !take(cursor, ')'); parsed->dims++) {
        if (parsed->dims == NPY_MAX_DIMS) return "it has more than 6 dimensions";
        const char *wrong = take_dimension(cursor, &parsed->shape[parsed->dims]);
        if (wrong) return wrong;
        if (!take(cursor, ',') && peek(cursor) != ')') return "the shape is not a tuple of integers";
    }
    return NULL;
}

enum { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4, SEEN_ALL = 7 };

static const char *take_entry(struct cursor *cursor, struct npy_parsed *parsed, int *seen) {
    char key[16];
    if (!take_string(cursor, key, sizeof key) || !take(cursor, ':'))
        return "the header is not a dict of strings";
    if (strcmp(key, "descr") == 0) {
        *seen |= SEEN_DESCR;
        if (peek(cursor) == '[') return "structured types are not supported";
        return take_string(cursor, parsed->descr, sizeof parsed->descr) ? NULL
                                                                        : "'descr' is not a short string";
    }
    if (strcmp(key, "fortran_order") == 0) {
        *seen |= SEEN_ORDER;
        parsed->fortran_order = take_word(cursor, "True");
        return parsed->fortran_order || take_word(cursor, "False") ? NULL
                                                                   : "'fortran_order' is not True or False";
    }
    if (strcmp(key, "shape") == 0) {
        *seen |= SEEN_SHAPE;
        return take_shape(cursor, parsed);
    }
    return "the header has an unknown key";
}

const char *npy_parse(const char *text, size_t text_bytes, struct npy_parsed *parsed) {
    struct cursor cursor = {text, text + text_bytes};
    int seen = 0;
    if (!take(&cursor, '{')) return "the header is not a dict";
    while (!take(&cursor, '}')) {
        const char *wrong = take_entry(&cursor, parsed, &seen);
        if (wrong) return wrong;
        if (!take(&cursor, ',') && peek(&cursor) != '}') return "the header is not a dict";
    }
    if (peek(&cursor) != '\0' || cursor.at != cursor.end) return "the header goes on after its dict";
    return seen == SEEN_ALL ? NULL : "the header lacks 'descr', 'fortran_order' or 'shape'";
}
