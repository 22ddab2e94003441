/* SPDX-License-Identifier: MIT
 * usage: test_ggml LIBGGML-RAPT LIBGGML-CPU
 * The backend as loaded by ggml: results against ggml's CPU backend, threads, aborts, loading twice. ./dev ggml runs
 * ggml's own tests. */
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../tests/support/cmocka_all.h"
#include "ggml-cpu.h"

static const char *library;

/* From the counters of backend.h, of which calls is first. */
static uint64_t calls(void) {
    const uint64_t *(*counters)(void) = (const uint64_t *(*)(void))function_of(rapt_device, "rapt_ggml_counters");
    return *counters();
}

static float *result_of(ggml_backend_t backend, const struct shape *shape) {
    struct node n = make_node(shape);
    fill_node(&n);
    assert_true(ggml_backend_supports_op(backend, n.out));
    float *result = malloc(ggml_nbytes(n.out) + 1);
    memset(n.out->data, 0xff, ggml_nbytes(n.out)); /* NaN */
    assert_int_equal(ggml_backend_graph_compute(backend, n.graph), GGML_STATUS_SUCCESS);
    memcpy(result, n.out->data, ggml_nbytes(n.out));
    free_node(&n);
    return result;
}

static size_t count_of(const struct shape *s) { return (size_t)(s->value_dim * s->heads * s->queries * s->batch); }

/* ggml's measure: squared error relative to the squares. */
static double error_of(const float *got, const float *expected, size_t count) {
    double error = 0, sum = 1e-30;
    for (size_t i = 0; i < count; i++) {
        error += ((double)got[i] - (double)expected[i]) * ((double)got[i] - (double)expected[i]);
        sum += (double)expected[i] * (double)expected[i];
    }
    return error / sum;
}

static const struct shape shapes[] = {
    {64, 64, 4, 2, 1, 300, 1, GGML_TYPE_F32, GGML_TYPE_F32, false, false, 0, 0},
    {64, 64, 4, 2, 7, 300, 2, GGML_TYPE_F16, GGML_TYPE_F16, true, true, 8, 30},
    {128, 128, 8, 2, 1, 5000, 1, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, true, false, 0, 0},
    {128, 64, 3, 3, 70, 130, 1, GGML_TYPE_Q4_1, GGML_TYPE_BF16, true, false, 4, 0},
    {64, 96, 2, 1, 5, 33, 1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, true, true, 0, 0.5f},
    {96, 64, 12, 1, 3, 257, 1, GGML_TYPE_IQ4_NL, GGML_TYPE_F16, true, false, 1, 0},
};

static void test_results(void **state) {
    (void)state;
    ggml_backend_t rapt = make_backend(rapt_device, 3), cpu = make_backend(cpu_device, 2);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const uint64_t before = calls();
        float *got = result_of(rapt, &shapes[i]), *expected = result_of(cpu, &shapes[i]);
        assert_int_equal(calls() - before, 1);
        const double error = error_of(got, expected, count_of(&shapes[i]));
        if (!(error < 5e-4))
            fail_msg("shape %zu: error %g", i, error);
        free(got), free(expected);
    }
    ggml_backend_free(rapt), ggml_backend_free(cpu);
}

/* The same bits for any number of threads, on backends in sequence or both at once. */
static void test_threads(void **state) {
    (void)state;
    const struct shape *shape = &shapes[2];
    ggml_backend_t one = make_backend(rapt_device, 1);
    float *expected = result_of(one, shape);
    for (int threads = 2; threads < 5; threads++) {
        ggml_backend_t more = make_backend(rapt_device, threads);
        float *got = result_of(more, shape);
        assert_memory_equal(got, expected, count_of(shape) * sizeof *got);
        free(got);
        ggml_backend_free(more);
    }
    free(expected);
    ggml_backend_free(one);
}

static void test_pool(void **state) {
    (void)state;
    typedef void (*set_pool)(ggml_backend_t, struct ggml_threadpool *);
    struct ggml_threadpool *(*make)(struct ggml_threadpool_params *) =
        (struct ggml_threadpool * (*)(struct ggml_threadpool_params *)) function_of(cpu_device, "ggml_threadpool_new");
    void (*end)(struct ggml_threadpool *) =
        (void (*)(struct ggml_threadpool *))function_of(cpu_device, "ggml_threadpool_free");
    struct ggml_threadpool_params params = ggml_threadpool_params_default(3);
    struct ggml_threadpool *pool = make(&params);
    ggml_backend_t with = make_backend(rapt_device, 3), without = make_backend(rapt_device, 1);
    ((set_pool)function_of(rapt_device, "ggml_backend_cpu_set_threadpool"))(with, pool);
    float *got = result_of(with, &shapes[2]), *expected = result_of(without, &shapes[2]);
    assert_memory_equal(got, expected, count_of(&shapes[2]) * sizeof *got);
    free(got), free(expected);
    ggml_backend_free(with), ggml_backend_free(without);
    end(pool);
}

static void *run_many(void *argument) {
    const struct shape *shape = argument;
    ggml_backend_t backend = make_backend(rapt_device, 2);
    float *first = result_of(backend, shape);
    for (int i = 0; i < 20; i++) {
        float *got = result_of(backend, shape);
        assert_memory_equal(got, first, count_of(shape) * sizeof *got);
        free(got);
    }
    ggml_backend_free(backend);
    return first;
}

static void test_two_at_once(void **state) {
    (void)state;
    pthread_t threads[2];
    float *results[2];
    struct shape of[] = {shapes[1], shapes[4]};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &of[i]), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], (void **)&results[i]), 0);
        float *alone = run_many(&of[i]);
        assert_memory_equal(results[i], alone, count_of(&of[i]) * sizeof(float));
        free(alone), free(results[i]);
    }
}

/* Called before the node and before each task: data counts the "no" answers. */
static bool stops_at_zero(void *data) { return (*(int *)data)-- <= 0; }

static void test_abort(void **state) {
    (void)state;
    ggml_backend_t backend = make_backend(rapt_device, 1);
    struct node n = make_node(&shapes[2]);
    int left = 0;
    fill_node(&n);
    const ggml_backend_set_abort_callback_t set =
        (ggml_backend_set_abort_callback_t)function_of(rapt_device, "ggml_backend_set_abort_callback");
    set(backend, stops_at_zero, &left);
    assert_int_equal(ggml_backend_graph_compute(backend, n.graph), GGML_STATUS_ABORTED);
    left = 2;
    assert_int_equal(ggml_backend_graph_compute(backend, n.graph), GGML_STATUS_ABORTED);
    left = 1 << 30;
    assert_int_equal(ggml_backend_graph_compute(backend, n.graph), GGML_STATUS_SUCCESS);
    assert_true(left < (1 << 30) - 2);
    set(backend, NULL, NULL);
    assert_int_equal(ggml_backend_graph_compute(backend, n.graph), GGML_STATUS_SUCCESS);
    free_node(&n);
    ggml_backend_free(backend);
}

/* No queries: nothing happens. No keys: zeros. */
static void test_empty(void **state) {
    (void)state;
    struct shape no_queries = shapes[1], no_keys = shapes[1];
    no_queries.queries = 0, no_keys.keys = 0;
    ggml_backend_t backend = make_backend(rapt_device, 2);
    free(result_of(backend, &no_queries));
    float *zeros = result_of(backend, &no_keys);
    for (size_t i = 0; i < count_of(&no_keys); i++)
        assert_true(zeros[i] == 0);
    free(zeros);
    ggml_backend_free(backend);
}

static void test_loading(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        ggml_backend_unload(ggml_backend_dev_backend_reg(rapt_device));
        assert_null(ggml_backend_reg_by_name("rapt"));
        assert_int_equal(setenv("RAPT_GGML", "0", 1), 0);
        assert_null(ggml_backend_load(library));
        assert_int_equal(unsetenv("RAPT_GGML"), 0);
        assert_non_null(ggml_backend_load(library));
        rapt_device = ggml_backend_dev_by_name("rapt");
        test_results(NULL);
    }
}

static void test_device(void **state) {
    (void)state;
    struct ggml_backend_dev_props props;
    ggml_backend_dev_get_props(rapt_device, &props);
    assert_string_equal(props.name, "rapt");
    assert_int_equal(props.type, GGML_BACKEND_DEVICE_TYPE_ACCEL);
    assert_ptr_equal(ggml_backend_dev_buffer_type(rapt_device), ggml_backend_cpu_buffer_type());
    assert_true(ggml_backend_dev_supports_buft(rapt_device, ggml_backend_cpu_buffer_type()));
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device),      cmocka_unit_test(test_results), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_pool),        cmocka_unit_test(test_abort),   cmocka_unit_test(test_empty),
        cmocka_unit_test(test_two_at_once), cmocka_unit_test(test_hostile), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_loading),
    };
    if (count != 3 || !ggml_backend_load(arguments[2]) || !ggml_backend_load(arguments[1]))
        return 1;
    library = arguments[1];
    rapt_device = ggml_backend_dev_by_name("rapt");
    cpu_device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
