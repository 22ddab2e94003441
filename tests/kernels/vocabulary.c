/* SPDX-License-Identifier: MIT
 * The vector vocabulary as a list: what src/generic/README.md lists under Operations, every simd.h defines and the test
 * of vectors calls; and bodies use nothing else. Argument: the source root. */
#define _DEFAULT_SOURCE
#include <ctype.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"

enum { MOST_NAMES = 256, MOST_BYTES = 1 << 18 };

struct names {
    char name[MOST_NAMES][64];
    int count;
};

static const char *root;

static char *read_text(const char *path) {
    char *text = calloc(MOST_BYTES, 1);
    FILE *file = fopen(path, "r");
    if (!file || !text)
        fail_msg("%s: cannot be read", path);
    assert_true(fread(text, 1, MOST_BYTES - 1, file) < MOST_BYTES - 1);
    fclose(file);
    return text;
}

static bool has(const struct names *names, const char *name) {
    for (int i = 0; i < names->count; i++)
        if (strcmp(names->name[i], name) == 0)
            return true;
    return false;
}

static void add(struct names *names, const char *name, size_t length) {
    char copy[64] = "";
    assert_true(length < sizeof copy && names->count < MOST_NAMES);
    memcpy(copy, name, length);
    if (!has(names, copy))
        memcpy(names->name[names->count++], copy, sizeof copy);
}

/* Adds v_... and s_..., all or only those before a parenthesis. */
static void add_names(struct names *names, const char *begin, const char *end, bool all) {
    for (const char *p = begin; p + 2 < end; p++) {
        const bool is_first = p == begin || !(isalnum((unsigned char)p[-1]) || p[-1] == '_');
        if (!is_first || (*p != 'v' && *p != 's') || p[1] != '_')
            continue;
        const char *last = p;
        while (last < end && (isalnum((unsigned char)*last) || *last == '_'))
            last++;
        if (all || (last < end && *last == '('))
            add(names, p, (size_t)(last - p));
    }
}

/* Names in the first line of functions and macros, macro parameters included: compilers check the rest. */
static void add_definitions(struct names *names, const char *text) {
    for (const char *line = text; *line;) {
        const char *end = strchr(line, '\n');
        end = end ? end : line + strlen(line);
        if (isalpha((unsigned char)*line) || *line == '#')
            add_names(names, line, end, true);
        line = *end ? end + 1 : end;
    }
}

/* The table's left column. */
static struct names operations(void) {
    struct names names = {.count = 0};
    char path[1024];
    snprintf(path, sizeof path, "%s/src/generic/README.md", root);
    char *text = read_text(path), *line = strstr(text, "\n## Operations\n"), *end = strstr(text, "\n## Constants\n");
    assert_true(line && end && line < end);
    while ((line = strstr(line, "\n| `")) && line < end) {
        char *cell_end = strstr(line + 3, " | ");
        assert_non_null(cell_end);
        add_names(&names, line, cell_end, false);
        line = cell_end;
    }
    assert_in_range(names.count, 50, MOST_NAMES);
    free(text);
    return names;
}

/* The files of a pattern below the root, at least one. */
static glob_t files_of(const char *pattern) {
    char path[1024];
    glob_t files;
    snprintf(path, sizeof path, "%s/%s", root, pattern);
    assert_int_equal(glob(path, 0, NULL, &files), 0);
    return files;
}

static void expect_all(const struct names *expected, const struct names *names, const char *where) {
    for (int i = 0; i < expected->count; i++)
        if (!has(names, expected->name[i]))
            fail_msg("%s has no %s", where, expected->name[i]);
}

/* simd.h and the headers next to it. */
static struct names defined_beside(const char *simd) {
    struct names names = {.count = 0};
    char pattern[1024];
    glob_t headers;
    snprintf(pattern, sizeof pattern, "%.*s/*.h", (int)(strrchr(simd, '/') - simd), simd);
    assert_int_equal(glob(pattern, 0, NULL, &headers), 0);
    for (size_t i = 0; i < headers.gl_pathc; i++) {
        char *text = read_text(headers.gl_pathv[i]);
        add_definitions(&names, text);
        free(text);
    }
    globfree(&headers);
    return names;
}

static void test_every_simd_has_it(void **state) {
    static const char *const patterns[] = {"src/scalar/simd.h", "src/*/*/simd.h"};
    const struct names expected = operations();
    int count = 0;
    for (int i = 0; i < 2; i++) {
        glob_t files = files_of(patterns[i]);
        for (size_t f = 0; f < files.gl_pathc; f++, count++) {
            const struct names names = defined_beside(files.gl_pathv[f]);
            expect_all(&expected, &names, files.gl_pathv[f]);
        }
        globfree(&files);
    }
    assert_true(count >= 4);
    (void)state;
}

static void test_vectors_call_it(void **state) {
    const struct names expected = operations();
    struct names names = {.count = 0};
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/kernels/vectors_table.c", root);
    char *text = read_text(path);
    add_names(&names, text, text + strlen(text), false);
    expect_all(&expected, &names, "the test of vectors (vectors_table.c)");
    free(text);
    (void)state;
}

/* Bodies may call what the list has, and what bodies define. */
static void test_bodies_use_nothing_else(void **state) {
    struct names known = operations(), used = {.count = 0};
    glob_t files = files_of("src/generic/*.h");
    for (size_t f = 0; f < files.gl_pathc; f++) {
        char *text = read_text(files.gl_pathv[f]);
        add_definitions(&known, text);
        add_names(&used, text, text + strlen(text), false);
        free(text);
    }
    globfree(&files);
    expect_all(&used, &known, "the list of operations (src/generic/README.md)");
    (void)state;
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_simd_has_it),
        cmocka_unit_test(test_vectors_call_it),
        cmocka_unit_test(test_bodies_use_nothing_else),
    };
    if (count != 2) {
        fputs("usage: test_vocabulary ROOT\n", stderr);
        return 2;
    }
    root = arguments[1];
    return cmocka_run_group_tests_name("vocabulary", tests, NULL, NULL);
}
