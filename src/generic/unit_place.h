/* SPDX-License-Identifier: MIT
 * Order 2 of few rows: keys and values are read where they lie, and widened in L1, once for all rows. */
#ifndef RAPT_GENERIC_UNIT_PLACE_H
#define RAPT_GENERIC_UNIT_PLACE_H

#include "generic/unit_block.h"

enum {
    PLACE_ROWS = WEIGH_ROWS,  /* of accumulators, against 2 vectors */
    PLACE_COLUMNS = 4 * VL,   /* keys of a panel */
    PLACE_NEAR = 16,          /* rows that are prefetched into L1, and */
    PLACE_FAR = 96,           /* into L2 */
    PLACE_ALL = RAPT_BLOCK_KEYS + PLACE_FAR
};

_Static_assert(RAPT_HALF_KEYS % PLACE_COLUMNS == 0, "panels divide the keys of a half");

/* Rows of keys or values from position 0 of a block on. */
struct place_side {
    const char *row[PLACE_ALL]; /* what is not there is zeros */
    int format, dim;
};

static void place_find(struct place_side *side, const struct rapt_block *b, int i) {
    const struct rapt_plan_body *a = b->task->attention;
    struct rapt_span all = rapt_intersect(b->source->visible, (struct rapt_span){b->base, b->base + PLACE_ALL});
    const struct rapt_span own = {b->base + b->key_begin, b->base + b->key_end};
    for (int k = 0; k < PLACE_ALL; k++)
        side->row[k] = (const char *)unit_zeros;
    all.begin = own.begin;
    side->format = a->format[i];
    side->dim = (int)rapt_dim_of(a, i);
    rapt_source_find(b->task, i, all, side->row + b->key_begin);
}

/* ------------------------------------------------------------ chains */

/* Four vectors of few rows, two of more; where registers hold them, even and odd terms side by side. */
RAPT_INLINE int place_vectors(int rows) { return 4 * rows <= PLACE_ROWS ? 4 : 2; }
RAPT_INLINE int place_together(int rows, int vectors) { return rows * vectors <= PLACE_ROWS; }

/* Sums of even and odd terms, [rows][vectors] each, to c. */
RAPT_INLINE void place_add(const vf32 *even, const vf32 *odd, float *c, int64_t c_stride, bool adds, int rows,
                           int vectors) {
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < vectors; v++) {
            float *into = c + r * c_stride + v * VL;
            const vf32 sum = v_add(even[r * vectors + v], odd[r * vectors + v]);
            v_store(into, adds ? v_add(v_load(into), sum) : sum);
        }
}

#define PLACE_CLEAR(sum)                                    \
    RAPT_UNROLL for (int i = 0; i < rows * vectors; i++)    \
        (sum)[i] = v_splat(0)

/* sum += a * x of all rows. */
#define PLACE_TERM(sum, a, a_stride, x)                                                             \
    RAPT_UNROLL for (int r = 0; r < rows; r++)                                                      \
        RAPT_UNROLL for (int v = 0; v < vectors; v++)                                               \
            (sum)[r * vectors + v] = v_fma(v_splat((a)[r * (a_stride)]), (x)[v], (sum)[r * vectors + v])

/* Scores of a panel, RAPT_STEP dims of it. */
struct place_keys {
    const float *panel, *query; /* [RAPT_STEP][PLACE_COLUMNS], [rows][RAPT_HALF_KEYS] */
    float *c;                   /* [rows][RAPT_HALF_KEYS] */
    bool adds;
};

RAPT_INLINE void place_load_keys(vf32 *x, const float *panel, int vectors) {
    RAPT_UNROLL for (int v = 0; v < vectors; v++)
        x[v] = v_load(panel + v * VL);
}

RAPT_INLINE void place_score(const struct place_keys *k, int rows, int vectors) {
    vf32 even[2 * PLACE_ROWS], odd[2 * PLACE_ROWS], x[4];
    for (int column = 0; column < PLACE_COLUMNS; column += vectors * VL) {
        const float *panel = k->panel + column;
        PLACE_CLEAR(even);
        PLACE_CLEAR(odd);
        if (place_together(rows, vectors)) {
            for (int d = 0; d < RAPT_STEP; d += 2) {
                place_load_keys(x, panel + d * PLACE_COLUMNS, vectors);
                PLACE_TERM(even, k->query + d, RAPT_HALF_KEYS, x);
                place_load_keys(x, panel + (d + 1) * PLACE_COLUMNS, vectors);
                PLACE_TERM(odd, k->query + d + 1, RAPT_HALF_KEYS, x);
            }
        } else {
            for (int d = 0; d < RAPT_STEP; d += 2) {
                place_load_keys(x, panel + d * PLACE_COLUMNS, vectors);
                PLACE_TERM(even, k->query + d, RAPT_HALF_KEYS, x);
            }
            for (int d = 1; d < RAPT_STEP; d += 2) {
                place_load_keys(x, panel + d * PLACE_COLUMNS, vectors);
                PLACE_TERM(odd, k->query + d, RAPT_HALF_KEYS, x);
            }
        }
        place_add(even, odd, k->c + column, RAPT_HALF_KEYS, k->adds, rows, vectors);
    }
}

/* Sums of 32 values, some dims. */
struct place_values {
    const char *const *row; /* [RAPT_STEP], and those after them */
    int64_t byte;           /* of the first dim */
    const float *p;         /* [rows][RAPT_HALF_KEYS] */
    float *g;
    int64_t g_stride;
    bool adds, fetches;
};

RAPT_INLINE void place_load_values(vf32 *x, const struct place_values *w, int k, int vectors, int format) {
    enum { LINE = 64 };
    const char *row = w->row[k] + w->byte;
    if (w->fetches)
        RAPT_UNROLL for (int byte = 0; byte < vectors * VL * 2; byte += LINE) {
            __builtin_prefetch(w->row[k + PLACE_FAR] + w->byte + byte, 0, 2);
            __builtin_prefetch(w->row[k + PLACE_NEAR] + w->byte + byte, 0, 3);
        }
    RAPT_UNROLL for (int v = 0; v < vectors; v++)
        x[v] = unit_load((const uint16_t *)(const void *)row + v * VL, format);
}

RAPT_INLINE void place_weigh(const struct place_values *w, int rows, int vectors, int format) {
    vf32 even[4 * PLACE_ROWS], odd[4 * PLACE_ROWS], x[8];
    PLACE_CLEAR(even);
    PLACE_CLEAR(odd);
    if (place_together(rows, vectors)) {
        for (int k = 0; k < RAPT_STEP; k += 2) {
            place_load_values(x, w, k, vectors, format);
            PLACE_TERM(even, w->p + k, RAPT_HALF_KEYS, x);
            place_load_values(x, w, k + 1, vectors, format);
            PLACE_TERM(odd, w->p + k + 1, RAPT_HALF_KEYS, x);
        }
    } else {
        for (int k = 0; k < RAPT_STEP; k += 2) {
            place_load_values(x, w, k, vectors, format);
            PLACE_TERM(even, w->p + k, RAPT_HALF_KEYS, x);
        }
        for (int k = 1; k < RAPT_STEP; k += 2) {
            place_load_values(x, w, k, vectors, format);
            PLACE_TERM(odd, w->p + k, RAPT_HALF_KEYS, x);
        }
    }
    place_add(even, odd, w->g, w->g_stride, w->adds, rows, vectors);
}

/* By the number of rows; values also by vectors: 2, or 4, or 8 of one row. */
#define PLACE_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#define PLACE_WEIGHERS(height, name, format)                                                             \
    static RAPT_KERNEL void place_weigh_##name##_##height##_2(const struct place_values *w) {            \
        place_weigh(w, height < PLACE_ROWS ? height : PLACE_ROWS, 2, format);                            \
    }                                                                                                    \
    static RAPT_KERNEL void place_weigh_##name##_##height##_4(const struct place_values *w) {            \
        const int rows = 2 * height < PLACE_ROWS ? height : PLACE_ROWS / 2;                              \
        place_weigh(w, rows, height == 1 && PLACE_ROWS >= 8 ? 8 : 4, format);                            \
    }
#define PLACE_KERNELS(height)                                                                            \
    static RAPT_KERNEL void place_score_##height(const struct place_keys *k) {                           \
        const int rows = height < PLACE_ROWS ? height : PLACE_ROWS;                                      \
        place_score(k, rows, place_vectors(rows));                                                       \
    }                                                                                                    \
    PLACE_WEIGHERS(height, bf16, RAPT_FORMAT_BF16)                                                       \
    PLACE_WEIGHERS(height, half, RAPT_FORMAT_F16)
PLACE_HEIGHTS(PLACE_KERNELS)
#undef PLACE_KERNELS
#undef PLACE_WEIGHERS

typedef void place_scorer(const struct place_keys *k);
typedef void place_weigher(const struct place_values *w);

#define PLACE_KERNELS(height) place_score_##height,
static place_scorer *const place_scorers[] = {PLACE_HEIGHTS(PLACE_KERNELS)};
#undef PLACE_KERNELS
/* [half][height - 1][wide] */
#define PLACE_KERNELS(height) {place_weigh_bf16_##height##_2, place_weigh_bf16_##height##_4},
static place_weigher *const place_weighers_bf16[][2] = {PLACE_HEIGHTS(PLACE_KERNELS)};
#undef PLACE_KERNELS
#define PLACE_KERNELS(height) {place_weigh_half_##height##_2, place_weigh_half_##height##_4},
static place_weigher *const place_weighers_half[][2] = {PLACE_HEIGHTS(PLACE_KERNELS)};
#undef PLACE_KERNELS

/* Vectors of a panel of values: 8, 4 or 2. */
static int place_wide(int rows) { return rows == 1 && PLACE_ROWS >= 8 ? 8 : 2 * rows <= PLACE_ROWS ? 4 : 0; }

/* ------------------------------------------------------------ numbers that the processor does not flush */

/* Whether no number of some rows is too small for chains that do not flush. */
static bool place_is_normal(const struct place_side *side, int begin, int end, float least) {
    struct unit_found found = unit_nothing_found();
    if (FLUSHES || side->format == RAPT_FORMAT_F16)
        return true;
    for (int k = begin; k < end; k++) {
        const uint16_t *row = (const uint16_t *)(const void *)side->row[k];
        uint16_t rest[VL] = {0};
        int d = 0;
        for (; side->dim - d >= VL; d += VL)
            (void)unit_look(&found, unit_load(row + d, RAPT_FORMAT_BF16), RAPT_FORMAT_BF16);
        memcpy(rest, row + d, (size_t)(side->dim - d) * sizeof *rest);
        (void)unit_look(&found, unit_load(rest, RAPT_FORMAT_BF16), RAPT_FORMAT_BF16);
    }
    return unit_finds(&found, least) & RAPT_FOUND_NORMAL;
}

/* Rows from number `first` on, `dim` of their bytes in; NULL where there is none. */
static void place_offset(const struct place_side *side, const char **rows, int first, int count, int d) {
    for (int i = 0; i < count; i++) {
        const char *row = side->row[first + i];
        rows[i] = row == (const char *)unit_zeros ? NULL : row + (size_t)d * sizeof(uint16_t);
    }
}

/* The scores of a panel, packed. */
static void place_score_packed(const struct unit_task *t, const struct place_side *keys, int key) {
    float panel[RAPT_HALF_KEYS * UNIT_COLUMNS];
    const int rows = unit_up(t->b->rows, UNIT_ROWS);
    for (int at = key; at < key + PLACE_COLUMNS; at += UNIT_COLUMNS)
        for (int d = 0; d < keys->dim; d += RAPT_HALF_KEYS) {
            const char *from[UNIT_COLUMNS];
            const int dims = keys->dim - d < RAPT_HALF_KEYS ? keys->dim - d : RAPT_HALF_KEYS;
            place_offset(keys, from, t->first + at, UNIT_COLUMNS, d);
            (void)pack_some_keys(panel, from, UNIT_COLUMNS, dims, keys->format);
            const struct unit_product p = {.a = unit_queries(t->b->panel, t->b->rows) + (int64_t)d * rows,
                                           .b = panel,
                                           .c = t->y + at,
                                           .c_stride = RAPT_HALF_KEYS,
                                           .rows = t->b->rows,
                                           .terms = unit_up(dims, 4),
                                           .adds = d > 0};
            unit_multiply(&p, false);
        }
}

/* Values of a half for some rows, packed; attended: NULL, or those of one row. */
static void place_weigh_packed(const struct unit_task *t, const struct place_side *values, int row, int rows,
                               const uint8_t *attended) {
    float panel[RAPT_HALF_KEYS * UNIT_COLUMNS];
    for (int d = 0; d < values->dim; d += UNIT_COLUMNS) {
        const char *from[RAPT_HALF_KEYS];
        const int dims = values->dim - d < UNIT_COLUMNS ? values->dim - d : UNIT_COLUMNS;
        place_offset(values, from, t->first, RAPT_HALF_KEYS, d);
        for (int k = 0; attended && k < RAPT_HALF_KEYS; k++)
            from[k] = attended[k] ? from[k] : NULL;
        const unsigned found = RAPT_UNIT(pack_values)(panel, from, dims, values->format);
        const struct unit_product p = {.a = t->y + row * RAPT_HALF_KEYS,
                                       .b = panel,
                                       .c = t->sums + (int64_t)row * t->sum_stride + d,
                                       .c_stride = t->sum_stride,
                                       .rows = rows,
                                       .terms = RAPT_HALF_KEYS,
                                       .adds = false};
        unit_multiply(&p, found & RAPT_FOUND_NORMAL);
    }
}

/* ------------------------------------------------------------ keys */

/* Lines of rows to come, in the order in which they lie. */
struct place_ahead {
    const char *const *row;
    int byte, row_bytes;
};

RAPT_INLINE void place_fetch(struct place_ahead *ahead, int lines) {
    for (; lines > 0; lines--) {
        __builtin_prefetch(ahead->row[PLACE_FAR - PLACE_COLUMNS] + ahead->byte, 0, 2);
        __builtin_prefetch(ahead->row[0] + ahead->byte, 0, 3);
        ahead->byte += 64;
        if (ahead->byte >= ahead->row_bytes)
            ahead->byte = 0, ahead->row++;
    }
}

/* RAPT_STEP dims of a panel of keys, from d on. */
RAPT_INLINE void place_widen_keys(float *panel, const char *const *rows, int dim, int d, int format,
                                  struct place_ahead *ahead) {
    struct unit_found found = unit_nothing_found();
    const int lines = unit_up(PLACE_COLUMNS, 1) * 2 * RAPT_STEP / 64;
    for (int k = 0; k < PLACE_COLUMNS; k += VL)
        for (int i = 0; i < RAPT_STEP; i += UNIT_COLUMNS) {
            const int left = dim - d - i;
            place_fetch(ahead, lines / (PLACE_COLUMNS / VL) / (RAPT_STEP / UNIT_COLUMNS));
            if (left > 0)
                unit_transpose(panel + i * PLACE_COLUMNS + k, PLACE_COLUMNS, rows + k, d + i,
                               left < UNIT_COLUMNS ? left : UNIT_COLUMNS, format, &found);
            else
                for (int j = 0; j < UNIT_COLUMNS; j++)
                    v_store(panel + (i + j) * PLACE_COLUMNS + k, v_splat(0));
        }
}

static RAPT_KERNEL void place_widen_bf16(float *panel, const char *const *rows, int dim, int d,
                                         struct place_ahead *ahead) {
    place_widen_keys(panel, rows, dim, d, RAPT_FORMAT_BF16, ahead);
}
static RAPT_KERNEL void place_widen_half(float *panel, const char *const *rows, int dim, int d,
                                         struct place_ahead *ahead) {
    place_widen_keys(panel, rows, dim, d, RAPT_FORMAT_F16, ahead);
}

static void place_score_panel(const struct unit_task *t, const struct place_side *keys, int key) {
    _Alignas(64) float panel[RAPT_STEP * PLACE_COLUMNS];
    const struct rapt_block *b = t->b;
    const char *const *rows = keys->row + t->first + key;
    struct place_ahead ahead = {rows + PLACE_COLUMNS, 0, keys->dim * 2};
    const int all_rows = unit_up(b->rows, UNIT_ROWS);
    for (int d = 0; d < keys->dim; d += RAPT_STEP) {
        const float *query = unit_queries(b->panel, b->rows) + d % RAPT_HALF_KEYS +
                             (int64_t)(d / RAPT_HALF_KEYS) * all_rows * RAPT_HALF_KEYS;
        (keys->format == RAPT_FORMAT_F16 ? place_widen_half : place_widen_bf16)(panel, rows, keys->dim, d, &ahead);
        for (int row = 0; row < b->rows; row += PLACE_ROWS) {
            const int left = b->rows - row, height = left < PLACE_ROWS ? left : PLACE_ROWS;
            const struct place_keys k = {.panel = panel,
                                         .query = query + row * RAPT_HALF_KEYS,
                                         .c = t->y + key + row * RAPT_HALF_KEYS,
                                         .adds = d > 0};
            place_scorers[height - 1](&k);
        }
    }
}

static void place_score_half(const struct unit_task *t, const struct place_side *keys) {
    const bool normal = FLUSHES || (t->b->panel[0] != 0 &&
                                    place_is_normal(keys, t->first + t->begin, t->first + t->end, 0x1p-56f));
    unit_flush(true);
    for (int key = t->begin / PLACE_COLUMNS * PLACE_COLUMNS; key < t->end; key += PLACE_COLUMNS)
        if (normal)
            place_score_panel(t, keys, key);
        else
            place_score_packed(t, keys, key);
    unit_flush(false);
}

/* ------------------------------------------------------------ values */

/* Some dims of 32 values for all rows. */
static void place_weigh_panel(const struct unit_task *t, const struct place_values *w, int vectors, int format) {
    for (int row = 0; row < t->b->rows; row += PLACE_ROWS) {
        const int left = t->b->rows - row, height = left < PLACE_ROWS ? left : PLACE_ROWS;
        struct place_values part = *w;
        part.p += row * RAPT_HALF_KEYS;
        part.g += (int64_t)row * t->sum_stride;
        part.fetches = w->fetches && row == 0;
        (format == RAPT_FORMAT_F16 ? place_weighers_half : place_weighers_bf16)[height - 1][vectors > 2](&part);
    }
}

/* The last dims, where they fill no panel. */
static void place_weigh_rest(const struct unit_task *t, const struct place_side *values, struct place_values w, int d) {
    uint16_t copy[RAPT_STEP][UNIT_COLUMNS] = {{0}};
    const char *rows[RAPT_STEP];
    for (int k = 0; k < RAPT_STEP; k++) {
        memcpy(copy[k], w.row[k] + (size_t)d * sizeof(uint16_t), (size_t)(values->dim - d) * sizeof(uint16_t));
        rows[k] = (const char *)copy[k];
    }
    w.row = rows;
    w.byte = 0;
    w.fetches = false;
    w.g += d;
    place_weigh_panel(t, &w, 2, values->format);
}

static void place_weigh_step(const struct unit_task *t, const struct place_side *values, int key, bool adds) {
    const int wide = place_wide(t->b->rows < PLACE_ROWS ? t->b->rows : PLACE_ROWS);
    struct place_values w = {.row = values->row + t->first + key,
                             .p = t->y + key,
                             .g = t->sums,
                             .g_stride = t->sum_stride,
                             .adds = adds,
                             .fetches = true};
    int d = 0;
    for (int vectors; (vectors = wide && values->dim - d >= wide * VL ? wide : 2) * VL <= values->dim - d;
         d += vectors * VL) {
        struct place_values part = w;
        part.byte = (int64_t)d * (int64_t)sizeof(uint16_t);
        part.g += d;
        place_weigh_panel(t, &part, vectors, values->format);
    }
    if (d < values->dim)
        place_weigh_rest(t, values, w, d);
}

static void place_weigh_half(const struct unit_task *t, const struct place_side *values) {
    const int first = t->begin / RAPT_STEP * RAPT_STEP, last = unit_up(t->end, RAPT_STEP);
    unit_flush(true);
    if (t->b->careful && t->b->seen == RAPT_SEES_SOME)
        for (int row = 0; row < t->b->rows; row++) {
            uint8_t attended[RAPT_HALF_KEYS] = {0};
            for (int key = t->begin; key < t->end; key++)
                attended[key] = rapt_is_attended(t->b->mask, row, t->first + key);
            place_weigh_packed(t, values, row, 1, attended);
        }
    else if (!place_is_normal(values, t->first + t->begin, t->first + t->end, 0x1p-64f))
        place_weigh_packed(t, values, 0, t->b->rows, NULL);
    else
        for (int key = first; key < last; key += RAPT_STEP)
            place_weigh_step(t, values, key, key > first);
    unit_flush(false);
}

/* ------------------------------------------------------------ the block */

void RAPT_UNIT(block_in_place)(const struct rapt_block *b) {
    struct unit_task t = unit_task_of(b);
    struct place_side keys, values;
    float *const y = t.y;
    place_find(&keys, b, RAPT_KEYS);
    place_find(&values, b, RAPT_VALUES);
    for (int half = 0; half < 2; half++) {
        t.y = y + half * unit_up(b->rows, UNIT_ROWS) * RAPT_HALF_KEYS;
        if (unit_turn_to(&t, half * RAPT_HALF_KEYS))
            place_score_half(&t, &keys);
    }
    for (int half = 0; half < 2; half++) {
        t.y = y + half * unit_up(b->rows, UNIT_ROWS) * RAPT_HALF_KEYS;
        if (!unit_turn_to(&t, half * RAPT_HALF_KEYS))
            continue;
        run_errands(b->of_weigh, UNIT_LINES);
        unit_probabilities(&t);
        place_weigh_half(&t, &values);
        unit_update(&t);
        t.fresh = false;
    }
}

#endif
