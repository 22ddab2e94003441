/* SPDX-License-Identifier: MIT
 * A test of the tests: breaks a copy of the sources in one place at a time,
 * builds a bit test with it and demands that this test fails.
 * Arguments: compiler, source root, table ("x86/avx2"), its flags, flags of
 * the link, libraries to link; then the sources of each test, "calls: calls.c
 * support.c". */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmocka_all.h"

struct mutation {
    const char *name;
    const char *file, *from, *to; /* the first place where `from` stands is changed */
    const char *objects;          /* sources to compile again; "" = those of the table */
    const char *program, *tests;  /* what has to notice it */
};

static const struct mutation mutations[] = {
    {"no kernel", "generic/exp2.h", "RAPT_GENERIC_EXP2_H", "RAPT_GENERIC_EXP2_H", "", "check", "*"},
    {"last bit of a coefficient", "generic/exp2.h", "0x1.425ac8p-12f", "0x1.425acap-12f", "", "sweep",
     "*period"},
    {"operands of a maximum", "generic/exp2.h", "v_larger(row->low, x)", "v_larger(x, row->low)", "", "check",
     "*exponentials"},
    {"operands of a minimum", "generic/exp2.h", "v_smaller(v_splat(10), v_abs(x))",
     "v_smaller(v_abs(x), v_splat(10))", "", "check", "*elementary"},
    {"maximum without ceil", "generic/exp2.h", "v_ceil(v_mul(largest, v_splat(0.5f)))",
     "v_mul(largest, v_splat(0.5f))", "", "check", "*softmax"},
    {"negative zero in results", "generic/exp2.h", "v_select(v_equal(a, a), v_add(a, v_splat(0)),",
     "v_select(v_equal(a, a), a,", "", "check", "*export_row"},
    {"tail of the exponentials", "generic/softmax.h", "for (; key < key_end; key++) {",
     "for (; key < key_end - 1; key++) {", "", "check", "*softmax"},
    {"tail of the dot product", "generic/score.h", "for (; d < end; d++, query += TILE_ROWS)",
     "for (d += 1; d < end; d++, query += TILE_ROWS)", "", "check", "*score"},
    {"no alpha", "generic/weigh.h", "v_mul(v_load(o + r * a->o_stride + v * VL), v_splat(a->alpha[row + r]))",
     "v_load(o + r * a->o_stride + v * VL)", "", "check", "*weigh"},
    {"end of a range", "generic/logits.h", "v_not(v_less(at, v_load(end)))", "v_less(v_load(end), at)",
     "", "check", "*logits"},
    {"empty state told by its maximum", "generic/finish.h", "next.l[row] == 0",
     "next.m[row] == -RAPT_INFINITY", "", "check", "*merge"},
    {"nothing in the engine", "merge.c", "rapt_merge", "rapt_merge",
     "attend.c block.c merge.c source.c task.c visit.c work.c", "calls", "test_lengths"},
    {"order of the fold", "merge.c", "rapt_state_of_chunk(&task, chunk)",
     "rapt_state_of_chunk(&task, a->split_chunks + work.chunks - 1 - chunk)", "merge.c", "calls", "test_lengths"},
    {"window off by one", "visit.h", "keys.begin = query_position - desc->window_left;",
     "keys.begin = query_position - desc->window_left + 1;", "visit.c task.c attend.c work.c", "calls",
     "test_single_features"},
    {"NaN of an excluded value", "visit.h", "mask->bias[row][key] != -__builtin_inff()", "true", "block.c", "calls",
     "test_data_kinds"},
    {"NaN of a value that has no weight", "attend.c", "if ((tile->flags & RAPT_TILE_DOUBTFUL) &&", "if (false &&",
     "attend.c", "calls", "test_data_kinds"},
    {"values of the wrong keys", "block.c", "args.value_stride_bytes = values.stride_bytes;",
     "args.value_stride_bytes = 0;", "block.c", "calls", "test_single_features"},
    {"staged rows from the window's start", "source.c", "(rows.begin - window->keys.begin) * from->dim",
     "0 * from->dim", "source.c", "calls", "test_colliding_strides"},
    {"states of another sequence", "work.c", "work.first_merge = first.merges[kind] + sum.merges[kind];",
     "work.first_merge = first.merges[kind];", "work.c", "calls", "test_lengths"},
    {"states of another batch", "work_find.c", "work.first_merge = batch * heads;", "work.first_merge = batch;",
     "work_find.c", "calls", "test_lengths"},
    {"no alpha for few rows", "generic/few.h", "v_mul(sum[r][v], v_splat(a->alpha[row + r]))", "sum[r][v]", "",
     "check", "*weigh"},
    {"order of a product's chains", "generic/matmul.h", "if (number > 0 && (number != 2 || last))",
     "if (number > 0)", "",
     "matmul", "test_edges"},
    {"tail of a product", "generic/matmul.h", "for (; k < end; k++, panel += TILE_ROWS)",
     "for (; k < end - 1; k++, panel += TILE_ROWS)", "", "matmul", "test_edges"},
    {"first block of a product", "matmul.c", "block.first = k == 0;",
     "block.first = k <= RAPT_INNER_BLOCK;", "matmul.c",
     "matmul", "test_edges"},
};
enum { MUTATIONS = sizeof mutations / sizeof *mutations };

static const char *compiler, *root, *table, *table_flags, *link_flags, *libraries;
static char **programs; /* up to NULL */
static char folder[64] = "/tmp/rapt-mutations-XXXXXX";

/* Runs a command, its output in folder/log; the exit status. */
static int shell(const char *command) {
    char line[6000];
    int length = snprintf(line, sizeof line, "cd %s && { %s; } >log 2>&1", folder, command);
    assert_true(length > 0 && length < (int)sizeof line);
    return system(line);
}

static void must(const char *command) {
    if (shell(command) == 0)
        return;
    char line[256];
    snprintf(line, sizeof line, "tail -n 20 %s/log", folder);
    (void)!system(line);
    fail_msg("failed: %s", command);
}

/* Objects of the test programs, which no mutation changes. */
static int set_up(void **state) {
    static char top[512];
    char command[4000];
    assert_non_null(mkdtemp(folder));
    snprintf(top, sizeof top, "%s/sources", folder);
    assert_int_equal(symlink(root, top), 0); /* a name without spaces */
    root = top;
    for (char **program = programs; *program; program++) {
        char *sources = strchr(*program, ':');
        assert_non_null(sources);
        *sources++ = 0;
        snprintf(command, sizeof command,
                 "mkdir %s && cd %s && for i in %s; do %s -std=c11 -O1 -I%s/src -I%s/include -I%s/tests -c "
                 "%s/tests/$i & done; wait; cd ..",
                 *program, *program, sources, compiler, root, root, root, root);
        must(command);
    }
    (void)state;
    return 0;
}

static int tear_down(void **state) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    (void)state;
    return system(command);
}

static char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    size_t length = fread(text, 1, (1 << 20) - 1, file);
    assert_true(length > 0);
    fclose(file);
    return text;
}

static void change_file(const struct mutation *mutation) {
    char path[256];
    snprintf(path, sizeof path, "%s/src/%s", folder, mutation->file);
    char *text = read_text(path), *place = strstr(text, mutation->from);
    if (!place)
        fail_msg("%s has no \"%s\": name the line as it is now", mutation->file, mutation->from);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fprintf(file, "%.*s%s%s", (int)(place - text), text, mutation->to, place + strlen(mutation->from));
    assert_int_equal(fclose(file), 0);
    free(text);
}

static void build(const struct mutation *mutation) {
    char command[4000];
    bool is_table = mutation->objects[0] == 0;
    snprintf(command, sizeof command, "rm -rf src mutant && mkdir mutant && cp -r %s/src src", root);
    must(command);
    change_file(mutation);
    snprintf(command, sizeof command,
             "for i in %s%s; do %s -std=c11 -Og -ffp-contract=off -fno-math-errno %s -DRAPT_HAVE_%s -Isrc "
             "-I%s/include -c "
             "src/$i -o mutant/$(basename $i).o || exit 1; done",
             is_table ? table : mutation->objects, is_table ? "/kernels.c" : "", compiler,
             is_table ? table_flags : "", strstr(table, "avx2") ? "avx2" : "neon", root);
    must(command);
    snprintf(command, sizeof command, "%s -o test %s/*.o mutant/*.o %s -lcmocka -lm -pthread %s", compiler,
             mutation->program, libraries, link_flags);
    must(command);
}

static void run_mutation(void **state) {
    const struct mutation *mutation = *state;
    char command[256];
    build(mutation);
    snprintf(command, sizeof command, "RAPT_TEST_ISA=%s RAPT_TEST_SCALE=%d ./test '%s'",
             strrchr(table, '/') + 1, strcmp(mutation->program, "check") == 0 ? 20 : 100, mutation->tests);
    bool has_effect = strcmp(mutation->from, mutation->to) != 0, is_noticed = shell(command) != 0;
    if (has_effect != is_noticed)
        fail_msg("%s %s %s: %s in %s", mutation->program, mutation->tests, is_noticed ? "fails" : "misses it",
                 mutation->name, mutation->file);
}

int main(int count, char **arguments) {
    struct CMUnitTest tests[MUTATIONS];
    if (count < 8) {
        fputs("usage: test_mutations COMPILER ROOT TABLE TABLE_FLAGS LINK_FLAGS LIBRARIES TEST:SOURCES...\n", stderr);
        return 2;
    }
    compiler = arguments[1];
    root = arguments[2];
    table = arguments[3];
    table_flags = arguments[4];
    link_flags = arguments[5];
    libraries = arguments[6];
    programs = arguments + 7;
    if (getenv("RAPT_TEST_SCALE")) { /* emulated: these are native programs, and were tested natively */
        puts("1..0 # SKIP only with the whole work");
        return 0;
    }
    for (int i = 0; i < MUTATIONS; i++)
        tests[i] = (struct CMUnitTest){mutations[i].name, run_mutation, NULL, NULL,
                                       (void *)(uintptr_t)&mutations[i]};
    return _cmocka_run_group_tests("mutations", tests, MUTATIONS, set_up, tear_down);
}
