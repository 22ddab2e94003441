/* SPDX-License-Identifier: MIT
 * Memory that runs out. The linker redirects every allocation of this program's objects, rapt's included, to the
 * functions below. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "append/draw.h"
#include "format.h"
#include "rapt/layers.h"
#include "support/problem.h"

static bool counting;
static int allocations, frees, fail_at; /* fail_at: number of the failing allocation, 0 = none */

static bool fails(void) { return counting && ++allocations == fail_at; }

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t bytes) { return fails() ? NULL : __real_malloc(bytes); }
void *__wrap_calloc(size_t count, size_t bytes) { return fails() ? NULL : __real_calloc(count, bytes); }
void *__wrap_realloc(void *memory, size_t bytes) { return fails() ? NULL : __real_realloc(memory, bytes); }
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return fails() ? NULL : __real_aligned_alloc(alignment, bytes);
}
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes) {
    return fails() ? 12 /* ENOMEM */ : __real_posix_memalign(memory, alignment, bytes);
}
void __wrap_free(void *memory) {
    frees += counting && memory;
    __real_free(memory);
}

static void start_counting(int fail) {
    allocations = frees = 0;
    fail_at = fail;
    counting = true;
}

#define ROWS(batch, heads, kv_heads, queries, keys, dim, value_dim) \
    batch, heads, kv_heads, queries, keys, dim, value_dim
#define PLAIN DATA_NORMAL, RAPT_ORIGIN_BOTTOM_RIGHT, RAPT_WEIGHTS_SOFTMAX

static const struct problem_call calls[] = {
    {ROWS(2, 4, 2, 100, 300, 16, 16), USE_EVERYTHING, PLAIN, 1, 0, 0, 0, 0, 0},
    {ROWS(1, 4, 2, 1, 5000, 24, 17), USE_LSE, PLAIN, 2, 0, 0, 0, 0, 0},
    {ROWS(1, 1, 1, 1, 3, 4, 4), 0, PLAIN, 3, 0, 0, 0, 0, 0},
    {ROWS(3, 4, 2, 20, 300, 64, 32), USE_LSE | USE_KV_LENGTHS, PLAIN, 4, 0, RAPT_FORMAT_Q8_0, RAPT_FORMAT_Q4_0, 0, 0},
    {ROWS(2, 8, 2, 1, 700, 64, 64), USE_TREE | USE_BLOCKS, PLAIN, 5, 0, RAPT_FORMAT_I8, RAPT_FORMAT_F8_E4M3, 32, 1},
    {ROWS(3, 2, 2, 9, 200, 32, 48), USE_QUERY_LENGTHS | USE_KV_LENGTHS, PLAIN, 6, 0, RAPT_FORMAT_F16,
     RAPT_FORMAT_BF16, 0, 0},
};
static const struct problem_layout layouts[] = {
    {0},
    {0},
    {0},
    {.page_kind = RAPT_PAGES_DENSE, .page_tokens = 16},
    {.page_kind = RAPT_PAGES_LISTED, .page_tokens = 100},
    {.packed = PACKED_QUERIES | PACKED_KEYS},
};
enum { CALLS = sizeof calls / sizeof *calls };

static struct problem *laid_out(int call) {
    struct problem *plain = problem_new(&calls[call]), *problem = problem_laid_out(plain, &layouts[call]);
    problem_free(plain);
    return problem;
}

/* Each allocation of the one-call form fails once: a status, nothing written, nothing leaked. */
static void test_one_call(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct problem *expected = problem_expected(&calls[c]), *problem = laid_out(c);
        int needed = 0;
        for (int fail = 1; fail <= needed + 1; fail++) {
            rapt_message message;
            start_counting(fail);
            rapt_status status = rapt_attention(&problem->desc, NULL, &message);
            counting = false;
            needed = allocations >= fail ? allocations : needed;
            if (fail > needed)
                break; /* none failed */
            assert_int_equal(status, RAPT_OUT_OF_MEMORY);
            assert_int_equal(frees, allocations - 1);
            assert_true(message.text[0] != 0);
            assert_true(problem_is_untouched(problem));
        }
        assert_true(needed >= 1);
        assert_int_equal(frees, allocations);
        assert_true(problem_same(problem, expected));
        problem_free(problem);
        problem_free(expected);
    }
}

/* One attempt of a layer; 1 if the fail-th allocation was reached. */
static int layer_fails(rapt_status (*run)(rapt_message *message), int fail) {
    rapt_message message;
    start_counting(fail);
    const rapt_status status = run(&message);
    counting = false;
    if (allocations < fail) {
        assert_int_equal(status, RAPT_OK);
        assert_int_equal(frees, allocations);
        return 0;
    }
    assert_int_equal(status, RAPT_OUT_OF_MEMORY);
    assert_int_equal(frees, allocations - 1);
    return 1;
}

enum { TOKENS = 5, WIDTH = 4 };
static float numbers[TOKENS * WIDTH * WIDTH], written[TOKENS * WIDTH];

static rapt_attention_desc sizes(void) {
    rapt_attention_desc how = RAPT_ATTENTION_DESC_INIT;
    how.batch = how.query_heads = how.kv_heads = 1;
    how.query_length = how.kv_length = TOKENS;
    return how;
}

static rapt_status run_block(rapt_message *message) {
    const rapt_linear linear = rapt_linear_of(numbers, numbers, WIDTH, WIDTH);
    rapt_attention_desc how = sizes();
    rapt_multi_head_desc inner = RAPT_MULTI_HEAD_DESC_INIT;
    rapt_encoder_desc block = RAPT_ENCODER_DESC_INIT;
    inner.attention = &how;
    inner.query = inner.key = inner.value = inner.output = block.ff1 = block.ff2 = linear;
    block.attention = &inner;
    block.norm1.epsilon = block.norm2.epsilon = 1;
    block.pre_norm = 1;
    block.x = numbers;
    block.out = written;
    return rapt_encoder_block(&block, NULL, message);
}

static rapt_status run_local(rapt_message *message) {
    rapt_attention_desc how = sizes();
    rapt_luong_desc layer = RAPT_LUONG_DESC_INIT;
    layer.attention = &how;
    layer.score = RAPT_LUONG_CONCAT;
    layer.window = RAPT_LUONG_LOCAL_P;
    layer.reach = 1;
    layer.state = layer.memory = layer.w_a = layer.v_a = layer.v_p = numbers;
    layer.state_width = layer.memory_width = WIDTH;
    layer.units = 2;
    layer.w_p = rapt_linear_of(numbers, NULL, WIDTH, 2);
    layer.out = written;
    return rapt_luong_attention(&layer, NULL, message);
}

/* Layers: a status, nothing leaked. */
static void test_layers(void **state) {
    static rapt_status (*const layers[])(rapt_message *) = {run_block, run_local};
    (void)state;
    for (int i = 0; i < 2; i++) {
        int fail = 1;
        while (layer_fails(layers[i], fail))
            fail++;
        assert_in_range(fail, 8, 40);
    }
}

static void run_everything(const struct problem *problem, rapt_plan *plan, char *workspace, size_t bytes) {
    rapt_message message;
    size_t needed = 0;
    counting = true;
    rapt_status status = rapt_plan_init(plan, &problem->desc, &message);
    status = status ? status : rapt_plan_workspace_bytes(plan, 2, &needed);
    status = status ? status : rapt_run(plan, workspace, bytes, NULL);
    status = status ? status : rapt_prepare(plan, workspace, bytes);
    for (int32_t phase = 0; phase < rapt_phase_count(plan); phase++)
        for (int64_t i = 0; i < rapt_task_count(plan, phase) && status == RAPT_OK; i++)
            status = rapt_run_task(plan, workspace, phase, i);
    counting = false;
    assert_int_equal(status, RAPT_OK);
}

static void test_plan_and_run_allocate_nothing(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct problem *problem = laid_out(c);
        rapt_plan plan;
        size_t bytes;
        assert_int_equal(rapt_plan_init(&plan, &problem->desc, NULL), RAPT_OK);
        assert_int_equal(rapt_plan_workspace_bytes(&plan, 2, &bytes), RAPT_OK);
        char *workspace = test_alloc(bytes);
        start_counting(1);
        run_everything(problem, &plan, workspace, bytes);
        assert_int_equal(allocations, 0);
        assert_int_equal(frees, 0);
        problem_free(problem);
        test_free_all();
    }
}

/* Caches of every type, large ones with OpenMP, whose own allocations are not this program's. */
static void test_append_allocates_nothing(void **state) {
    static struct drawn drawn;
    struct random random = {31};
    (void)state;
    for (int call = 0; call < 40; call++) {
        drawn_append(&drawn, &random, call % 10 == 0);
        start_counting(1);
        const rapt_status status = rapt_append(&drawn.desc, NULL, NULL);
        counting = false;
        assert_int_equal(status, RAPT_OK);
        assert_int_equal(allocations, 0);
        assert_int_equal(frees, 0);
        drawn_free(&drawn);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_call),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_plan_and_run_allocate_nothing),
        cmocka_unit_test(test_append_allocates_nothing),
    };
    return cmocka_run_group_tests_name("allocation", tests, NULL, NULL);
}
