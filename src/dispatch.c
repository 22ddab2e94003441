/* SPDX-License-Identifier: MIT
 * Detect, limit, choose: which kernel table a call runs on. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* secure_getenv */
#endif

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "internal.h"

#if !defined(RAPT_CPU_X86) && !defined(RAPT_CPU_ARM)
struct rapt_cpu rapt_cpu_detect(void) {
    const struct rapt_cpu cpu = {.detected = true};
    return cpu;
}
#endif

/* ------------------------------------------------------------ the machine */

/* Packs the struct into one word, so that threads which detect at the same
 * time store the same value and none sees half of it. */
enum {
#define RAPT_CPU_FEATURE(name) BIT_##name,
    RAPT_CPU_FEATURES(RAPT_CPU_FEATURE)
#undef RAPT_CPU_FEATURE
    BIT_detected
};

static uint32_t features_of(struct rapt_cpu cpu) {
    uint32_t features = (uint32_t)cpu.detected << BIT_detected;
#define RAPT_CPU_FEATURE(name) features |= (uint32_t)cpu.name << BIT_##name;
    RAPT_CPU_FEATURES(RAPT_CPU_FEATURE)
#undef RAPT_CPU_FEATURE
    return features;
}

static uint32_t machine_features(void) {
    static _Atomic uint32_t known;
    uint32_t features = atomic_load_explicit(&known, memory_order_relaxed);
    if (!features) {
        features = features_of(rapt_cpu_detect());
        atomic_store_explicit(&known, features, memory_order_relaxed);
    }
    return features;
}

/* The features that every instruction of an instruction set's kernels needs. */
static uint32_t features_needed(rapt_isa isa) {
    switch (isa) {
    case RAPT_ISA_SCALAR:
        return 0;
#if defined(RAPT_CPU_X86)
    case RAPT_ISA_AVX2:
        return features_of((struct rapt_cpu){.avx = true, .f16c = true, .avx2 = true, .fma = true});
    case RAPT_ISA_AVX512:
        return features_of((struct rapt_cpu){.avx = true, .f16c = true, .avx2 = true, .fma = true, .avx512f = true,
                                             .avx512dq = true, .avx512bw = true, .avx512vl = true});
#elif defined(RAPT_CPU_ARM)
    case RAPT_ISA_NEON:
        return features_of((struct rapt_cpu){.neon = true});
#endif
    default:
        return UINT32_MAX;
    }
}

static bool machine_has(rapt_isa isa) {
    const uint32_t needed = features_needed(isa);
    return (machine_features() & needed) == needed;
}

static size_t append(char *text, size_t text_bytes, size_t length, const char *more) {
    for (; *more; more++, length++)
        if (length + 1 < text_bytes)
            text[length] = *more;
    return length;
}

size_t rapt_cpu_features(char *text, size_t text_bytes) {
    static const char *const names[] = {
#define RAPT_CPU_FEATURE(name) [BIT_##name] = #name,
        RAPT_CPU_FEATURES(RAPT_CPU_FEATURE)
#undef RAPT_CPU_FEATURE
        [BIT_detected] = NULL};
    const uint32_t features = machine_features();
    size_t length = 0;
    for (int bit = 0; bit < BIT_detected; bit++) {
        if (!(features >> bit & 1))
            continue;
        if (length)
            length = append(text, text_bytes, length, " ");
        length = append(text, text_bytes, length, names[bit]);
    }
    if (text_bytes)
        text[length < text_bytes ? length : text_bytes - 1] = '\0';
    return length;
}

/* ------------------------------------------------------------- the tables */

const struct rapt_table *rapt_table_of(rapt_isa isa) {
    switch (isa) {
#define RAPT_ISA_ENTRY(name, NAME)                                                                 \
    case RAPT_ISA_##NAME:                                                                          \
        return &rapt_table_##name;
#include "isa.def"
#undef RAPT_ISA_ENTRY
    default:
        return NULL;
    }
}

const char *rapt_isa_name(rapt_isa isa) {
    switch (isa) {
    case RAPT_ISA_AUTO:
        return "auto";
    case RAPT_ISA_SCALAR:
        return "scalar";
    case RAPT_ISA_AVX2:
        return "avx2";
    case RAPT_ISA_AVX512:
        return "avx512";
    case RAPT_ISA_NEON:
        return "neon";
    default:
        return NULL;
    }
}

int rapt_isa_available(rapt_isa isa) {
    return rapt_table_of(isa) && machine_has(isa);
}

/* isa.def has the best last. */
static rapt_isa best_isa(void) {
    rapt_isa best = RAPT_ISA_SCALAR;
#define RAPT_ISA_ENTRY(name, NAME)                                                                 \
    if (machine_has(RAPT_ISA_##NAME))                                                              \
        best = RAPT_ISA_##NAME;
#include "isa.def"
#undef RAPT_ISA_ENTRY
    return best;
}

/* -------------------------------------------------------- the environment */

/* A program with rights that its caller lacks does not follow the caller's environment. */
static const char *environment_text(void) {
#if defined(__linux__)
    return secure_getenv("RAPT_ISA");
#else
#if defined(__APPLE__) || defined(__FreeBSD__) || defined(__OpenBSD__) || defined(__NetBSD__)
    extern int issetugid(void);
    if (issetugid())
        return NULL;
#endif
    return getenv("RAPT_ISA");
#endif
}

enum { UNREAD = -2, RUBBISH = -1 }; /* else a rapt_isa */

static int parse_environment(void) {
    const char *text = environment_text();
    if (!text || !*text)
        return RAPT_ISA_AUTO;
    for (int isa = RAPT_ISA_AUTO; isa < RAPT_ISA_COUNT; isa++)
        if (strcmp(text, rapt_isa_name((rapt_isa)isa)) == 0)
            return isa;
    return RUBBISH;
}

/* Read once: setenv in a running program changes nothing, and no call races with it. */
static int environment_isa(void) {
    static atomic_int known = UNREAD;
    int isa = atomic_load_explicit(&known, memory_order_relaxed);
    if (isa == UNREAD) {
        isa = parse_environment();
        atomic_store_explicit(&known, isa, memory_order_relaxed);
    }
    return isa;
}

/* ----------------------------------------------------------------- choose */

static rapt_status refuse_isa(rapt_isa isa, const char *field, rapt_message *message) {
    const char *name = rapt_isa_name(isa);
    if (!rapt_table_of(isa))
        return rapt_refuse(message, RAPT_UNSUPPORTED_ISA, "%s = %s: this build has no such kernels", field,
                           name);
    return rapt_refuse(message, RAPT_UNSUPPORTED_ISA, "%s = %s: this machine lacks the instructions", field,
                       name);
}

static rapt_status choose(rapt_isa *isa, rapt_message *message) {
    const int wanted = environment_isa();
    if (wanted == RUBBISH) {
        const char *text = environment_text();
        return rapt_refuse(message, RAPT_INVALID_ENVIRONMENT,
                           "the environment's RAPT_ISA = %.40s is none of auto, scalar, avx2, avx512, neon",
                           text ? text : "(unset since)");
    }
    *isa = wanted == RAPT_ISA_AUTO ? best_isa() : (rapt_isa)wanted;
    if (!rapt_isa_available(*isa))
        return refuse_isa(*isa, "the environment's RAPT_ISA", message);
    return RAPT_OK;
}

rapt_status rapt_isa_chosen(rapt_isa *isa) {
    return choose(isa, NULL);
}

rapt_status rapt_dispatch(rapt_isa isa, const struct rapt_table **table, rapt_message *message) {
    if (!rapt_isa_name(isa))
        return rapt_refuse(message, RAPT_UNSUPPORTED_FLAG, "isa = %d is outside 0 ... %d", (int)isa,
                           RAPT_ISA_COUNT - 1);
    if (isa == RAPT_ISA_AUTO) {
        const rapt_status status = choose(&isa, message);
        if (status != RAPT_OK)
            return status;
    } else if (!rapt_isa_available(isa)) {
        return refuse_isa(isa, "isa", message);
    }
    *table = rapt_table_of(isa);
    return RAPT_OK;
}
