/* SPDX-License-Identifier: MIT
 * Runs scenes and compares them with the specification. */
#ifndef RAPT_TESTS_SCENE_RUN_H
#define RAPT_TESTS_SCENE_RUN_H

#include "scene.h"

/* How a call is run. */
struct scene_way {
    rapt_isa isa;
    int threads;             /* scratch slots of the workspace and max_threads; 0 = 1 */
    enum guard_side side;    /* of the workspace, */
    size_t distance;         /* any number of bytes from the guard page, */
    unsigned char workspace; /* all of whose bytes are this */
};

/* What the specification gives for a call. */
struct scene *scene_expected(const struct scene_call *call);

/* Plans and runs with a workspace of exactly the bytes asked for. */
void scene_run(struct scene *scene, const struct scene_way *way);

/* Lays the call out, runs it, and fails the test unless its bits are those of
 * expected and nothing else was written. */
void scene_check(const struct scene *expected, const struct scene_layout *layout, const struct scene_way *way);

struct random;
/* Small sizes round the edges of vectors, blocks and chunks; any features. */
struct scene_call scene_random_call(struct random *random);

#endif
