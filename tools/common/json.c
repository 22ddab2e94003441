/* SPDX-License-Identifier: MIT */
#include "common/json.h"

#include <math.h>
#include <stdio.h>

enum { DEEPEST = 8 };
static char closing[DEEPEST];
static int depth;
static bool follows; /* something precedes in the same object or list */

/* The bytes of text's first character, 0 if they are not UTF-8. JSON is UTF-8 whatever the locale. */
static size_t utf8_bytes(const char *text) {
    const unsigned char *at = (const unsigned char *)text, first = at[0];
    const unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    const size_t bytes = first < 0x80 ? 1 : first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (bytes > 1 && (at[1] < least || at[1] > most)) return 0;
    for (size_t i = 2; i < bytes; i++)
        if (at[i] < 0x80 || at[i] > 0xbf) return 0;
    return bytes;
}

/* Quoted; invalid bytes become U+FFFD. */
static void put_text(const char *text) {
    putchar('"');
    for (size_t bytes; *text; text += bytes ? bytes : 1) {
        bytes = utf8_bytes(text);
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < 0x20 || *text == 0x7f)
            printf("\\u%04x", (unsigned)*text);
        else if (bytes == 0)
            fputs("\\ufffd", stdout);
        else
            fwrite(text, 1, bytes, stdout);
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
