/* SPDX-License-Identifier: MIT */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/tool.h"
#include "reference/reference.h"
#include "verbs.h"

struct difference {
    double absolute;
    double relative; /* to the largest finite expected number of the row */
    double scaled;   /* the same where that number is above 1, else absolute */
    int64_t place;   /* of the largest absolute one, or of the first NaN on one side only */
    bool one_nan;
};

/* 0 for equal infinities and for NaN where NaN is expected. */
static double distance(long double got, long double expected) {
    if (got == expected || (isnan(got) && isnan(expected))) return 0;
    const double difference = (double)fabsl(got - expected);
    return isnan(difference) ? INFINITY : difference;
}

static void add(struct difference *largest, long double got, long double expected, int64_t place, double *row) {
    const double difference = distance(got, expected);
    const bool one_nan = !isnan(got) != !isnan(expected);
    *row = fmax(*row, difference);
    if (largest->one_nan || (difference <= largest->absolute && !one_nan)) return;
    largest->absolute = difference;
    largest->place = place;
    largest->one_nan = one_nan;
}

static double larger_magnitude(double magnitude, double expected) {
    return isfinite(expected) ? fmax(magnitude, fabs(expected)) : magnitude;
}

/* absolute: the largest of a row; magnitude: its largest finite expected number. */
static void add_row_end(struct difference *largest, double absolute, double magnitude) {
    if (absolute > 0) largest->relative = fmax(largest->relative, absolute / magnitude);
    largest->scaled = fmax(largest->scaled, absolute / fmax(magnitude, 1));
}

static void add_row(struct difference *largest, const double *got, const double *expected, int64_t count) {
    double absolute = 0, magnitude = 0;
    for (int64_t i = 0; i < count; i++) {
        add(largest, got[i], expected[i], 0, &absolute);
        magnitude = larger_magnitude(magnitude, expected[i]);
    }
    add_row_end(largest, absolute, magnitude);
}

/* bounded: the error that the tolerance bounds. */
static bool print(const char *name, struct difference largest, double bounded, struct option_number tolerance,
                  enum compare_form form) {
    const bool fine = !tolerance.given || (bounded <= tolerance.exact && !largest.one_nan);
    if (form == COMPARE_JSON) {
        json_open(name, '{');
        json_number("largest_error", largest.absolute);
        json_number("of_row_maximum", largest.relative);
        if (largest.one_nan) json_bool("nan_on_one_side", true);
        if (tolerance.given) json_number("tolerance", tolerance.exact);
        json_bool("within", fine);
        json_close();
    } else if (form == COMPARE_TEXT) {
        if (largest.one_nan)
            printf("%-8s NaN on one side only", name);
        else
            printf("%-8s largest error %.2g, %.2g of its row's maximum", name, largest.absolute, largest.relative);
        if (tolerance.given) printf("; %s %.2g", fine ? "within" : "EXCEEDS", tolerance.exact);
        putchar('\n');
    }
    return fine;
}

static bool print_absolute(const char *name, struct difference largest, struct option_number tolerance,
                           enum compare_form form) {
    return print(name, largest, largest.absolute, tolerance, form);
}

/* Rows of out are in the layout's order, the truth's in [batch, heads, queries]. */
static struct difference compare_out(const struct problem *problem, const double *truth) {
    const rapt_attention_desc *desc = &problem->desc;
    const int64_t item_bytes = npy_item_bytes(problem->out.type);
    const double *out = npy_doubles(&problem->out);
    struct difference largest = {0};
    for (int64_t b = 0; b < desc->batch; b++) {
        for (int64_t h = 0; h < desc->query_heads; h++) {
            for (int64_t i = 0; i < desc->query_length; i++, truth += desc->value_dim) {
                const int64_t bytes = b * desc->out.batch_stride_bytes + h * desc->out.head_stride_bytes +
                                      i * desc->out.token_stride_bytes;
                add_row(&largest, out + bytes / item_bytes, truth, desc->value_dim);
            }
        }
    }
    return largest;
}

static struct difference compare_array(const struct npy_array *got, const double *expected,
                                       int64_t row_length) {
    const double *numbers = npy_doubles(got);
    struct difference largest = {0};
    for (int64_t i = 0; i + row_length <= got->count && row_length > 0; i += row_length) {
        add_row(&largest, numbers + i, expected + i, row_length);
    }
    return largest;
}

static void no_memory(void) { tool_die("out of memory: --check computes in double precision"); }

bool compare_with_truth(const struct problem *problem, struct option_number tolerance, enum compare_form form) {
    const struct npy_array *lse = &problem->lse, *weights = &problem->weights;
    double *truth = tool_allocate(problem->out.count, sizeof *truth, "--check");
    double *truth_lse = lse->data ? tool_allocate(lse->count, sizeof *truth_lse, "--check") : NULL;
    double *truth_weights =
        weights->data ? tool_allocate(weights->count, sizeof *truth_weights, "--check") : NULL;
    rapt_reference_no_memory = no_memory;
    rapt_truth_attention(&problem->desc, truth, truth_lse, truth_weights);
    const bool json = form == COMPARE_JSON;
    bool fine = print_absolute("check", compare_out(problem, truth), tolerance, form);
    if (truth_lse) {
        const struct difference largest = compare_array(lse, truth_lse, 1);
        fine = print(json ? "check_lse" : " lse", largest, largest.scaled, tolerance, form) && fine;
    }
    if (truth_weights) {
        const struct difference largest = compare_array(weights, truth_weights, problem->desc.kv_length);
        fine = print(json ? "check_attention" : " weights", largest, largest.scaled, tolerance, form) && fine;
    }
    return fine;
}

static void same_shape(const struct npy_array *a, const struct npy_array *b, const char *what) {
    char has[NPY_SHAPE_TEXT], wants[NPY_SHAPE_TEXT];
    if (a->dims == b->dims && memcmp(a->shape, b->shape, sizeof a->shape) == 0) return;
    tool_die("%s %s does not fit %s %s", a->path, npy_shape_text(a->dims, a->shape, has), what,
             npy_shape_text(b->dims, b->shape, wants));
}

const double *compare_load(const char *path, const struct npy_array *result) {
    struct npy_array expected = npy_read(path, NPY_FLOATS | NPY_FLOAT64);
    same_shape(&expected, result, "the result");
    return npy_doubles(&expected);
}

bool compare_with_numbers(const struct problem *problem, const double *expected, struct option_number tolerance,
                          enum compare_form form) {
    return print_absolute("expect", compare_array(&problem->out, expected, problem->desc.value_dim), tolerance, form);
}

struct compare_options {
    struct option_number tolerance;
    bool json, quiet;
};

const struct option_row compare_option_rows[] = {
    {OPTION_HEADING, "Arrays", NULL,
     "Two .npy files, or members of .npz archives as FILE.npz:NAME, in C order and of the same shape, each "
     "bool, int32, int64, float16, bfloat16, float32 or float64. NaN equals NaN, and no tolerance accepts it in one "
     "file only.",
     0},
    {OPTION_NUMBER, "tolerance", "X", "Largest difference that is accepted; default 0.",
     offsetof(struct compare_options, tolerance)},
    {OPTION_FLAG, "json", NULL, "Print the result as JSON.", offsetof(struct compare_options, json)},
    {OPTION_FLAG, "quiet", NULL, "Print nothing but errors; the exit status is the answer.",
     offsetof(struct compare_options, quiet)},
    {OPTION_HEADING, NULL, NULL, NULL, 0},
};

/* As doubles, different integers may be equal; on Linux, long double distinguishes all. */
static long double number_of(const struct npy_array *array, const double *doubles, int64_t i) {
    return array->type == NPY_INT64 ? (long double)((const int64_t *)array->data)[i] : (long double)doubles[i];
}

static struct difference difference_of(const struct npy_array *a, const struct npy_array *b) {
    const double *of_a = npy_doubles(a), *of_b = npy_doubles(b);
    const int64_t row_length = a->dims ? a->shape[a->dims - 1] : 1;
    struct difference largest = {0};
    for (int64_t first = 0; first < a->count; first += row_length) {
        double absolute = 0, magnitude = 0;
        for (int64_t i = first; i < first + row_length; i++) {
            add(&largest, number_of(a, of_a, i), number_of(b, of_b, i), i, &absolute);
            magnitude = larger_magnitude(magnitude, of_b[i]);
        }
        add_row_end(&largest, absolute, magnitude);
    }
    return largest;
}

static void place_of(const struct npy_array *array, const struct difference *largest, int64_t place[NPY_MAX_DIMS]) {
    int64_t rest = largest->place;
    for (int i = array->dims - 1; i >= 0; i--) {
        place[i] = rest % array->shape[i];
        rest /= array->shape[i];
    }
}

/* Returns whether the tolerance holds. */
static bool print_difference(const struct npy_array *array, struct difference largest,
                             const struct compare_options *options) {
    const enum compare_form form = options->json ? COMPARE_JSON : options->quiet ? COMPARE_QUIET : COMPARE_TEXT;
    int64_t place[NPY_MAX_DIMS] = {0};
    char text[NPY_SHAPE_TEXT];
    if (largest.absolute > 0) place_of(array, &largest, place);
    npy_shape_text(array->dims, place, text);
    if (form == COMPARE_TEXT && largest.one_nan) {
        printf("differ   NaN in one file only, at %s\n", text);
        return false;
    }
    const bool fine = print_absolute(form == COMPARE_JSON ? "difference" : "differ", largest, options->tolerance, form);
    if (form == COMPARE_JSON && largest.absolute > 0) json_shape("at", array->dims, place);
    if (form == COMPARE_TEXT && largest.absolute > 0) printf("at       %s\n", text);
    return fine;
}

int verb_compare(int argc, char **argv) {
    struct compare_options options = {.tolerance.given = true};
    const int first = options_parse_words("compare", compare_option_rows, &options, argc, argv);
    const unsigned any = NPY_FLOATS | NPY_FLOAT64 | NPY_BOOL | NPY_INT32 | NPY_INT64;
    if (argc - first != 2) tool_die("compare takes two files, not %d (see `rapt help compare`)", argc - first);
    if (options.json && options.quiet) tool_die("--json does not go with --quiet");
    if (!(options.tolerance.exact >= 0)) tool_die("--tolerance: %g is not 0 or more", options.tolerance.exact);
    const struct npy_array a = npy_read(argv[first], any), b = npy_read(argv[first + 1], any);
    same_shape(&b, &a, a.path);
    const struct difference largest = difference_of(&a, &b);
    if (options.json) json_open(NULL, '{');
    const bool fine = print_difference(&a, largest, &options);
    if (options.json) json_close();
    return fine ? EXIT_SUCCESS : TOOL_EXIT_DIFFERENT;
}
