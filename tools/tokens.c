/* SPDX-License-Identifier: MIT */
#include "tokens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "tool.h"

struct token_list tokens_read(const char *path, int64_t most) {
    FILE *file = tool_open(path);
    struct token_list tokens = {tool_allocate(most, sizeof(char *), path), 0};
    char *line = NULL;
    size_t bytes = 0;
    for (ssize_t length; (length = getline(&line, &bytes, file)) >= 0; tokens.count++) {
        if (tokens.count >= most) continue;
        line[strcspn(line, "\r\n")] = '\0';
        tokens.texts[tokens.count] = strcpy(tool_allocate((int64_t)length, 1, path), line);
    }
    if (!feof(file)) tool_die_of_file(path, errno);
    free(line);
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
