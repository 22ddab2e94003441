/* SPDX-License-Identifier: MIT
 * CPUID tells what the CPU has, XCR0 which registers the operating system
 * saves. Both must agree: wide registers that are not saved fault. */
#include "cpu.h"

#ifdef RAPT_CPU_X86

#include <cpuid.h>

enum {
    XCR0_AVX = 3u << 1,               /* xmm, upper ymm */
    XCR0_AVX512 = XCR0_AVX | 7u << 5, /* opmask, upper zmm, zmm16-31 */
    CPUID1_ECX_FMA = 1u << 12,
    CPUID1_ECX_OSXSAVE = 1u << 27,
    CPUID1_ECX_AVX = 1u << 28,
    CPUID1_ECX_F16C = 1u << 29,
    CPUID7_EBX_AVX2 = 1u << 5,
    CPUID7_EBX_AVX512F = 1u << 16,
    CPUID7_EBX_AVX512DQ = 1u << 17,
    CPUID7_EBX_AVX512BW = 1u << 30
};
#define CPUID7_EBX_AVX512VL (1u << 31) /* does not fit an enum */

static uint32_t read_xcr0(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

struct rapt_cpu rapt_cpu_detect(void) {
    struct rapt_cpu cpu = {.detected = true};
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & CPUID1_ECX_OSXSAVE))
        return cpu;
    const uint32_t saved = read_xcr0();
    const bool ymm = (saved & XCR0_AVX) == XCR0_AVX && (ecx & CPUID1_ECX_AVX);
    const bool zmm = (saved & XCR0_AVX512) == XCR0_AVX512 && ymm;
    cpu.avx = ymm;
    cpu.f16c = ymm && (ecx & CPUID1_ECX_F16C);
    cpu.fma = ymm && (ecx & CPUID1_ECX_FMA);
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
        return cpu;
    cpu.avx2 = ymm && (ebx & CPUID7_EBX_AVX2);
    cpu.avx512f = zmm && (ebx & CPUID7_EBX_AVX512F);
    cpu.avx512dq = cpu.avx512f && (ebx & CPUID7_EBX_AVX512DQ);
    cpu.avx512bw = cpu.avx512f && (ebx & CPUID7_EBX_AVX512BW);
    cpu.avx512vl = cpu.avx512f && (ebx & CPUID7_EBX_AVX512VL);
    return cpu;
}

#else
typedef int rapt_not_x86;
#endif
