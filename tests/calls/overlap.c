/* SPDX-License-Identifier: MIT
 * Random small layouts of query and out in one arena, against a map of every byte: layouts that write a byte twice, or
 * write what they read, must be refused; any other with a nested out must pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/support.h"

enum { ARENA = 4096, LAYOUTS = 100000 };

static _Alignas(64) char arena[ARENA];

struct layout {
    int64_t size[3], stride[3], row_bytes, offset;
};

/* Counts the layout's accesses to each byte of the arena; false if it leaves it. */
static bool visit(const struct layout *l, unsigned char *visits) {
    for (int64_t b = 0; b < l->size[0]; b++)
        for (int64_t h = 0; h < l->size[1]; h++)
            for (int64_t t = 0; t < l->size[2]; t++) {
                const int64_t at = l->offset + b * l->stride[0] + h * l->stride[1] + t * l->stride[2];
                if (at < 0 || at + l->row_bytes > ARENA)
                    return false;
                for (int64_t i = 0; i < l->row_bytes; i++)
                    visits[at + i]++;
            }
    return true;
}

static rapt_tensor tensor_of(const struct layout *l) {
    rapt_tensor tensor = {0};
    tensor.data = arena + l->offset;
    tensor.dtype = RAPT_F32;
    tensor.batch_stride_bytes = l->stride[0];
    tensor.head_stride_bytes = l->stride[1];
    tensor.token_stride_bytes = l->stride[2];
    return tensor;
}

/* Dimensions in random order; each stride steps over the inner ones. */
static void nest(struct random *random, struct layout *l) {
    const int first = (int)random_below(random, 3), turn = 1 + (int)random_below(random, 2);
    int64_t span = l->row_bytes;
    for (int i = 0; i < 3; i++) {
        const int dim = (first + turn * i) % 3;
        l->stride[dim] = span + 4 * random_below(random, 4);
        span = l->stride[dim] * l->size[dim];
    }
}

static void scatter(struct random *random, struct layout *l, int64_t least) {
    for (int dim = 0; dim < 3; dim++)
        l->stride[dim] = 4 * random_between(random, least, 30);
}

static rapt_status plan_of(const struct layout *query, const struct layout *out) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    rapt_plan plan;
    desc.batch = out->size[0];
    desc.query_heads = desc.kv_heads = out->size[1];
    desc.query_length = out->size[2];
    desc.head_dim = out->row_bytes / 4;
    desc.query = tensor_of(query);
    desc.out = tensor_of(out);
    return rapt_plan_init(&plan, &desc, NULL);
}

struct tally {
    int passed, refused, taking_turns;
};

static bool ranges_meet(const unsigned char *written, const unsigned char *read) {
    int first[2] = {ARENA, ARENA}, last[2] = {-1, -1};
    for (int i = 0; i < ARENA; i++)
        for (int k = 0; k < 2; k++)
            if ((k ? read : written)[i]) {
                first[k] = i < first[k] ? i : first[k];
                last[k] = i;
            }
    return first[0] <= last[1] && first[1] <= last[0];
}

static void one_layout(struct random *random, bool nested, bool twin, struct tally *tally) {
    struct layout out, query;
    unsigned char written[ARENA] = {0}, read[ARENA] = {0};
    for (int dim = 0; dim < 3; dim++)
        out.size[dim] = random_between(random, 1, 3);
    out.row_bytes = 4 * random_between(random, 1, 3);
    query = out;
    out.offset = 1024 + 4 * random_below(random, 100);
    query.offset = 1024 + 4 * random_below(random, 100);
    if (nested)
        nest(random, &out);
    else
        scatter(random, &out, 1);
    if (twin)
        memcpy(query.stride, out.stride, sizeof out.stride);
    else
        scatter(random, &query, -10);
    if (!visit(&out, written) || !visit(&query, read))
        return;
    bool shared = false, twice = false;
    for (int i = 0; i < ARENA; i++) {
        twice |= written[i] > 1;
        shared |= written[i] && read[i];
    }
    const rapt_status status = plan_of(&query, &out);
    if (twice || shared)
        assert_int_equal(status, RAPT_OVERLAPPING_OUTPUT);
    else if (nested)
        assert_int_equal(status, RAPT_OK);
    tally->taking_turns += status == RAPT_OK && ranges_meet(written, read);
    *(status == RAPT_OK ? &tally->passed : &tally->refused) += 1;
    assert_false(nested && twice);
}

static void test_against_bytes(void **state) {
    (void)state;
    struct random random = {1};
    struct tally tally = {0, 0, 0};
    for (int i = 0; i < LAYOUTS; i++)
        one_layout(&random, random_chance(&random, 50), random_chance(&random, 50), &tally);
    assert_in_range(tally.passed, LAYOUTS / 20, LAYOUTS);
    assert_in_range(tally.refused, LAYOUTS / 20, LAYOUTS);
    assert_in_range(tally.taking_turns, LAYOUTS / 100, LAYOUTS);
}

/* out alone, query far away: every nested layout is legal. */
static void test_nested_outputs_pass(void **state) {
    (void)state;
    struct random random = {2};
    struct layout query = {{1, 1, 1}, {0, 0, 0}, 0, ARENA / 2}, out = query;
    for (int i = 0; i < LAYOUTS / 10; i++) {
        for (int dim = 0; dim < 3; dim++)
            out.size[dim] = random_between(&random, 1, 4);
        out.row_bytes = 4 * random_between(&random, 1, 3);
        out.offset = 0;
        nest(&random, &out);
        if (out.stride[0] * out.size[0] > ARENA / 2 || out.stride[1] * out.size[1] > ARENA / 2 ||
            out.stride[2] * out.size[2] > ARENA / 2)
            continue;
        assert_int_equal(plan_of(&query, &out), RAPT_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_bytes),
        cmocka_unit_test(test_nested_outputs_pass),
    };
    return cmocka_run_group_tests_name("overlap", tests, NULL, NULL);
}
