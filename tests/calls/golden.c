/* SPDX-License-Identifier: MIT
 * Queries, keys and values of a real language model against PyTorch's results (data/minilm/README.md), on every
 * instruction set of this machine. argv[1]: the folder of the data. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "files/npy.h"
#include "rapt/rapt.h"
#include "support/errors.h"

static const char *data_folder;

struct scene {
    struct npy_array query, key, value, out, out64, lengths;
    float *result, *weights;
    rapt_attention_desc desc;
};

static struct npy_array load(const char *folder, const char *name, unsigned accepted) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s.npy", data_folder, folder, name);
    return npy_read(path, accepted);
}

static rapt_tensor tensor_of(const struct npy_array *array) {
    const int64_t *shape = array->shape + array->dims - 3;
    return rapt_input_bhsd(array->data, array->dims == 4 ? array->shape[0] : 1, shape[0], shape[1], shape[2]);
}

static struct scene load_scene(const char *folder, rapt_isa isa) {
    struct scene scene = {
        .query = load(folder, "query", NPY_FLOAT32),
        .key = load(folder, "key", NPY_FLOAT32),
        .value = load(folder, "value", NPY_FLOAT32),
        .out = load(folder, "out", NPY_FLOAT32),
        .out64 = load(folder, "out64", NPY_FLOAT64),
        .desc = RAPT_ATTENTION_DESC_INIT,
    };
    rapt_attention_desc *desc = &scene.desc;
    const int64_t *shape = scene.query.shape + scene.query.dims - 3;
    desc->isa = isa;
    desc->batch = scene.query.dims == 4 ? scene.query.shape[0] : 1;
    desc->query_heads = desc->kv_heads = shape[0];
    desc->query_length = desc->kv_length = shape[1];
    desc->head_dim = shape[2];
    desc->query = tensor_of(&scene.query);
    desc->key = tensor_of(&scene.key);
    desc->value = tensor_of(&scene.value);
    scene.result = malloc((size_t)scene.out.count * sizeof(float));
    assert_non_null(scene.result);
    desc->out = rapt_output_bhsd(scene.result, desc->batch, shape[0], shape[1], shape[2]);
    return scene;
}

static double largest_difference(const float *got, const double *expected, int64_t count) {
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = larger_error(largest, fabs((double)got[i] - expected[i]));
    return largest;
}

/* A NaN among the numbers is the largest difference, wherever it is. */
static void differences_of_nan(void **state) {
    static const double expected[3] = {1, 1, 1};
    (void)state;
    for (int place = 0; place < 3; place++) {
        float got[3] = {1, 1.5f, 1};
        got[place] = NAN;
        assert_true(isnan(largest_difference(got, expected, 3)));
    }
}

/* Four times PyTorch's own distance from float64, at least 2^-21 of the largest number. */
static double tolerance_of(const struct npy_array *out, const struct npy_array *out64) {
    double largest = 0;
    for (int64_t i = 0; i < out64->count; i++)
        largest = fmax(largest, fabs(((const double *)out64->data)[i]));
    return fmax(4 * largest_difference(out->data, out64->data, out->count), ldexp(largest, -21));
}

static void check(struct scene *scene) {
    rapt_message message;
    rapt_status status = rapt_attention(&scene->desc, NULL, &message);
    if (status != RAPT_OK) fail_msg("%s: %s", rapt_status_text(status), message.text);
    double tolerance = tolerance_of(&scene->out, &scene->out64);
    double error = largest_difference(scene->result, scene->out64.data, scene->out64.count);
    print_message("# %s: largest error %.2g of %.2g allowed\n", rapt_isa_name((rapt_isa)scene->desc.isa), error,
                  tolerance);
    if (!(error <= tolerance)) fail();
}

/* The heads whose weights are stored: the first and the last. */
static void check_weights(struct scene *scene, const char *folder) {
    struct npy_array expected = load(folder, "weights64", NPY_FLOAT64);
    const int64_t head = scene->desc.query_length * scene->desc.kv_length;
    assert_int_equal(expected.count, 2 * head);
    const float *last = scene->weights + (scene->desc.query_heads - 1) * head;
    /* Four times the error of PyTorch's float32 weights of these heads. */
    const double tolerance = 7.8e-7;
    assert_true(largest_difference(scene->weights, expected.data, head) <= tolerance);
    assert_true(largest_difference(last, (const double *)expected.data + head, head) <= tolerance);
}

static void on_each_isa(const char *folder, void (*test)(const char *folder, rapt_isa isa)) {
    for (int isa = RAPT_ISA_AUTO + 1; rapt_isa_name((rapt_isa)isa); isa++) {
        if (rapt_isa_available((rapt_isa)isa)) test(folder, (rapt_isa)isa);
    }
}

static void test_sentence(const char *folder, rapt_isa isa) {
    struct scene scene = load_scene(folder, isa);
    const int64_t heads = scene.desc.query_heads, tokens = scene.desc.query_length;
    scene.weights = malloc((size_t)(heads * tokens * tokens) * sizeof(float));
    assert_non_null(scene.weights);
    scene.desc.weights = rapt_output_bhsd(scene.weights, scene.desc.batch, heads, tokens, tokens);
    scene.desc.weights_kind = RAPT_WEIGHTS_SOFTMAX;
    check(&scene);
    check_weights(&scene, folder);
    free(scene.weights);
    free(scene.result);
}

static void test_padded(const char *folder, rapt_isa isa) {
    struct scene scene = load_scene(folder, isa);
    scene.lengths = load(folder, "kv_lengths", NPY_INT32);
    scene.desc.kv_lengths = rapt_int32_list(scene.lengths.data, scene.lengths.count);
    check(&scene);
    free(scene.result);
}

static void first_layer_of_a_sentence(void **state) {
    (void)state;
    on_each_isa("first_layer", test_sentence);
}

static void last_layer_of_a_sentence(void **state) {
    (void)state;
    on_each_isa("last_layer", test_sentence);
}

static void first_layer_of_a_padded_batch(void **state) {
    (void)state;
    on_each_isa("first_layer_padded", test_padded);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_of_nan),
        cmocka_unit_test(first_layer_of_a_sentence),
        cmocka_unit_test(last_layer_of_a_sentence),
        cmocka_unit_test(first_layer_of_a_padded_batch),
    };
    if (argc != 2) return 2;
    data_folder = argv[1];
    return cmocka_run_group_tests_name("golden", tests, NULL, NULL);
}
