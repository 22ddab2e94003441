/* SPDX-License-Identifier: MIT */
#include "show.h"

#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "tool.h"

enum { STRONGEST = 3, LABEL_COLUMNS = 12, KEY_COLUMNS = 10, BAR_COLUMNS = 5 };

/* Copies at most columns terminal columns of text; what can not be shown becomes a question mark. Returns how
 * many. */
static int copy_columns(char *to, const char *text, int columns) {
    mbstate_t state = {0};
    int used = 0;
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        wchar_t character;
        length = mbrtowc(&character, text, left, &state);
        bool legal = length != (size_t)-1 && length != (size_t)-2;
        int width = legal ? wcwidth(character) : -1;
        if (!legal) {
            length = 1;
            memset(&state, 0, sizeof state);
        }
        if (used + (width < 0 ? 1 : width) > columns) break;
        if (width < 0) {
            *to++ = '?';
        } else {
            memcpy(to, text, length);
            to += length;
        }
        used += width < 0 ? 1 : width;
    }
    *to = '\0';
    return used;
}

static void print_padded(const char *text, int columns, bool right) {
    char shown[LABEL_COLUMNS * MB_LEN_MAX * 4 + 1];
    if (strlen(text) > sizeof shown - 1) text = "(long)";
    int used = copy_columns(shown, text, columns);
    if (right) printf("%*s", columns - used, "");
    fputs(shown, stdout);
    if (!right) printf("%*s", columns - used, "");
}

/* Eighths of a cell where the terminal has them. */
static void print_bar(double weight, bool last) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    bool unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    int filled = (int)(weight * BAR_COLUMNS * 8 + 0.5), cells = unicode ? filled / 8 : (filled + 4) / 8;
    for (int i = 0; i < cells; i++) fputs(unicode ? "█" : "#", stdout);
    bool part = unicode && filled % 8 != 0;
    if (part) fputs(eighths[filled % 8], stdout);
    if (!last) printf("%*s", BAR_COLUMNS - cells - part, "");
}

static struct show_tokens read_lines(const char *path, int64_t most) {
    FILE *file = fopen(path, "r");
    if (file == NULL) tool_die("%s: %s", path, strerror(errno));
    struct show_tokens tokens = {tool_allocate(most, sizeof(char *), path), 0};
    char *line = NULL;
    size_t bytes = 0;
    for (ssize_t length; (length = getline(&line, &bytes, file)) >= 0; tokens.count++) {
        if (tokens.count == most) tool_die("%s: more lines than the %lld keys", path, (long long)most);
        line[strcspn(line, "\r\n")] = '\0';
        tokens.texts[tokens.count] = strcpy(tool_allocate((int64_t)length, 1, path), line);
    }
    if (!feof(file)) tool_die("%s: %s", path, strerror(errno));
    free(line);
    fclose(file);
    return tokens;
}

struct show_tokens show_load(const struct problem *problem, const struct attend_options *options) {
    const rapt_attention_desc *desc = &problem->desc;
    int64_t b = options->show_batch.value, head = options->show_head.value;
    if (b < 0 || b >= desc->batch)
        tool_die("--show-batch: there are %lld sequences, from 0", (long long)desc->batch);
    if (head < 0 || head >= desc->query_heads) {
        tool_die("--show-head: there are %lld heads, from 0", (long long)desc->query_heads);
    }
    struct show_tokens tokens = read_lines(options->tokens, desc->kv_length);
    int64_t kv_length = problem_kv_length(problem, b);
    if (tokens.count < kv_length) {
        tool_die("%s: %lld lines for %lld keys", options->tokens, (long long)tokens.count,
                 (long long)kv_length);
    }
    return tokens;
}

/* The count largest of weights, largest first, into keys. */
static int find_strongest(const float *weights, int64_t count, int64_t keys[STRONGEST]) {
    int found = 0;
    for (int64_t j = 0; j < count; j++) {
        if (!(weights[j] > 0)) continue;
        int place = found;
        while (place > 0 && weights[j] > weights[keys[place - 1]]) place--;
        if (place == STRONGEST) continue;
        if (found < STRONGEST) found++;
        for (int k = found - 1; k > place; k--) keys[k] = keys[k - 1];
        keys[place] = j;
    }
    return found;
}

static void print_row(const float *weights, int64_t kv_length, const char *label, struct show_tokens tokens) {
    int64_t keys[STRONGEST];
    int found = find_strongest(weights, kv_length, keys);
    print_padded(label, LABEL_COLUMNS, true);
    for (int k = 0; k < found; k++) {
        fputs(k ? " " : "  ", stdout);
        print_padded(tokens.texts[keys[k]], KEY_COLUMNS, false);
        printf(" %3.0f%% ", 100 * (double)weights[keys[k]]);
        print_bar((double)weights[keys[k]], k == found - 1);
    }
    puts(found ? "" : "  (sees no key)");
}

void show_print(const struct problem *problem, const struct attend_options *options,
                struct show_tokens tokens) {
    const rapt_attention_desc *desc = &problem->desc;
    int64_t b = options->show_batch.value, head = options->show_head.value;
    int64_t kv_length = problem_kv_length(problem, b), position = problem_query_position(problem, b);
    /* As many queries as keys are the same words, also where padding shortens the keys. */
    if (desc->query_origin == RAPT_ORIGIN_UNSTATED && desc->query_length != desc->kv_length) {
        position = kv_length - desc->query_length;
    }
    const float *weights = (const float *)problem->weights.data +
                           (b * desc->query_heads + head) * desc->query_length * desc->kv_length;
    printf("\nHead %lld: each word, and the words that it attends to most\n\n", (long long)head);
    for (int64_t i = 0; i < desc->query_length; i++, weights += desc->kv_length) {
        int64_t own = position + i;
        bool named = own >= 0 && own < tokens.count;
        char number[32];
        snprintf(number, sizeof number, "query %lld", (long long)i);
        print_row(weights, kv_length, named ? tokens.texts[own] : number, tokens);
    }
}
