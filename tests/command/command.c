/* SPDX-License-Identifier: MIT
 * What the command `rapt` computes: equivalent options give the same file. argv: the command, the command with the
 * failing allocator, the data folder, the emulator for both or nothing. */
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
#include "rapt/rapt.h"

enum { B = 2, H = 4, SQ = 5, SK = 9, D = 8 };
static const char *data_folder;
#define ATTEND "$rapt attend --query q.npy --key k.npy --value v.npy --out o.npy "
#define SAME " --expect o.npy --tolerance 0 --out p.npy"

static void write_mask(const char *path, bool (*sees)(int64_t b, int64_t h, int64_t i, int64_t j)) {
    static const int64_t shape[] = {B, H, SQ, SK};
    unsigned char mask[B * H * SQ * SK], *at = mask;
    for (int64_t b = 0; b < B; b++) {
        for (int64_t h = 0; h < H; h++) {
            for (int64_t i = 0; i < SQ; i++) {
                for (int64_t j = 0; j < SK; j++) *at++ = sees(b, h, i, j);
            }
        }
    }
    write_npy(path, NPY_BOOL, mask, 4, shape);
}

static bool causal_bottom_right(int64_t b, int64_t h, int64_t i, int64_t j) {
    return (void)b, (void)h, j <= i + SK - SQ;
}

static bool causal_top_left(int64_t b, int64_t h, int64_t i, int64_t j) {
    return (void)b, (void)h, j <= i;
}

static bool window_2_1(int64_t b, int64_t h, int64_t i, int64_t j) {
    int64_t position = i + SK - SQ;
    return (void)b, (void)h, j >= position - 2 && j <= position + 1;
}

static bool below_lengths(int64_t b, int64_t h, int64_t i, int64_t j) {
    return (void)h, (void)i, j < (b ? SK : 6);
}

static bool causal_below_lengths(int64_t b, int64_t h, int64_t i, int64_t j) {
    return (void)h, j <= i + (b ? SK : 6) - SQ;
}

static bool even_keys(int64_t b, int64_t h, int64_t i, int64_t j) {
    return (void)b, (void)h, (void)i, j % 2 == 0;
}

static bool odd_queries(int64_t b, int64_t h, int64_t i, int64_t j) {
    return (void)b, (void)h, (void)j, i % 2 == 1;
}

static void same_as_mask(const char *options, bool (*sees)(int64_t b, int64_t h, int64_t i, int64_t j)) {
    write_mask("m.npy", sees);
    expect_success(ATTEND "--mask m.npy --check --tolerance 2e-6");
    expect_success(ATTEND SAME " %s", options);
}

static void positions_mean_masks(void **state) {
    static const int32_t lengths[] = {6, SK};
    (void)state;
    write_npy("lengths.npy", NPY_INT32, lengths, 1, (const int64_t[]){B});
    same_as_mask("--causal", causal_bottom_right);
    same_as_mask("--causal --query-offset 4", causal_bottom_right);
    same_as_mask("--causal --query-offset 0", causal_top_left);
    same_as_mask("--window -1,0 --query-offset=0", causal_top_left);
    same_as_mask("--window 2,1", window_2_1);
    same_as_mask("--kv-lengths lengths.npy", below_lengths);
    same_as_mask("--kv-lengths lengths.npy --causal", causal_below_lengths);
}

static void masks_broadcast(void **state) {
    static const unsigned char alternating[] = {1, 0, 1, 0, 1, 0, 1, 0, 1}, odd[] = {0, 1, 0, 1, 0},
                               yes[] = {1};
    (void)state;
    write_npy("keys.npy", NPY_BOOL, alternating, 1, (const int64_t[]){SK});
    write_npy("queries.npy", NPY_BOOL, odd, 2, (const int64_t[]){SQ, 1});
    write_npy("yes.npy", NPY_BOOL, yes, 0, NULL);
    same_as_mask("--mask keys.npy", even_keys);
    same_as_mask("--mask queries.npy", odd_queries);
    expect_success(ATTEND);
    expect_success(ATTEND SAME " --mask yes.npy");
}

static void bias_means_alibi(void **state) {
    static const float slopes[H] = {0.25f, 0.0625f, 0.015625f, 0.00390625f};
    float bias[H][SQ][SK];
    (void)state;
    for (int h = 0; h < H; h++) {
        for (int i = 0; i < SQ; i++) {
            for (int j = 0; j < SK; j++) bias[h][i][j] = -slopes[h] * fabsf((float)(i + SK - SQ - j));
        }
    }
    write_npy("slopes.npy", NPY_FLOAT32, slopes, 1, (const int64_t[]){H});
    write_npy("bias.npy", NPY_FLOAT32, bias, 3, (const int64_t[]){H, SQ, SK});
    expect_success(ATTEND "--bias bias.npy");
    expect_success(ATTEND "--expect o.npy --tolerance 1e-6 --out p.npy --alibi slopes.npy");
    expect_success(ATTEND "--expect o.npy --tolerance 1e-6 --out p.npy --alibi auto");
    assert_int_equal(command_shell(ATTEND SAME).status, 1);
}

/* Small integers / 4: n / 4 for -8 <= n < 8, in both types. */
static void write_halves(const char *half_path, const char *wide_path, int multiplier) {
    static const int64_t shape[] = {B, H, SK, D};
    static const uint16_t quarters[] = {0, 0x3400, 0x3800, 0x3a00, 0x3c00, 0x3d00, 0x3e00, 0x3f00, 0x4000};
    uint16_t half[B * H * SK * D];
    float wide[B * H * SK * D];
    for (int i = 0; i < B * H * SK * D; i++) {
        const int n = i * multiplier % 16 - 8;
        half[i] = (uint16_t)(quarters[n < 0 ? -n : n] | (n < 0 ? 0x8000 : 0));
        wide[i] = (float)n / 4;
    }
    write_npy(half_path, NPY_FLOAT16, half, 4, shape);
    write_npy(wide_path, NPY_FLOAT32, wide, 4, shape);
}

static void float16_keys_and_values(void **state) {
    (void)state;
    write_halves("k16.npy", "k32.npy", 37);
    write_halves("v16.npy", "v32.npy", 11);
    expect_success("$rapt attend --query q.npy --key k32.npy --value v32.npy --out o.npy --causal");
    expect_success("$rapt attend --query q.npy --key k16.npy --value v16.npy --causal" SAME);
    expect_success("$rapt attend --query q.npy --key k16.npy --value v16.npy --check --tolerance 2e-6 --out p.npy");
    expect_success("$rapt attend --query q.npy --key k16.npy --value v32.npy --causal" SAME);
    expect_success("$rapt attend --query q.npy --key k32.npy --value v16.npy --causal" SAME);
    expect_success("$rapt attend --query k32.npy --key k32.npy --value v32.npy --out o.npy");
    expect_success("$rapt attend --query k16.npy --key k32.npy --value v32.npy" SAME);
}

static void scores_are_right(void **state) {
    static const float sinks[H] = {0.5f, -1, 2, 0};
    (void)state;
    write_npy("sinks.npy", NPY_FLOAT32, sinks, 1, (const int64_t[]){H});
    expect_success(
        ATTEND "--check --tolerance 2e-6 --softcap 1.5 --scale 0.9 --sinks sinks.npy --alibi auto --causal");
    expect_success(ATTEND);
    expect_success(ATTEND "--expect o.npy --tolerance 1e-6 --scale 0.35355338 --softcap 0 --out p.npy");
    assert_int_equal(command_shell(ATTEND SAME " --scale 0.5").status, 1);
    assert_int_equal(command_shell(ATTEND SAME " --softcap 1").status, 1);
    assert_int_equal(command_shell(ATTEND SAME " --sinks sinks.npy").status, 1);
}

static void no_choice_changes_bits(void **state) {
    (void)state;
    expect_success(ATTEND);
    struct command_result info = expect_success("$rapt info");
    char *names = strstr(info.out, "\nkernels");
    assert_non_null(names);
    names[strcspn(names + 1, "\n") + 1] = '\0';
    int tables = 0;
    for (char *name = strtok(names + strlen("\nkernels"), " "); name; name = strtok(NULL, " "), tables++) {
        for (int threads = 1; threads <= 3; threads++) {
            struct command_result result =
                expect_success(ATTEND SAME " --isa %s --threads %d --repeat 3", name, threads);
            const bool is_unit = strcmp(name, "amx") == 0 || strcmp(name, "avx512_bf16") == 0; /* not of float32 */
            assert_non_null(strstr(result.out, is_unit ? "avx512" : name));
            assert_non_null(strstr(result.out, "best of 3 runs"));
        }
    }
    assert_true(tables >= 1);
}

/* Small calls run on the calling thread, whatever the limit. */
static void threads_that_ran(void **state) {
    (void)state;
    assert_non_null(strstr(expect_success("OMP_NUM_THREADS=3 " ATTEND "--threads 8").out, ", 1 thread\n"));
    if (strstr(expect_success("$rapt info").out, "not in this build")) return;
    write_random("wide.npy", 4, 1, 8, 256, 64);
#define WIDE "$rapt attend --query wide.npy --key wide.npy --value wide.npy --out w.npy "
    assert_non_null(strstr(expect_success("OMP_NUM_THREADS=2 " WIDE "--threads 8").out, ", 2 threads\n"));
    assert_non_null(strstr(expect_success("OMP_NUM_THREADS=2 " WIDE "--threads 1").out, ", 1 thread\n"));
    assert_non_null(strstr(expect_success("OMP_NUM_THREADS=8 OMP_THREAD_LIMIT=2 " WIDE).out, ", 2 threads\n"));
}

/* [..., heads, tokens, dim] to [..., tokens, heads, dim]. */
static void transpose(const char *from, const char *to) {
    struct npy_array array = npy_read(from, NPY_FLOAT32);
    int64_t *last = array.shape + array.dims - 3;
    const int64_t heads = last[0], tokens = last[1], dim = last[2];
    float *moved = malloc((size_t)array.count * sizeof *moved);
    assert_non_null(moved);
    for (int64_t i = 0; i < array.count; i++) {
        const int64_t d = i % dim, token = i / dim % tokens, head = i / dim / tokens % heads;
        const int64_t b = i / dim / tokens / heads;
        moved[((b * tokens + token) * heads + head) * dim + d] = ((const float *)array.data)[i];
    }
    last[0] = tokens;
    last[1] = heads;
    write_npy(to, NPY_FLOAT32, moved, array.dims, array.shape);
    free(moved);
}

#define SMALL "$rapt attend --query qs.npy --key ks.npy --value vs.npy "

static void layouts_agree(void **state) {
    (void)state;
    for (int dims = 3; dims <= 4; dims++) {
        const int64_t batch = dims == 4 ? B : 1;
        write_random("qs.npy", dims, batch, 6, 4, 16);
        write_random("ks.npy", dims, batch, 2, 7, 16);
        write_random("vs.npy", dims, batch, 2, 7, 5);
        expect_success(SMALL "--out os.npy --lse l.npy --causal");
        transpose("qs.npy", "qt.npy");
        transpose("ks.npy", "kt.npy");
        transpose("vs.npy", "vt.npy");
        transpose("os.npy", "ot.npy");
        expect_success("$rapt attend --query qt.npy --key kt.npy --value vt.npy --out p.npy --lse lt.npy --layout bshd "
                       "--causal --check --expect ot.npy --tolerance 2e-6");
        expect_success("$rapt compare l.npy lt.npy --tolerance 2e-6");
    }
}

/* [tokens, dim] has one head, wherever the layout puts heads. */
static void layouts_of_one_head(void **state) {
    (void)state;
    write_random("qs.npy", 2, 1, 1, 4, 16);
    write_random("ks.npy", 2, 1, 1, 7, 16);
    write_random("vs.npy", 2, 1, 1, 7, 5);
    expect_success(SMALL "--out os.npy --causal");
    expect_success(SMALL "--out p.npy --causal --layout bshd --expect os.npy --tolerance 0");
}

static void dimensions_follow_the_query(void **state) {
    (void)state;
    for (int dims = 2; dims <= 4; dims++) {
        write_random("qs.npy", dims, 1, dims > 2 ? 6 : 1, 3, 16);
        write_random("ks.npy", dims, 1, dims > 2 ? 2 : 1, 7, 16);
        write_random("vs.npy", dims, 1, dims > 2 ? 2 : 1, 7, 5);
        expect_success(SMALL "--out p.npy --lse l.npy --weights w.npy --check --tolerance 2e-6");
        struct npy_array out = npy_read("p.npy", NPY_FLOAT32), lse = npy_read("l.npy", NPY_FLOAT32);
        struct npy_array weights = npy_read("w.npy", NPY_FLOAT32);
        assert_int_equal(out.dims, dims);
        assert_int_equal(out.shape[dims - 1], 5);
        assert_int_equal(lse.dims, dims - 1);
        assert_int_equal(weights.shape[dims - 1], 7);
        for (int64_t i = 0; i < weights.count; i += 7) {
            double sum = 0;
            for (int j = 0; j < 7; j++) sum += (double)((const float *)weights.data)[i + j];
            assert_true(fabs(sum - 1) < 1e-6);
        }
    }
}

static void kinds_of_weights(void **state) {
    static const char *const kinds[] = {"raw", "softcap", "masked", "softmax"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        expect_success(ATTEND
                       "--softcap 2 --causal --check --tolerance 2e-6 --weights w%d.npy --weights-kind %s",
                       i, kinds[i]);
        for (int j = 0; j < i; j++) {
            char line[64];
            snprintf(line, sizeof line, "cmp -s w%d.npy w%d.npy", i, j);
            assert_int_equal(command_shell(line).status, 1);
        }
    }
}

static void empty_arrays(void **state) {
    (void)state;
    write_random("none.npy", 4, B, H, 0, D);
    expect_success(
        "$rapt attend --query none.npy --key k.npy --value v.npy --out p.npy --check --tolerance 0");
    expect_success(
        "$rapt attend --query q.npy --key none.npy --value none.npy --out p.npy --check --tolerance 0");
}

static void negative_offsets_are_warned_of(void **state) {
    (void)state;
    struct command_result result =
        command_shell("$rapt attend --query k.npy --key q.npy --value q.npy --out p.npy --causal");
    assert_int_equal(result.status, 0);
    assert_non_null(
        strstr(result.err, "rapt: warning: sequence 0 has 5 keys for 9 queries, so its first query stands at -4, "));
    assert_null(strstr(result.err, "right-padded"));
    write_npy("short.npy", NPY_INT32, (const int32_t[]){SQ, SQ - 1}, 1, (const int64_t[]){B});
    result = command_shell(ATTEND "--kv-lengths short.npy --causal");
    assert_non_null(strstr(result.err, "sequence 1 has 4 keys for 5 queries"));
    assert_non_null(strstr(result.err, "aligns both at the start (right-padded sequences)"));
    expect_success(
        "$rapt attend --query k.npy --key q.npy --value q.npy --out p.npy --causal --query-offset 0");
}

static void words_are_shown(void **state) {
    char line[1024];
    (void)state;
    snprintf(line, sizeof line,
             "d=%s/first_layer; $rapt attend --query $d/query.npy --key $d/key.npy --value $d/value.npy "
             "--out o2.npy --expect $d/out.npy --tolerance 3.9e-6 --tokens $d/tokens.txt --show-head 5",
             data_folder);
    setenv("LC_ALL", "C", 1);
    struct command_result result = expect_success("%s", line);
    assert_non_null(strstr(result.out, "\n     working  stopped     72% #### "));
    setenv("LC_ALL", "C.UTF-8", 1);
    result = expect_success("%s", line);
    assert_non_null(strstr(result.out, "\n     working  stopped     72% ███▋ "));
    for (const char *at = result.out, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        int columns = 0;
        for (const char *c = at; c < end; c++) columns += (*c & 0xC0) != 0x80;
        if (at > strstr(result.out, "Head 5")) assert_true(columns <= 80);
    }
    write_random("q1.npy", 2, 1, 1, 2, 4);
    write_bytes("words.txt", "\x1b[2J\n\xff\xc3\xa9", 8);
    result = expect_success(
        "$rapt attend --query q1.npy --key q1.npy --value q1.npy --out p.npy --tokens words.txt");
    assert_non_null(strstr(result.out, "        ?[2J  "));
    assert_non_null(strstr(result.out, "          ?é  "));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_mean_masks),
        cmocka_unit_test(masks_broadcast),
        cmocka_unit_test(bias_means_alibi),
        cmocka_unit_test(float16_keys_and_values),
        cmocka_unit_test(scores_are_right),
        cmocka_unit_test(no_choice_changes_bits), cmocka_unit_test(threads_that_ran),
        cmocka_unit_test(layouts_agree), cmocka_unit_test(layouts_of_one_head),
        cmocka_unit_test(dimensions_follow_the_query),
        cmocka_unit_test(kinds_of_weights),
        cmocka_unit_test(empty_arrays),
        cmocka_unit_test(negative_offsets_are_warned_of),
        cmocka_unit_test(words_are_shown),
    };
    if (argc < 4) return 2;
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    data_folder = command_link("minilm", argv[3]);
    write_random("q.npy", 4, B, H, SQ, D);
    write_random("k.npy", 4, B, H, SK, D);
    write_random("v.npy", 4, B, H, SK, D);
    int failed = cmocka_run_group_tests_name("command", tests, NULL, NULL);
    command_stop();
    return failed;
}
