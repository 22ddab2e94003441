/* SPDX-License-Identifier: MIT */
#include "scene_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "reference.h"
#include "support.h"

struct scene *scene_expected(const struct scene_call *call) {
    struct scene_layout plain = {0};
    struct scene *scene = scene_new(call, &plain);
    rapt_reference_attention(&scene->desc);
    return scene;
}

void scene_run(struct scene *scene, const struct scene_way *way) {
    rapt_plan plan;
    rapt_message message = {{0}};
    int threads = way->threads ? way->threads : 1;
    rapt_run_options options = {.struct_size = sizeof options, .max_threads = threads};
    size_t bytes = 0;
    scene->desc.isa = way->isa;
    if (rapt_plan_init(&plan, &scene->desc, &message) != RAPT_OK)
        fail_msg("%s\n%s", message.text, scene_text(&scene->call));
    assert_int_equal(rapt_plan_workspace_bytes(&plan, threads, &bytes), RAPT_OK);
    struct guarded workspace = guarded_new(bytes, way->side, way->distance, way->workspace);
    assert_int_equal(rapt_run(&plan, workspace.data, bytes, &options), RAPT_OK);
    assert_true(guarded_is_clean(&workspace));
    guarded_free(&workspace);
}

void scene_check(const struct scene *expected, const struct scene_layout *layout, const struct scene_way *way) {
    struct scene *scene = scene_new(&expected->call, layout);
    scene_run(scene, way);
    if (!scene_same(scene, expected) || !scene_is_clean(scene))
        fail_msg("isa %s, side %d, distance %zu, padding %d, token_major %d, reversed %d, poison %d",
                 rapt_isa_name(way->isa), layout->side, layout->distance, layout->padding, layout->token_major,
                 layout->reversed, layout->poison);
    scene_free(scene);
}

struct scene_call scene_random_call(struct random *random) {
    static const int64_t dims[] = {1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 80, 100, 130};
    static const int64_t tokens[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 47, 49, 65};
    static const int64_t keys[] = {1, 2, 15, 17, 31, 64, 100, 255, 256, 257, 300, 511, 513, 600};
    const int64_t count = sizeof dims / sizeof *dims;
    struct scene_call call = {
        .batch = random_between(random, 1, 3),
        .kv_heads = random_between(random, 1, 2),
        .query_length = tokens[random_below(random, count)],
        .kv_length = keys[random_below(random, count)],
        .head_dim = dims[random_below(random, count)],
        .value_dim = dims[random_below(random, count)],
        .with = (unsigned)random_bits(random) & (unsigned)random_bits(random) & (WITH_EVERYTHING | WITH_BROADCAST),
        .origin = (rapt_query_origin)random_between(random, 1, 3),
        .weights_kind = (rapt_weights_kind)random_between(random, 1, 4),
        .seed = random_bits(random),
    };
    call.query_heads = call.kv_heads * random_between(random, 1, 3);
    call.with |= call.with & WITH_FACTOR ? WITH_BIAS : 0;
    call.with |= call.with & WITH_FILL ? WITH_MASK : 0;
    return call;
}
