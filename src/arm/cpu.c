/* SPDX-License-Identifier: MIT
 * NEON is part of every aarch64 CPU. The kernel knows the rest; systems
 * other than Linux and macOS get the baseline. */
#include "cpu.h"

#ifdef RAPT_CPU_ARM

#if defined(__linux__)

#include <sys/auxv.h>

/* Bits of Linux's aarch64 ABI; older headers lack some. */
static bool has_hwcap(unsigned bit) { return getauxval(AT_HWCAP) >> bit & 1; }
static bool has_hwcap2(unsigned bit) { return getauxval(AT_HWCAP2) >> bit & 1; }

static void detect_optional(struct rapt_cpu *cpu) {
    cpu->dotprod = has_hwcap(20);
    cpu->sve = has_hwcap(22);
    cpu->i8mm = has_hwcap2(13);
    cpu->bf16 = has_hwcap2(14);
}

#elif defined(__APPLE__)

/* As <sys/sysctl.h> declares it; that header is in the SDK only. */
int sysctlbyname(const char *name, void *old, __SIZE_TYPE__ *old_bytes, void *replacement,
                 __SIZE_TYPE__ bytes);

static bool has_sysctl(const char *name) {
    int value = 0;
    __SIZE_TYPE__ bytes = sizeof value;
    return sysctlbyname(name, &value, &bytes, 0, 0) == 0 && value;
}

static void detect_optional(struct rapt_cpu *cpu) {
    cpu->dotprod = has_sysctl("hw.optional.arm.FEAT_DotProd");
    cpu->i8mm = has_sysctl("hw.optional.arm.FEAT_I8MM");
    cpu->bf16 = has_sysctl("hw.optional.arm.FEAT_BF16");
}

#else

static void detect_optional(struct rapt_cpu *cpu) { (void)cpu; }

#endif

struct rapt_cpu rapt_cpu_detect(void) {
    struct rapt_cpu cpu = {.detected = true, .neon = true};
    detect_optional(&cpu);
    return cpu;
}

#else
typedef int rapt_not_arm;
#endif
