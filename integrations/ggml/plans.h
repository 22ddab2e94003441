/* SPDX-License-Identifier: MIT
 * A small cache of plans without data. A model's layers make the same call and share a plan. */
#ifndef RAPT_GGML_PLANS_H
#define RAPT_GGML_PLANS_H

#include "map.h"

struct rapt_ggml_plan {
    struct rapt_ggml_call call;
    rapt_plan plan;
    float slopes[RAPT_GGML_MOST_HEADS]; /* the plan points here: entries do not move */
    uint64_t used;                      /* when; 0 = never */
};

struct rapt_ggml_plans {
    struct rapt_ggml_plan entries[8];
    uint64_t uses, made;
};

/* The plan of a call, made if there is none, replacing the least recently used one. NULL if rapt refuses. */
struct rapt_ggml_plan *rapt_ggml_plan_of(struct rapt_ggml_plans *plans, const struct rapt_ggml_call *call,
                                         rapt_message *message);

/* Whether rapt would plan the call. */
bool rapt_ggml_takes(const struct rapt_ggml_call *call, rapt_message *message);

#endif
