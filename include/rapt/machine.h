/* SPDX-License-Identifier: MIT
 * Instruction sets, and which of them this machine has. rapt.h includes it. */
#ifndef RAPT_MACHINE_H
#define RAPT_MACHINE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values are consecutive: rapt_isa_name returns NULL from the first unused value on. */
typedef enum rapt_isa {
    RAPT_ISA_AUTO = 0, /* the environment's RAPT_ISA, else the best of this machine */
    RAPT_ISA_SCALAR = 1,
    RAPT_ISA_AVX2 = 2,   /* AVX2, FMA, F16C */
    RAPT_ISA_AVX512 = 3, /* these and AVX-512 F, BW, DQ, VL */
    RAPT_ISA_NEON = 4,
    RAPT_ISA_AMX = 5,    /* AVX512_BF16 with AMX-BF16, the matrix unit of x86. It runs order 3, order 2 of bfloat16,
                            and of float16 where rapt_cpu_features has amx_fp16; all else is as with RAPT_ISA_AVX512.
                            RAPT_ISA_AUTO uses it, too, where it is available; RAPT_ISA_AVX512 does not. The bits
                            are the same */
    RAPT_ISA_AVX512_BF16 = 6 /* likewise AVX-512 with the dot products of AVX512_BF16, which RAPT_ISA_AUTO uses where
                                there is no matrix unit and they are as fast as FMAs (AMD) */
} rapt_isa;

/* "avx512" and so on; NULL for a number that is not an instruction set. */
RAPT_API const char *rapt_isa_name(rapt_isa isa);
/* The CPU features that it requires, such as "avx f16c avx2 fma", named as by rapt_cpu_features; NULL as above. */
RAPT_API const char *rapt_isa_needs(rapt_isa isa);
/* Non-zero if this build has the kernels and this machine the instructions. For RAPT_ISA_AMX it asks the system for
 * the unit, once, as the first call of order 2 or 3 does; on Linux this affects the whole process
 * (ARCH_REQ_XCOMP_PERM). */
RAPT_API int rapt_isa_available(rapt_isa isa);
/* The instruction set that RAPT_ISA_AUTO stands for; a unit's only if the environment's RAPT_ISA names it. Fails as a
 * plan would if that is unusable. */
RAPT_API rapt_status rapt_isa_chosen(rapt_isa *isa);
/* Writes the CPU features that rapt knows and this machine has; truncates and returns the length as snprintf does. */
RAPT_API size_t rapt_cpu_features(char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif
#endif
