/* SPDX-License-Identifier: MIT
 * A test of the tests: breaks a copy of the sources in one place at a time and expects a bit test with it to fail. All
 * changes are compiled in; the environment selects the active one. Arguments: compiler, source root, table
 * ("x86/avx2"), its flags, link flags, libraries to link; then the sources of each test, "calls: calls/calls.c
 * support/support.c". */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka_all.h"

struct mutation {
    const char *name;
    const char *file, *from, *to; /* the first place with `from`; BROKEN is true while this one is tried */
    const char *program, *tests;  /* what must notice it */
};

static const struct mutation mutations[] = {
    {"no kernel", "generic/exp2.h", "RAPT_GENERIC_EXP2_H", "RAPT_GENERIC_EXP2_H", "check", "*"},
    {"last bit of a coefficient", "generic/exp2.h", "p[i] = v_splat(rapt_exp2_coefficients[0])",
     "p[i] = v_splat(BROKEN ? 0x1.425acap-12f : rapt_exp2_coefficients[0])", "sweep", "*period"},
    {"operands of a maximum", "generic/exp2.h", "x = v_larger(row->low, x)",
     "x = BROKEN ? v_larger(x, row->low) : v_larger(row->low, x)", "check", "*exponentials"},
    {"operands of a minimum", "generic/exp2.h", "v_smaller(v_splat(10), v_abs(x))",
     "BROKEN ? v_smaller(v_abs(x), v_splat(10)) : v_smaller(v_splat(10), v_abs(x))", "check", "*elementary"},
    {"maximum without ceil", "generic/exp2.h", "half = v_ceil(v_mul(largest, v_splat(0.5f)))",
     "half = BROKEN ? v_mul(largest, v_splat(0.5f)) : v_ceil(v_mul(largest, v_splat(0.5f)))", "check", "*softmax"},
    {"negative zero in results", "generic/exp2.h", "v_select(v_equal(a, a), v_add(a, v_splat(0)),",
     "v_select(v_equal(a, a), BROKEN ? a : v_add(a, v_splat(0)),", "check", "*export_row"},
    {"tail of the exponentials", "generic/softmax.h", "for (; key < key_end; key++) {",
     "for (; key < key_end - BROKEN; key++) {", "check", "*softmax"},
    {"tail of the dot product", "generic/score.h", "for (; d < end; d++, query += TILE_ROWS)",
     "for (d += BROKEN; d < end; d++, query += TILE_ROWS)", "check", "*score"},
    {"no alpha", "generic/weigh.h", "v_splat(a->alpha[row + r])", "v_splat(BROKEN ? 1 : a->alpha[row + r])", "check",
     "*weigh"},
    {"end of a range", "generic/logits.h", "v_not(v_less(at, v_load(end)))",
     "BROKEN ? v_less(v_load(end), at) : v_not(v_less(at, v_load(end)))", "check", "*logits"},
    {"empty state told by its maximum", "generic/finish.h", "next.l[row] == 0",
     "BROKEN ? next.m[row] == -RAPT_INFINITY : next.l[row] == 0", "check", "*merge"},
    {"nothing in the engine", "merge.c", "rapt_merge", "rapt_merge", "calls", "test_lengths"},
    {"order of the fold", "merge.c", "rapt_state_of_chunk(&task, chunk)",
     "rapt_state_of_chunk(&task, BROKEN ? plan->split_chunks + task.work.chunks - 1 - chunk : chunk)", "calls",
     "test_lengths"},
    {"window off by one", "sequence.h", "keys.begin = query_position - desc->window_left;",
     "keys.begin = query_position - desc->window_left + BROKEN;", "calls", "test_single_features"},
    {"NaN of an excluded value", "attend/visit.h", "mask->bias[row][key] != -__builtin_inff()",
     "BROKEN || mask->bias[row][key] != -__builtin_inff()", "calls", "test_data_kinds"},
    {"NaN of a value that has no weight", "attend/attend.c", "if ((tile->flags & RAPT_TILE_DOUBTFUL) &&",
     "if (!BROKEN && (tile->flags & RAPT_TILE_DOUBTFUL) &&", "calls", "test_data_kinds"},
    {"values of the wrong keys", "attend/block.c", "args->value_stride_bytes = values.stride_bytes;",
     "args->value_stride_bytes = BROKEN ? 0 : values.stride_bytes;", "calls", "test_single_features"},
    {"staged rows from the buffer's start", "attend/source.c", "(rows.begin - buffer->keys.begin) * from->dim",
     "(BROKEN ? 0 : rows.begin - buffer->keys.begin) * from->dim", "calls", "test_colliding_strides"},
    {"states of another sequence", "plan/work.c", "work.first_merge = first.merges[kind] + sum.merges[kind];",
     "work.first_merge = first.merges[kind] + (BROKEN ? 0 : sum.merges[kind]);", "calls", "test_lengths"},
    {"states of another batch", "plan/work_find.c", "work.first_merge = batch * heads;",
     "work.first_merge = BROKEN ? batch : batch * heads;", "calls", "test_lengths"},
    {"no alpha for few rows", "generic/few.h", "v_mul(sum[r][v], v_splat(a->alpha[row + r]))",
     "BROKEN ? sum[r][v] : v_mul(sum[r][v], v_splat(a->alpha[row + r]))", "check", "*weigh"},
    {"order of a product's chains", "generic/matmul.h", "if (number > 0 && (number != 2 || last))",
     "if (number > 0 && (BROKEN || number != 2 || last))", "matmul", "test_edges"},
    {"tail of a product", "generic/matmul.h", "for (; k < end; k++, panel += TILE_ROWS)",
     "for (; k < end - BROKEN; k++, panel += TILE_ROWS)", "matmul", "test_edges"},
    {"first block of a product", "matmul.c", "block.first = k == 0;",
     "block.first = k <= (BROKEN ? RAPT_INNER_BLOCK : 0);", "matmul", "test_edges"},
};
enum { MUTATIONS = sizeof mutations / sizeof *mutations };

/* Compiled with the changes: the table's kernels.c, and these. */
static const char engine[] = "attend/attend.c attend/block.c attend/source.c attend/task.c attend/visit.c "
                             "plan/work.c plan/work_find.c merge.c matmul.c";

static const char *compiler, *root, *table, *table_flags, *link_flags, *libraries;
static char **programs; /* up to NULL */
static char folder[64] = "/tmp/rapt-mutations-XXXXXX";

/* Runs a command, output in folder/log; returns its status. */
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

/* Makes every change at once: each acts if BROKEN is true, which the environment sets for one. */
static void change_file(int number) {
    const struct mutation *mutation = &mutations[number];
    char path[256];
    snprintf(path, sizeof path, "%s/src/%s", folder, mutation->file);
    char *text = read_text(path), *place = strstr(text, mutation->from);
    if (!place)
        fail_msg("%s has no \"%s\": name the line as it is now", mutation->file, mutation->from);
    const char *broken = strstr(mutation->to, "BROKEN"), *rest = broken ? broken + strlen("BROKEN") : "";
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fprintf(file, "%.*s", (int)(place - text), text);
    if (broken)
        fprintf(file, "%.*s(rapt_broken == %d)%s", (int)(broken - mutation->to), mutation->to, number, rest);
    else
        fputs(mutation->to, file);
    fputs(place + strlen(mutation->from), file);
    assert_int_equal(fclose(file), 0);
    free(text);
}

/* Says which change is active, for the sources and the programs. */
static void write_switch(void) {
    must("echo 'extern int rapt_broken;' >broken.h; echo '#include <stdlib.h>\nint rapt_broken;\n"
         "__attribute__((constructor)) static void begin(void) { rapt_broken = atoi(getenv(\"RAPT_BROKEN\")); }'"
         " >broken.c");
}

/* The copy of the sources and the test programs with it, whose other objects no mutation changes. */
static int set_up(void **state) {
    static char top[512];
    char command[4000];
    assert_non_null(mkdtemp(folder));
    snprintf(top, sizeof top, "%s/sources", folder);
    assert_int_equal(symlink(root, top), 0); /* a name without spaces */
    root = top;
    snprintf(command, sizeof command, "cp -r %s/src src && mkdir mutant", root);
    must(command);
    for (int i = 0; i < MUTATIONS; i++)
        change_file(i);
    write_switch();
    snprintf(command, sizeof command,
             "c='%s -std=c11 -ffp-contract=off -fno-math-errno -DRAPT_HAVE_%s -Isrc -I%s/include -include broken.h -c';"
             "$c broken.c -o mutant/broken.o && $c -Og -DRAPT_PLAIN_LOOPS %s src/%s/kernels.c -o mutant/kernels.o &&"
             "for i in %s; do $c -Og src/$i -o mutant/${i##*/}.o || exit 1; done",
             compiler, strstr(table, "avx2") ? "avx2" : "neon", root, table_flags, table, engine);
    must(command);
    for (char **program = programs; *program; program++) {
        char *sources = strchr(*program, ':');
        assert_non_null(sources);
        *sources++ = 0;
        snprintf(command, sizeof command,
                 "objects=; for i in %s; do objects=\"$objects tests/$i.o\"; mkdir -p tests/${i%%/*};"
                 "test -e tests/$i.o || %s -std=c11 -O1 -I%s/src -I%s/include -I%s/tests"
                 " -c %s/tests/$i -o tests/$i.o || exit 1; done;"
                 "%s -o %s $objects mutant/*.o %s -lcmocka -lm -pthread %s",
                 sources, compiler, root, root, root, root, compiler, *program, libraries, link_flags);
        must(command);
    }
    (void)state;
    return 0;
}

static void run_mutation(void **state) {
    const struct mutation *mutation = *state;
    char command[256];
    snprintf(command, sizeof command, "RAPT_BROKEN=%d RAPT_TEST_ISA=%s RAPT_TEST_SCALE=%d ./%s '%s'",
             (int)(mutation - mutations), strrchr(table, '/') + 1,
             strcmp(mutation->program, "check") == 0 ? 20 : 100, mutation->program, mutation->tests);
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
    if (getenv("RAPT_TEST_SCALE")) { /* emulated: these programs are native, and tested natively */
        puts("1..0 # SKIP only with the whole work");
        return 0;
    }
    for (int i = 0; i < MUTATIONS; i++)
        tests[i] = (struct CMUnitTest){mutations[i].name, run_mutation, NULL, NULL,
                                       (void *)(uintptr_t)&mutations[i]};
    return _cmocka_run_group_tests("mutations", tests, MUTATIONS, set_up, tear_down);
}
