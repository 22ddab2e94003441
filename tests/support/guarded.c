/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE
#include "support/guarded.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BESIDE = 0xcb };

static size_t body_bytes(const struct guarded *memory) {
    return memory->map_bytes - 2 * memory->page;
}

#ifdef __x86_64__
static void leave(int signal_number) { _exit(signal_number); }

/* Whether masked loads fault for masked-off lanes. CPUs' do not, QEMU 7.2's do, and would make every tail beside a
 * guard page look broken. */
static bool masked_loads_fault(void) {
    if (!__builtin_cpu_supports("avx2"))
        return false;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, leave);
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        char *map = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        __asm__ volatile("vpxor %%xmm0, %%xmm0, %%xmm0\n\tvmaskmovps (%0), %%ymm0, %%ymm1\n\tvzeroupper"
                         : : "r"(map) : "xmm0", "xmm1", "memory");
        _exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && status != 0;
}
#else
static bool masked_loads_fault(void) { return false; }
#endif

/* Extra bytes between data and guard page: 0 on every CPU. */
static size_t slack(void) {
    static int faults = -1;
    if (faults < 0) {
        faults = masked_loads_fault();
        if (faults)
            puts("# masked loads fault here (an emulator's bug): guard pages stand 64 bytes off");
    }
    return faults ? 64 : 0;
}

struct guarded guarded_new(size_t bytes, enum guard_side side, size_t distance, unsigned char fill) {
    struct guarded memory = {.bytes = bytes, .page = (size_t)sysconf(_SC_PAGESIZE)};
    distance += slack();
    size_t body = (bytes + distance + memory.page - 1) / memory.page * memory.page;
    if (body == 0) {
        body = memory.page;
    }
    memory.map_bytes = body + 2 * memory.page;
    memory.map = mmap(NULL, memory.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory.map == MAP_FAILED || mprotect(memory.map, memory.page, PROT_NONE) != 0 ||
        mprotect(memory.map + memory.page + body, memory.page, PROT_NONE) != 0) {
        perror("guard pages");
        exit(1);
    }
    char *begin = memory.map + memory.page;
    memory.data = side == GUARD_END ? begin + body - distance - bytes : begin + distance;
    memset(begin, BESIDE, body);
    memset(memory.data, fill, bytes);
    return memory;
}

void guarded_make_read_only(struct guarded *memory) {
    if (mprotect(memory->map + memory->page, body_bytes(memory), PROT_READ) != 0) {
        perror("mprotect");
        exit(1);
    }
}

static bool is_beside(const char *begin, const char *end) {
    for (const char *at = begin; at < end; at++) {
        if ((unsigned char)*at != BESIDE) {
            return false;
        }
    }
    return true;
}

bool guarded_is_clean(const struct guarded *memory) {
    const char *begin = memory->map + memory->page;
    return is_beside(begin, memory->data) && is_beside(memory->data + memory->bytes, begin + body_bytes(memory));
}

void guarded_free(struct guarded *memory) {
    if (memory->map) {
        munmap(memory->map, memory->map_bytes);
    }
    memory->map = NULL;
}
