/* SPDX-License-Identifier: MIT
 * What the command `rapt` says about itself, and strict parsing of its options. argv as of command.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cpu_name.h"
#include "command/run.h"
#include "rapt/rapt.h"

static void expect_said(const char *said, const char *line) {
    struct command_result result = expect_success("%s", line);
    if (!strstr(result.out, said)) fail_msg("%s\ndoes not say '%s':\n%s", line, said, result.out);
}

static void expect_same(const char *line, const char *other) {
    char *text = strdup(expect_success("%s", line).out);
    assert_string_equal(text, expect_success("%s", other).out);
    free(text);
}

static void help_everywhere(void **state) {
    static const char *const verbs[] = {"attend", "layer", "compare",    "bench",     "heatmap",
                                        "info",   "help",  "completion", "version", "man", "layer self"};
    (void)state;
    expect_said("\n  rapt attend --query FILE", "$rapt help");
    expect_same("$rapt help", "$rapt --help");
    expect_same("$rapt help", "$rapt -h");
    expect_same("$rapt help", "! $rapt 2>&1");
    const struct command_result result = command_shell("$rapt");
    assert_int_equal(result.status, 2);
    assert_string_equal(result.out, "");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        char help[64], line[64];
        snprintf(help, sizeof help, "$rapt help %s", verbs[i]);
        snprintf(line, sizeof line, "$rapt %s --help", verbs[i]);
        expect_said("usage: rapt ", help);
        expect_same(help, line);
        snprintf(line, sizeof line, "$rapt %s -h", verbs[i]);
        expect_same(help, line);
    }
    expect_said("usage: rapt layer multi-head --out FILE --weights DIR|FILE --input FILE --heads N",
                "$rapt help layer multi-head | tr -s ' \\n' ' '");
    assert_null(strstr(expect_success("$rapt help layer self").out, "--heads"));
    expect_said("\n  luong                 Luong's: --score", "$rapt help layer");
    expect_said("before dropout", "$rapt help layer self");
    expect_said("the last query stands at the last key", "$rapt help layer self | tr -s ' \\n' ' '");
    expect_said("the last query stands at the last key", "$rapt help attend | tr -s ' \\n' ' '");
}

static void versions(void **state) {
    (void)state;
    expect_said("rapt " RAPT_VERSION_STRING ", numerics 1\n", "$rapt version");
    expect_same("$rapt version", "$rapt --version");
    expect_error("unexpected argument 'more'", "$rapt version more");
}

static void near_misses(void **state) {
    (void)state;
    expect_error("unknown verb 'atend'; did you mean attend? (see `rapt help`)", "$rapt atend");
    expect_error("unknown verb 'xyzzy' (see `rapt help`)", "$rapt xyzzy");
    expect_error("unknown option '--versoin'; did you mean --version?", "$rapt --versoin");
    expect_error("unknown option --cuasal; did you mean --causal? (see `rapt help attend`)", "$rapt attend --cuasal");
    expect_error("unknown option --xyzzy (see `rapt help attend`)", "$rapt attend --xyzzy");
    expect_error("not a kind of layer: there are simplified dot self stacked multi-head cross fused encoder embedding "
                 "additive luong minilm; did you mean encoder?", "$rapt layer encodr");
    expect_error("did you mean multi-head?", "$rapt help layer multihead");
    expect_error("unexpected argument 'self'", "$rapt help attend self");
}

/* A unique prefix today could become ambiguous with another option. */
static void abbreviations_are_refused(void **state) {
    (void)state;
    expect_error("unknown option --quer; did you mean --query?", "$rapt attend --quer q.npy");
    expect_error("unknown option --quer; did you mean --query?", "$rapt attend --quer=q.npy");
    expect_error("unknown option --caus; did you mean --causal?", "$rapt attend --caus");
    expect_error("unknown option --thr; did you mean --threads?", "$rapt bench --thr 1");
    expect_error("--causal=: the option takes no value", "$rapt attend --causal=");
}

/* They still work, and nothing mentions them. */
static void older_names(void **state) {
    (void)state;
    write_random("q.npy", 3, 1, 2, 3, 8);
    expect_success("$rapt attend --query q.npy --key q.npy --value q.npy --out o.npy --attention-out a.npy "
                   "--attention-kind raw");
    expect_success("$rapt attend --query q.npy --key q.npy --value q.npy --out o.npy --weights b.npy "
                   "--weights-kind raw && cmp a.npy b.npy");
    expect_same("$rapt heatmap --attention a.npy", "$rapt heatmap --weights a.npy");
    expect_success("$rapt layer simplified --input q.npy --out o.npy --attention-out a.npy");
    expect_success("$rapt layer simplified --input q.npy --out o.npy --weights-out b.npy && cmp a.npy b.npy");
    expect_success("! $rapt man | tr -d '\\\\' | grep -e '--weights-\\(out\\|kind\\)' -e 'luong.*--window'");
    assert_null(strstr(expect_success("$rapt help attend").out, "--weights"));
    assert_null(strstr(expect_success("$rapt help heatmap").out, "--weights"));
    assert_null(strstr(expect_success("$rapt help layer luong").out, "--window"));
    assert_null(strstr(expect_success("$rapt help layer self").out, "--layout"));
}

static void info_is_for_bug_reports(void **state) {
    static const char *const fields[] = {"system", "compiler", "options", "blas", "openmp", "kernels", "chosen"};
    (void)state;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char said[64];
        snprintf(said, sizeof said, "\n%-12s ", fields[i]);
        expect_said(said, "$rapt info");
        snprintf(said, sizeof said, "\n \"%s\": \"", fields[i]);
        expect_said(said, "$rapt info --json");
    }
    expect_said("buildtype=", "$rapt info");
    if (command_shell("command -v python3").status == 0)
        expect_success("$rapt info --json | python3 -m json.tool >info.txt");
}

static void cpus_have_names(void **state) {
    char text[256];
    (void)state;
#define CPU(file) write_bytes("cpu.txt", file, sizeof file - 1)
    CPU("processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu avx2\n\nmodel name\t: Other\n");
    assert_string_equal(cpu_name("cpu.txt", text, sizeof text), "Some CPU @ 2 GHz");
    assert_string_equal(cpu_flags("cpu.txt", text, sizeof text), "fpu avx2");
    CPU("processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n");
    assert_string_equal(cpu_name("cpu.txt", text, sizeof text), "Arm Neoverse N1");
    assert_string_equal(cpu_flags("cpu.txt", text, sizeof text), "fp asimd");
    CPU("CPU implementer\t: 0x99\nCPU part\t: 0x123\n");
    assert_string_equal(cpu_name("cpu.txt", text, sizeof text), "implementer 0x99, part 0x123");
    assert_string_equal(cpu_name("gone.txt", text, sizeof text), "");
}

/* Completions of these words. */
static void expect_completion(const char *words, const char *offered) {
    struct command_result result = expect_success(
        "$rapt completion bash > rapt.bash; bash -c '. ./rapt.bash; COMP_WORDS=(%s); "
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _rapt; echo \"${COMPREPLY[*]}\"'", words);
    if (strcmp(result.out, offered) != 0) fail_msg("after %s: %s, not %s", words, result.out, offered);
}

static void completion(void **state) {
    (void)state;
    expect_error("completion: the shell is missing: bash or zsh", "$rapt completion");
    expect_error("'fish' is not a shell that rapt knows", "$rapt completion fish");
    if (command_shell("command -v bash").status != 0) skip();
    expect_completion("rapt hea", "heatmap\n");
    expect_completion("rapt attend --query-o", "--query-offset\n");
    expect_completion("rapt attend --wei", "\n");
    expect_completion("rapt layer enc", "encoder\n");
    expect_completion("rapt layer self --hea", "\n");
    expect_completion("rapt layer multi-head --hea", "--heads\n");
    expect_completion("rapt completion z", "zsh\n");
    expect_completion("rapt attend --query \"\"", "\n"); /* a file is due */
    expect_completion("rapt layer self --input \"\"", "\n");
    expect_completion("rapt compare --quiet --t", "--tolerance\n");
    if (command_shell("command -v zsh").status == 0)
        expect_success("$rapt completion zsh > _rapt; zsh -n _rapt");
}

/* Option names stay whole, however narrow the page. */
static void man_page(void **state) {
    (void)state;
    expect_said("\n\\fB\\-\\-kv\\-lengths\\fR \\fIFILE\\fR\n", "$rapt man");
    expect_said("\n.TP\n.B minilm\n", "$rapt man");
    expect_said("\n.nh\n", "$rapt man");
    if (command_shell("command -v nroff").status != 0) skip();
    expect_success("$rapt man > rapt.1; for n in 40 50 60 70 80; do ! nroff -man -rLL=${n}n rapt.1 2>man.txt | "
                   "grep -e '[a-z][-‐]$'; done");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_everywhere),           cmocka_unit_test(versions),
        cmocka_unit_test(near_misses),               cmocka_unit_test(abbreviations_are_refused),
        cmocka_unit_test(older_names),               cmocka_unit_test(info_is_for_bug_reports),
        cmocka_unit_test(cpus_have_names),           cmocka_unit_test(completion),
        cmocka_unit_test(man_page),
    };
    if (argc < 4) return 2;
    setenv("LC_ALL", "C.UTF-8", 1);
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    int failed = cmocka_run_group_tests_name("command_help", tests, NULL, NULL);
    command_stop();
    return failed;
}
