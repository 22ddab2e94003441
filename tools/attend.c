/* SPDX-License-Identifier: MIT
 * `rapt attend`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compare.h"
#include "options.h"
#include "output.h"
#include "problem.h"
#include "show.h"
#include "text.h"
#include "tool.h"
#include "verbs.h"

struct run {
    rapt_plan plan;
    void *workspace;
    size_t workspace_bytes;
    int64_t threads, repeat;
};

static void check_status(rapt_status status, const char *detail) {
    if (status != RAPT_OK) tool_die("%s%s%s", rapt_status_text(status), detail[0] ? ": " : "", detail);
}

static void check_options(const struct attend_options *o) {
    bool softmax = !o->weights_kind || strcmp(o->weights_kind, "softmax") == 0;
    option_one_of("layout", o->layout, "bhsd bshd");
    option_one_of("weights-kind", o->weights_kind, "raw softcap masked softmax");
    option_at_least_one("threads", o->threads, 4096);
    option_at_least_one("repeat", o->repeat, 1000000);
    option_needs("query-offset", o->query_offset.given, o->causal || o->window.given || o->alibi,
                 "--causal, --window or --alibi");
    option_needs("weights-kind", o->weights_kind, o->weights, "--weights");
    if (o->tolerance.given && !(o->tolerance.value >= 0))
        tool_die("--tolerance: %g is not 0 or more", (double)o->tolerance.value);
    option_needs("tolerance", o->tolerance.given, o->check || o->expect, "--check or --expect");
    option_needs("show-head", o->show_head.given, o->tokens, "--tokens");
    option_needs("show-batch", o->show_batch.given, o->tokens, "--tokens");
    if (o->tokens && !softmax) {
        tool_die("--tokens shows softmax weights: it does not go with --weights-kind %s", o->weights_kind);
    }
}

/* Before anything is read or computed, which may take long. */
static void claim_results(const struct attend_options *o) {
    const char *results[] = {o->out, o->lse, o->weights};
    for (int i = 0; i < 3; i++) {
        if (results[i]) output_claim(results[i]);
    }
}

static void warn_of_negative_offsets(const struct problem *problem, const struct attend_options *options) {
    const rapt_attention_desc *desc = &problem->desc;
    if (desc->query_origin != RAPT_ORIGIN_BOTTOM_RIGHT) return;
    for (int64_t b = 0; b < desc->batch; b++) {
        int64_t kv_length = problem_kv_length(problem, b);
        if (kv_length >= desc->query_length) continue;
        tool_warn("sequence %lld has %lld keys for %lld queries, so its first query stands at %lld, before "
                  "the first key; "
                  "--query-offset 0 lines both up at the start%s",
                  (long long)b, (long long)kv_length, (long long)desc->query_length,
                  (long long)(kv_length - desc->query_length),
                  options->kv_lengths ? " (right-padded sequences)" : "");
        return;
    }
}

static struct run prepare(const struct problem *problem, const struct attend_options *options) {
    struct run run = {.threads = options->threads.value,
                      .repeat = options->repeat.given ? options->repeat.value : 1};
    rapt_message message;
    check_status(rapt_plan_init(&run.plan, &problem->desc, &message), message.text);
    int64_t most_tasks = 1;
    for (int32_t phase = 0; phase < rapt_phase_count(&run.plan); phase++) {
        int64_t tasks = rapt_task_count(&run.plan, phase);
        if (tasks > most_tasks) most_tasks = tasks;
    }
    int available = rapt_openmp_threads();
    if (run.threads == 0) run.threads = available;
    if (available == 0) run.threads = 1;
    if (run.threads > most_tasks) run.threads = most_tasks;
    check_status(rapt_plan_workspace_bytes(&run.plan, run.threads, &run.workspace_bytes), "workspace");
    run.workspace = tool_allocate((int64_t)run.workspace_bytes, 1, "the workspace");
    return run;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The best time of run->repeat runs. */
static double execute(struct run *run) {
    rapt_run_options options = {.struct_size = sizeof options, .max_threads = (int32_t)run->threads};
    double best = 0;
    for (int64_t i = 0; i < run->repeat; i++) {
        double start = seconds();
        check_status(rapt_run(&run->plan, run->workspace, run->workspace_bytes, &options), "");
        double elapsed = seconds() - start;
        if (i == 0 || elapsed < best) best = elapsed;
    }
    return best;
}

static void print_array(const char *name, const struct npy_array *array) {
    char shape[NPY_SHAPE_TEXT];
    if (array->path && array->data)
        printf("%-8s %s %s\n", name, text_shown(array->path), npy_shape_text(array->dims, array->shape, shape));
}

static void report(const struct problem *problem, const struct run *run, double time) {
    double operations =
        2 * problem_pairs(problem) * (double)(problem->desc.head_dim + problem->desc.value_dim);
    print_array("query", &problem->query);
    print_array("key", &problem->key);
    print_array("value", &problem->value);
    print_array("out", &problem->out);
    print_array("lse", &problem->lse);
    print_array("weights", &problem->weights);
    printf("kernels  %s, %lld thread%s\n", rapt_isa_name(rapt_plan_isa(&run->plan)), (long long)run->threads,
           run->threads == 1 ? "" : "s");
    printf("time     %.3g ms (", time * 1e3);
    if (run->repeat == 1)
        fputs("one run", stdout);
    else
        printf("best of %lld runs", (long long)run->repeat);
    printf("), %.3g GFLOP/s\n", time > 0 ? operations / time * 1e-9 : 0.0);
}

int verb_attend(int argc, char **argv) {
    struct attend_options options = attend_parse(argc, argv);
    check_options(&options);
    claim_results(&options);
    struct problem problem = problem_load(&options);
    struct run run = prepare(&problem, &options);
    const double *expected = options.expect ? compare_load(&problem, &options) : NULL;
    struct token_list tokens = {0};
    if (options.tokens) tokens = show_load(&problem, &options);
    warn_of_negative_offsets(&problem, &options);
    double time = execute(&run);
    output_stage(&problem.out);
    if (options.lse) output_stage(&problem.lse);
    if (options.weights) output_stage(&problem.weights);
    report(&problem, &run, time);
    bool fine = true;
    if (options.check) fine = compare_with_truth(&problem, &options) && fine;
    if (options.expect) fine = compare_with_file(&problem, &options, expected) && fine;
    if (options.tokens) show_print(&problem, &options, tokens);
    /* The last thing that can fail is what gives the results their names. */
    tool_flush();
    output_commit();
    return fine ? EXIT_SUCCESS : TOOL_EXIT_DIFFERENT;
}
