/* SPDX-License-Identifier: MIT
 * Jansson reads the header's JSON, and refuses malformed UTF-8, duplicate names and numbers beyond 64 bits. It gets one
 * tensor's description at a time: its tree takes many times the text's memory. */
#include "files/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct { const char *name; int64_t bits; } dtypes[] = {
    {"BOOL", 8}, {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"I16", 16}, {"U16", 16}, {"F16", 16},
    {"BF16", 16}, {"I32", 32}, {"U32", 32}, {"F32", 32},    {"F64", 64},    {"I64", 64}, {"U64", 64}, {"C64", 64},
    {"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E8M0", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8},
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static bool complain(char wrong[256], const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool complain(char wrong[256], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(wrong, 256, format, arguments);
    va_end(arguments);
    return false;
}

static bool read_integer(const json_t *json, int64_t *value) {
    *value = json_integer_value(json);
    return json_is_integer(json) && *value >= 0;
}

static bool read_shape(const json_t *json, struct safetensor *tensor, char wrong[256]) {
    if (!json_is_array(json)) return complain(wrong, "tensor '%.80s' has no shape", tensor->name);
    if (json_array_size(json) > SAFETENSORS_MAX_DIMS)
        return complain(wrong, "tensor '%.80s' has more than %d dimensions", tensor->name, SAFETENSORS_MAX_DIMS);
    tensor->dims = (int)json_array_size(json);
    for (int i = 0; i < tensor->dims; i++) {
        if (!read_integer(json_array_get(json, (size_t)i), &tensor->shape[i]))
            return complain(wrong, "tensor '%.80s': its shape is not of sizes", tensor->name);
    }
    return true;
}

static bool read_dtype(const json_t *json, struct safetensor *tensor, int64_t *bits, char wrong[256]) {
    const char *name = json_string_value(json);
    if (!name) return complain(wrong, "tensor '%.80s' has no dtype", tensor->name);
    for (int i = 0; i < DTYPES; i++) {
        if (strcmp(dtypes[i].name, name) != 0) continue;
        tensor->dtype = dtypes[i].name;
        *bits = dtypes[i].bits;
        return true;
    }
    return complain(wrong, "tensor '%.80s' has the unknown dtype '%.20s'", tensor->name, name);
}

/* ASSERT begin and end are inside the file and as far apart as dtype and shape say. */
static bool read_offsets(const json_t *json, struct safetensor *tensor, int64_t bits, int64_t data, int64_t file,
                         char wrong[256]) {
    for (int i = 0; i < tensor->dims; i++) {
        if (__builtin_mul_overflow(bits, tensor->shape[i], &bits))
            return complain(wrong, "tensor '%.80s': its size overflows 64 bits", tensor->name);
    }
    if (bits % 8) return complain(wrong, "tensor '%.80s' ends within a byte", tensor->name);
    const int64_t bytes = bits / 8;
    if (!json_is_array(json) || json_array_size(json) != 2 ||
        !read_integer(json_array_get(json, 0), &tensor->begin) || !read_integer(json_array_get(json, 1), &tensor->end))
        return complain(wrong, "tensor '%.80s': data_offsets are not two offsets", tensor->name);
    if (tensor->begin > tensor->end || tensor->end > file - data)
        return complain(wrong, "tensor '%.80s': bytes %" PRId64 " to %" PRId64 " of %" PRId64 " bytes of data",
                        tensor->name, tensor->begin, tensor->end, file - data);
    if (tensor->end - tensor->begin != bytes)
        return complain(wrong, "tensor '%.80s': its shape needs %" PRId64 " bytes, its offsets span %" PRId64,
                        tensor->name, bytes, tensor->end - tensor->begin);
    tensor->begin += data;
    tensor->end += data;
    return true;
}

static bool read_tensor(const char *name, const json_t *json, struct safetensor *tensor, int64_t data, int64_t file,
                        char wrong[256]) {
    int64_t bits = 0;
    tensor->name = strdup(name);
    if (!tensor->name) return complain(wrong, "out of memory");
    if (!json_is_object(json)) return complain(wrong, "tensor '%.80s' is not described by an object", name);
    if (json_object_size(json) != 3) return complain(wrong, "tensor '%.80s' has not three entries", name);
    return read_dtype(json_object_get(json, "dtype"), tensor, &bits, wrong) &&
           read_shape(json_object_get(json, "shape"), tensor, wrong) &&
           read_offsets(json_object_get(json, "data_offsets"), tensor, bits, data, file, wrong);
}

static int by_place(const void *a, const void *b) {
    const struct safetensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* The format requires all data to be used, once. */
static bool check_cover(const struct safetensors *parsed, int64_t data, int64_t file, char wrong[256]) {
    int64_t reached = data;
    for (size_t i = 0; i < parsed->count; i++) {
        const struct safetensor *tensor = &parsed->tensors[i];
        if (tensor->begin != reached)
            return complain(wrong, "tensor '%.80s' %s", tensor->name,
                            tensor->begin < reached ? "overlaps another" : "leaves a gap before it");
        reached = tensor->end;
    }
    return reached == file ||
           complain(wrong, "%" PRId64 " bytes follow the last tensor", file - reached);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct safetensor *)a)->name, ((const struct safetensor *)b)->name);
}

static bool check_names(struct safetensors *parsed, char wrong[256]) {
    if (parsed->count) qsort(parsed->tensors, parsed->count, sizeof *parsed->tensors, by_name);
    for (size_t i = 1; i < parsed->count; i++) {
        if (by_name(&parsed->tensors[i - 1], &parsed->tensors[i]) == 0)
            return complain(wrong, "duplicate tensor '%.80s'", parsed->tensors[i].name);
    }
    return true;
}

/* JSON text: the header's bytes from begin to end. */
struct json_text {
    const unsigned char *header;
    size_t begin, end;
};

static json_t *load(struct json_text text, char wrong[256]) {
    json_error_t error;
    json_t *json = json_loadb((const char *)text.header + text.begin, text.end - text.begin,
                              JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!json)
        complain(wrong, "the header is not JSON: %.180s (byte %zu)", error.text, text.begin + (size_t)error.position);
    return json;
}

static void skip_space(struct json_text *text) {
    while (text->begin < text->end && memchr(" \t\r\n", text->header[text->begin], 4)) text->begin++;
}

static bool take(struct json_text *text, unsigned char expected) {
    skip_space(text);
    if (text->begin == text->end || text->header[text->begin] != expected) return false;
    text->begin++;
    return true;
}

/* Takes a member's name or value, up to the colon, comma or closing brace outside of quotes and nesting; at most as
 * deep as shapes in tensors are. */
static bool take_part(struct json_text *text, struct json_text *part, char wrong[256]) {
    enum { DEEPEST = 2 };
    const unsigned char *at = text->header + text->begin, *end = text->header + text->end;
    bool quoted = false;
    int depth = 0;
    for (; at < end; at++) {
        if (quoted && *at == '\\' && at + 1 < end)
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted && depth == 0 && (*at == ',' || *at == ':' || *at == '}'))
            break;
        else if (!quoted && (*at == '{' || *at == '['))
            depth++;
        else if (!quoted && (*at == '}' || *at == ']'))
            depth--;
        if (depth > DEEPEST) return complain(wrong, "the header is nested deeper than that of a safetensors file is");
    }
    *part = (struct json_text){text->header, text->begin, (size_t)(at - text->header)};
    text->begin = part->end;
    return true;
}

typedef bool visit_member(void *context, const char *name, struct json_text value, char wrong[256]);

static bool visit_one(struct json_text *text, visit_member *visit, void *context, char wrong[256]) {
    struct json_text name, value;
    if (!take_part(text, &name, wrong)) return false;
    if (!take(text, ':')) return complain(wrong, "the header is not JSON: ':' expected (byte %zu)", text->begin);
    if (!take_part(text, &value, wrong)) return false;
    json_t *json = load(name, wrong);
    if (!json) return false;
    const bool visited = json_is_string(json) ? visit(context, json_string_value(json), value, wrong)
                                              : complain(wrong, "the header is not JSON: a name is not quoted");
    json_decref(json);
    return visited;
}

/* Visits the members of the object in text, in order. */
static bool visit_members(struct json_text text, visit_member *visit, void *context, char wrong[256]) {
    bool more = take(&text, '{') && !take(&text, '}');
    while (more) {
        if (!visit_one(&text, visit, context, wrong)) return false;
        more = take(&text, ',');
        if (!more && !take(&text, '}'))
            return complain(wrong, "the header is not JSON: '}' expected (byte %zu)", text.begin);
    }
    skip_space(&text);
    return text.begin == text.end || complain(wrong, "the header is not JSON: it goes on (byte %zu)", text.begin);
}

static bool check_text(void *context, const char *name, struct json_text value, char wrong[256]) {
    (void)context;
    json_t *json = load(value, wrong);
    const bool fine = json && (json_is_string(json) || complain(wrong, "__metadata__: '%.80s' is not a text", name));
    json_decref(json);
    return fine;
}

struct reading {
    struct safetensors *parsed;
    int64_t data, file; /* the range of the tensors' bytes */
    size_t room;
    bool has_metadata;
};

static struct safetensor *add_tensor(struct reading *reading) {
    struct safetensors *parsed = reading->parsed;
    if (parsed->count == reading->room) {
        const size_t room = reading->room + reading->room / 4 + 16;
        struct safetensor *tensors = realloc(parsed->tensors, room * sizeof *tensors);
        if (!tensors) return NULL;
        parsed->tensors = tensors;
        reading->room = room;
    }
    struct safetensor *tensor = &parsed->tensors[parsed->count++];
    *tensor = (struct safetensor){0};
    return tensor;
}

static bool read_member(void *context, const char *name, struct json_text value, char wrong[256]) {
    enum { LONGEST = 4096 };
    struct reading *reading = context;
    skip_space(&value);
    if (strcmp(name, "__metadata__") == 0) {
        if (value.begin == value.end || value.header[value.begin] != '{')
            return complain(wrong, "__metadata__ is not an object");
        if (reading->has_metadata) return complain(wrong, "duplicate __metadata__");
        reading->has_metadata = true;
        return visit_members(value, check_text, NULL, wrong);
    }
    if (value.end - value.begin > LONGEST)
        return complain(wrong, "tensor '%.80s' is described by %zu bytes", name, value.end - value.begin);
    json_t *json = load(value, wrong);
    if (!json) return false;
    struct safetensor *tensor = add_tensor(reading);
    const bool read = tensor ? read_tensor(name, json, tensor, reading->data, reading->file, wrong)
                             : complain(wrong, "out of memory");
    json_decref(json);
    return read;
}

static bool find_header(const unsigned char *file, size_t bytes, uint64_t *header, char wrong[256]) {
    if (bytes < 8) return complain(wrong, "not a safetensors file: it has %zu bytes", bytes);
    *header = 0;
    for (int i = 7; i >= 0; i--) *header = *header << 8 | file[i];
    if (*header > SAFETENSORS_MAX_HEADER)
        return complain(wrong, "not a safetensors file: a header of %" PRIu64 " bytes", *header);
    if (*header > bytes - 8) return complain(wrong, "a header of %" PRIu64 " bytes in a file of %zu", *header, bytes);
    return (*header > 0 && file[8] == '{') || complain(wrong, "the header does not begin with '{'");
}

int safetensors_parse(const unsigned char *file, size_t bytes, struct safetensors *parsed, char wrong[256]) {
    uint64_t header = 0;
    *parsed = (struct safetensors){0};
    if (!find_header(file, bytes, &header, wrong)) return 0;
    struct reading reading = {.parsed = parsed, .data = (int64_t)header + 8, .file = (int64_t)bytes};
    const bool read = visit_members((struct json_text){file + 8, 0, (size_t)header}, read_member, &reading, wrong) &&
                      check_names(parsed, wrong);
    if (read && parsed->count) qsort(parsed->tensors, parsed->count, sizeof *parsed->tensors, by_place);
    if (read && check_cover(parsed, reading.data, reading.file, wrong)) return 1;
    safetensors_free(parsed);
    return 0;
}

void safetensors_free(struct safetensors *parsed) {
    for (size_t i = 0; i < parsed->count; i++) free(parsed->tensors[i].name);
    free(parsed->tensors);
    *parsed = (struct safetensors){0};
}
