/* SPDX-License-Identifier: MIT */
#include "support/registers.h"

#include <stdio.h>

#if defined(__x86_64__)

#include <cpuid.h>

enum { REGISTERS = 7 };
static const char *const names[REGISTERS] = {"rbx", "rbp", "r12", "r13", "r14", "r15", "direction flag"};

/* int64 *after: the registers as the call left them. */
void call_with_patterns(void (*function)(void *), void *argument, uint64_t *after);
__asm__(".text\n.p2align 4\n.globl call_with_patterns\n.type call_with_patterns, @function\n"
        "call_with_patterns:\n"
        "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n push %rdx\n"
        "mov %rdi, %rax\n mov %rsi, %rdi\n"
        "movabs $0xabcd000000000000, %rbx\n movabs $0xabcd000000000001, %rbp\n"
        "movabs $0xabcd000000000002, %r12\n movabs $0xabcd000000000003, %r13\n"
        "movabs $0xabcd000000000004, %r14\n movabs $0xabcd000000000005, %r15\n"
        "call *%rax\n"
        "pop %rdx\n"
        "mov %rbx, (%rdx)\n mov %rbp, 8(%rdx)\n mov %r12, 16(%rdx)\n"
        "mov %r13, 24(%rdx)\n mov %r14, 32(%rdx)\n mov %r15, 40(%rdx)\n"
        "pushfq\n pop %rax\n and $0x400, %rax\n mov %rax, 48(%rdx)\n cld\n"
        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n"
        ".size call_with_patterns, .-call_with_patterns\n");

static uint64_t expected(int i) { return i == 6 ? 0 : 0xabcd000000000000u + (uint64_t)i; }

uint64_t get_float_mode(void) {
    uint32_t mode;
    __asm__ volatile("stmxcsr %0" : "=m"(mode));
    return mode;
}

void set_float_mode(uint64_t mode) {
    uint32_t low = (uint32_t)mode;
    __asm__ volatile("ldmxcsr %0" : : "m"(low) : "memory");
}

const struct float_mode float_modes[] = {
    {"default", 0x1f80},        {"FTZ and DAZ", 0x9fc0}, {"DAZ", 0x1fc0},
    {"round down", 0x3f80},     {"round up", 0x5f80},    {"round to zero, FTZ", 0xff80},
    {"nothing masked", 0x0000}, {"sticky flags", 0x1fbf},
};
const int float_mode_count = sizeof float_modes / sizeof *float_modes;

bool has_clean_vector_state(uint16_t x87_control) {
    struct {
        uint32_t control, status, tags, other[4];
    } x87;
    uint32_t eax, ebx, ecx, edx, in_use = 0;
    __asm__ volatile("fnstenv %0\n\tfldcw %0" : "=m"(x87));
    bool has_xgetbv = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_OSXSAVE);
    if (has_xgetbv && __get_cpuid_count(13, 1, &eax, &ebx, &ecx, &edx) && (eax & 4))
        __asm__ volatile("xgetbv" : "=a"(in_use), "=d"(edx) : "c"(1));
    bool x87_is_clean = (x87.control & 0xffff) == x87_control && (x87.tags & 0xffff) == 0xffff;
    bool upper_is_clean = (in_use & (1u << 2 | 1u << 6)) == 0; /* upper ymm, upper zmm0-15 */
    if (!x87_is_clean || !upper_is_clean)
        fprintf(stderr, "x87 control %04x tags %04x, vector state in use %x\n", x87.control & 0xffff,
                x87.tags & 0xffff, in_use);
    return x87_is_clean && upper_is_clean;
}

#elif defined(__aarch64__)

enum { REGISTERS = 19 };
static const char *const names[REGISTERS] = {"x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28",
                                             "d8",  "d9",  "d10", "d11", "d12", "d13", "d14", "d15", "x29"};

void call_with_patterns(void (*function)(void *), void *argument, uint64_t *after, const uint64_t *before);
__asm__(".text\n.p2align 4\n.globl call_with_patterns\n.type call_with_patterns, %function\n"
        "call_with_patterns:\n"
        "stp x29, x30, [sp, #-176]!\n stp x19, x20, [sp, #16]\n stp x21, x22, [sp, #32]\n stp x23, x24, [sp, #48]\n"
        "stp x25, x26, [sp, #64]\n stp x27, x28, [sp, #80]\n stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n"
        "stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n str x2, [sp, #160]\n"
        "mov x9, x0\n mov x0, x1\n"
        "ldp x19, x20, [x3]\n ldp x21, x22, [x3, #16]\n ldp x23, x24, [x3, #32]\n ldp x25, x26, [x3, #48]\n"
        "ldp x27, x28, [x3, #64]\n ldp d8, d9, [x3, #80]\n ldp d10, d11, [x3, #96]\n ldp d12, d13, [x3, #112]\n"
        "ldp d14, d15, [x3, #128]\n ldr x29, [x3, #144]\n"
        "blr x9\n"
        "ldr x2, [sp, #160]\n"
        "stp x19, x20, [x2]\n stp x21, x22, [x2, #16]\n stp x23, x24, [x2, #32]\n stp x25, x26, [x2, #48]\n"
        "stp x27, x28, [x2, #64]\n stp d8, d9, [x2, #80]\n stp d10, d11, [x2, #96]\n stp d12, d13, [x2, #112]\n"
        "stp d14, d15, [x2, #128]\n str x29, [x2, #144]\n"
        "ldp x19, x20, [sp, #16]\n ldp x21, x22, [sp, #32]\n ldp x23, x24, [sp, #48]\n ldp x25, x26, [sp, #64]\n"
        "ldp x27, x28, [sp, #80]\n ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n ldp d12, d13, [sp, #128]\n"
        "ldp d14, d15, [sp, #144]\n ldp x29, x30, [sp], #176\n ret\n"
        ".size call_with_patterns, .-call_with_patterns\n");

static uint64_t expected(int i) { return 0xabcd000000000000u + (uint64_t)i; }

uint64_t get_float_mode(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

void set_float_mode(uint64_t mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory"); }

const struct float_mode float_modes[] = {
    {"default", 0},
    {"FZ", 1u << 24},
    {"round up", 1u << 22},
    {"round down", 2u << 22},
    {"round to zero, FZ, DN", 3u << 22 | 1u << 24 | 1u << 25},
    {"AHP", 1u << 26},
};
const int float_mode_count = sizeof float_modes / sizeof *float_modes;

bool has_clean_vector_state(uint16_t x87_control) {
    (void)x87_control;
    return true;
}

#endif

bool has_float_modes(void) {
    const uint64_t before = get_float_mode();
    bool all = true;
    for (int i = 0; i < float_mode_count; i++) {
        set_float_mode(float_modes[i].value);
        all &= get_float_mode() == float_modes[i].value;
    }
    set_float_mode(before);
    return all;
}

bool keeps_registers(void (*function)(void *), void *argument) {
    uint64_t after[REGISTERS];
    bool kept = true;
#if defined(__x86_64__)
    call_with_patterns(function, argument, after);
#else
    uint64_t before[REGISTERS];
    for (int i = 0; i < REGISTERS; i++)
        before[i] = expected(i);
    call_with_patterns(function, argument, after, before);
#endif
    for (int i = 0; i < REGISTERS; i++) {
        if (after[i] != expected(i)) {
            fprintf(stderr, "%s is %llx\n", names[i], (unsigned long long)after[i]);
            kept = false;
        }
    }
    return kept;
}
