/* SPDX-License-Identifier: MIT */
#include "plans.h"

#include <string.h>

struct rapt_ggml_plan *rapt_ggml_plan_of(struct rapt_ggml_plans *plans, const struct rapt_ggml_call *call,
                                         rapt_message *message) {
    const int count = sizeof plans->entries / sizeof plans->entries[0];
    struct rapt_ggml_plan *oldest = &plans->entries[0];
    for (int i = 0; i < count; i++) {
        struct rapt_ggml_plan *entry = &plans->entries[i];
        if (entry->used > 0 && memcmp(&entry->call, call, sizeof *call) == 0) {
            entry->used = ++plans->uses;
            return entry;
        }
        oldest = entry->used < oldest->used ? entry : oldest;
    }
    const rapt_attention_desc desc = rapt_ggml_complete(call, oldest->slopes);
    oldest->used = 0;
    if (rapt_plan_init(&oldest->plan, &desc, message) != RAPT_OK)
        return NULL;
    memcpy(&oldest->call, call, sizeof *call); /* with its padding */
    oldest->used = ++plans->uses;
    plans->made++;
    return oldest;
}

bool rapt_ggml_takes(const struct rapt_ggml_call *call, rapt_message *message) {
    float slopes[RAPT_GGML_MOST_HEADS];
    rapt_plan plan;
    const rapt_attention_desc desc = rapt_ggml_complete(call, slopes);
    return rapt_plan_init(&plan, &desc, message) == RAPT_OK;
}
