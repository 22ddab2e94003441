/* SPDX-License-Identifier: MIT
 * What the command `rapt` refuses: one line, exit status 2, no file. argv as of command.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "command/run.h"

#define ATTEND "$rapt attend --query q.npy --key k.npy --value v.npy --out new.npy "

static void not_npy(const char *said) {
    expect_error(said, "$rapt attend --query bad.npy --key k.npy --value v.npy --out new.npy");
}

static void bad_dict(const char *said, const char *dict) {
    write_dict("bad.npy", dict, 640);
    not_npy(said);
}

static void malformed_files(void **state) {
    (void)state;
    write_bytes("bad.npy", "", 0);
    not_npy("bad.npy: not a whole .npy file: it ends within its magic string");
    write_bytes("bad.npy", "PK\3\4 this is no array", 22);
    not_npy("not a .npy file: the magic string is missing");
    write_bytes("bad.npy", "\x93NUMPY\x09\x00v\x00{", 11);
    not_npy("version 9.0 is unknown");
    write_bytes("bad.npy", "\x93NUMPY\x01\x00v", 9);
    not_npy("it ends within its header");
    write_bytes("bad.npy", "\x93NUMPY\x01\x00v\x00{'descr': '<f4', ", 28);
    not_npy("it ends within its header");
    write_bytes("bad.npy", "\x93NUMPY\x02\x00\xff\xff\xff\x7f{'descr': '<f4', ", 30);
    not_npy("a header of 2147483647 bytes");
    bad_dict("the header is not a dict", "[1, 2]");
    bad_dict("the header is not a dict", "{'descr': '<f4' 'shape': (2, 2)}");
    bad_dict("the header lacks", "{'descr': '<f4', 'fortran_order': False, }");
    bad_dict("unknown key", "{'descr': '<f4', 'shape': (2, 80), 'fortran_order': False, 'more': 1}");
    bad_dict("'fortran_order' is not", "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 80), }");
    bad_dict("'descr' is not a short string", "{'descr': 4, 'fortran_order': False, 'shape': (2, 80), }");
    bad_dict("goes on after its dict", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 80), } {");
    expect_error(".: Is a directory", "$rapt attend --query . --key k.npy --value v.npy --out new.npy");
    expect_error("No such file", "$rapt attend --query none.npy --key k.npy --value v.npy --out new.npy");
}

static void malformed_shapes(void **state) {
    (void)state;
    bad_dict("needs 1280 bytes of data, it has 640",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 80), }");
    bad_dict("needs 320 bytes of data, it has 640",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 80), }");
    bad_dict("a dimension is negative", "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 80), }");
    bad_dict("a dimension overflows",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1), }");
    bad_dict("its size overflows",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (3037000500, 3037000500), }");
    bad_dict("its size overflows",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952, 1), }");
    bad_dict("not a tuple", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, x), }");
    bad_dict("not a tuple", "{'descr': '<f4', 'fortran_order': False, 'shape': 160, }");
    bad_dict("more than 6 dimensions",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 2, 80), }");
    bad_dict("[1, 1, 1, 2, 80]: expected 2, 3 or 4 dimensions",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 2, 80), }");
    bad_dict("[160]: expected 2, 3 or 4 dimensions",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (160,), }");
}

/* Nothing is read, but strides would overflow. */
static void huge_and_empty(void **state) {
    (void)state;
    write_dict("bad.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 0, 4611686018427387904, 8), }", 0);
    not_npy("bad.npy: its size overflows");
#define EMPTY "--query many.npy --key many.npy --value many.npy --out new.npy "
    write_dict("many.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2, 1099511627776, 8), }", 0);
    expect_error("new_w.npy: its size overflows", "$rapt attend --attention-out new_w.npy " EMPTY);
    expect_error("--drop: its size overflows", "$rapt attend --drop 0.5 " EMPTY);
    write_dict("mask.npy", "{'descr': '|b1', 'fortran_order': False, 'shape': (0, 1, 1099511627776, 1), }", 0);
    expect_error("mask.npy: its size overflows", "$rapt attend --mask mask.npy " EMPTY);
    write_dict("many.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4, 2147483648, 8), }", 0);
    expect_error("--drop: its size overflows", "$rapt attend --drop 0.5 " EMPTY);
    write_dict("many.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1099511627776, 2), }", 0);
    expect_error("new_w.npy: its size overflows",
                 "$rapt layer simplified --input many.npy --attention-out new_w.npy --out new.npy");
}

static void wrong_types(void **state) {
    (void)state;
    bad_dict("holds float64, expected float32",
             "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 80), }");
    bad_dict("holds >f4, expected float32", "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 80), }");
    bad_dict("structured types", "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2, 80), }");
    bad_dict("Fortran order", "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 80), }");
    expect_error("q.npy: holds float32, expected bool", ATTEND "--mask q.npy");
    expect_error("q.npy: holds float32, expected int32 or int64", ATTEND "--kv-lengths q.npy");
}

static void shapes_that_do_not_fit(void **state) {
    (void)state;
    write_random("d.npy", 4, 1, 2, 6, 9);
    write_random("h.npy", 4, 1, 3, 6, 8);
    write_random("b.npy", 4, 2, 2, 6, 8);
    write_random("t.npy", 4, 1, 2, 5, 8);
    write_random("three.npy", 3, 1, 2, 6, 8);
    write_random("one.npy", 2, 1, 1, 1, 3);
#define WITH "$rapt attend --out new.npy --query q.npy "
    expect_error("d.npy [1, 2, 6, 9] does not fit q.npy [1, 4, 3, 8]: 9 and 8 elements",
                 WITH "--key d.npy --value v.npy");
    expect_error("h.npy [1, 3, 6, 8] does not fit q.npy [1, 4, 3, 8]: 3 and 4 heads",
                 WITH "--key h.npy --value h.npy");
    expect_error("h.npy [1, 3, 6, 8] does not fit k.npy [1, 2, 6, 8]: 3 and 2 heads",
                 WITH "--key k.npy --value h.npy");
    expect_error("b.npy [2, 2, 6, 8] does not fit q.npy [1, 4, 3, 8]: 2 and 1 seq",
                 WITH "--key b.npy --value b.npy");
    expect_error("t.npy [1, 2, 5, 8] does not fit k.npy [1, 2, 6, 8]: 5 and 6 tokens",
                 WITH "--key k.npy --value t.npy");
    expect_error("three.npy [2, 6, 8] does not fit q.npy [1, 4, 3, 8]: 3 and 4 dim",
                 WITH "--key three.npy --value v.npy");
    write_random("flat.npy", 4, 1, 2, 6, 0);
    expect_error("flat.npy: its heads have 0 elements", WITH "--key k.npy --value flat.npy");
    expect_error("flat.npy: its heads have 0 elements",
                 "$rapt attend --out new.npy --query flat.npy --key flat.npy --value v.npy --kv-type f16");
    expect_error("one.npy [1, 3] does not broadcast to the scores [1, 4, 3, 6]", ATTEND "--bias one.npy");
    write_npy("five.npy", NPY_FLOAT32, (const float[18]){0}, 5, (const int64_t[]){1, 1, 1, 3, 6});
    expect_error("five.npy [1, 1, 1, 3, 6] does not broadcast to the scores", ATTEND "--bias five.npy");
    expect_error("one.npy [1, 3]: expected one number for each of 4 query heads", ATTEND "--sinks one.npy");
    expect_error("one.npy [1, 3]: expected one number for each of 4 query heads", ATTEND "--alibi one.npy");
    write_npy("pairs.npy", NPY_FLOAT32, (const float[8]){0}, 2, (const int64_t[]){4, 2});
    expect_error("pairs.npy [4, 2]: expected one number for each of 4 query heads", ATTEND "--sinks pairs.npy");
    expect_error("one.npy [1, 3] does not fit the result [1, 4, 3, 8]", ATTEND "--expect one.npy");
}

static void bad_lengths(void **state) {
    static const int64_t lengths[] = {7, -1};
    (void)state;
    write_npy("l7.npy", NPY_INT64, lengths, 1, (const int64_t[]){1});
    write_npy("l-1.npy", NPY_INT64, lengths + 1, 1, (const int64_t[]){1});
    write_npy("l2.npy", NPY_INT64, lengths, 1, (const int64_t[]){2});
    expect_error("kv_lengths", ATTEND "--kv-lengths l7.npy");
    expect_error("kv_lengths", ATTEND "--kv-lengths l-1.npy");
    write_npy("l12.npy", NPY_INT64, lengths, 2, (const int64_t[]){1, 2});
    expect_error("l2.npy [2]: expected one number for each of 1 sequences", ATTEND "--kv-lengths l2.npy");
    expect_error("l12.npy [1, 2]: expected one number for each of 1 sequences", ATTEND "--kv-lengths l12.npy");
}

static void bad_options(void **state) {
    (void)state;
    expect_error("unknown verb 'attention'", "$rapt attention");
    expect_error("attend: --query FILE is required", "$rapt attend --out new.npy");
    expect_error("attend: --out FILE is required", "$rapt attend --query q.npy --key k.npy --value v.npy");
    expect_error("unknown option --caucasal; did you mean --causal? (see `rapt help attend`)", ATTEND "--caucasal");
    expect_error("unknown option -x", ATTEND "-xy");
    expect_error("--causal=1: the option takes no value", ATTEND "--causal=1");
    expect_error("--scale: a value is missing", ATTEND "--scale");
    expect_error("unexpected argument 'more'", ATTEND "more");
    expect_error("--threads: 'abc' is not an integer", ATTEND "--threads abc");
    expect_error("--threads: '2x' is not an integer", ATTEND "--threads 2x");
    expect_error("--threads: 0 is outside", ATTEND "--threads 0");
    expect_error("--repeat: '99999999999999999999' overflows", ATTEND "--repeat 99999999999999999999");
    expect_error("--scale: '1,5' is not a number", ATTEND "--scale 1,5");
    expect_error("--scale: '1e99' overflows float32", ATTEND "--scale 1e99");
    expect_error("scale = nan must be finite, also after multiplication by log2(e)", ATTEND "--scale nan");
    expect_error("softcap = -1 must be 0 or more", ATTEND "--softcap=-1");
    expect_error("softcap = inf must be 0 or more and finite", ATTEND "--softcap inf");
    expect_error("--softcap: 1e-50 is 0 when rounded to float32, which is off", ATTEND "--softcap 1e-50");
    expect_error("--window: '3' is not two integers", ATTEND "--window 3");
    expect_error("--window: '' is not an integer", ATTEND "--window 3,");
    expect_error("window_left", ATTEND "--window=-2,0");
    expect_error("--layout: 'hbsd' is not one of", ATTEND "--layout hbsd");
    expect_error("--attention-kind: 'soft' is not one of", ATTEND "--weights w.npy --weights-kind soft");
    expect_error("--isa: 'sse' is not one of", ATTEND "--isa sse");
    expect_error("--query-offset changes nothing without", ATTEND "--query-offset 1");
    expect_error("--tolerance: nan is not 0 or more", ATTEND "--check --tolerance nan");
    expect_error("--tolerance: -1 is not 0 or more", ATTEND "--check --tolerance=-1");
    expect_error("--tolerance changes nothing without", ATTEND "--tolerance 1");
    expect_error("two results cannot have the same name", ATTEND "--lse new.npy");
    assert_non_null(strstr(expect_success("RAPT_ISA=rubbish $rapt info").out,
                           "none: RAPT_ISA names no instruction set"));
    expect_error("RAPT_ISA", "RAPT_ISA=rubbish; export RAPT_ISA; " ATTEND);
}

static void bad_bench_options(void **state) {
    (void)state;
    expect_error("--threads: 0 is outside 1 ... 256", "$rapt bench --threads 0");
    expect_error("--seconds: 'x' is not a number", "$rapt bench --seconds x");
    expect_error("--seconds: -1 is outside 0 ... 3600", "$rapt bench --seconds -1");
    expect_error("--seconds: nan is outside", "$rapt bench --seconds nan");
    expect_error("unknown option --isa (see `rapt help bench`)", "$rapt bench --isa avx2");
    expect_error("unexpected argument 'attend'", "$rapt bench attend");
    expect_error("there is no help on 'infos'; did you mean info?", "$rapt help infos");
}

static void bad_tokens(void **state) {
    (void)state;
    write_bytes("five.txt", "a\nb\nc\nd\ne\n", 10);
    write_bytes("seven.txt", "a\nb\nc\nd\ne\nf\ng\n", 14);
    write_bytes("six.txt", "a\nb\nc\nd\ne\nf\n", 12);
    expect_error("five.txt: 5 lines for 6 keys", ATTEND "--tokens five.txt");
    expect_error("seven.txt: more lines than the 6 keys", ATTEND "--tokens seven.txt");
    expect_error("none.txt: No such file", ATTEND "--tokens none.txt");
    expect_error("--show-head: 4: q.npy [1, 4, 3, 8] has 4 heads, from 0", ATTEND "--tokens six.txt --show-head 4");
    expect_error("--show-batch: -1: q.npy [1, 4, 3, 8] has 1 sequence, from 0",
                 ATTEND "--tokens six.txt --show-batch=-1");
    expect_error("--show-batch: 1: q.npy", ATTEND "--tokens six.txt --show-batch 1");
    expect_error("--show-head changes nothing", ATTEND "--show-head 1");
    expect_error("--tokens shows softmax", ATTEND "--tokens six.txt --weights w.npy --weights-kind raw");
}

/* A missing file is named with its option, and so is a result that cannot be written. */
static void files_have_options(void **state) {
    static const char *const options[] = {"key", "value", "mask", "bias", "kv-lengths", "query-lengths", "sinks",
                                          "alibi", "tree", "pages", "expect", "tokens"};
    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        char said[64];
        snprintf(said, sizeof said, "rapt: --%s: none.npy: No such file", options[i]);
        expect_error(said, ATTEND "--%s none.npy", options[i]);
        expect_error(said, ATTEND "--%s=none.npy", options[i]);
        snprintf(said, sizeof said, "rapt: --%s: the name is empty\n", options[i]);
        expect_error(said, ATTEND "--%s ''", options[i]);
    }
    expect_error("rapt: --attention-out: none/w.npy: cannot be written: No", ATTEND "--attention-out none/w.npy");
    expect_error("rapt: --lse: new.npy: two results cannot", ATTEND "--lse new.npy");
    expect_error("rapt: --out: the name is empty\n", ATTEND "--out ''");
    expect_error("rapt: --lse: the name is empty\n", ATTEND "--lse=");
    expect_error("rapt: --attention: none.npy: No such file", "$rapt heatmap --attention none.npy");
    expect_error("rapt: --weights: none.npy: No such file", "$rapt heatmap --weights=none.npy");
    expect_error("rapt: --input: none.npy: No such file", "$rapt layer simplified --input none.npy --out new.npy");
    expect_error("rapt: none.npy: No such file", "$rapt compare --quiet none.npy q.npy");
    expect_error("rapt: a file has an empty name\n", "$rapt compare --quiet '' q.npy");
}

static void failed_writes(void **state) {
    (void)state;
    write_random("big.npy", 4, 1, 4, 100, 8);
    expect_error("none/new.npy: cannot be written: No such file", ATTEND "--out none/new.npy");
    expect_error("File too large", "ulimit -f 8; " ATTEND "--query big.npy");
    /* The first result is complete when the second fails: neither stays. */
    expect_error("none/lse.npy: cannot be written", ATTEND "--lse none/lse.npy");
    expect_error("standard output: No space left", ATTEND ">/dev/full");
    assert_int_equal(command_shell("mkdir folder; echo before > old.npy").status, 0);
    expect_error("folder: cannot be written: Is a directory", ATTEND "--out folder");
    expect_error("File too large", "ulimit -f 8; " ATTEND "--query big.npy --out old.npy");
    assert_string_equal(expect_success("cat old.npy").out, "before\n");
    assert_string_equal(expect_success("ls | grep -c '^old\\|^folder'").out, "2\n");
    /* Pipes are written to, not replaced. No device here: a broken command could replace it. */
    expect_success("mkfifo pipe; cat pipe > got.npy & " ATTEND
                   "--out pipe; test -p pipe || { kill $!; exit 1; }; wait; "
                   "cmp got.npy e.npy");
}

/* Bytes of files and their names that could control a terminal. */
static void hostile_bytes(void **state) {
    (void)state;
    setenv("LC_ALL", "C.UTF-8", 1);
    bad_dict("holds <\\x1b[31m\\x07f4, expected",
             "{'descr': '<\x1b[31m\x07" "f4', 'fortran_order': False, 'shape': (2, 80), }");
    expect_error("\\x1b[2J\\n\\xe2\\x80\\xae\\xffé.npy: No such file",
                 "$rapt attend --key k.npy --value v.npy --out new.npy --query "
                 "\"$(printf '\\033[2J\\n\\342\\200\\256\\377é.npy')\"");
    expect_error("unknown option --\\x1b[2J", ATTEND "\"--$(printf '\\033[2J')\"");
    struct command_result said = expect_success(ATTEND "--out \"$(printf 'o\\033.npy')\"");
    assert_non_null(strstr(said.out, "\nout      o\\x1b.npy [1, 4, 3, 8]\n"));
    unsetenv("LC_ALL");
}

/* More than is free is refused with its size, though the system would promise it. */
static void more_than_is_free(void **state) {
    (void)state;
    write_random("long.npy", 2, 1, 1, 4000, 1);
#define LONG "$rapt_failing attend --query long.npy --key long.npy --value long.npy --out new.npy "
    expect_error("new_w.npy needs 64000000 bytes, ",
                 "export RAPT_TEST_FREE_MEMORY=60000000; " LONG "--weights new_w.npy");
    expect_error("new_w.npy needs 64000000 bytes, ", "export RAPT_TEST_FREE_MEMORY=0; " LONG "--weights new_w.npy");
    expect_success("export RAPT_TEST_FREE_MEMORY=90000000; " LONG "--weights new_w.npy; rm new*.npy");
}

static void failed_allocations(void **state) {
    int n = 1;
    (void)state;
    for (; n < 100; n++) {
        char line[512];
        snprintf(
            line, sizeof line,
            "export RAPT_TEST_FAIL_ALLOCATION=%d; $rapt_failing attend --query q.npy --key k.npy "
            "--value v.npy --out new.npy --lse new_lse.npy --weights new_weights.npy --expect e.npy --causal --check",
            n);
        if (command_shell(line).status == 0) break;
        expect_error("out of memory", "%s", line);
    }
    assert_in_range(n, 10, 99);
    assert_int_equal(command_shell("rm new.npy new_lse.npy new_weights.npy").status, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_files),    cmocka_unit_test(malformed_shapes),
        cmocka_unit_test(huge_and_empty),
        cmocka_unit_test(wrong_types),        cmocka_unit_test(shapes_that_do_not_fit),
        cmocka_unit_test(bad_lengths),        cmocka_unit_test(bad_options),
        cmocka_unit_test(bad_bench_options),  cmocka_unit_test(bad_tokens),
        cmocka_unit_test(files_have_options),
        cmocka_unit_test(failed_writes),      cmocka_unit_test(hostile_bytes),
        cmocka_unit_test(more_than_is_free),  cmocka_unit_test(failed_allocations),
    };
    if (argc < 4) return 2;
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    write_random("q.npy", 4, 1, 4, 3, 8);
    write_random("k.npy", 4, 1, 2, 6, 8);
    write_random("v.npy", 4, 1, 2, 6, 8);
    expect_success(ATTEND "&& mv new.npy e.npy");
    int failed = cmocka_run_group_tests_name("command_errors", tests, NULL, NULL);
    command_stop();
    return failed;
}
