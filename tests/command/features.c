/* SPDX-License-Identifier: MIT
 * What `rapt attend` exposes of the engine, forms of input and reports. argv as of command.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "command/run.h"

enum { B = 2, H = 4, SQ = 5, SK = 9, D = 8 };
#define ATTEND "$rapt attend --query q.npy --key k.npy --value v.npy --out o.npy "
#define SAME " --expect o.npy --tolerance 0 --out p.npy"
#define CHECK " --check --tolerance 2e-6 "

static void write_list(const char *path, int64_t a, int64_t b) {
    write_npy(path, NPY_INT64, (const int64_t[]){a, b}, 1, (const int64_t[]){B});
}

/* Rows from a sequence's length on are 0; the others are as if alone. */
static void query_lengths(void **state) {
    (void)state;
    write_list("lengths.npy", 3, SQ);
    write_list("positions.npy", SK - 3, SK - SQ);
    expect_success(ATTEND "--query-lengths lengths.npy --causal --lse l.npy" CHECK);
    const struct npy_array out = npy_read("o.npy", NPY_FLOAT32);
    for (int i = 3 * D; i < SQ * D; i++) assert_true(((const float *)out.data)[i] == 0);
    expect_success(ATTEND SAME " --query-lengths lengths.npy --causal --query-positions positions.npy");
    expect_success(ATTEND "--causal --query-positions positions.npy" CHECK);
    const struct npy_array all = npy_read("o.npy", NPY_FLOAT32);
    for (int64_t i = 0; i < out.count; i++) {
        const bool real = i / D % SQ < 3 || i >= H * SQ * D;
        if (real) assert_true(((const float *)out.data)[i] == ((const float *)all.data)[i]);
    }
    write_list("lengths.npy", 3, SQ + 1);
    expect_error("query_lengths", ATTEND "--query-lengths lengths.npy --out new.npy");
}

static void positions(void **state) {
    (void)state;
    write_list("three.npy", 3, 3);
    expect_success(ATTEND "--causal --query-offset 3" CHECK);
    expect_success(ATTEND SAME " --causal --query-positions three.npy");
    write_list("far.npy", 1003, 1003);
    write_list("first.npy", 1000, 1000);
    expect_success(ATTEND SAME " --causal --query-positions far.npy --key-positions first.npy");
    expect_success(ATTEND "--window 2,0 --alibi auto --key-positions first.npy" CHECK);
    expect_success(ATTEND SAME " --window 2,0 --alibi auto");
    expect_error("--query-positions changes nothing without --causal",
                 ATTEND "--query-positions three.npy --out new.npy");
    expect_error("--key-positions changes nothing without --causal", ATTEND "--key-positions three.npy --out new.npy");
    expect_error("give one of them", ATTEND "--causal --query-offset 1 --query-positions three.npy --out new.npy");
}

static void masks_and_factors(void **state) {
    unsigned char mask[SQ][SK], none[SQ][SK] = {{0}};
    float bias[SQ][SK], scaled[H][SQ][SK];
    static const float factors[H] = {0, 1, -2, 0.5f};
    (void)state;
    for (int i = 0; i < SQ * SK; i++) {
        mask[i / SK][i % SK] = i % 3 != 0;
        bias[i / SK][i % SK] = (float)(i % 7) / 4;
        for (int h = 0; h < H; h++) scaled[h][i / SK][i % SK] = factors[h] * bias[i / SK][i % SK];
    }
    write_npy("mask.npy", NPY_BOOL, mask, 2, (const int64_t[]){SQ, SK});
    write_npy("none.npy", NPY_BOOL, none, 2, (const int64_t[]){SQ, SK});
    write_npy("bias.npy", NPY_FLOAT32, bias, 2, (const int64_t[]){SQ, SK});
    write_npy("scaled.npy", NPY_FLOAT32, scaled, 3, (const int64_t[]){H, SQ, SK});
    write_npy("factors.npy", NPY_FLOAT32, factors, 1, (const int64_t[]){H});
    expect_success(ATTEND "--mask mask.npy --mask-fill=-1.5" CHECK);
    assert_int_equal(command_shell(ATTEND SAME " --mask mask.npy").status, 1);
    expect_success(ATTEND "--mask none.npy --mask-fill 3" CHECK); /* all equal: uniform */
    expect_success(ATTEND "--scale 0 --expect o.npy --tolerance 1e-6 --out p.npy");
    expect_success(ATTEND "--bias bias.npy --bias-factor factors.npy" CHECK);
    expect_success(ATTEND SAME " --bias scaled.npy");
    expect_error("--mask-fill changes nothing without --mask", ATTEND "--mask-fill 1 --out new.npy");
    expect_error("--bias-factor changes nothing without --bias", ATTEND "--bias-factor factors.npy --out new.npy");
}

static void dropout(void **state) {
    unsigned char keep[SQ][SK];
    (void)state;
    for (int i = 0; i < SQ * SK; i++) keep[i / SK][i % SK] = i % 2;
    write_npy("keep.npy", NPY_BOOL, keep, 2, (const int64_t[]){SQ, SK});
    expect_success(ATTEND "--drop 0.5 --keep keep.npy" CHECK);
    assert_int_equal(command_shell(ATTEND SAME).status, 1);
    expect_success(ATTEND "--drop 0.25 --seed 1" CHECK);
    expect_success(ATTEND SAME " --drop 0.25 --seed 1 --threads 1");
    assert_int_equal(command_shell(ATTEND SAME " --drop 0.25 --seed 2").status, 1);
    expect_error("--keep changes nothing without --drop", ATTEND "--keep keep.npy --out new.npy");
    expect_error("--seed changes nothing without --drop", ATTEND "--seed 1 --out new.npy");
    expect_error("--seed changes nothing with --keep", ATTEND "--drop 0.5 --keep keep.npy --seed 1 --out new.npy");
    expect_error("--drop: 1 must be at least 0 and below 1", ATTEND "--drop 1 --out new.npy");
    expect_error("--drop: 0.99999999999 must be at least 0 and below 1, also when rounded to float32",
                 ATTEND "--drop 0.99999999999 --out new.npy");
    expect_error("--drop: -1e-3 must be at least 0", ATTEND "--drop=-1e-3 --out new.npy");
    expect_error("--drop: nan must be at least 0", ATTEND "--drop nan --out new.npy");
}

/* Both align the last query with the last key by default, and the first with the first on request. */
static void layers_align_as_attend(void **state) {
    (void)state;
    expect_success("$rapt layer dot --query q.npy --key kk.npy --value vv.npy --causal --out p.npy");
    expect_success("$rapt attend --query q.npy --key kk.npy --value vv.npy --causal --out o.npy");
    expect_success("$rapt compare o.npy p.npy");
    expect_success("$rapt attend --query q.npy --key kk.npy --value vv.npy --causal --query-offset 0 --out o.npy");
    assert_int_equal(command_shell("$rapt compare o.npy p.npy").status, 1);
    expect_success("$rapt layer dot --query q.npy --key kk.npy --value vv.npy --causal --query-offset 0 --out p.npy");
    expect_success("$rapt compare o.npy p.npy");
    expect_error("--query-offset: 1: layer dot has 0 and keys - queries, here 4",
                 "$rapt layer dot --query q.npy --key kk.npy --value vv.npy --causal --query-offset 1 --out new.npy");
    expect_error("--query-offset changes nothing without --causal",
                 "$rapt layer dot --query q.npy --key kk.npy --value vv.npy --query-offset 1 --out new.npy");
}

/* Against other options or plain C: --check reads the same options as the call. */
static void numbers_mean_what_they_say(void **state) {
    static float zeros[B * H * SQ * D], fill[SQ][SK];
    unsigned char mask[SQ][SK], all[SQ][SK];
    (void)state;
    for (int i = 0; i < SQ * SK; i++) {
        mask[i / SK][i % SK] = i % 3 != 0;
        all[i / SK][i % SK] = 1;
        fill[i / SK][i % SK] = i % 3 != 0 ? 0 : -1.5f;
    }
    write_npy("zeros.npy", NPY_FLOAT32, zeros, 4, (const int64_t[]){B, H, SQ, D});
    write_npy("mask.npy", NPY_BOOL, mask, 2, (const int64_t[]){SQ, SK});
    write_npy("every.npy", NPY_BOOL, all, 2, (const int64_t[]){SQ, SK});
    write_npy("fill.npy", NPY_FLOAT32, fill, 2, (const int64_t[]){SQ, SK});
    expect_success(ATTEND "--query zeros.npy --bias fill.npy");
    expect_success(ATTEND "--query zeros.npy --mask mask.npy --mask-fill=-1.5 "
                   "--expect o.npy --tolerance 1e-6 --out p.npy");
    expect_success(ATTEND "--softcap 1.5 --attention-out raw.npy --attention-kind raw");
    expect_success(ATTEND "--softcap 1.5 --attention-out cap.npy --attention-kind softcap");
    const struct npy_array raw = npy_read("raw.npy", NPY_FLOAT32), cap = npy_read("cap.npy", NPY_FLOAT32);
    for (int64_t i = 0; i < raw.count; i++) {
        const double s = (double)((const float *)raw.data)[i], c = (double)((const float *)cap.data)[i];
        assert_true(fabs(c - 1.5 * tanh(s / 1.5)) < 1e-6);
    }
    expect_success(ATTEND);
    const struct npy_array plain = npy_read("o.npy", NPY_FLOAT32);
    expect_success(ATTEND "--drop 0.75 --keep every.npy");
    const struct npy_array kept = npy_read("o.npy", NPY_FLOAT32);
    for (int64_t i = 0; i < plain.count; i++)
        assert_true(fabs((double)((const float *)kept.data)[i] - 4 * (double)((const float *)plain.data)[i]) < 1e-5);
}

/* Shows the chosen sequence, and its words if padding shortens it. */
static void shown_sequences(void **state) {
    struct command_result result;
    static const float query[2][3] = {{9, 0, 0}, {0, 9, 0}};
    static const float key[2][3][3] = {{{1, 0, 0}, {0, 0, 0}, {0, 0, 0}}, {{0, 0, 0}, {0, 1, 0}, {0, 0, 0}}};
    (void)state;
    write_npy("sq.npy", NPY_FLOAT32, query, 4, (const int64_t[]){2, 1, 1, 3});
    write_npy("sk.npy", NPY_FLOAT32, key, 4, (const int64_t[]){2, 1, 3, 3});
    write_bytes("words.txt", "one\ntwo\nthree\n", 14);
    result = expect_success("$rapt attend --query sq.npy --key sk.npy --value sk.npy --out p.npy --tokens words.txt");
    assert_non_null(strstr(result.out, "three  one "));
    result = expect_success("$rapt attend --query sq.npy --key sk.npy --value sk.npy --out p.npy --tokens words.txt "
                            "--show-batch 1");
    assert_non_null(strstr(result.out, "three  two "));
    write_npy("nan.npy", NPY_FLOAT32, (const float[2][3]){{NAN, 0, 0}, {0, 9, 0}}, 4, (const int64_t[]){2, 1, 1, 3});
    result = expect_success("$rapt attend --query nan.npy --key sk.npy --value sk.npy --out p.npy --tokens words.txt");
    assert_non_null(strstr(result.out, "three  (NaN)\n"));
}

static void isa_auto(void **state) {
    (void)state;
    expect_success(ATTEND);
    expect_success(ATTEND SAME " --isa auto");
}

static void expect_json(const char *line, const char *said) {
    struct command_result result = expect_success("%s", line);
    if (!strstr(result.out, said)) fail_msg("%s\ndoes not say %s:\n%s", line, said, result.out);
    if (command_shell("command -v python3").status == 0)
        expect_success("( %s ) | python3 -m json.tool >json.txt", line);
}

static void forms_of_reports(void **state) {
    (void)state;
    expect_json(ATTEND "--json --check --lse l.npy --attention-out a.npy --tolerance 1",
                "\"out\": {\"file\": \"o.npy\", \"shape\": [2, 4, 5, 8]}");
    expect_json("cp o.npy same.npy; " ATTEND "--json --expect same.npy", "\"expect\": {\"largest_error\": 0, ");
    expect_json(ATTEND "--json --out \"$(printf '\\\\\\\\\"\\033\\377.npy')\"", "\\\\\\\"\\u001b\\ufffd.npy");
    expect_json("LC_ALL=C " ATTEND "--json --out \"$(printf '\\303\\251\\355\\240\\200\\303.npy')\"",
                "\"\303\251\\ufffd\\ufffd\\ufffd\\ufffd.npy\"");
    assert_string_equal(expect_success(ATTEND "--quiet --check --tolerance 1").out, "");
    assert_int_equal(command_shell(ATTEND "--quiet --check --tolerance 0").status, 1);
    expect_error("--json does not go with --quiet", ATTEND "--json --quiet --out new.npy");
    assert_string_equal(expect_success("$rapt layer dot --query q.npy --key kk.npy --value vv.npy --out p.npy "
                                       "--quiet").out, "");
}

/* Two keys of the same score: out and weights are exact, and the LSE, which float32 cannot hold, is not. */
static void checks_of_all_results(void **state) {
    static const float query[1] = {1}, key[2] = {1000, 1000}, value[2] = {1, 1};
    (void)state;
    write_npy("hq.npy", NPY_FLOAT32, query, 3, (const int64_t[]){1, 1, 1});
    write_npy("hk.npy", NPY_FLOAT32, key, 3, (const int64_t[]){1, 2, 1});
    write_npy("hv.npy", NPY_FLOAT32, value, 3, (const int64_t[]){1, 2, 1});
#define TWO "$rapt attend --query hq.npy --key hk.npy --value hv.npy --out p.npy --check "
    expect_success(TWO "--tolerance 1e-12");
    expect_success(TWO "--tolerance 1e-12 --attention-out a.npy");
    struct command_result result = command_shell(TWO "--tolerance 1e-12 --lse l.npy --attention-out a.npy");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.out, "\ncheck    largest error 0, 0 of its row's maximum; within 1e-12\n lse     "));
    assert_non_null(strstr(result.out, "; EXCEEDS 1e-12\n weights largest error 0, "));
    assert_non_null(strstr(result.out, "\nweights  a.npy [1, 1, 2]\n"));
    result = command_shell(TWO "--tolerance 1e-12 --lse l.npy --json");
    assert_non_null(strstr(result.out, "\"tolerance\": 1e-12, \"within\": false}"));
    assert_int_equal(command_shell(TWO "--tolerance 1e-12 --lse l.npy --quiet").status, 1);
    /* Its error is 3e-5, and a tolerance of 1e-7 is one of 1e-4 there. */
    expect_success(TWO "--tolerance 1e-7 --lse l.npy");
}

/* Python's own module writes what NumPy's savez and savez_compressed write. */
static void archives(void **state) {
    (void)state;
#ifndef RAPT_HAVE_NPZ
    expect_error("all.npz:q: this rapt was built without .npz archives", ATTEND "--query all.npz:q --out new.npy");
    skip();
#endif
    if (command_shell("command -v python3").status != 0) skip();
    expect_success("python3 -c 'import zipfile\n"
                   "for name, how in ((\"all\", zipfile.ZIP_STORED), (\"packed\", zipfile.ZIP_DEFLATED)):\n"
                   "  with zipfile.ZipFile(name + \".npz\", \"w\", how) as z:\n"
                   "    for a in \"qkv\": z.write(a + \".npy\")\n'");
    expect_success(ATTEND);
    expect_success(ATTEND SAME " --query all.npz:q --key all.npz:k.npy --value packed.npz:v");
    expect_error("rapt: --query: all.npz: is an archive: name one of its arrays, all.npz:NAME; it has q, k, v\n",
                 ATTEND "--query all.npz --out new.npy");
    expect_error("rapt: --mask: all.zip: is an archive: name one of its arrays, FILE.npz:NAME; it has q, k, v\n",
                 "cp all.npz all.zip; " ATTEND "--mask all.zip --out new.npy");
    expect_error("pipe.npz: not a .npy file: the magic string is missing",
                 "mkfifo pipe.npz; cat all.npz > pipe.npz & " ATTEND "--query pipe.npz --out new.npy");
    expect_error("all.npz: there is no array 'x': it has q, k, v", ATTEND "--query all.npz:x --out new.npy");
    expect_error("rapt: --query: none.npz: No such file", ATTEND "--query none.npz:q --out new.npy");
    expect_error("rapt: --out: all.npy is also --query all.npz\n",
                 "ln all.npz all.npy; " ATTEND "--query all.npz:q --out all.npy");
    expect_error("q.npz: Not a zip archive", "cp q.npy q.npz; " ATTEND "--query q.npz:q --out new.npy");
    expect_error("cut.npz: ", "head -c 900 all.npz > cut.npz; " ATTEND "--query cut.npz:q --out new.npy");
    expect_error("bad.npz:q: ", "python3 -c 'import sys\nb = bytearray(open(\"packed.npz\", \"rb\").read())\n"
                                "b[100] ^= 255\nopen(\"bad.npz\", \"wb\").write(b)'; " ATTEND
                                "--query bad.npz:q --out new.npy");
    expect_error("sum.npz:q: CRC error", "python3 -c 'b = bytearray(open(\"all.npz\", \"rb\").read())\n"
                                         "b[b.index(b\"NUMPY\") + 200] ^= 1\nopen(\"sum.npz\", \"wb\").write(b)'; "
                                         ATTEND "--query sum.npz:q --out new.npy");
    expect_success("cp q.npy odd.npz:q; " ATTEND SAME " --query odd.npz:q");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(query_lengths),          cmocka_unit_test(positions), cmocka_unit_test(masks_and_factors),
        cmocka_unit_test(dropout),                cmocka_unit_test(layers_align_as_attend),
        cmocka_unit_test(isa_auto),               cmocka_unit_test(numbers_mean_what_they_say),
        cmocka_unit_test(shown_sequences),        cmocka_unit_test(forms_of_reports),
        cmocka_unit_test(checks_of_all_results),  cmocka_unit_test(archives),
    };
    if (argc < 4) return 2;
    setenv("LC_ALL", "C.UTF-8", 1);
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    write_random("q.npy", 4, B, H, SQ, D);
    write_random("k.npy", 4, B, H, SK, D);
    write_random("v.npy", 4, B, H, SK, D);
    write_random("kk.npy", 4, B, H, SK, D);
    write_random("vv.npy", 4, B, H, SK, D);
    int failed = cmocka_run_group_tests_name("command_features", tests, NULL, NULL);
    command_stop();
    return failed;
}
