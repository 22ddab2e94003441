/* SPDX-License-Identifier: MIT
 * The twelve systems of the attention family against the original programs' numbers (data/layers/README.md), on every
 * instruction set, with one thread and all; every round has the same bits. argv[1]: the folder of the data. */
#include "dispatch.h"
#include "isa.h"
#include "layers/data.h"

static void all_rounds(void **state) {
    static void (*const groups[])(void) = {cases_dot_product, cases_self_attention, cases_heads,
                                           cases_gpt2,        cases_encoder,        cases_older};
    (void)state;
    for (int isa = RAPT_ISA_COUNT - 1; isa > RAPT_ISA_AUTO; isa--) {
        if (!rapt_isa_available((rapt_isa)isa) || rapt_isa_is_unit((rapt_isa)isa)) continue; /* float32 */
        layers_isa = (rapt_isa)isa;
        for (layers_threads = 1; layers_threads >= 0; layers_threads--) {
            for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) groups[i]();
            layers_end_round();
        }
    }
    layers_print_table();
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_rounds)};
    if (argc != 2) return 2;
    layers_begin(argv[1]);
    return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}
