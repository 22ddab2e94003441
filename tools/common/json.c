/* SPDX-License-Identifier: MIT */
#include "common/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

enum { DEEPEST = 8 };
static char closing[DEEPEST];
static int depth;
static bool follows; /* something precedes in the same object or list */

/* Quoted; invalid bytes become U+FFFD. */
static void put_text(const char *text) {
    putchar('"');
    for (struct text_step step; *text; text += step.bytes) {
        step = text_step(text);
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < 0x20 || *text == 0x7f)
            printf("\\u%04x", (unsigned)*text);
        else if (step.columns < 0 && step.bytes == 1)
            fputs("\\ufffd", stdout);
        else
            fwrite(text, 1, step.bytes, stdout);
    }
    putchar('"');
}

static void begin(const char *name) {
    if (follows) fputs(depth == 1 ? ",\n " : ", ", stdout);
    follows = true;
    if (!name) return;
    put_text(name);
    fputs(": ", stdout);
}

void json_open(const char *name, char bracket) {
    if (depth > 0) begin(name);
    putchar(bracket);
    closing[depth++] = bracket == '{' ? '}' : ']';
    follows = false;
}

void json_close(void) {
    putchar(closing[--depth]);
    follows = true;
    if (depth == 0) putchar('\n');
}

void json_text(const char *name, const char *text) {
    begin(name);
    put_text(text);
}

void json_number(const char *name, double number) {
    begin(name);
    if (isfinite(number))
        printf("%.9g", number);
    else
        fputs("null", stdout);
}

void json_integer(const char *name, int64_t number) {
    begin(name);
    printf("%lld", (long long)number);
}

void json_bool(const char *name, bool value) {
    begin(name);
    fputs(value ? "true" : "false", stdout);
}

void json_shape(const char *name, int dims, const int64_t *shape) {
    json_open(name, '[');
    for (int i = 0; i < dims; i++) json_integer(NULL, shape[i]);
    json_close();
}
