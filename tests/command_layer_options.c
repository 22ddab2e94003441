/* SPDX-License-Identifier: MIT
 * `rapt layer`: what its options mean, and which do not go together. argv: the command, the command with the failing
 * allocator, the folder of the cases, the emulator or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "command_run.h"

#define X "--weights $c --input $c/x.npy "
#define LUONG "--weights $c --input $c/h_t.npy --memory $c/h_s.npy "
#define OUT "--out new.npy --weights-out new_weights.npy "

/* A file that is there but cannot be read is no absent bias. */
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
}

/* The choice of a call comes before that of the environment. */
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
    expect_error("'transformer' is no kind of layer: there are simplified dot self", "$rapt layer transformer");
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
    expect_error("--weights-layout: 'x' is none of out-in in-out", "c=$data/$case; $rapt layer self --layout x " X OUT);
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
