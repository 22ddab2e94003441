/* SPDX-License-Identifier: MIT
 * The elementary functions over all their arguments, as hashes: an error in a coefficient's last bit shows nowhere
 * else. By default one float in 101 (under RAPT_TEST_SCALE one in 1009); with --all every float, except tanh and log2
 * where they are constant or repeat: seconds per function and table natively, minutes under emulation. Any other
 * argument is a pattern of test names. */
#include <stdio.h>

#include "reference/order2.h"
#include "support/cmocka_all.h"
#include "support/support.h"

enum { EVERY, USUAL, EMULATED, MODES };

struct range {
    uint32_t first, last; /* bits of the arguments */
};

struct function {
    const char *name;
    struct range every, strided;
    uint32_t steps[MODES]; /* between arguments */
    uint64_t hashes[MODES];
    void (*of_table)(const struct rapt_table *table, const float *x, float *y, int64_t count);
    float (*of_reference)(float x);
};

static void table_exp2(const struct rapt_table *table, const float *x, float *y, int64_t count) {
    table->exponentials(x, y, count, 0.0f);
}

static void table_tanh(const struct rapt_table *table, const float *x, float *y, int64_t count) {
    table->tanhs(x, y, count);
}

static void table_log2(const struct rapt_table *table, const float *x, float *y, int64_t count) {
    table->log2s(x, y, count);
}

static void table_of_bf16(const struct rapt_table *table, const float *x, float *y, int64_t count) {
    table->of_unit[RAPT_OF_BF16]->rounded(x, y, count, 0.0f, 1.0f, RAPT_FORMAT_BF16);
}

static void table_of_f16(const struct rapt_table *table, const float *x, float *y, int64_t count) {
    table->of_unit[RAPT_OF_F16]->rounded(x, y, count, 0.0f, 1.0f, RAPT_FORMAT_F16);
}

static float reference_exp2(float x) { return rapt_reference_exp2(x, 0.0f); }

/* Probabilities of order 2, as fractions of 1. */
static float rounded_to(int32_t dtype, float p) {
    uint16_t narrow;
    rapt_reference_store(dtype, &p, 1, &narrow);
    return rapt_reference_number(dtype, &narrow, 0);
}

static float reference_of_bf16(float x) { return rounded_to(RAPT_BF16, rapt_order2_exp2(x, false)); }
static float reference_of_f16(float x) { return rounded_to(RAPT_F16, rapt_order2_exp2(x + 15.0f, true)) * 0x1p-15f; }

/* exp2 of [-151, -0], tanh of finite numbers, log2 of positive normal numbers. Order 2 uses [-64, -0]. "exp2 of a
 * period" has every argument its polynomial can get. */
static const struct function functions[] = {
    {"exp2",
     {0x80000000u, 0xc3170000u},
     {0x80000000u, 0xc3170000u},
     {1, 101, 1009},
     {0xb3c5bcdbf04b6ff4u, 0x2391c3f59d2315e2u, 0x8936dd72b1924a45u},
     table_exp2,
     reference_exp2},
    {"exp2 of a period",
     {0xbf000000u, 0xbfc00000u},
     {0xbf000000u, 0xbfc00000u},
     {1, 1, 11},
     {0x0d07e681c858c952u, 0x0d07e681c858c952u, 0x6cab284200c54cf3u},
     table_exp2,
     reference_exp2},
    {"tanh of positives",
     {0x33000000u, 0x41800000u},
     {0x00000000u, 0x7f7fffffu},
     {1, 101, 1009},
     {0xafceff81b70781dau, 0xadaf23e5f9e345b7u, 0xff1d1d69409edf67u},
     table_tanh,
     rapt_reference_tanh},
    {"tanh of negatives",
     {0xb3000000u, 0xc1800000u},
     {0x80000000u, 0xff7fffffu},
     {1, 101, 1009},
     {0x8a6b7b3dde5b06cbu, 0xa62cefb57333cc71u, 0x245078548b1d95ddu},
     table_tanh,
     rapt_reference_tanh},
    {"log2",
     {0x3e800000u, 0x53800000u},
     {0x00800000u, 0x7f7fffffu},
     {1, 101, 1009},
     {0xaf601a4616f6bd47u, 0xdc969c7f9467414au, 0x2537a88a91a0c6aau},
     table_log2,
     rapt_reference_log2},
    {"bfloat16 of order 2",
     {0x80000000u, 0xc2800000u},
     {0x80000000u, 0xc2800000u},
     {1, 101, 1009},
     {0x7c11edc832359125u, 0x070d1c29f5f75ab1u, 0x638710355ea5c1a5u},
     table_of_bf16,
     reference_of_bf16},
    {"float16 of order 2",
     {0x80000000u, 0xc2800000u},
     {0x80000000u, 0xc2800000u},
     {1, 101, 1009},
     {0xbab19d799cd9ca27u, 0xbde173545a904491u, 0xf45cc371f65d347bu},
     table_of_f16,
     reference_of_f16},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static int chosen = USUAL;

/* table = NULL: the reference. */
static uint64_t hash_of(const struct function *function, const struct rapt_table *table) {
    enum { COUNT = 4096 };
    static float x[COUNT], y[COUNT];
    struct range range = chosen == EVERY ? function->every : function->strided;
    uint64_t hash = HASH_START;
    for (uint64_t bits = range.first; bits <= range.last;) {
        int64_t count = 0;
        for (; count < COUNT && bits <= range.last; bits += function->steps[chosen])
            x[count++] = float_of((uint32_t)bits);
        for (int64_t i = 0; !table && i < count; i++)
            y[i] = function->of_reference(x[i]);
        if (table)
            function->of_table(table, x, y, count);
        hash = hash_floats(hash, y, count);
    }
    return hash;
}

struct sweep {
    const struct function *function;
    const struct rapt_table *table;
};

static void run_sweep(void **state) {
    const struct sweep *sweep = *state;
    uint64_t hash = hash_of(sweep->function, sweep->table);
    uint64_t expected = sweep->function->hashes[chosen];
    if (hash != expected)
        fail_msg("%s: hash %#018llx, expected %#018llx", sweep->function->name, (unsigned long long)hash,
                 (unsigned long long)expected);
}

int main(int count, char **arguments) {
    enum { MOST = FUNCTIONS * (RAPT_ISA_COUNT + 1) };
    static struct sweep sweeps[MOST];
    static char names[MOST][64];
    struct CMUnitTest tests[MOST];
    const struct rapt_table *tables[RAPT_ISA_COUNT + 1] = {NULL};
    int table_count = 1 + machine_tables(tables + 1), n = 0;
    chosen = count > 1 && strcmp(arguments[1], "--all") == 0 ? EVERY
             : scaled_work(100) < 100                        ? EMULATED
                                                             : USUAL;
    for (int t = 0; t < table_count; t++)
        for (int f = 0; f < FUNCTIONS; f++, n++) {
            sweeps[n] = (struct sweep){&functions[f], tables[t]};
            snprintf(names[n], sizeof names[n], "%s %s", tables[t] ? tables[t]->name : "reference",
                     functions[f].name);
            tests[n] = (struct CMUnitTest){names[n], run_sweep, NULL, NULL, &sweeps[n]};
        }
    const int pattern = chosen == EVERY ? 2 : 1;
    if (count > pattern)
        cmocka_set_test_filter(arguments[pattern]);
    return _cmocka_run_group_tests("sweep", tests, (size_t)n, NULL, NULL);
}
