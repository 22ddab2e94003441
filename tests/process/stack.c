/* SPDX-License-Identifier: MIT
 * Threads use no more stack for attention, merging and products than the headers say, on every instruction set and tile
 * kind. Built with optimisation only, like users' builds. */
#define _DEFAULT_SOURCE
#include "support/cmocka_all.h"

#include <pthread.h>
#include <sys/mman.h>

#include "rapt/matmul.h"
#include "rapt/rapt.h"
#include "rapt/states.h"
#include "support/support.h"

enum {
    KIB = 1024,
    STACK_BYTES = 512 * KIB,
    PAINT = 0xcd,
    ATTENTION_BYTES = 128 * KIB,
    MERGE_BYTES = 56 * KIB,
    PRODUCT_BYTES = 80 * KIB,
    DIM = 128,
    MOST_ROWS = 80,
    MOST_HEADS = 8,
    KEYS = 300,
    NUMBERS = MOST_HEADS * KEYS * DIM
};

static const struct rapt_table *tables[RAPT_ISA_COUNT];
static int table_count;

/* ---- traces on a painted stack */

static struct {
    void (*function)(void *argument);
    void *argument;
    char *top; /* at the call */
} job;

static void *call_job(void *unused) {
    char here;
    job.top = &here;
    job.function(job.argument);
    return unused;
}

static int64_t stack_of(void (*function)(void *argument), void *argument) {
    static char *stack;
    pthread_attr_t attributes;
    pthread_t thread;
    int64_t untouched = 0;
    if (!stack) /* shared, since glibc 2.31 discards pages that an ended thread left, which clears private ones */
        stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(stack != MAP_FAILED);
    memset(stack, PAINT, STACK_BYTES);
    job.function = function;
    job.argument = argument;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, call_job, NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    while (untouched < STACK_BYTES && (unsigned char)stack[untouched] == PAINT)
        untouched++;
    return job.top - stack - untouched;
}

/* ---- attention */

struct shape {
    int32_t numerics, isa, dtype;
    int64_t rows, heads, page_tokens;
    bool has_weights;
};

static rapt_attention_desc described(const struct shape *shape) {
    static float query[MOST_HEADS * MOST_ROWS * DIM], keys[NUMBERS], values[NUMBERS], out[MOST_HEADS * MOST_ROWS * DIM],
        weights[MOST_HEADS * MOST_ROWS * KEYS];
    static int32_t entries[KEYS];
    const int64_t pages = shape->page_tokens ? KEYS / shape->page_tokens : 1, tokens = KEYS / pages;
    const int32_t ends = shape->numerics == RAPT_NUMERICS_ORDER_2 ? shape->dtype : RAPT_F32;
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.numerics = shape->numerics;
    desc.isa = shape->isa;
    desc.batch = 1;
    desc.query_heads = desc.kv_heads = shape->heads;
    desc.query_length = shape->rows;
    desc.kv_length = KEYS;
    desc.head_dim = DIM;
    desc.query = rapt_tensor_bshd(query, ends, 1, shape->rows, shape->heads, DIM);
    desc.key = rapt_tensor_bshd(keys, shape->dtype, pages, tokens, shape->heads, DIM);
    desc.value = rapt_tensor_bshd(values, shape->dtype, pages, tokens, shape->heads, DIM);
    desc.out = rapt_output_bshd(out, 1, shape->rows, shape->heads, DIM);
    if (shape->page_tokens) {
        for (int i = 0; i < pages; i++)
            entries[i] = (int32_t)(pages - 1 - i);
        desc.key_pages = (rapt_page_table){.kind = RAPT_PAGES_DENSE, .page_tokens = tokens, .pages = pages,
                                           .entries = rapt_int32_list(entries, pages)};
        desc.value_pages = desc.key_pages;
        desc.key.page_stride_bytes = desc.key.batch_stride_bytes;
        desc.value.page_stride_bytes = desc.value.batch_stride_bytes;
    }
    if (shape->has_weights) {
        desc.weights_kind = RAPT_WEIGHTS_SOFTMAX;
        desc.weights = rapt_output_bhsd(weights, 1, shape->heads, shape->rows, KEYS);
    }
    return desc;
}

struct prepared {
    rapt_plan plan;
    void *workspace;
    rapt_status status;
};

static void join(void *argument) {
    struct prepared *p = argument;
    p->status = rapt_join(&p->plan, p->workspace, 0);
}

/* 0 if the machine lacks the order. */
static int64_t stack_of_shape(const struct shape *shape) {
    const rapt_attention_desc desc = described(shape);
    struct prepared p = {.status = RAPT_OK};
    size_t bytes;
    if (rapt_plan_init(&p.plan, &desc, NULL) != RAPT_OK)
        return 0;
    assert_int_equal(rapt_plan_workspace_bytes(&p.plan, 1, &bytes), RAPT_OK);
    p.workspace = test_alloc(bytes);
    assert_int_equal(rapt_prepare(&p.plan, p.workspace, bytes), RAPT_OK);
    const int64_t stack = stack_of(join, &p);
    assert_int_equal(p.status, RAPT_OK);
    test_free_all();
    return stack;
}

static void check_shape(const struct shape *shape, int64_t *most) {
    static int shapes;
    const int64_t stack = is_sampled(shapes++) ? stack_of_shape(shape) : 0;
    if (stack > ATTENTION_BYTES)
        fail_msg("order %d, isa %s, dtype %d, %lld rows, %lld heads, pages of %lld, weights %d: %lld bytes",
                 shape->numerics, rapt_isa_name((rapt_isa)shape->isa), shape->dtype, (long long)shape->rows,
                 (long long)shape->heads, (long long)shape->page_tokens, shape->has_weights, (long long)stack);
    *most = stack > *most ? stack : *most;
}

static void check_order(int32_t numerics, int32_t dtype) {
    static const int64_t rows[] = {1, 3, 7, 16, 33, MOST_ROWS}, pages[] = {0, 1, 60};
    for (int t = 0; t < table_count; t++) {
        const int64_t many = tables[t]->isa == RAPT_ISA_SCALAR ? 3 : 16; /* slow, and without turns */
        int64_t most = 0;
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (int64_t heads = 1; heads <= (rows[r] > many ? 1 : MOST_HEADS); heads += MOST_HEADS - 1)
                for (int k = 0; k < 4; k++)
                    check_shape(&(struct shape){numerics, tables[t]->isa, dtype, rows[r], heads, pages[k % 3], k == 3},
                                &most);
        print_message("# order %d, dtype %d, %s: %lld bytes\n", numerics, dtype, tables[t]->name, (long long)most);
    }
}

static void test_order_1(void **state) {
    static const int32_t dtypes[] = {RAPT_F32, RAPT_BF16, RAPT_F16, RAPT_Q8_0, RAPT_Q4_0, RAPT_F8_E4M3};
    (void)state;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        check_order(RAPT_NUMERICS_ORDER_1, dtypes[i]);
}

static void test_order_2(void **state) {
    (void)state;
    check_order(RAPT_NUMERICS_ORDER_2, RAPT_BF16);
    check_order(RAPT_NUMERICS_ORDER_2, RAPT_F16);
}

static void test_order_3(void **state) {
    (void)state;
    check_order(RAPT_NUMERICS_ORDER_3, RAPT_F32);
}

/* ---- other work on the caller's threads */

static void multiply(void *argument) { assert_int_equal(rapt_matmul(argument, NULL, NULL), RAPT_OK); }

static void test_products(void **state) {
    enum { SIZE = 200 };
    static float x[SIZE * SIZE], weight[SIZE * SIZE], out[SIZE * SIZE];
    (void)state;
    for (int t = 0; t < table_count * 4; t++) {
        rapt_matmul_desc desc = RAPT_MATMUL_DESC_INIT;
        desc.isa = tables[t / 4]->isa;
        desc.weight_layout = t % 2;
        desc.rows = t / 2 % 2 ? SIZE : 1;
        desc.inner = desc.columns = SIZE;
        desc.x = x, desc.weight = weight, desc.out = out;
        desc.x_stride_bytes = desc.weight_stride_bytes = desc.out_stride_bytes = SIZE * 4;
        const int64_t stack = stack_of(multiply, &desc);
        if (stack > PRODUCT_BYTES)
            fail_msg("%s, layout %d: %lld bytes", tables[t / 4]->name, desc.weight_layout, (long long)stack);
    }
}

static void merge(void *argument) { assert_int_equal(rapt_merge_states(argument, NULL, NULL), RAPT_OK); }

static void test_merging(void **state) {
    static float states[2][64][2 + DIM], out[64][DIM];
    const rapt_tensor parts[] = {rapt_input_bhsd(states[0][0], 1, 1, 64, 2 + DIM),
                                 rapt_input_bhsd(states[1][0], 1, 1, 64, 2 + DIM)};
    rapt_states_desc desc = RAPT_STATES_DESC_INIT;
    (void)state;
    desc.batch = desc.query_heads = 1;
    desc.query_length = 64;
    desc.value_dim = DIM;
    desc.states = parts;
    desc.count = 2;
    desc.out = rapt_output_bhsd(out[0], 1, 1, 64, DIM);
    assert_in_range(stack_of(merge, &desc), 1, MERGE_BYTES);
}

/* A function of known stack use. */
static void use_stack(void *argument) {
    volatile char used[100 * KIB];
    for (int i = 0; i < 100 * KIB; i += 64)
        used[i] = 1;
    *(char *)argument = used[64];
}

static void test_the_measure(void **state) {
    char used;
    (void)state;
    assert_in_range(stack_of(use_stack, &used), 99 * KIB, 104 * KIB);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_measure), cmocka_unit_test(test_order_1),  cmocka_unit_test(test_order_2),
        cmocka_unit_test(test_order_3),     cmocka_unit_test(test_products), cmocka_unit_test(test_merging),
    };
    table_count = machine_tables(tables);
    return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
