/* SPDX-License-Identifier: MIT
 * `rapt layer`: its options' meanings and conflicts. argv: the command, the command with the failing allocator, the
 * folder of the cases, the emulator or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "command/run.h"

#define X "--weights $c --input $c/x.npy "
#define LUONG "--weights $c --input $c/h_t.npy --memory $c/h_s.npy "
#define OUT "--out new.npy --weights-out new_weights.npy "

/* An unreadable bias file is not an absent bias. */
static void bias_that_cannot_be_read(void **state) {
    (void)state;
    setenv("case", "06a_mha_split", 1);
    expect_error("linked/b_q.npy: No such file",
                 "mkdir linked; cp $data/$case/[wb]_*.npy linked; rm -f linked/b_q.npy; ln -s nothing linked/b_q.npy; "
                 "c=$data/$case; $rapt layer multi-head --heads 2 --input $c/x.npy --weights linked " OUT);
}

/* Of [2, 3] leading dimensions: the last of them, or all; one number for all keys. */
static void masks_of_dot(void **state) {
    unsigned char all[2][3][5][7], last[3][5][7], one[2][1][5][1], spread[2][3][5][7];
    (void)state;
    for (int i = 0; i < 2 * 3 * 5 * 7; i++) {
        const int b = i / 105, h = i / 35 % 3, q = i / 7 % 5, k = i % 7;
        last[h][q][k] = (h + 2 * q + 3 * k) % 4 != 0;
        all[b][h][q][k] = last[h][q][k];
        one[b][0][q][0] = (b + q) % 3 != 0;
        spread[b][h][q][k] = one[b][0][q][0];
    }
    write_random("mq.npy", 4, 2, 3, 5, 4);
    write_random("mk.npy", 4, 2, 3, 7, 4);
    write_npy("all.npy", NPY_BOOL, all, 4, (const int64_t[]){2, 3, 5, 7});
    write_npy("last.npy", NPY_BOOL, last, 3, (const int64_t[]){3, 5, 7});
    write_npy("one.npy", NPY_BOOL, one, 4, (const int64_t[]){2, 1, 5, 1});
    write_npy("spread.npy", NPY_BOOL, spread, 4, (const int64_t[]){2, 3, 5, 7});
#define MASKED "$rapt layer dot --query mq.npy --key mk.npy --value mk.npy --mask "
    expect_success(MASKED "all.npy --out a.npy && " MASKED "last.npy --out l.npy && cmp a.npy l.npy");
    expect_success(MASKED "spread.npy --out s.npy && " MASKED "one.npy --out o1.npy && cmp s.npy o1.npy");
    expect_success("! cmp -s a.npy s.npy");
    expect_error("last.npy [3, 5, 7] does not broadcast to the scores [2, 3, 5, 5]",
                 "$rapt layer dot --query mq.npy --key mq.npy --value mq.npy --mask last.npy --out new.npy");
    expect_error("--mask-fill changes nothing without --mask",
                 "$rapt layer dot --query mq.npy --key mk.npy --value mk.npy --mask-fill 1 --out new.npy");
}

/* The message shows the mask's own shape, not the library's. */
static void mask_of_sequences(void **state) {
    (void)state;
    setenv("case", "06a_mha_split", 1);
    write_npy("short.npy", NPY_BOOL, (const unsigned char[60]){1}, 3, (const int64_t[]){2, 5, 6});
    expect_error("short.npy [2, 5, 6] does not broadcast to the scores [2, 6, 6] [batch, queries, keys]",
                 "c=$data/$case; $rapt layer multi-head --heads 2 --mask short.npy " X OUT);
}

/* The folder of all outputs may hold the result, too, even if not there before. */
static void result_among_all_outputs(void **state) {
    (void)state;
    setenv("case", "06a_mha_split", 1);
#define INTO "c=$data/$case; $rapt layer multi-head --heads 2 " X "--all-outputs made "
    expect_error("none/y.npy: cannot be written", INTO "--out none/y.npy");
    expect_error("--out: made: cannot be written: Is a directory", INTO "--out made");
    expect_success("! test -e made");
    expect_success(INTO "--out made/y.npy && test -f made/q.npy && test -f made/y.npy");
}

static void archive_of_weights(void **state) {
    (void)state;
    setenv("case", "06a_mha_split", 1);
    write_bytes("w.zip", "PK\3\4 and what an archive has", 28);
    expect_error("--weights: w.zip: is an archive, but its name does not end with .npz",
                 "$rapt layer self --weights w.zip --input $data/$case/x.npy " OUT);
#define ARCHIVE "c=$data/$case; $rapt layer multi-head --heads 2 --input $c/x.npy --weights w.npz "
#ifndef RAPT_HAVE_NPZ
    expect_error("w.npz:w_q: this rapt was built without .npz archives", "cp w.zip w.npz; " ARCHIVE OUT);
    skip();
#endif
    expect_error("rapt: --weights: w.npz: ", "cp w.zip w.npz; " ARCHIVE OUT);
    if (command_shell("command -v python3").status != 0) skip();
    expect_success("python3 -c 'import os, zipfile\n"
                   "with zipfile.ZipFile(\"w.npz\", \"w\", zipfile.ZIP_DEFLATED) as z:\n"
                   "  for a in (\"w_q.npy\", \"w_k.npy\", \"w_v.npy\", \"w_o.npy\", \"b_o.npy\"):\n"
                   "    z.write(os.environ[\"data\"] + \"/06a_mha_split/\" + a, \"mha.\" + a)\n'");
    expect_success("c=$data/$case; $rapt layer multi-head --heads 2 " X "--out a.npy");
    expect_success(ARCHIVE "--prefix mha. --out b.npy && cmp a.npy b.npy");
    expect_error("w.npz: the weights lack w_q.npy", ARCHIVE OUT);
    expect_error("rapt: --out: w.npy is also --weights w.npz\n",
                 "ln w.npz w.npy; " ARCHIVE "--prefix mha. --out w.npy");
}

struct alignment {
    const char *options;
    int64_t first; /* the first query's position among the keys */
};

/* --causal against an explicit mask. layer: with its inputs. */
static void expect_alignments(const char *layer, int64_t queries, int64_t keys) {
    const struct alignment alignments[] = {
        {"--causal", keys - queries}, {"--causal --query-offset 0", 0}, {"--causal --query-offset 3", 3}};
    for (size_t a = 0; a < sizeof alignments / sizeof alignments[0]; a++) {
        unsigned char mask[128];
        assert_true((size_t)(queries * keys) <= sizeof mask);
        for (int64_t i = 0; i < queries * keys; i++) mask[i] = i % keys <= i / keys + alignments[a].first;
        write_npy("seen.npy", NPY_BOOL, mask, 2, (const int64_t[]){queries, keys});
        expect_success("c=$data/$case; $rapt layer %s --mask seen.npy --out m.npy", layer);
        expect_success("c=$data/$case; $rapt layer %s %s --out a.npy", layer, alignments[a].options);
        expect_success("$rapt compare m.npy a.npy");
    }
}

static void fewer_queries_than_keys(void **state) {
    (void)state;
    setenv("case", "09b_cross_mha", 1);
    expect_alignments("cross --heads 4 --weights $c --input $c/x_q.npy --memory $c/x_k.npy", 5, 11);
    setenv("case", "12a_additive", 1);
    expect_alignments("additive --weights $c --input $c/s.npy --memory $c/h.npy", 4, 10);
}

/* Reads NAME.npy of the case as [outer][a][b][...], and writes folder/NAME.npy as [outer][b][a][...]. */
static void write_swapped(const char *folder, const char *name, int64_t outer, int64_t a, int64_t b) {
    float swapped[512];
    char path[128];
    snprintf(path, sizeof path, "%s/%s/%s.npy", getenv("data"), getenv("case"), name);
    struct npy_array array = npy_read(path, NPY_FLOAT32);
    const int64_t inner = array.count / (outer * a * b);
    assert_true((size_t)array.count <= sizeof swapped / sizeof swapped[0]);
    for (int64_t i = 0; i < array.count; i++) {
        const int64_t of_b = i / inner % b, of_a = i / inner / b % a, o = i / inner / b / a;
        swapped[((o * b + of_b) * a + of_a) * inner + i % inner] = ((const float *)array.data)[i];
    }
    if (array.dims == 3) { /* heads, out and in */
        array.shape[1] = b;
        array.shape[2] = a;
    }
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    write_npy(path, NPY_FLOAT32, swapped, array.dims, array.shape);
}

/* A BLAS may round differently for other layouts. */
#define SAME "$rapt compare a.npy b.npy --tolerance 1e-6"

static void fused_orders(void **state) {
    (void)state;
    setenv("case", "07a_fused_qkv", 1);
    expect_success("mkdir blocks; cp $data/$case/[wb]_o.npy blocks");
    write_swapped("blocks", "w_qkv", 1, 3, 3);
    write_swapped("blocks", "b_qkv", 1, 3, 3);
#define FUSED "c=$data/$case; $rapt layer fused --heads 3 --input $c/x.npy "
    expect_success(FUSED "--weights $c --out a.npy");
    expect_success(FUSED "--weights $c --fused-order per-head --out b.npy && cmp a.npy b.npy");
    expect_success(FUSED "--weights blocks --fused-order blocks --out b.npy && " SAME);
    expect_error("--fused-order: 'heads' is not one of per-head blocks",
                 FUSED "--weights blocks --fused-order heads --out new.npy");
}

static void layouts_of_stacked_heads(void **state) {
    (void)state;
    setenv("case", "05b_stacked_bias", 1);
    expect_success("mkdir turned; cp $data/$case/b_?.npy turned");
    write_swapped("turned", "w_q", 3, 4, 5);
    write_swapped("turned", "w_k", 3, 4, 5);
    write_swapped("turned", "w_v", 3, 4, 5);
#define STACKED "c=$data/$case; $rapt layer stacked --input $c/x.npy "
    expect_success(STACKED "--weights $c --weights-layout out-in --out a.npy");
    expect_success(STACKED "--weights turned --layout in-out --out b.npy && " SAME);
    expect_error("turned/w_q.npy [3, 5, 4] does not fit", STACKED "--weights turned --out new.npy");
}

/* A call's choice precedes the environment's. */
static void isa_of_a_layer(void **state) {
    (void)state;
    setenv("case", "01b_simplified_journey", 1);
#define SIMPLIFIED "$rapt layer simplified --input $data/$case/x.npy "
    expect_success("RAPT_ISA=bogus " SIMPLIFIED "--isa scalar --out s1.npy");
    expect_error("RAPT_ISA = bogus", "RAPT_ISA=bogus " SIMPLIFIED OUT);
    setenv("case", "06a_mha_split", 1);
    expect_success("c=$data/$case; RAPT_ISA=bogus $rapt layer multi-head --heads 2 --isa scalar " X "--out m.npy");
    expect_error("RAPT_ISA = bogus", "c=$data/$case; RAPT_ISA=bogus $rapt layer multi-head --heads 2 " X OUT);
}

static void bad_options(void **state) {
    (void)state;
    setenv("case", "06a_mha_split", 1);
    expect_error("layer: the kind is missing", "$rapt layer");
    expect_error("'transformer' is not a kind of layer: there are simplified dot self", "$rapt layer transformer");
    expect_error("the kind of layer is missing: there are simplified dot self", "$rapt layer --out new.npy");
    expect_error("layer self: --weights DIR|FILE is required", "$rapt layer self --input x.npy --out new.npy");
    expect_error("layer multi-head: --heads N is required", "c=$data/$case; $rapt layer multi-head " X OUT);
    expect_error("layer self has no --heads", "c=$data/$case; $rapt layer self --heads 2 " X OUT);
    expect_error("layer simplified has no --causal",
                 "c=$data/$case; $rapt layer simplified --causal --input $c/x.npy " OUT);
    expect_error("unknown option --haeds; did you mean --heads? (see `rapt help layer self`)",
                 "$rapt layer self --haeds 2");
    expect_error("--heads: 0 is outside 1", "c=$data/$case; $rapt layer multi-head --heads 0 " X OUT);
    expect_error("--drop: 1.0 must be at least 0 and below 1", "c=$data/$case; $rapt layer self --drop 1.0 " X OUT);
    expect_error("--seed changes nothing without --drop", "c=$data/$case; $rapt layer self --seed 1 " X OUT);
    expect_error("--weights changes nothing without --score general or concat, --locality local-p or --attentional-out",
                 "c=$data/12b_luong_dot; $rapt layer luong " LUONG OUT);
    expect_error("--prefix changes nothing without --weights",
                 "c=$data/12b_luong_dot; $rapt layer luong --input $c/h_t.npy --memory $c/h_s.npy --prefix p " OUT);
    expect_error("--fused-order changes nothing without w_qkv among the weights",
                 "c=$data/06a_mha_split; $rapt layer encoder --heads 2 --fused-order blocks " X OUT);
    expect_error("--mask-fill changes nothing without --mask", "c=$data/$case; $rapt layer self --mask-fill 1 " X OUT);
    expect_error("--weights-layout: 'x' is not one of out-in in-out",
                 "c=$data/$case; $rapt layer self --layout x " X OUT);
    expect_error("--locality local-m: --reach is required",
                 "c=$data/12b_luong_dot; $rapt layer luong --window local-m " LUONG OUT);
    expect_error("two results cannot have the same name",
                 "c=$data/$case; $rapt layer self " X "--out new.npy --weights-out new.npy");
    expect_error("none/new.npy: cannot be written",
                 "c=$data/$case; $rapt layer self " X "--out new.npy --weights-out none/new.npy");
    assert_non_null(strstr(expect_success("$rapt help layer").out, "\n  luong                 Luong's: --score"));
    assert_non_null(strstr(expect_success("$rapt man").out, "\n.TP\n.B minilm\n"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bias_that_cannot_be_read),
        cmocka_unit_test(masks_of_dot),
        cmocka_unit_test(mask_of_sequences),
        cmocka_unit_test(result_among_all_outputs),
        cmocka_unit_test(archive_of_weights),
        cmocka_unit_test(fewer_queries_than_keys),
        cmocka_unit_test(fused_orders),
        cmocka_unit_test(layouts_of_stacked_heads),
        cmocka_unit_test(isa_of_a_layer),
        cmocka_unit_test(bad_options),
    };
    if (argc < 4) return 2;
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    setenv("data", command_link("layers", argv[3]), 1);
    int failed = cmocka_run_group_tests_name("command_layer_options", tests, NULL, NULL);
    command_stop();
    return failed;
}
