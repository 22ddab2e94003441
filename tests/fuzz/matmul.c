/* SPDX-License-Identifier: MIT
 * Matrix products, valid and hostile: a status with a text and no byte written, or the reference's bits; and nothing
 * accessed outside the memory that the call describes. */
#include <string.h>

#include "descriptor_run.h"
#include "rapt/matmul.h"
#include "reference/reference.h"

enum { MATRICES = 4 };

struct product {
    struct fuzzed_call memory; /* its regions, and no descriptor */
    rapt_matmul_desc desc;
    const rapt_matmul_desc *given; /* struct_size bytes */
};

/* One of the four arrays, and its memory. */
struct matrix {
    const float *data;
    int64_t rows, columns, stride_bytes;
    bool output;
};

static void matrices_of(const rapt_matmul_desc *d, struct matrix *into) {
    const bool out_in = d->weight_layout == RAPT_WEIGHT_OUT_IN;
    into[0] = (struct matrix){d->x, d->rows, d->inner, d->x_stride_bytes, false};
    into[1] = (struct matrix){d->weight, out_in ? d->columns : d->inner, out_in ? d->inner : d->columns,
                              d->weight_stride_bytes, false};
    into[2] = (struct matrix){d->bias, d->bias != NULL, d->columns, 0, false};
    into[3] = (struct matrix){d->out, d->rows, d->columns, d->out_stride_bytes, true};
}

/* Addresses of the first byte and the one after the last; false if there are none. */
static bool touched(const struct matrix *m, __int128 *begin, __int128 *end) {
    const __int128 first = (__int128)(uintptr_t)m->data;
    const __int128 reach = m->rows > 1 ? ((__int128)m->rows - 1) * m->stride_bytes : 0;
    *begin = reach < 0 ? first + reach : first;
    *end = (reach > 0 ? first + reach : first) + (__int128)4 * m->columns;
    return m->rows > 0 && m->columns > 0;
}

static bool is_size(int64_t size) { return size >= 0 && size <= INT64_C(1) << 40; }

/* What no product may have, whatever its memory. */
static bool is_wrong(const rapt_matmul_desc *d) {
    const bool none = d->rows == 0 || d->columns == 0;
    struct matrix matrices[MATRICES];
    __int128 begin, end;
    if (!is_size(d->rows) || !is_size(d->inner) || !is_size(d->columns) || d->weight_layout < 0 ||
        d->weight_layout > RAPT_WEIGHT_IN_OUT)
        return true;
    matrices_of(d, matrices);
    for (const struct matrix *m = matrices; m < matrices + MATRICES; m++)
        if (!none && touched(m, &begin, &end) &&
            ((uintptr_t)m->data % 4 || begin < 0 || end > (__int128)UINTPTR_MAX ||
             (m->rows > 1 && (m->stride_bytes % 4 || (m->output && m->stride_bytes <= 0)))))
            return true;
    return false;
}

/* Whether all that a legal product touches is the call's memory. */
static bool is_within(const struct product *p) {
    struct matrix matrices[MATRICES];
    __int128 begin, end;
    matrices_of(&p->desc, matrices);
    for (const struct matrix *m = matrices; m < matrices + MATRICES; m++) {
        bool found = p->desc.rows == 0 || p->desc.columns == 0 || !touched(m, &begin, &end);
        for (int i = 0; !found && i < p->memory.region_count; i++) {
            const __int128 first = (__int128)(uintptr_t)p->memory.regions[i].data;
            found = begin >= first && end <= first + (__int128)p->memory.regions[i].bytes;
        }
        if (!found)
            return false;
    }
    return true;
}

/* Rows with gaps, reversed or all in one place, in memory of exactly that size. */
static float *lay_out(struct product *p, int64_t rows, int64_t columns, int64_t *stride_bytes, struct input *input) {
    const uint8_t way = take_byte(input), content = take_byte(input);
    const int64_t step = 4 * (columns + way % 4), count = rows > 0 ? rows - 1 : 0;
    const int64_t off = way & 64 && way & 128 ? 1 + way % 3 : 0; /* misaligned */
    *stride_bytes = way & 16 ? -step : way & 32 ? 0 : step;
    const struct region *region =
        add_region(&p->memory, (size_t)((*stride_bytes ? count * step : 0) + 4 * columns + off));
    fill(region, RAPT_F32, content);
    return (float *)(void *)(region->data + off + (*stride_bytes < 0 ? count * step : 0));
}

static void decode(struct product *p, struct input *input) {
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 48, 64, 65, 100, 130};
    rapt_matmul_desc *d = &p->desc;
    memset(p, 0, sizeof *p);
    const uint8_t shape = take_byte(input), more = take_byte(input), way = take_byte(input);
    d->rows = sizes[shape % 16], d->inner = sizes[shape / 16], d->columns = sizes[more % 16];
    d->weight_layout = more / 16 % 2;
    d->isa = way % (RAPT_ISA_AVX512_BF16 + 2);
    const bool out_in = d->weight_layout == RAPT_WEIGHT_OUT_IN;
    int64_t of_bias;
    d->x = lay_out(p, d->rows, d->inner, &d->x_stride_bytes, input);
    d->weight = lay_out(p, out_in ? d->columns : d->inner, out_in ? d->inner : d->columns, &d->weight_stride_bytes,
                        input);
    d->bias = more & 32 ? lay_out(p, 1, d->columns, &of_bias, input) : NULL;
    d->out = lay_out(p, d->rows, d->columns, &d->out_stride_bytes, input);
    if (way & 32) /* in place of the factors, or next to them */
        d->out = (float *)(uintptr_t)(take_byte(input) % 2 ? d->x : d->weight) + take_byte(input) % 4;
    int64_t *const words[] = {&d->rows, &d->inner, &d->columns, &d->x_stride_bytes, &d->weight_stride_bytes,
                              &d->out_stride_bytes};
    int32_t *const halves[] = {&d->weight_layout, &d->isa, &d->x_dtype, &d->weight_dtype, &d->out_dtype};
    const float **const pointers[] = {&d->x, &d->weight, &d->bias};
    if (way & 64)
        *words[take_byte(input) % 6] = take_hostile(input);
    if (more & 64)
        *halves[take_byte(input) % 5] = (int32_t)take_hostile(input);
    if (more & 128)
        *pointers[take_byte(input) % 3] = NULL;
    d->struct_size = (uint32_t)(way & 128 ? take_byte(input) * 8 : sizeof *d);
    const struct region *given = add_region(&p->memory, d->struct_size < 8 ? 8 : d->struct_size);
    memcpy(given->data, d, given->bytes < sizeof *d ? given->bytes : sizeof *d);
    p->given = (const rapt_matmul_desc *)(void *)given->data;
}

/* The reference loops over rows without columns, however many. */
static void multiply(const void *desc) {
    if (((const rapt_matmul_desc *)desc)->columns > 0)
        rapt_reference_matmul(desc);
}

static void run(struct product *p, bool wrong) {
    rapt_message message;
    struct snapshot before = snapshot_of(&p->memory);
    memset(&message, 'x', sizeof message);
    const rapt_status status = rapt_matmul(p->given, NULL, &message);
    expect_text(status, &message);
    if (status == RAPT_OK && wrong)
        fuzz_fail("a wrong product was taken");
    if (status == RAPT_OK)
        expect_result(&p->memory, multiply, &p->desc, &before);
    else
        expect_memory(&p->memory, &before, "after a refusal");
    *(status == RAPT_OK ? &fuzz_taken : &fuzz_refused) += 1;
    snapshot_free(&before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct input input = {data, data + bytes};
    struct product p;
    decode(&p, &input);
    const bool wrong = is_wrong(&p.desc);
    if (wrong || is_within(&p))
        run(&p, wrong);
    fuzzed_call_free(&p.memory);
    return 0;
}
