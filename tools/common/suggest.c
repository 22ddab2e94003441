/* SPDX-License-Identifier: MIT */
#include "common/suggest.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 32 };

static int least(int a, int b) {
    return a < b ? a : b;
}

/* Letters inserted, deleted, replaced or swapped with a neighbour (optimal string alignment). */
static int distance(const char *a, int a_length, const char *b, int b_length) {
    int table[LONGEST + 1][LONGEST + 1];
    for (int i = 0; i <= a_length; i++) {
        for (int j = 0; j <= b_length; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = i + j;
                continue;
            }
            const int replaced = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            table[i][j] = least(replaced, 1 + least(table[i - 1][j], table[i][j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                table[i][j] = least(table[i][j], table[i - 2][j - 2] + 1);
        }
    }
    return table[a_length][b_length];
}

void suggest_consider(struct suggestion *suggestion, const char *name) {
    const size_t given = strlen(suggestion->given), length = strlen(name);
    if (given < 2 || given > LONGEST || length > LONGEST) return;
    int apart = distance(suggestion->given, (int)given, name, (int)length);
    if (given < length && strncmp(suggestion->given, name, given) == 0) apart = 1;
    if (apart > 1 + (int)length / 4) return;
    if (suggestion->nearest && suggestion->distance <= apart) return;
    suggestion->nearest = name;
    suggestion->distance = apart;
}

const char *suggest_text(const struct suggestion *suggestion, const char *prefix, char text[SUGGEST_TEXT]) {
    text[0] = '\0';
    if (suggestion->nearest)
        snprintf(text, SUGGEST_TEXT, "; did you mean %s%s?", prefix, suggestion->nearest);
    return text;
}
