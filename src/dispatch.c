/* SPDX-License-Identifier: MIT
 * Detect, limit, choose: which kernel table a call runs on. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* secure_getenv */
#endif

#include "dispatch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "assume.h"
#include "cpu.h"
#include "isa.h"
#include "refuse.h"

#if !defined(RAPT_CPU_X86) && !defined(RAPT_CPU_ARM)
struct rapt_cpu rapt_cpu_detect(void) {
    const struct rapt_cpu cpu = {.detected = true};
    return cpu;
}
#endif

/* ------------------------------------------------------------ the machine */

/* Packs the struct into one word, so that threads that detect at the same time
 * store the same value and none sees half of it. */
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

atomic_int rapt_requests_here;
atomic_bool rapt_has_fast_bf16_dots, rapt_splits_vectors, rapt_loads_halves, rapt_has_vbmi, rapt_has_amx_fp16;

static uint32_t machine_features(void) {
    static _Atomic uint32_t known;
    uint32_t features = atomic_load_explicit(&known, memory_order_acquire); /* and the traits stored before */
    if (!features) {
        const struct rapt_cpu cpu = rapt_cpu_detect();
        atomic_store_explicit(&rapt_requests_here, cpu.requests, memory_order_relaxed);
        atomic_store_explicit(&rapt_has_fast_bf16_dots, cpu.has_fast_bf16_dots, memory_order_relaxed);
        atomic_store_explicit(&rapt_splits_vectors, cpu.splits_vectors, memory_order_relaxed);
        atomic_store_explicit(&rapt_loads_halves, cpu.loads_halves, memory_order_relaxed);
#ifdef RAPT_CPU_X86
        atomic_store_explicit(&rapt_has_vbmi, cpu.avx512_vbmi, memory_order_relaxed);
        atomic_store_explicit(&rapt_has_amx_fp16, cpu.amx_fp16, memory_order_relaxed);
#endif
        features = features_of(cpu);
        atomic_store_explicit(&known, features, memory_order_release);
    }
    return features;
}

static size_t append(char *text, size_t text_bytes, size_t length, const char *more) {
    for (; *more; more++, length++)
        if (length + 1 < text_bytes)
            text[length] = *more;
    return length;
}

static const char *const feature_names[] = {
#define RAPT_CPU_FEATURE(name) [BIT_##name] = #name,
    RAPT_CPU_FEATURES(RAPT_CPU_FEATURE)
#undef RAPT_CPU_FEATURE
    [BIT_detected] = NULL};

size_t rapt_cpu_features(char *text, size_t text_bytes) {
    const uint32_t features = machine_features();
    size_t length = 0;
    for (int bit = 0; bit < BIT_detected; bit++) {
        if (!(features >> bit & 1))
            continue;
        if (length)
            length = append(text, text_bytes, length, " ");
        length = append(text, text_bytes, length, feature_names[bit]);
    }
    if (text_bytes)
        text[length < text_bytes ? length : text_bytes - 1] = '\0';
    return length;
}

/* ------------------------------------------------------------- the tables */

/* TABLE_IF(RAPT_HAVE_name, table): table where the build defines RAPT_HAVE_name as 1, else NULL. */
#define RAPT_HAVE_scalar 1
#define TABLE_IF(have, table) TABLE_IF_EXPANDED(have, table)
#define TABLE_IF_EXPANDED(have, table) SECOND(WHERE_##have table, NULL, 0)
#define WHERE_1 0,
#define SECOND(...) SECOND_EXPANDED(__VA_ARGS__)
#define SECOND_EXPANDED(first, second, ...) second

static const struct entry {
    const char *name, *architecture, *features;
    const struct rapt_table *table; /* NULL where the build lacks it */
} entries[RAPT_ISA_COUNT] = {
    [RAPT_ISA_AUTO] = {"auto", "", "", NULL},
#define RAPT_ISA_ENTRY(name, table, number, architecture, features)                                \
    [RAPT_ISA_NUMBER_##name] = {#name, architecture, features, TABLE_IF(RAPT_HAVE_##table, &rapt_table_##table)},
#include "isa.def"
#undef RAPT_ISA_ENTRY
};

#define RAPT_ISA_ENTRY(name, table, number, architecture, features)                                \
    _Static_assert((number) < RAPT_ISA_COUNT, "isa.def: numbers have no gap");
#include "isa.def"
#undef RAPT_ISA_ENTRY

const char *rapt_isa_name(rapt_isa isa) {
    return (unsigned)isa < RAPT_ISA_COUNT ? entries[isa].name : NULL;
}

const char *rapt_isa_needs(rapt_isa isa) {
    return (unsigned)isa < RAPT_ISA_COUNT ? entries[isa].features : NULL;
}

const struct rapt_table *rapt_table_of(rapt_isa isa) {
    return (unsigned)isa < RAPT_ISA_COUNT ? entries[isa].table : NULL;
}

/* The bit of a feature with a name of `length` characters; 0 for a feature of another architecture. */
static uint32_t feature_bit(const char *name, size_t length) {
    for (int bit = 0; bit < BIT_detected; bit++)
        if (strncmp(feature_names[bit], name, length) == 0 && !feature_names[bit][length])
            return UINT32_C(1) << bit;
    return 0;
}

static bool machine_has(const char *features) {
    while (*features) {
        size_t length = 0;
        while (features[length] && features[length] != ' ')
            length++;
        if (!(machine_features() & feature_bit(features, length)))
            return false;
        features += length + (features[length] == ' ');
    }
    return true;
}

/* Bit isa: the CPU has its features. Found once, since every plan asks; bit 0: they were found. */
static uint32_t featured_isas(void) {
    static _Atomic uint32_t known;
    uint32_t featured = atomic_load_explicit(&known, memory_order_relaxed);
    if (!featured) {
        featured = 1;
        for (int isa = RAPT_ISA_AUTO + 1; isa < RAPT_ISA_COUNT; isa++)
            if (entries[isa].table && machine_has(entries[isa].features))
                featured |= UINT32_C(1) << isa;
        atomic_store_explicit(&known, featured, memory_order_relaxed);
    }
    return featured;
}

static bool is_featured(rapt_isa isa) { return isa != RAPT_ISA_AUTO && (featured_isas() >> isa & 1); }

bool rapt_isa_is_unit(rapt_isa isa) { return entries[isa].table && entries[isa].table->isa != isa; }

static bool takes(rapt_isa isa, const struct rapt_unit *unit) {
    return isa == RAPT_ISA_AUTO ? !unit->pays || unit->pays() : isa == unit->isa;
}

/* The table's best unit for a type: the one that isa names, or with RAPT_ISA_AUTO any that pays. */
static const struct rapt_table *unit_of(const struct rapt_table *table, rapt_isa isa, int type) {
    for (const struct rapt_unit *unit = table->units; unit && unit->table; unit++) {
        const bool may_be = is_featured(unit->isa) && takes(isa, unit);
        const struct rapt_table *with_unit = may_be ? unit->table(table->of_unit[type], type) : NULL;
        if (with_unit)
            return with_unit;
    }
    return NULL;
}

/* Requests the matrix unit, process-wide, only for an isa that names it. */
int rapt_isa_available(rapt_isa isa) {
    if ((unsigned)isa >= RAPT_ISA_COUNT || !is_featured(isa))
        return 0;
    return !rapt_isa_is_unit(isa) || unit_of(entries[isa].table, isa, RAPT_OF_BF16);
}

static rapt_isa best_isa(void) {
    int isa = RAPT_ISA_COUNT - 1;
    while (rapt_isa_is_unit((rapt_isa)isa) || !is_featured((rapt_isa)isa)) /* scalar is */
        isa--;
    return (rapt_isa)isa;
}

/* -------------------------------------------------------- the environment */

/* A setuid program must not follow its caller's environment. */
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

/* Read once, so that setenv in a running program changes nothing and races with no call. */
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
    const struct entry *entry = &entries[isa];
    if (!entry->table)
        return rapt_refuse(message, RAPT_UNSUPPORTED_ISA, "%s = %s: this build has no such kernels, which are for %s",
                           field, entry->name, entry->architecture);
    if (is_featured(isa))
        return rapt_refuse(message, RAPT_UNSUPPORTED_ISA,
                           "%s = %s: this process may not use the unit, or it does not compute as order 2 says",
                           field, entry->name);
    return rapt_refuse(message, RAPT_UNSUPPORTED_ISA, "%s = %s: this machine lacks some of %s", field, entry->name,
                       entry->features);
}

static const char names[] = "auto"
#define RAPT_ISA_ENTRY(name, table, number, architecture, features) ", " #name
#include "isa.def"
#undef RAPT_ISA_ENTRY
    ;

static rapt_status choose(rapt_isa *isa, rapt_message *message) {
    const int asked = environment_isa();
    if (asked == RUBBISH) {
        const char *text = environment_text();
        return rapt_refuse(message, RAPT_INVALID_ENVIRONMENT,
                           "the environment's RAPT_ISA = %.40s is not one of %s", text ? text : "(unset since)", names);
    }
    *isa = asked == RAPT_ISA_AUTO ? best_isa() : (rapt_isa)asked;
    if (!rapt_isa_available(*isa))
        return refuse_isa(*isa, "the environment's RAPT_ISA", message);
    return RAPT_OK;
}

rapt_status rapt_isa_chosen(rapt_isa *isa) { return isa ? choose(isa, NULL) : RAPT_NULL_POINTER; }

static rapt_isa named_isa(rapt_isa isa) { return isa == RAPT_ISA_AUTO ? (rapt_isa)environment_isa() : isa; }

bool rapt_isa_takes_unit(rapt_isa isa, rapt_isa unit) {
    const struct rapt_unit *one = entries[unit].table ? entries[unit].table->units : NULL;
    while (one && one->table && one->isa != unit)
        one++;
    return one && one->table && takes(named_isa(isa), one);
}

const struct rapt_table *rapt_unit_of(const struct rapt_table *table, rapt_isa isa, int type) {
    return unit_of(table, named_isa(isa), type);
}

rapt_status rapt_dispatch(rapt_isa isa, const struct rapt_table **table, rapt_message *message) {
    RAPT_ASSUME((unsigned)isa < RAPT_ISA_COUNT);
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
