/* SPDX-License-Identifier: MIT
 * `rapt layer`: each kind against its original's results, folders against safetensors, errors. argv: the command, the
 * command with the failing allocator, the folders of the cases and of the model's data, the model package's place, the
 * emulator or nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "command/run.h"
#include "support/errors.h"

static const char *minilm_data, *minilm_model;

static double distance(const char *path, const char *expected_path) {
    struct npy_array got = npy_read(path, NPY_FLOAT32), expected = npy_read(expected_path, NPY_FLOAT64);
    double largest = 0;
    assert_int_equal(got.dims, expected.dims);
    assert_memory_equal(got.shape, expected.shape, sizeof got.shape);
    for (int64_t i = 0; i < got.count; i++)
        largest = larger_error(largest,
                               fabs((double)((const float *)got.data)[i] - ((const double *)expected.data)[i]));
    return largest;
}

static double difference(const char *path, const char *case_name, const char *name) {
    char expected_path[512];
    snprintf(expected_path, sizeof expected_path, "%s/%s/%s64.npy", getenv("data"), case_name, name);
    return distance(path, expected_path);
}

/* options: without weights and results; $c is the folder of the case. */
static void kind(const char *name, const char *case_name, const char *options) {
    setenv("case", case_name, 1);
    expect_success("c=$data/$case; $rapt layer %s %s --out o.npy --weights-out w.npy", name, options);
    assert_true(difference("o.npy", case_name, "out") < 4e-6);
    assert_true(difference("w.npy", case_name, "weights") < 2.5e-6);
}

#define X "--weights $c --input $c/x.npy "

static void kinds(void **state) {
    (void)state;
    kind("simplified", "01b_simplified_journey", "--input $c/x.npy");
    kind("self", "02a_self_attention_v1", X "--layout in-out");
    kind("self", "02c_self_attention_v2_bias", X);
    kind("self", "03b_causal_long_context", X "--causal");
    kind("self", "04b_dropout_causal", X "--causal --drop 0.5 --keep $c/keep.npy");
    kind("stacked", "05b_stacked_bias", X "--causal");
    kind("multi-head", "06a_mha_split", X "--causal --heads 2");
    kind("multi-head", "04c_dropout_mha", X "--causal --heads 3 --drop 0.1 --keep $c/keep.npy");
    kind("fused", "07a_fused_qkv", X "--heads 3");
    kind("fused", "07c_fused_qkv_mask3d", X "--heads 3 --mask $c/mask.npy --mask-fill=-9e15");
    kind("dot", "08e_sdpa_5d", "--query $c/q.npy --key $c/k.npy --value $c/v.npy --mask $c/mask.npy --mask-fill=-1e9");
    kind("dot", "12g_generalised", "--query $c/q.npy --key $c/k.npy --value $c/v.npy --unscaled");
    kind("cross", "09b_cross_mha",
         "--weights $c --input $c/x_q.npy --memory $c/x_k.npy --memory-value $c/x_v.npy --heads 4 --mask $c/mask.npy "
         "--mask-fill=-1e9");
    kind("encoder", "10b_encoder_block_mask_affine", X "--heads 2 --mask $c/mask.npy --mask-fill=-9e15");
    kind("embedding", "11_embedding_to_attention", "--weights $c --ids $c/ids.npy --layout in-out");
    kind("additive", "12a_additive", "--weights $c --input $c/s.npy --memory $c/h.npy");
#define LUONG "--weights $c --input $c/h_t.npy --memory $c/h_s.npy "
    kind("luong", "12b_luong_dot", "--input $c/h_t.npy --memory $c/h_s.npy");
    kind("luong", "12d_luong_concat", LUONG "--score concat --attentional-out a.npy");
    assert_true(difference("a.npy", "12d_luong_concat", "attentional") < 5e-7);
    kind("luong", "12e_luong_local_p", LUONG "--score general --window local-p --reach 2");
    kind("luong", "12f_luong_local_m", LUONG "--score general --window local-m --reach 2");
}

struct extra {
    const char *file, *name; /* what --all-outputs writes, and what the case calls it */
};

static void extras(const char *name, const char *case_name, const char *options, const struct extra *expected) {
    setenv("case", case_name, 1);
    expect_success("rm -rf all; c=$data/$case; $rapt layer %s %s --out o.npy --all-outputs all", name, options);
    for (; expected->file; expected++) {
        char path[64];
        snprintf(path, sizeof path, "all/%s.npy", expected->file);
        const double apart = difference(path, case_name, expected->name);
        if (!(apart < 4e-6)) fail_msg("%s: %s is %g apart", case_name, path, apart);
    }
    assert_true(difference("all/attention.npy", case_name, "weights") < 2.5e-6);
    expect_success("mv all/attention.npy a.npy; c=$data/$case; $rapt layer %s %s --out o.npy --all-outputs all "
                   "--attention-out b.npy && cmp a.npy b.npy && cmp a.npy all/attention.npy", name, options);
}

static void what_is_computed_on_the_way(void **state) {
    (void)state;
#define EXTRAS (const struct extra[])
    extras("simplified", "01b_simplified_journey", "--input $c/x.npy", EXTRAS{{"scores", "scores"}, {NULL, NULL}});
    extras("dot", "12g_generalised", "--query $c/q.npy --key $c/k.npy --value $c/v.npy --unscaled",
           EXTRAS{{"scores", "scores"}, {NULL, NULL}});
    extras("self", "02a_self_attention_v1", X "--weights-layout in-out",
           EXTRAS{{"q", "q"}, {"k", "k"}, {"v", "v"}, {"scores", "scores"}, {NULL, NULL}});
    extras("multi-head", "06a_mha_split", X "--causal --heads 2", EXTRAS{{"context", "context"}, {NULL, NULL}});
    extras("encoder", "10b_encoder_block_mask_affine", X "--heads 2 --mask $c/mask.npy --mask-fill=-9e15",
           EXTRAS{{"attended", "attention"}, {"norm1", "norm1"}, {"feed_forward", "ff"}, {NULL, NULL}});
    extras("additive", "12a_additive", "--weights $c --input $c/s.npy --memory $c/h.npy",
           EXTRAS{{"scores", "scores"}, {NULL, NULL}});
    extras("luong", "12e_luong_local_p", "--weights $c --input $c/h_t.npy --memory $c/h_s.npy --score general "
           "--locality local-p --reach 2",
           EXTRAS{{"scores", "scores"}, {"alignment", "align"}, {"position", "p_t"}, {NULL, NULL}});
    extras("luong", "12b_luong_dot", "--input $c/h_t.npy --memory $c/h_s.npy",
           EXTRAS{{"scores", "scores"}, {NULL, NULL}});
    extras("luong", "12f_luong_local_m", "--weights $c --input $c/h_t.npy --memory $c/h_s.npy --score general "
           "--locality local-m --reach 2", EXTRAS{{"scores", "scores"}, {NULL, NULL}});
    expect_success("test ! -e all/alignment.npy && test ! -e all/position.npy");
    setenv("case", "07a_fused_qkv", 1);
    expect_success("c=$data/$case; $rapt layer fused --heads 3 " X
                   "--out o.npy --all-outputs all --attention-out a.npy");
    expect_success("test -e all/qkv.npy && test -e all/context.npy");
    expect_error("rapt: --all-outputs: o.npy/all: cannot be made: Not a directory",
                 "c=$data/$case; $rapt layer fused --heads 3 " X "--out new.npy --all-outputs o.npy/all");
    expect_error("layer minilm has no --all-outputs",
                 "$rapt layer minilm --weights w --ids i --out new.npy --all-outputs all");
}

static void dropout_by_seed(void **state) {
    (void)state;
    setenv("case", "04c_dropout_mha", 1);
#define DROP "c=$data/$case; $rapt layer multi-head " X "--heads 3 --drop 0.5 --out "
    expect_success(DROP "a.npy --seed 1 --threads 1");
    expect_success(DROP "b.npy --seed 1 && cmp a.npy b.npy");
    expect_success(DROP "b.npy --seed 2 && ! cmp -s a.npy b.npy");
    expect_success(DROP "b.npy && ! cmp -s a.npy b.npy");
}

/* Writes numbers as `type`: the upper halves of their bits for types of 16. */
static void write_as(FILE *file, const struct npy_array *array, enum npy_type type) {
    const int bytes = (int)npy_item_bytes(type);
    for (int64_t i = 0; i < array->count; i++)
        fwrite((const char *)array->data + 4 * i + 4 - bytes, 1, (size_t)bytes, file);
}

static void write_array(const char *name, const struct npy_array *array, enum npy_type type) {
    char path[512], header[256];
    snprintf(path, sizeof path, "w/%s.npy", name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(header, 1, (size_t)npy_header(header, type, array->dims, array->shape), file);
    write_as(file, array, type);
    fclose(file);
}

/* A fused layer's weights, concatenated from .npy files, as a safetensors file, and as a folder of .npy files. */
static void pack(const char *dtype, enum npy_type type) {
    static const char *const names[] = {"w_qkv", "b_qkv", "w_o", "b_o"};
    char header[2048] = "{";
    unsigned char length[8] = {0};
    FILE *data = fopen("data.bin", "wb"), *file = fopen("w.safetensors", "wb");
    long offset = 0;
    assert_true(data && file);
    expect_success("rm -rf w; mkdir w");
    for (int i = 0; i < 4; i++) {
        char path[512], shape[NPY_SHAPE_TEXT];
        snprintf(path, sizeof path, "%s/07a_fused_qkv/%s.npy", getenv("data"), names[i]);
        struct npy_array array = npy_read(path, NPY_FLOAT32);
        const long bytes = (long)(array.count * npy_item_bytes(type));
        sprintf(header + strlen(header), "%s\"layer.%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%ld,%ld]}",
                i ? "," : "", names[i], dtype, npy_shape_text(array.dims, array.shape, shape), offset, offset + bytes);
        write_as(data, &array, type);
        write_array(names[i], &array, type);
        offset += bytes;
    }
    strcat(header, "}");
    for (int i = 0; i < 2; i++) length[i] = (unsigned char)(strlen(header) >> (8 * i));
    fwrite(length, 1, 8, file);
    fputs(header, file);
    fclose(data);
    fclose(file);
    expect_success("cat data.bin >> w.safetensors");
}

#define PACKED "c=$data/07a_fused_qkv; $rapt layer fused --heads 3 --input $c/x.npy "

static void safetensors_are_folders(void **state) {
    (void)state;
#ifndef RAPT_HAVE_SAFETENSORS
    expect_error("built without safetensors: it needs Jansson",
                 "echo > w.safetensors; $rapt layer self --weights w.safetensors --input x.npy --out new.npy");
    skip();
#endif
    pack("F16", NPY_FLOAT16);
    expect_success(PACKED "--weights w --out a.npy");
    expect_success(PACKED "--weights w.safetensors --prefix layer. --out b.npy && cmp a.npy b.npy");
    pack("BF16", NPY_BFLOAT16);
    expect_success(PACKED "--weights w --out a.npy && ! cmp -s a.npy b.npy");
    expect_success(PACKED "--weights w.safetensors --prefix layer. --out b.npy && cmp a.npy b.npy");
    pack("F32", NPY_FLOAT32);
    expect_success(PACKED "--weights $c --out a.npy && ! cmp -s a.npy b.npy");
    expect_success(PACKED "--weights w.safetensors --prefix layer. --out b.npy && cmp a.npy b.npy");
    expect_error("w.safetensors: the weights lack the tensor 'w_qkv'",
                 PACKED "--weights w.safetensors --out new.npy");
    expect_error("bytes 0 to 1440 of 410 bytes", "head -c 700 w.safetensors > cut.safetensors; " PACKED
                                        "--weights cut.safetensors --prefix layer. --out new.npy");
    expect_error("not JSON", "sed 's/F32/F3\"/' w.safetensors > bad.safetensors; " PACKED
                             "--weights bad.safetensors --out new.npy");
    expect_error("'layer.w_qkv' holds I32, expected F32, F16 or BF16",
                 "sed 's/F32/I32/' w.safetensors > int.safetensors; " PACKED
                 "--weights int.safetensors --prefix layer. --out new.npy");
    expect_error("tensor '\\x1b[31mw' has the unknown dtype 'F33'",
                 "sed 's/F32/F33/; s/layer.w_qkv/\\\\u001b[31mw/' w.safetensors > hostile.safetensors; " PACKED
                 "--weights hostile.safetensors --out new.npy");
    expect_error("is neither a folder nor a file", PACKED "--weights /dev/null --out new.npy");
    expect_error("rapt: --weights: none: No such file", PACKED "--weights none --out new.npy");
    expect_error("rapt: --weights: the name is empty", PACKED "--weights '' --out new.npy");
    expect_error("rapt: --weights: loop/w_qkv.npy: Is a directory",
                 "mkdir -p loop/w_qkv.npy; " PACKED "--weights loop --out new.npy");
    expect_error("rapt: --all-outputs: the name is empty", PACKED "--weights $c --out new.npy --all-outputs ''");
}

static void bad_shapes(void **state) {
    (void)state;
    write_random("x.npy", 3, 1, 2, 5, 11);
    write_random("flat.npy", 4, 1, 1, 2, 5);
    setenv("case", "06a_mha_split", 1);
#define OUT "--out new.npy --weights-out new_weights.npy "
    expect_error("w_q.npy [2, 3] does not fit x.npy [2, 5, 11]: 3 and 11 numbers per token",
                 "c=$data/$case; $rapt layer self --weights $c --input x.npy " OUT);
    expect_error("flat.npy [1, 1, 2, 5]: expected [tokens, width]",
                 "c=$data/$case; $rapt layer self --weights $c --input flat.npy " OUT);
    expect_error("w_q gives 2 numbers, which do not divide into 3 heads",
                 "c=$data/$case; $rapt layer multi-head --heads 3 " X OUT);
    expect_error("w_qkv gives 36 numbers, which do not divide into 5 heads",
                 "c=$data/07a_fused_qkv; $rapt layer fused --heads 5 " X OUT);
    expect_error("[10, 5] does not fit", "c=$data/$case; $rapt layer dot --query $data/12a_additive/h.npy --key "
                                         "$data/12g_generalised/k.npy --value $data/12g_generalised/v.npy " OUT);
    expect_error("does not broadcast to the scores",
                 "c=$data/07c_fused_qkv_mask3d; $rapt layer fused --heads 3 --mask $data/10b_encoder_block_mask_affine/"
                 "mask.npy " X OUT);
    expect_error("sequences",
                 "c=$data/09b_cross_mha; $rapt layer cross --heads 4 --weights $c --input $c/x_q.npy --memory "
                              "$data/09c_cross_mha_one_query/x_k.npy " OUT);
}

static void missing_weights(void **state) {
    (void)state;
    setenv("case", "06a_mha_split", 1);
    expect_error("weights: the weights lack w_k.npy",
                 "mkdir weights; cp $data/$case/w_q.npy weights; $rapt layer self --weights weights --input "
                 "$data/$case/x.npy " OUT);
    expect_error("the weights lack w_o.npy", "c=$data/03a_causal; $rapt layer multi-head --heads 1 " X OUT);
    expect_error("the weights lack w_c.npy", "c=$data/12f_luong_local_m; $rapt layer luong " LUONG
                                             "--score general --attentional-out new_a.npy " OUT);
    expect_error("holds float64, expected float32",
                 "mkdir double; cp $data/$case/w_*.npy double; cp $data/$case/out64.npy double/w_q.npy; $rapt layer "
                 "self --weights double --input $data/$case/x.npy " OUT);
}

static void bad_matrices_of_luong(void **state) {
    (void)state;
    write_npy("line.npy", NPY_FLOAT32, (const float[]){0, 0}, 1, (const int64_t[]){2});
    expect_success("mkdir luong; cp line.npy luong/w_a.npy");
#define SCORED "c=$data/12b_luong_dot; $rapt layer luong --input $c/h_t.npy --memory $c/h_s.npy --weights luong "
    expect_error("luong/w_a.npy [2]: expected [6, 6]\n", SCORED "--score general " OUT);
    expect_error("luong/w_a.npy [2]: expected [units, 12]\n", SCORED "--score concat " OUT);
}

static void one_array_is_no_weights(void **state) {
    (void)state;
    setenv("case", "06a_mha_split", 1);
    expect_error("w_q.npy: is a .npy file: expected the folder that holds it, or a safetensors file\n",
                 "c=$data/$case; $rapt layer self --input $c/x.npy --weights $c/w_q.npy --out new.npy");
}

static void weights_are_not_replaced(void **state) {
    (void)state;
    setenv("case", "06a_mha_split", 1);
    expect_success("mkdir learned; cp $data/$case/[wb]_*.npy learned");
#define LEARNED "c=$data/$case; $rapt layer multi-head --heads 2 --input $c/x.npy --weights learned "
    expect_error("rapt: --out: learned/w_q.npy is also --weights\n", LEARNED "--out learned/w_q.npy");
    expect_error("rapt: --out: learned/../learned/w_k.npy is also --weights learned/w_k.npy\n",
                 LEARNED "--out learned/../learned/w_k.npy");
    expect_success("cmp learned/w_q.npy $data/$case/w_q.npy && cmp learned/w_k.npy $data/$case/w_k.npy");
    expect_success(LEARNED "--out learned/out.npy");
#ifdef RAPT_HAVE_SAFETENSORS
    pack("F32", NPY_FLOAT32);
    expect_error("rapt: --out: w.safetensors is also --weights\n",
                 PACKED "--weights w.safetensors --out w.safetensors");
#endif
}

static void bad_ids(void **state) {
    const int64_t ids[2] = {22, 23};
    (void)state;
    write_npy("ids.npy", NPY_INT64, ids, 1, (const int64_t[]){2});
    expect_error("ids.npy: ids[1] = 23, but the table has 23 rows",
                 "$rapt layer embedding --weights $data/11_embedding_to_attention --layout in-out --ids ids.npy " OUT);
    write_npy("line.npy", NPY_FLOAT32, (const float[]){0, 0}, 1, (const int64_t[]){2});
#define MINILM "$rapt layer minilm --weights words --ids ids.npy --out new.npy "
    expect_error("weight.npy [2]: expected [rows, width]",
                 "mkdir words; cp line.npy words/embeddings.word_embeddings.weight.npy; " MINILM);
    write_npy("three.npy", NPY_INT64, (const int64_t[]){3}, 1, (const int64_t[]){1});
    expect_error("rapt: three.npy: lengths[0] = 3 is outside 1 ... 2\n", MINILM "--lengths three.npy");
}

static void sentences(void **state) {
    char expected[512];
    (void)state;
    if (access(minilm_model, R_OK) != 0) {
        print_message("# %s is not there: `./dev setup minilm` installs the model\n", minilm_model);
        const char *ci = getenv("CI");
        assert_false(ci && strcmp(ci, "true") == 0);
        skip();
    }
    setenv("model", minilm_model, 1);
    setenv("minilm", minilm_data, 1);
    expect_success("$rapt layer minilm --weights $model --ids $minilm/embedding/ids.npy --lengths "
                   "$minilm/embedding/lengths.npy --out e.npy");
    snprintf(expected, sizeof expected, "%s/embedding/out64.npy", minilm_data);
    const double reached = distance("e.npy", expected);
    print_message("# embeddings: largest error %.2g of 1e-5 allowed\n", reached);
    assert_true(reached <= 1e-5);
    expect_error("lengths[0] = 101 is outside 1 ... 100",
                 "printf '\\145' > l; cp $minilm/embedding/lengths.npy l.npy; dd if=l of=l.npy bs=1 seek=128 "
                 "conv=notrunc 2>l.txt; $rapt layer minilm --weights $model --ids $minilm/embedding/ids.npy "
                 "--lengths l.npy --out new.npy");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),        cmocka_unit_test(what_is_computed_on_the_way),
        cmocka_unit_test(dropout_by_seed), cmocka_unit_test(safetensors_are_folders),
        cmocka_unit_test(bad_shapes),   cmocka_unit_test(missing_weights), cmocka_unit_test(weights_are_not_replaced),
        cmocka_unit_test(one_array_is_no_weights), cmocka_unit_test(bad_matrices_of_luong),
        cmocka_unit_test(bad_ids),
        cmocka_unit_test(sentences),
    };
    if (argc < 6) return 2;
    command_start(argc > 6 ? argv[6] : "", argv[1], argv[2]);
    setenv("data", command_link("layers", argv[3]), 1);
    minilm_data = command_link("minilm", argv[4]);
    minilm_model = command_link("model", argv[5]);
    int failed = cmocka_run_group_tests_name("command_layer", tests, NULL, NULL);
    command_stop();
    return failed;
}
