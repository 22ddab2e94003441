/* SPDX-License-Identifier: MIT */
#include "common/memory_free.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Sums the numbers after these names, at line starts; -1 if none is found. */
static int64_t sum_of(const char *path, const char *const names[2]) {
    FILE *file = fopen(path, "r");
    char line[256];
    int64_t sum = -1, number;
    while (file && fgets(line, sizeof line, file)) {
        for (int i = 0; i < 2; i++) {
            const size_t length = strlen(names[i]);
            if (strncmp(line, names[i], length) == 0 && sscanf(line + length, "%" SCNd64, &number) == 1)
                sum = (sum < 0 ? 0 : sum) + number;
        }
    }
    if (file) fclose(file);
    return sum;
}

static int64_t of_machine(void) {
    const int64_t kilobytes = sum_of("/proc/meminfo", (const char *const[]){"MemAvailable:", "SwapFree:"});
    return kilobytes < 0 ? INT64_MAX : kilobytes * 1024;
}

/* A container's limit (cgroup 2). Its file cache counts as used, but is reclaimable. */
static int64_t of_container(void) {
    static const char *const number[] = {"", "\n"}, *const cached[] = {"inactive_file ", "active_file "};
    const int64_t most = sum_of("/sys/fs/cgroup/memory.max", number);
    const int64_t used = sum_of("/sys/fs/cgroup/memory.current", number);
    const int64_t files = sum_of("/sys/fs/cgroup/memory.stat", cached);
    if (most < 0 || used < 0) return INT64_MAX;
    const int64_t left = most - used + (files < 0 ? 0 : files);
    return left < 0 ? 0 : left;
}

int64_t memory_free(void) {
    const int64_t machine = of_machine(), container = of_container();
    return machine < container ? machine : container;
}
