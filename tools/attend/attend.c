/* SPDX-License-Identifier: MIT
 * `rapt attend`. */
#include <stdio.h>
#include <stdlib.h>

#include "attend/kv_type.h"
#include "attend/options.h"
#include "attend/problem.h"
#include "attend/show.h"
#include "common/json.h"
#include "common/text.h"
#include "common/tool.h"
#include "compare.h"
#include "files/output.h"
#include "measure.h"
#include "plan/plan.h"
#include "schedule.h"
#include "verbs.h"

struct run {
    rapt_plan plan;
    void *workspace;
    size_t workspace_bytes;
    int64_t threads, repeat;
    bool tells_order; /* even if it is the default */
};

static void check_status(rapt_status status, const char *detail) {
    if (status != RAPT_OK) tool_die("%s%s%s", rapt_status_text(status), detail[0] ? ": " : "", detail);
}

/* Before reading and computing, which may take long. */
static void claim_results(const struct attend_options *o) {
    const char *results[] = {o->out, o->lse, o->attention_out};
    for (int i = 0; i < 3; i++) {
        if (results[i]) output_claim_array(results[i]);
    }
    output_check_report(!o->quiet);
}

static void warn_of_negative_offsets(const struct problem *problem, const struct attend_options *options) {
    const rapt_attention_desc *desc = &problem->desc;
    if (desc->query_origin != RAPT_ORIGIN_BOTTOM_RIGHT) return;
    for (int64_t b = 0; b < desc->batch; b++) {
        const int64_t kv_length = problem_kv_length(problem, b), query_length = problem_query_length(problem, b);
        if (kv_length >= query_length) continue;
        tool_warn("sequence %lld has %lld keys for %lld queries, so its first query stands at %lld, before "
                  "the first key; "
                  "--query-offset 0 aligns both at the start%s",
                  (long long)b, (long long)kv_length, (long long)query_length, (long long)(kv_length - query_length),
                  options->kv_lengths ? " (right-padded sequences)" : "");
        return;
    }
}

static struct run prepare(const struct problem *problem, const struct attend_options *options) {
    struct run run = {.repeat = options->repeat.given ? options->repeat.value : 1, .tells_order = options->numerics};
    const rapt_run_options most = {.struct_size = sizeof most, .max_threads = (int32_t)options->threads.value};
    rapt_message message;
    check_status(rapt_plan_init(&run.plan, &problem->stored, &message), message.text);
    run.threads = rapt_schedule_concurrency(rapt_body_of(&run.plan), &most);
    check_status(rapt_plan_workspace_bytes(&run.plan, run.threads, &run.workspace_bytes), "workspace");
    run.workspace = tool_allocate((int64_t)run.workspace_bytes, 1, "the workspace");
    return run;
}

/* The best time of run->repeat runs. */
static double execute(struct run *run) {
    rapt_run_options options = {.struct_size = sizeof options, .max_threads = (int32_t)run->threads};
    double best = 0;
    for (int64_t i = 0; i < run->repeat; i++) {
        const double start = now_seconds();
        check_status(rapt_run(&run->plan, run->workspace, run->workspace_bytes, &options), "");
        const double elapsed = now_seconds() - start;
        if (i == 0 || elapsed < best) best = elapsed;
    }
    return best;
}

struct named_array {
    const char *name;
    const struct npy_array *array;
};

static void print_arrays(const struct problem *problem, bool json) {
    const char *const weights = json ? "attention" : "weights"; /* the column has 8 letters */
    const struct named_array arrays[] = {{"query", &problem->query}, {"key", &problem->key},
                                         {"value", &problem->value}, {"out", &problem->out},
                                         {"lse", &problem->lse},     {weights, &problem->weights}};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        const struct npy_array *array = arrays[i].array;
        char shape[NPY_SHAPE_TEXT];
        if (!array->path || !array->data) continue;
        if (json) {
            json_open(arrays[i].name, '{');
            json_text("file", array->path);
            json_shape("shape", array->dims, array->shape);
            if (array->type != NPY_FLOAT32) json_text("type", npy_type_name(array->type));
            json_close();
        } else {
            printf("%-8s %s %s", arrays[i].name, text_shown(array->path),
                   npy_shape_text(array->dims, array->shape, shape));
            printf("%s%s\n", array->type == NPY_FLOAT32 ? "" : " ",
                   array->type == NPY_FLOAT32 ? "" : npy_type_name(array->type));
        }
    }
}

/* The types of numbers that options changed. */
static void print_types(const struct problem *problem, bool json) {
    const rapt_attention_desc *given = &problem->desc, *stored = &problem->stored;
    const bool is_rounded = stored->query.data != given->query.data;
    if (stored->key.data == given->key.data && stored->value.data == given->value.data && !is_rounded) return;
    const int64_t bytes = kv_type_row_bytes(&stored->key, given->head_dim) +
                          kv_type_row_bytes(&stored->value, given->value_dim);
    const double share = (double)bytes / (double)(given->head_dim + given->value_dim) / (double)sizeof(float);
    const char *key = kv_type_text(stored->key.dtype), *value = kv_type_text(stored->value.dtype);
    if (json) {
        if (is_rounded) json_text("query_type", kv_type_text(stored->query.dtype));
        json_text("key_type", key);
        json_text("value_type", value);
        json_number("bytes_of_float32", share);
    } else {
        printf("types    ");
        if (is_rounded) printf("query %s, ", kv_type_text(stored->query.dtype));
        printf("key %s, value %s: %.3g %% of the bytes of float32\n", key, value, 100 * share);
    }
}

static void print_speed(const struct run *run, double time, double rate, bool json) {
    const char *kernels = rapt_isa_name(rapt_plan_isa(&run->plan));
    const int order = (int)rapt_plan_numerics(&run->plan);
    if (json) {
        json_text("kernels", kernels);
        json_integer("numerics", order);
        json_integer("threads", run->threads);
        json_integer("runs", run->repeat);
        json_number("best_milliseconds", time * 1e3);
        json_number("gflops", rate);
        return;
    }
    printf("kernels  %s, %lld thread%s", kernels, (long long)run->threads, run->threads == 1 ? "" : "s");
    if (order != RAPT_NUMERICS_VERSION || run->tells_order) printf(", numerics %d", order);
    putchar('\n');
    printf("time     %.3g ms (", time * 1e3);
    if (run->repeat == 1)
        fputs("one run", stdout);
    else
        printf("best of %lld runs", (long long)run->repeat);
    printf("), %.3g GFLOP/s\n", rate);
}

static void report(const struct problem *problem, const struct run *run, double time, bool json) {
    const double operations =
        2 * problem_pairs(problem) * (double)(problem->desc.head_dim + problem->desc.value_dim);
    print_arrays(problem, json);
    print_types(problem, json);
    print_speed(run, time, time > 0 ? operations / time * 1e-9 : 0.0, json);
}

/* Prints everything; returns whether all differences are within the tolerance. */
static bool tell(const struct problem *problem, const struct attend_options *options, const struct run *run,
                 double time, const double *expected) {
    const enum compare_form form = options->json ? COMPARE_JSON : options->quiet ? COMPARE_QUIET : COMPARE_TEXT;
    bool fine = true;
    if (options->json) json_open(NULL, '{');
    if (!options->quiet) report(problem, run, time, options->json);
    if (options->check) fine = compare_with_truth(problem, options->tolerance, form) && fine;
    if (options->expect) fine = compare_with_numbers(problem, expected, options->tolerance, form) && fine;
    if (options->json) json_close();
    return fine;
}

int verb_attend(int argc, char **argv) {
    struct attend_options options = attend_parse(argc, argv);
    claim_results(&options);
    struct problem problem = problem_load(&options);
    struct run run = prepare(&problem, &options);
    const double *expected = options.expect ? compare_load(options.expect, &problem.out) : NULL;
    struct token_list tokens = {0};
    if (options.tokens) tokens = show_load(&problem, &options);
    warn_of_negative_offsets(&problem, &options);
    double time = execute(&run);
    output_stage(&problem.out);
    if (options.lse) output_stage(&problem.lse);
    if (options.attention_out) output_stage(&problem.weights);
    const bool fine = tell(&problem, &options, &run, time, expected);
    if (options.tokens) show_print(&problem, &options, tokens);
    /* Naming the results is the last step that can fail. */
    tool_flush();
    output_commit();
    return fine ? EXIT_SUCCESS : TOOL_EXIT_DIFFERENT;
}
