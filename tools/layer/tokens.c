/* SPDX-License-Identifier: MIT */
#include "layer/tokens.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "common/tool.h"

enum { MOST_BYTES = 1 << 20, FURTHER_LINES = 1 << 20 }; /* more is no list of tokens: a device, a pipe */

/* The next line, without its end, \n or \r\n; false if there is none. */
static bool read_line(FILE *file, const char *path, char line[MOST_BYTES + 1]) {
    int length = 0, byte;
    while ((byte = getc(file)) != EOF && byte != '\n') {
        if (length == MOST_BYTES) tool_die("%s: a line has more than %d bytes", path, MOST_BYTES);
        line[length++] = (char)byte;
    }
    if (ferror(file)) tool_die_of_file(path, errno);
    const bool is_line = length > 0 || byte != EOF;
    if (length > 0 && line[length - 1] == '\r') length--;
    line[length] = '\0';
    return is_line;
}

struct token_list tokens_read(const char *path, int64_t most) {
    FILE *file = tool_open(path);
    struct token_list tokens = {tool_allocate(most, sizeof(char *), path), 0};
    static char line[MOST_BYTES + 1];
    for (; read_line(file, path, line); tokens.count++) {
        if (tokens.count >= most + FURTHER_LINES) tool_die("%s: more than %lld lines", path, (long long)tokens.count);
        if (tokens.count >= most) continue;
        tokens.texts[tokens.count] = strcpy(tool_allocate((int64_t)strlen(line) + 1, 1, path), line);
    }
    fclose(file);
    return tokens;
}

static int shown_columns(struct text_step step) {
    return step.columns < 0 ? 1 : step.columns;
}

int tokens_columns(const char *text) {
    int columns = 0;
    for (struct text_step step; *text; text += step.bytes) {
        step = text_step(text);
        columns += shown_columns(step);
    }
    return columns;
}

void tokens_print(const char *text, int columns, bool right) {
    const char *end = text;
    int used = 0;
    for (struct text_step step; *end; end += step.bytes) {
        step = text_step(end);
        if (used + shown_columns(step) > columns) break;
        used += shown_columns(step);
    }
    if (right) printf("%*s", columns - used, "");
    for (struct text_step step; text < end; text += step.bytes) {
        step = text_step(text);
        if (step.columns < 0)
            putchar('?');
        else
            fwrite(text, 1, step.bytes, stdout);
    }
    if (!right) printf("%*s", columns - used, "");
}
