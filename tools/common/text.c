/* SPDX-License-Identifier: MIT */
#include "common/text.h"

#include <limits.h>
#include <string.h>
#include <wchar.h>

#include "common/tool.h"

/* Unicode marks that change the direction of the rest of a line. */
static int turns_lines(wchar_t character) {
    return (character >= 0x202A && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069);
}

struct text_step text_step(const char *text) {
    mbstate_t state = {0};
    wchar_t character;
    size_t length = mbrtowc(&character, text, strnlen(text, MB_LEN_MAX), &state);
    if (length == (size_t)-1 || length == (size_t)-2) return (struct text_step){1, -1};
    return (struct text_step){length, turns_lines(character) ? -1 : wcwidth(character)};
}

/* Writes the first character of text, `bytes` long, into shown: at most four characters per byte. */
static size_t show(const char *text, struct text_step step, char *shown) {
    size_t length = 0;
    if (step.columns >= 0) {
        memcpy(shown, text, step.bytes);
        return step.bytes;
    }
    for (size_t i = 0; i < step.bytes; i++) {
        if (text[i] == '\n' || text[i] == '\t')
            length += (size_t)sprintf(shown + length, text[i] == '\n' ? "\\n" : "\\t");
        else
            length += (size_t)sprintf(shown + length, "\\x%02x", (unsigned)(unsigned char)text[i]);
    }
    return length;
}

void text_write(FILE *file, const char *text) {
    char shown[4 * MB_LEN_MAX + 1];
    for (struct text_step step; *text; text += step.bytes) {
        step = text_step(text);
        fwrite(shown, 1, show(text, step, shown), file);
    }
}

const char *text_shown(const char *text) {
    char *all = tool_allocate(4 * (int64_t)strlen(text) + 1, 1, "a text"), *at = all;
    for (struct text_step step; *text; text += step.bytes) {
        step = text_step(text);
        at += show(text, step, at);
    }
    return all;
}
