/* SPDX-License-Identifier: MIT
 * Instructions on tiles: 8 registers of 16 rows of 64 bytes. In assembly, which keeps their order relative to loads and
 * stores: compilers' intrinsics promise nothing about memory. */
#ifndef RAPT_X86_AMX_TILES_H
#define RAPT_X86_AMX_TILES_H

#include <stdint.h>

enum { TILE_HEIGHT = 16, TILE_ROW_BYTES = 64, TILE_BYTES = 1024, TILE_FLOATS = 16 };

#define TILE_NAME(number) "%%tmm" #number

/* Rows `stride` bytes apart. _STREAMED: for streamed data, which should not evict others from L1. */
#define TILE_LOAD(number, from, stride)                                                                            \
    __asm__ volatile("tileloadd (%0,%1,1), " TILE_NAME(number) : : "r"(from), "r"((int64_t)(stride)) : "memory")
#define TILE_LOAD_STREAMED(number, from, stride)                                                                   \
    __asm__ volatile("tileloaddt1 (%0,%1,1), " TILE_NAME(number) : : "r"(from), "r"((int64_t)(stride)) : "memory")
#define TILE_STORE(number, to, stride)                                                                             \
    __asm__ volatile("tilestored " TILE_NAME(number) ", (%0,%1,1)" : : "r"(to), "r"((int64_t)(stride)) : "memory")
#define TILE_ZERO(number) __asm__ volatile("tilezero " TILE_NAME(number) : : : "memory")

/* sum += a * b: rows of a, and pairs of numbers of b (TD of numerics.md). */
#define TILE_MULTIPLY_BF16(sum, a, b)                                                                              \
    __asm__ volatile("tdpbf16ps " TILE_NAME(b) ", " TILE_NAME(a) ", " TILE_NAME(sum) : : : "memory")
/* TDPFP16PS in bytes: assemblers learned its name late. */
#define TILE_MULTIPLY_F16(sum, a, b)                                                                               \
    __asm__ volatile(".byte 0xc4, 0xe2, ((15 - " #b ") << 3) | 3, 0x5c, 0xc0 | (" #sum " << 3) | " #a : : : "memory")

/* LDTILECFG's operand. */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

_Static_assert(sizeof(struct tile_config) == 64, "the processor knows where the fields are");

static inline void tiles_load_config(const struct tile_config *config) {
    __asm__ volatile("ldtilecfg %0" : : "m"(*config) : "memory");
}

static inline void tiles_store_config(struct tile_config *config) {
    __asm__ volatile("sttilecfg %0" : "=m"(*config) : : "memory");
}

static inline void tiles_release(void) { __asm__ volatile("tilerelease" : : : "memory"); }

/* All 8 registers, whole. */
static inline struct tile_config tiles_whole(void) {
    struct tile_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = TILE_ROW_BYTES;
        config.rows[i] = TILE_HEIGHT;
    }
    return config;
}

/* Restores the previous configuration, if any, but not the contents of tiles, which belong to no caller across a
 * call. */
static inline void tiles_restore(const struct tile_config *before) {
    if (before->palette)
        tiles_load_config(before);
    else
        tiles_release();
}

#endif
