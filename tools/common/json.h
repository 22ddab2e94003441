/* SPDX-License-Identifier: MIT
 * JSON on standard output, one object. Names are NULL for elements of a list. */
#ifndef RAPT_JSON_H
#define RAPT_JSON_H

#include <stdbool.h>
#include <stdint.h>

/* bracket: '{' or '['. */
void json_open(const char *name, char bracket);
void json_close(void);

void json_text(const char *name, const char *text);
void json_number(const char *name, double number); /* null if not finite */
void json_integer(const char *name, int64_t number);
void json_bool(const char *name, bool value);
void json_shape(const char *name, int dims, const int64_t *shape);

#endif
