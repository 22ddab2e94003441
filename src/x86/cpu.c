/* SPDX-License-Identifier: MIT
 * CPUID tells what the CPU has, XCR0 which registers the operating system
 * saves. Both must agree: wide registers that are not saved fault. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* syscall */
#endif

#include "cpu.h"

#ifdef RAPT_CPU_X86

#include <cpuid.h>
#include <string.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum {
    XCR0_AVX = 3u << 1,               /* xmm, upper ymm */
    XCR0_AVX512 = XCR0_AVX | 7u << 5, /* opmask, upper zmm, zmm16-31 */
    XCR0_AMX = 3u << 17,              /* tile configuration, tiles */
    CPUID1_ECX_FMA = 1u << 12,
    CPUID1_ECX_OSXSAVE = 1u << 27,
    CPUID1_ECX_AVX = 1u << 28,
    CPUID1_ECX_F16C = 1u << 29,
    CPUID7_EBX_AVX2 = 1u << 5,
    CPUID7_EBX_AVX512F = 1u << 16,
    CPUID7_EBX_AVX512DQ = 1u << 17,
    CPUID7_EBX_AVX512BW = 1u << 30,
    CPUID7_ECX_AVX512_VBMI = 1u << 1,
    CPUID7_EDX_AMX_BF16 = 1u << 22,
    CPUID7_EDX_AMX_TILE = 1u << 24,
    CPUID7_1_EAX_AVX512_BF16 = 1u << 5,
    CPUID7_1_EAX_AMX_FP16 = 1u << 21
};
#define CPUID7_EBX_AVX512VL (1u << 31) /* does not fit an enum */

static uint32_t read_xcr0(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Which systems want to be asked is known of Linux only (and kernels since 5.16). */
#if defined(__linux__) && defined(__x86_64__)
enum { ARCH_GET_XCOMP_SUPP = 0x1021, ARCH_REQ_XCOMP_PERM = 0x1023, TILES = 18 };

static bool knows_tiles(void) {
    uint64_t supported = 0;
    return syscall(SYS_arch_prctl, ARCH_GET_XCOMP_SUPP, &supported) == 0 && (supported >> TILES & 1);
}

bool rapt_cpu_permits_tiles(void) { return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILES) == 0; }
#else
static bool knows_tiles(void) { return false; }

bool rapt_cpu_permits_tiles(void) { return false; }
#endif

/* A feature of a matrix unit without tiles to act on is none. */
static void detect_units(struct rapt_cpu *cpu, uint32_t saved, unsigned edx7) {
    unsigned eax = 0, ebx, ecx, edx;
    if (!__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx))
        eax = 0;
    cpu->avx512_bf16 = cpu->avx512f && (eax & CPUID7_1_EAX_AVX512_BF16);
    cpu->amx_tile = (saved & XCR0_AMX) == XCR0_AMX && (edx7 & CPUID7_EDX_AMX_TILE) && knows_tiles();
    cpu->amx_bf16 = cpu->amx_tile && (edx7 & CPUID7_EDX_AMX_BF16);
    cpu->amx_fp16 = cpu->amx_tile && (eax & CPUID7_1_EAX_AMX_FP16);
}

/* CPUID tells no speeds; docs/performance/processors.md has what was measured of which processors. */
static bool is_amd(void) {
    unsigned eax, vendor[3];
    return __get_cpuid(0, &eax, &vendor[0], &vendor[2], &vendor[1]) && memcmp(vendor, "AuthenticAMD", 12) == 0;
}

/* Of a processor of AMD; 0 of others. */
static unsigned amd_family(void) {
    enum { BASE_FAMILY_FULL = 0xf };
    unsigned eax, ebx, ecx, edx;
    if (!is_amd() || !__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (eax >> 8 & 15) != BASE_FAMILY_FULL)
        return 0;
    return BASE_FAMILY_FULL + (eax >> 20 & 255);
}

/* Families. That of Zen 4 has Zen 3 as well. */
enum { ZEN_2 = 0x17, ZEN_4 = 0x19 };

static enum rapt_requests requests_of(unsigned family, bool has_avx512) {
    return family > ZEN_4                  ? RAPT_REQUESTS_FAR_INTO_L1
           : family == ZEN_4 && has_avx512 ? RAPT_REQUESTS_L1_AT_HAND
           : family >= ZEN_2               ? RAPT_REQUESTS_NEXT_PAGE
                                           : RAPT_REQUESTS_FAR_INTO_L2;
}

struct rapt_cpu rapt_cpu_detect(void) {
    const unsigned family = amd_family();
    struct rapt_cpu cpu = {.detected = true,
                           .requests = requests_of(family, false),
                           .has_fast_bf16_dots = is_amd(),
                           .splits_vectors = family == ZEN_4,
                           .loads_halves = family >= ZEN_4};
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
    cpu.avx512_vbmi = cpu.avx512f && (ecx & CPUID7_ECX_AVX512_VBMI);
    cpu.requests = requests_of(family, cpu.avx512f);
    detect_units(&cpu, saved, edx);
    return cpu;
}

#else
typedef int rapt_not_x86;
#endif
