/* SPDX-License-Identifier: MIT */
#include "tokens.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "tool.h"

struct token_list tokens_read(const char *path, int64_t most) {
    FILE *file = fopen(path, "r");
    if (file == NULL) tool_die("%s: %s", path, strerror(errno));
    struct token_list tokens = {tool_allocate(most, sizeof(char *), path), 0};
    char *line = NULL;
    size_t bytes = 0;
    for (ssize_t length; (length = getline(&line, &bytes, file)) >= 0; tokens.count++) {
        if (tokens.count >= most) continue;
        line[strcspn(line, "\r\n")] = '\0';
        tokens.texts[tokens.count] = strcpy(tool_allocate((int64_t)length, 1, path), line);
    }
    if (!feof(file)) tool_die("%s: %s", path, strerror(errno));
    free(line);
    fclose(file);
    return tokens;
}

/* Unicode's marks that change the direction of all that follows in a line. */
static bool turns_lines(wchar_t character) {
    return (character >= 0x202A && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069);
}

struct token_step tokens_step(const char *text) {
    mbstate_t state = {0};
    wchar_t character;
    size_t length = mbrtowc(&character, text, strnlen(text, MB_LEN_MAX), &state);
    if (length == (size_t)-1 || length == (size_t)-2) return (struct token_step){1, -1};
    return (struct token_step){length, turns_lines(character) ? -1 : wcwidth(character)};
}

static int shown_columns(struct token_step step) {
    return step.columns < 0 ? 1 : step.columns;
}

int tokens_columns(const char *text) {
    int columns = 0;
    for (struct token_step step; *text; text += step.bytes) {
        step = tokens_step(text);
        columns += shown_columns(step);
    }
    return columns;
}

void tokens_print(const char *text, int columns, bool right) {
    const char *end = text;
    int used = 0;
    for (struct token_step step; *end; end += step.bytes) {
        step = tokens_step(end);
        if (used + shown_columns(step) > columns) break;
        used += shown_columns(step);
    }
    if (right) printf("%*s", columns - used, "");
    for (struct token_step step; text < end; text += step.bytes) {
        step = tokens_step(text);
        if (step.columns < 0)
            putchar('?');
        else
            fwrite(text, 1, step.bytes, stdout);
    }
    if (!right) printf("%*s", columns - used, "");
}
