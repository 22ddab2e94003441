/* SPDX-License-Identifier: MIT */
#if defined(__linux__) && defined(__x86_64__)
#define _GNU_SOURCE
#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "kernels/order2_unit.h"
#include "support/support.h"

#if defined(__linux__) && defined(__x86_64__)

enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18, TILE_STATES = 3 << 17 };

static bool processor_has(bool is_half) {
    unsigned a, b, c, d, of_tiles;
    if (__get_cpuid_max(0, NULL) < 7)
        return false;
    __cpuid(1, a, b, c, d);
    if (!(c >> 27 & 1)) /* the system enabled XGETBV */
        return false;
    __cpuid_count(7, 0, a, b, c, of_tiles);
    __cpuid_count(7, 1, a, b, c, d);
    return (of_tiles >> 24 & 1) && (is_half ? a >> 21 & 1 : of_tiles >> 22 & 1);
}

static bool system_saves_tiles(void) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & TILE_STATES) == TILE_STATES;
}

bool tile_unit_has(bool is_half) {
    return has_emulated_tiles() || (processor_has(is_half) && system_saves_tiles() &&
                                    syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0);
}

/* TDPFP16PS tmm0, tmm1, tmm2 as bytes: only recent assemblers know it. */
void tile_unit_run(struct tiles *tiles, bool is_half) {
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    const int rows[] = {tiles->rows, tiles->rows, tiles->pairs};
    const int row_bytes[] = {tiles->columns * 4, tiles->pairs * 4, tiles->columns * 4};
    for (int tile = 0; tile < 3; tile++) {
        config.rows[tile] = (uint8_t)rows[tile];
        config.row_bytes[tile] = (uint16_t)row_bytes[tile];
    }
    __asm__ volatile("ldtilecfg %[config]\n\t"
                     "tileloadd (%[c],%[stride]), %%tmm0\n\t"
                     "tileloadd (%[a],%[stride]), %%tmm1\n\t"
                     "tileloadd (%[b],%[stride]), %%tmm2\n\t"
                     "testl %[half], %[half]\n\t"
                     "jnz 1f\n\t"
                     "tdpbf16ps %%tmm2, %%tmm1, %%tmm0\n\t"
                     "jmp 2f\n"
                     "1:\n\t"
                     ".byte 0xc4, 0xe2, 0x6b, 0x5c, 0xc1\n"
                     "2:\n\t"
                     "tilestored %%tmm0, (%[c],%[stride])\n\t"
                     "tilerelease"
                     :
                     : [config] "m"(config), [c] "r"(tiles->c), [a] "r"(tiles->a), [b] "r"(tiles->b),
                       [stride] "r"((int64_t)64), [half] "r"((int)is_half)
                     : "memory", "cc");
}

/* VL, F and BF16 of AVX-512, with registers that the system saves. */
bool dot_unit_has(void) {
    unsigned a, b, c, d, low, high;
    if (__get_cpuid_max(0, NULL) < 7)
        return false;
    __cpuid(1, a, b, c, d);
    if (!(c >> 27 & 1))
        return false;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    __cpuid_count(7, 0, a, b, c, d);
    const bool has_registers = (low & 0xe6) == 0xe6 && (b >> 16 & 1) && (b >> 31 & 1);
    __cpuid_count(7, 1, a, b, c, d);
    return has_registers && (a >> 5 & 1);
}

void dot_unit_run(struct tiles *tiles) {
    for (int m = 0; m < tiles->rows; m++)
        for (int k = 0; k < tiles->pairs; k++)
            __asm__ volatile("vmovups %[c], %%zmm0\n\t"
                             "vbroadcastss %[a], %%zmm1\n\t"
                             "vmovups %[b], %%zmm2\n\t"
                             "vdpbf16ps %%zmm2, %%zmm1, %%zmm0\n\t"
                             "vmovups %%zmm0, %[c]\n\t"
                             "vzeroupper"
                             : [c] "+m"(tiles->c[m])
                             : [a] "m"(tiles->a[m][2 * k]), [b] "m"(tiles->b[k])
                             : "xmm0", "xmm1", "xmm2", "memory");
}

#else

bool tile_unit_has(bool is_half) {
    (void)is_half;
    return false;
}

void tile_unit_run(struct tiles *tiles, bool is_half) {
    (void)tiles;
    (void)is_half;
}

bool dot_unit_has(void) { return false; }

void dot_unit_run(struct tiles *tiles) { (void)tiles; }

#endif
