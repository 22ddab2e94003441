/* SPDX-License-Identifier: MIT
 * A matrix unit for machines without one. With RAPT_TEST_TILES (support.h) in a test program's environment the library
 * finds AMX with bfloat16 and float16, and a SIGILL handler computes what the tile instructions would (Intel's manual,
 * volume 1, 18): to the bit, as order2_unit compares, and a thousand times slower. It is linked by --wrap, so the
 * library knows nothing of it. */
#define _GNU_SOURCE /* registers in a signal's context */

#include <immintrin.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "cpu.h"
#include "support/support.h"

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64, WORDS = 16 };

/* The operand of LDTILECFG. */
struct configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

static bool is_wrong; /* adds the chains to c one by one */

/* A thread's unit; palette 0: released. */
static _Thread_local struct {
    struct configuration configuration;
    uint32_t tile[TILES][ROWS][WORDS];
} unit;

/* ---- instructions */

static bool is_valid(const struct configuration *c) {
    bool valid = c->palette <= 1 && c->start_row == 0;
    for (int i = 0; i < 14; i++)
        valid = valid && c->reserved[i] == 0;
    for (int i = 0; i < 16; i++)
        valid = valid && c->rows[i] <= ROWS && c->row_bytes[i] <= ROW_BYTES && (i < TILES || c->rows[i] == 0);
    return valid;
}

static bool load_configuration(const void *from) {
    struct configuration c;
    memcpy(&c, from, sizeof c);
    if (!is_valid(&c))
        return false;
    memset(&unit, 0, sizeof unit);
    if (c.palette)
        unit.configuration = c;
    return true;
}

static int rows_of(int tile) { return unit.configuration.rows[tile]; }
static size_t bytes_of(int tile) { return unit.configuration.row_bytes[tile]; }

static void load_tile(int tile, const char *from, int64_t stride) {
    memset(unit.tile[tile], 0, sizeof unit.tile[tile]);
    for (int row = 0; row < rows_of(tile); row++)
        memcpy(unit.tile[tile][row], from + row * stride, bytes_of(tile));
}

static void store_tile(int tile, char *to, int64_t stride) {
    for (int row = 0; row < rows_of(tile); row++)
        memcpy(to + row * stride, unit.tile[tile][row], bytes_of(tile));
}

#define WITH_VECTORS __attribute__((noinline, target("avx512f,avx512vl,f16c,fma")))

/* The lower or upper numbers of 16 pairs, as float32; float16 denormals are kept. */
static inline __attribute__((always_inline, target("avx512f,avx512vl,f16c,fma"))) __m512 wide(__m512i pairs, int upper,
                                                                                              bool is_half) {
    if (is_half)
        return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(pairs, upper ? 16 : 0)));
    return _mm512_castsi512_ps(upper ? _mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000))
                                     : _mm512_slli_epi32(pairs, 16));
}

/* In assembly: the order of operands decides which NaN comes out, and compilers swap them. */
#define ADD_PRODUCT(sum, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))
#define ADD(sum, a, b) __asm__("vaddps %2, %1, %0" : "=v"(sum) : "v"(a), "v"(b))

/* Adds the row's terms to c: two chains of FMAs. */
static WITH_VECTORS void multiply_row(uint32_t *c, const uint32_t *a, uint32_t (*b)[WORDS], int pairs, bool is_half) {
    __m512 even = _mm512_setzero_ps(), odd = even;
    for (int k = 0; k < pairs; k++) {
        const __m512i left = _mm512_set1_epi32((int)a[k]), right = _mm512_loadu_si512(b[k]);
        ADD_PRODUCT(even, wide(left, 0, is_half), wide(right, 0, is_half));
        ADD_PRODUCT(odd, wide(left, 1, is_half), wide(right, 1, is_half));
    }
    __m512 sum;
    ADD(sum, even, odd);
    ADD(sum, _mm512_loadu_ps(c), sum);
    if (is_wrong) {
        ADD(sum, _mm512_loadu_ps(c), even);
        ADD(sum, sum, odd);
    }
    _mm512_storeu_ps(c, sum);
}

/* Denormals are flushed, whatever the caller's mode; returning from the signal restores that. */
static bool multiply_tiles(int c, int a, int b, bool is_half) {
    const size_t columns = bytes_of(c);
    if (a == b || a == c || b == c || bytes_of(a) / 4 != (size_t)rows_of(b) || rows_of(c) != rows_of(a) ||
        columns != bytes_of(b) || columns % 4 != 0)
        return false;
    uint32_t sums[WORDS];
    _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
    for (int row = 0; row < rows_of(c); row++) {
        memcpy(sums, unit.tile[c][row], sizeof sums);
        multiply_row(sums, unit.tile[a][row], unit.tile[b], rows_of(b), is_half);
        memcpy(unit.tile[c][row], sums, columns);
    }
    return true;
}

/* ---- decoding */

/* VEX of three bytes, map 0F38, W0, 128 bits: Intel's manual, volume 2, 2.3. */
struct instruction {
    const uint8_t *bytes;
    int prefix;   /* 0, 0x66, 0xf3, 0xf2 */
    int opcode, reg, rm, source; /* registers, with the bits of VEX */
    char *address;
    int64_t stride; /* the index register, scaled */
    int length;
};

static int64_t register_of(const ucontext_t *context, int number) {
    static const int where[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return context->uc_mcontext.gregs[where[number]];
}

static int64_t displacement(const uint8_t *at, int bytes) {
    int32_t four = 0;
    if (bytes == 1)
        return (int8_t)*at;
    memcpy(&four, at, (size_t)bytes);
    return four;
}

/* ModRM, SIB and displacement. Tiles lie `stride` apart from base + displacement; other operands add the index. */
static void read_address(struct instruction *i, const ucontext_t *context, int extends_index, int extends_base) {
    const uint8_t *at = i->bytes + 4, modrm = *at++, mode = modrm >> 6;
    int64_t base = 0;
    int bytes = mode == 1 ? 1 : mode == 2 ? 4 : 0;
    i->reg = modrm >> 3 & 7;
    i->rm = modrm & 7;
    i->stride = 0;
    if (mode == 3) {
        i->length = 5;
        return;
    }
    const bool is_relative = mode == 0 && i->rm == 5;
    if (i->rm == 4) {
        const uint8_t sib = *at++;
        const int index = (sib >> 3 & 7) | extends_index, number = (sib & 7) | extends_base;
        i->stride = index == 4 ? 0 : (int64_t)((uint64_t)register_of(context, index) << (sib >> 6));
        if ((sib & 7) == 5 && mode == 0)
            bytes = 4;
        else
            base = register_of(context, number);
    } else if (!is_relative) {
        base = register_of(context, i->rm | extends_base);
    }
    bytes = is_relative ? 4 : bytes;
    i->length = (int)(at - i->bytes) + bytes;
    i->address = (char *)base + displacement(at, bytes) + (is_relative ? (intptr_t)i->bytes + i->length : 0);
}

static bool read_instruction(struct instruction *i, const ucontext_t *context) {
    static const int prefixes[] = {0, 0x66, 0xf3, 0xf2};
    const uint8_t *at = i->bytes = (const uint8_t *)context->uc_mcontext.gregs[REG_RIP];
    const bool is_vex = at[0] == 0xc4 && (at[1] & 0x1f) == 2 && (at[2] & 0x84) == 0;
    if (!is_vex || (at[3] != 0x49 && at[3] != 0x4b && at[3] != 0x5c))
        return false;
    i->prefix = prefixes[at[2] & 3];
    i->opcode = at[3];
    i->source = ~(at[2] >> 3) & 15;
    read_address(i, context, at[1] & 0x40 ? 0 : 8, at[1] & 0x20 ? 0 : 8);
    return true;
}

static bool configures(const struct instruction *i, bool has_address) {
    if (has_address && i->prefix == 0 && i->reg == 0)
        return load_configuration(i->address + i->stride);
    if (has_address && i->prefix == 0x66 && i->reg == 0)
        return memcpy(i->address + i->stride, &unit.configuration, sizeof unit.configuration);
    if (!has_address && i->prefix == 0 && i->reg == 0 && i->rm == 0)
        return memset(&unit, 0, sizeof unit);
    if (!has_address && i->prefix == 0xf2 && i->rm == 0 && unit.configuration.palette)
        return memset(unit.tile[i->reg], 0, sizeof unit.tile[0]);
    return false;
}

/* False if the processor would refuse it, too. */
static bool execute(const struct instruction *i) {
    const bool has_address = i->bytes[4] >> 6 != 3;
    if (i->opcode == 0x49)
        return configures(i, has_address);
    if (!unit.configuration.palette)
        return false;
    if (i->opcode == 0x5c)
        return !has_address && (i->prefix == 0xf3 || i->prefix == 0xf2) &&
               multiply_tiles(i->reg, i->rm, i->source, i->prefix == 0xf2);
    if (!has_address || i->rm != 4 || i->prefix == 0)
        return false;
    if (i->prefix == 0xf3)
        store_tile(i->reg, i->address, i->stride);
    else
        load_tile(i->reg, i->address, i->stride);
    return true;
}

static void on_illegal_instruction(int number, siginfo_t *info, void *data) {
    static const struct sigaction usual = {.sa_handler = SIG_DFL};
    ucontext_t *context = data;
    struct instruction i = {.address = NULL};
    (void)info;
    if (read_instruction(&i, context) && execute(&i))
        context->uc_mcontext.gregs[REG_RIP] += i.length;
    else
        sigaction(number, &usual, NULL); /* it recurs, and is fatal */
}

/* ---- what the library sees */

struct rapt_cpu __real_rapt_cpu_detect(void);
struct rapt_cpu __wrap_rapt_cpu_detect(void);
bool __real_rapt_cpu_permits_tiles(void);
bool __wrap_rapt_cpu_permits_tiles(void);

static bool is_variant(const char *name) { return strcmp(getenv("RAPT_TEST_TILES"), name) == 0; }

struct rapt_cpu __wrap_rapt_cpu_detect(void) {
    struct rapt_cpu cpu = __real_rapt_cpu_detect();
    if (has_emulated_tiles()) {
        cpu.amx_tile = cpu.amx_bf16 = true;
        cpu.amx_fp16 = !is_variant("bf16");
        is_wrong = is_variant("wrong");
    }
    return cpu;
}

bool __wrap_rapt_cpu_permits_tiles(void) { return has_emulated_tiles() || __real_rapt_cpu_permits_tiles(); }

/* Replaces libc's: cmocka sets signal handlers around each test, and this one must stay. */
sighandler_t signal(int number, sighandler_t handler) {
    struct sigaction action = {.sa_flags = SA_RESTART}, before;
    action.sa_handler = handler;
    if (number == SIGILL && has_emulated_tiles())
        return SIG_DFL;
    return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

/* Kernels round to bfloat16 with AVX512_BF16, which every machine with tiles has. On machines with tiles the usual
 * tests run on those. */
static bool can_emulate(void) {
    const struct rapt_cpu cpu = __real_rapt_cpu_detect();
    return cpu.avx512_bf16 && !cpu.amx_tile;
}

static __attribute__((constructor)) void begin(void) {
    struct sigaction action = {.sa_sigaction = on_illegal_instruction, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (!has_emulated_tiles())
        return;
    if (!can_emulate()) {
        puts("1..1\nok 1 - tiles # SKIP emulated where the machine has AVX512_BF16, and no tiles of its own");
        exit(0);
    }
    sigaction(SIGILL, &action, NULL);
}
