/* SPDX-License-Identifier: MIT
 * `rapt info`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rapt/rapt.h"
#include "tool.h"
#include "verbs.h"

/* First line of a file without its end, "" where there is none. */
static const char *first_line(const char *path, char text[64]) {
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(text, 64, file) == NULL) text[0] = '\0';
    if (file) fclose(file);
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static void print_cpu_model(void) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (file && fgets(line, sizeof line, file)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || value == NULL) continue;
        printf("cpu        %s", value + 2);
        break;
    }
    if (file) fclose(file);
}

/* As Linux tells; other systems print nothing here. */
static void print_caches(void) {
    const char *prefix = "caches    ";
    for (int i = 0; i < 8; i++) {
        char path[96], level[64], type[64], size[64];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
        if (first_line(path, level)[0] == '\0') break;
        strcpy(strrchr(path, '/'), "/type");
        if (strcmp(first_line(path, type), "Instruction") == 0) continue;
        strcpy(strrchr(path, '/'), "/size");
        printf("%s L%s %s", prefix, level, first_line(path, size));
        prefix = ",";
    }
    if (prefix[0] == ',') putchar('\n');
}

static void print_features(void) {
    size_t length = rapt_cpu_features(NULL, 0);
    char *text = tool_allocate((int64_t)length, 1, "cpu features");
    rapt_cpu_features(text, length + 1);
    printf("features   %s\n", length ? text : "none that rapt knows");
}

static void print_tables(void) {
    printf("kernels   ");
    for (int isa = RAPT_ISA_AUTO + 1; rapt_isa_name((rapt_isa)isa); isa++) {
        if (rapt_isa_available((rapt_isa)isa)) printf(" %s", rapt_isa_name((rapt_isa)isa));
    }
    putchar('\n');
}

static void print_chosen(void) {
    rapt_isa isa = RAPT_ISA_AUTO;
    rapt_status status = rapt_isa_chosen(&isa);
    const char *wanted = getenv("RAPT_ISA");
    if (status != RAPT_OK) tool_die("%s: RAPT_ISA=%s", rapt_status_text(status), wanted ? wanted : "");
    const char *features = rapt_isa_needs(isa);
    printf("chosen     %s%s, which uses %s\n", rapt_isa_name(isa), wanted && wanted[0] ? " (by RAPT_ISA)" : "",
           features[0] ? features : "nothing beyond the compiler's baseline");
}

int verb_info(int argc, char **argv) {
    if (argc > 1) tool_die("unexpected argument '%s'", argv[1]);
    printf("rapt       %s, numerics %d\n", rapt_version(), rapt_numerics_version());
    print_cpu_model();
    printf("cores      %ld online\n", sysconf(_SC_NPROCESSORS_ONLN));
    print_caches();
    int threads = rapt_openmp_threads();
    if (threads)
        printf("openmp     %d thread%s\n", threads, threads == 1 ? "" : "s");
    else
        puts("openmp     not in this build");
    print_features();
    print_tables();
    print_chosen();
    return EXIT_SUCCESS;
}
