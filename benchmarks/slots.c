/* SPDX-License-Identifier: MIT
 *
 * rapt_slots: what each slot of the kernel tables costs, in turns with the FMA peak. */
#define _POSIX_C_SOURCE 200809L
#include "slots.h"

#include "dispatch.h"
#include "peaks.h"

#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: rapt_slots [--list] [--seconds S] [--filter REGEX]\n"
                            "\n"
                            "  --seconds S     time for each line (default 0.2)\n"
                            "  --filter REGEX  lines whose name matches\n"
                            "  --list          print the names and stop\n";

static regex_t filter;

static bool is_wanted(const char *name) {
    return regexec(&filter, name, 0, NULL, 0) == 0;
}

float *slots_zeros(size_t count) {
    return buffer_new(count * sizeof(float));
}

float *slots_numbers(size_t count) {
    uint32_t *bits = buffer_new(count * sizeof(uint32_t)), seed = 1;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        const uint32_t half = (seed >> 16 & 0x80ff) | 0x3f00; /* as a float16: 1.75 to 2 */
        bits[i] = half << 16 | half;
    }
    return (float *)(void *)bits;
}

/* A slot may take less time than reading the clock. */
struct repeated {
    struct slot_case what;
    int64_t times;
};

static void run_repeated(void *context) {
    const struct repeated *repeated = context;
    for (int64_t i = 0; i < repeated->times; i++)
        repeated->what.run(repeated->what.context);
}

static void choose_times(struct repeated *repeated) {
    const double enough = 1e-4;
    for (repeated->times = 1;; repeated->times *= 2) {
        const double begin = now_seconds();
        run_repeated(repeated);
        if (now_seconds() - begin > enough)
            return;
    }
}

void slots_measure(struct slots *slots, const struct slot_case *what, const char *format, ...) {
    static struct contender slot;
    static struct fma_peak fma;
    struct contender *contenders[] = {&slot, &fma.contender};
    struct repeated repeated = {*what, 1};
    char name[96], cost[32] = "", share[32] = "";
    va_list rest;
    va_start(rest, format);
    size_t used = (size_t)snprintf(name, sizeof name, "%s ", slots->table->name);
    vsnprintf(name + used, sizeof name - used, format, rest);
    va_end(rest);
    if (!slots->wanted(name))
        return;
    slots->lines++;
    if (slots->list) {
        puts(name);
        return;
    }
    choose_times(&repeated);
    slot = (struct contender){.run = run_repeated, .context = &repeated, .calls_per_round = 4};
    fma_peak_init(&fma, slots->table->isa, 1);
    measure(contenders, 2, slots->seconds, 5);
    const double seconds = slot.best_seconds / (double)repeated.times, rate = fma_peak_rate(&fma);
    if (what->flops > 0)
        snprintf(share, sizeof share, "%.1f%%", 100 * what->flops / seconds / rate);
    else
        snprintf(cost, sizeof cost, "%.2f", seconds * rate / 2 / what->numbers);
    printf("%-48s %12.1f %10.0f %10s %10s\n", name, seconds * 1e9, what->numbers, cost, share);
    fflush(stdout);
}

static void measure_table(struct slots *slots) {
    static void (*const all[])(struct slots *) = {
        slots_pack,
#define RAPT_SLOT(name) slots_##name,
#include "../tests/kernels/slots.def"
#undef RAPT_SLOT
        slots_product,
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        all[i](slots);
}

static const char *value_of(const char *option, int argc, char **argv, const char *otherwise) {
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], option) == 0)
            return argv[i + 1];
    return otherwise;
}

int main(int argc, char **argv) {
    struct slots slots = {.wanted = is_wanted};
    for (int i = 1; i < argc; i++) {
        const bool has_value = strcmp(argv[i], "--seconds") == 0 || strcmp(argv[i], "--filter") == 0;
        if (strcmp(argv[i], "--list") == 0)
            slots.list = true;
        else if (strcmp(argv[i], "--help") == 0)
            return fputs(usage, stdout), 0;
        else if (!has_value || ++i == argc)
            return fputs(usage, stderr), 2;
    }
    if (!seconds_parse(value_of("--seconds", argc, argv, "0.2"), &slots.seconds))
        return fputs("rapt_slots: --seconds takes a number, 0 ... 3600\n", stderr), 2;
    if (regcomp(&filter, value_of("--filter", argc, argv, ""), REG_EXTENDED | REG_NOSUB) != 0)
        return fputs("rapt_slots: the filter is no regular expression\n", stderr), 2;
    if (!slots.list)
        printf("%-48s %12s %10s %10s %10s\n", "slot", "ns", "numbers", "FMAs each", "of_peak");
    for (int isa = RAPT_ISA_SCALAR; rapt_isa_name((rapt_isa)isa); isa++) {
        slots.table = rapt_table_of((rapt_isa)isa);
        if (slots.table && (int)slots.table->isa == isa && peak_known((rapt_isa)isa))
            measure_table(&slots);
    }
    if (slots.lines == 0)
        return fputs("rapt_slots: no line has such a name\n", stderr), 2;
    return 0;
}
