/* SPDX-License-Identifier: MIT
 * Every C block of the pages (```c) appears, line for line, in a program of examples/, which other tests compile and
 * run. Usage: test_snippets PAGE.md... PROGRAM.c... */
#define _DEFAULT_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"

enum { LINE = 256, BLOCK = 8192 };

static char **files;
static int file_count;

static bool is_page(const char *path) {
    const size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".md") == 0;
}

/* Appends a line without its indentation. */
static void add_line(char *text, size_t room, const char *line) {
    const size_t used = strlen(text);
    line += strspn(line, " ");
    assert_true(used + strlen(line) < room);
    memcpy(text + used, line, strlen(line) + 1);
}

/* A program's text without indentation. It starts with a newline, so that blocks match from a line's start. */
static char *read_program(const char *path) {
    enum { ROOM = 1 << 16 };
    char line[LINE], *text = calloc(ROOM, 1);
    FILE *file = fopen(path, "r");
    assert_non_null(text);
    assert_non_null(file);
    add_line(text, ROOM, "\n");
    while (fgets(line, sizeof line, file)) add_line(text, ROOM, line);
    fclose(file);
    return text;
}

static bool stands_in_a_program(const char *block) {
    bool found = false;
    for (int i = 0; i < file_count && !found; i++) {
        if (is_page(files[i])) continue;
        char *text = read_program(files[i]);
        found = strstr(text, block) != NULL;
        free(text);
    }
    return found;
}

/* Returns the page's number of blocks. */
static int check_page(const char *path) {
    char line[LINE], block[BLOCK] = "";
    bool inside = false;
    int blocks = 0, number = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        number++;
        if (!inside && strcmp(line, "```c\n") == 0) {
            inside = true;
            strcpy(block, "\n");
        } else if (inside && strncmp(line, "```", 3) == 0) {
            inside = false;
            blocks++;
            if (strlen(block) < 2 || !stands_in_a_program(block))
                fail_msg("%s: the block that ends at line %d is in no program:\n%s", path, number, block);
        } else if (inside) {
            add_line(block, sizeof block, line);
        }
    }
    fclose(file);
    assert_false(inside);
    return blocks;
}

static void test_blocks_are_compiled(void **state) {
    (void)state;
    for (int i = 0; i < file_count; i++)
        if (is_page(files[i]) && check_page(files[i]) == 0) fail_msg("%s shows no C", files[i]);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks_are_compiled)};
    if (count < 3) {
        fputs("usage: test_snippets PAGE.md... PROGRAM.c...\n", stderr);
        return 2;
    }
    files = arguments + 1;
    file_count = count - 1;
    return cmocka_run_group_tests_name("snippets", tests, NULL, NULL);
}
