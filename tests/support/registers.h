/* SPDX-License-Identifier: MIT
 * What a call owes its caller besides memory: callee-saved registers and the floating-point environment. */
#ifndef RAPT_TESTS_REGISTERS_H
#define RAPT_TESTS_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

/* Sets callee-saved registers to patterns of their own, calls function and prints those that changed. True if none. */
bool keeps_registers(void (*function)(void *), void *argument);

/* MXCSR or FPCR. */
uint64_t get_float_mode(void);
void set_float_mode(uint64_t mode);
bool has_float_modes(void); /* valgrind keeps only the rounding */

struct float_mode {
    const char *name;
    uint64_t value;
};

/* The default mode first; then flushing, other roundings, traps, sticky flags. */
extern const struct float_mode float_modes[];
extern const int float_mode_count;

/* x86: no x87 register in use, its control word as given, upper halves of vector registers clean if the CPU tells.
 * Prints what is wrong. */
bool has_clean_vector_state(uint16_t x87_control);

#endif
