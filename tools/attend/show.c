/* SPDX-License-Identifier: MIT */
#include "attend/show.h"

#include <langinfo.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/tool.h"

enum { STRONGEST = 3, LABEL_COLUMNS = 12, KEY_COLUMNS = 10, BAR_COLUMNS = 5 };

/* Eighths of a cell if the terminal has them. */
static void print_bar(double weight, bool last) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    bool unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    int filled = (int)(weight * BAR_COLUMNS * 8 + 0.5), cells = unicode ? filled / 8 : (filled + 4) / 8;
    for (int i = 0; i < cells; i++) fputs(unicode ? "█" : "#", stdout);
    bool part = unicode && filled % 8 != 0;
    if (part) fputs(eighths[filled % 8], stdout);
    if (!last) printf("%*s", BAR_COLUMNS - cells - part, "");
}

struct token_list show_load(const struct problem *problem, const struct attend_options *options) {
    const rapt_attention_desc *desc = &problem->desc;
    const int64_t b = options->show_batch.value;
    option_index("show-batch", b, &problem->query, desc->batch, "sequence");
    option_index("show-head", options->show_head.value, &problem->query, desc->query_heads, "head");
    struct token_list tokens = tokens_read(options->tokens, desc->kv_length);
    if (tokens.count > desc->kv_length) {
        tool_die("%s: more lines than the %lld keys", options->tokens, (long long)desc->kv_length);
    }
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

static bool has_nan(const float *weights, int64_t count) {
    bool found = false;
    for (int64_t j = 0; j < count; j++) found = found || isnan(weights[j]);
    return found;
}

static void print_row(const float *weights, int64_t kv_length, const char *label, struct token_list tokens) {
    int64_t keys[STRONGEST];
    int found = find_strongest(weights, kv_length, keys);
    tokens_print(label, LABEL_COLUMNS, true);
    for (int k = 0; k < found; k++) {
        fputs(k ? " " : "  ", stdout);
        tokens_print(tokens.texts[keys[k]], KEY_COLUMNS, false);
        printf(" %3.0f%% ", 100 * (double)weights[keys[k]]);
        print_bar((double)weights[keys[k]], k == found - 1);
    }
    puts(found ? "" : has_nan(weights, kv_length) ? "  (NaN)" : "  (sees no key)");
}

void show_print(const struct problem *problem, const struct attend_options *options,
                struct token_list tokens) {
    const rapt_attention_desc *desc = &problem->desc;
    int64_t b = options->show_batch.value, head = options->show_head.value;
    int64_t kv_length = problem_kv_length(problem, b), position = problem_query_position(problem, b);
    /* Equally many queries and keys are the same words, even if padding shortens the keys. */
    if (desc->query_origin == RAPT_ORIGIN_UNSTATED && desc->query_length != desc->kv_length) {
        position = kv_length - problem_query_length(problem, b);
    }
    const float *weights = (const float *)problem->weights.data +
                           (b * desc->query_heads + head) * desc->query_length * desc->kv_length;
    printf("\nHead %lld: each word, and the words that it attends to most\n\n", (long long)head);
    for (int64_t i = 0; i < problem_query_length(problem, b); i++, weights += desc->kv_length) {
        int64_t own = position + i;
        bool named = own >= 0 && own < tokens.count;
        char number[32];
        snprintf(number, sizeof number, "query %lld", (long long)i);
        print_row(weights, kv_length, named ? tokens.texts[own] : number, tokens);
    }
}
