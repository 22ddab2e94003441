/* SPDX-License-Identifier: MIT
 * What no result may depend on is NaN (gaps between rows, queries and keys
 * behind their lengths, keys and values that nobody sees, bias of excluded
 * pairs, the workspace); what no call may write is a canary. Every layout
 * gives the bits of the plain one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "scene_run.h"
#include "support.h"

static const struct rapt_table *tables[RAPT_ISA_COUNT];
static int table_count;

static void check_layouts(const struct scene_call *call) {
    static const struct scene_layout layouts[] = {
        {.padding = 0, .poison = true},
        {.padding = 1, .poison = true, .token_major = true},
        {.padding = 5, .poison = true, .reversed = true},
        {.padding = 16, .poison = false, .token_major = true, .reversed = true},
    };
    static const unsigned char contents[] = {0xff, 0x00, 0x7f};
    struct scene *expected = scene_expected(call);
    for (int t = 0; t < table_count; t++) {
        for (size_t k = 0; k < 4; k++) {
            struct scene_way way = {.isa = tables[t]->isa,
                                    .threads = 1 + (int)(call->seed % 3),
                                    .workspace = contents[(call->seed + k) % 3]};
            scene_check(expected, &layouts[k], &way);
        }
    }
    scene_free(expected);
}

static void test_random_calls(void **state) {
    (void)state;
    struct random random = {22};
    for (int64_t i = scaled_work(60); i > 0; i--) {
        struct scene_call call = scene_random_call(&random);
        check_layouts(&call);
    }
}

/* Sizes at which blocks and chunks are left out, cut and shared. */
static void test_long_calls(void **state) {
    (void)state;
    static const unsigned features[] = {
        WITH_KV_LENGTHS | WITH_QUERY_LENGTHS | WITH_LSE,
        WITH_CAUSAL | WITH_KEY_POSITION,
        WITH_WINDOW | WITH_CAUSAL | WITH_KV_LENGTHS,
        WITH_MASK | WITH_LSE,
        WITH_BIAS | WITH_MASK | WITH_FILL | WITH_BROADCAST,
        WITH_EVERYTHING,
    };
    for (size_t f = 0; f < sizeof features / sizeof *features; f++) {
        struct scene_call prefill = {2, 2, 1, 20 + scaled_work(180), 900, 40, 24, features[f], RAPT_ORIGIN_BOTTOM_RIGHT,
                                     RAPT_WEIGHTS_MASKED, f, 0, 0};
        struct scene_call decode = {2, 4, 2, 1, 2600, 33, 20, features[f], RAPT_ORIGIN_BOTTOM_RIGHT,
                                    RAPT_WEIGHTS_SOFTMAX, f, 0, 0};
        check_layouts(&prefill);
        check_layouts(&decode);
    }
}

/* The poison is there, and it is poison: read where it matters, it shows. */
static void test_poison_shows(void **state) {
    (void)state;
    struct scene_call call = {.batch = 1, .query_heads = 1, .kv_heads = 1, .query_length = 4, .kv_length = 40,
                              .head_dim = 8, .value_dim = 8, .with = WITH_KV_LENGTHS, .seed = 1};
    struct scene *expected = scene_expected(&call);
    struct scene_layout layout = {.padding = 3, .poison = true};
    struct scene *scene = scene_new(&call, &layout);
    scene->desc.kv_lengths.data = NULL; /* all 40 keys instead of 30 */
    scene->desc.kv_lengths.index_bytes = 0;
    struct scene_way way = {.isa = RAPT_ISA_SCALAR};
    scene_run(scene, &way);
    print_message("# expected to differ:\n");
    assert_false(scene_same(scene, expected));
    ((float *)scene->desc.out.data)[8] = 0; /* the gap behind row 0 */
    assert_false(scene_is_clean(scene));
    scene_free(scene);
    scene_free(expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_poison_shows),
        cmocka_unit_test(test_random_calls),
        cmocka_unit_test(test_long_calls),
    };
    table_count = machine_tables(tables);
    return cmocka_run_group_tests_name("poison", tests, NULL, NULL);
}
