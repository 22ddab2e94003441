/* SPDX-License-Identifier: MIT
 * `rapt info`. What a system does not tell is omitted. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "build_options.h"
#include "common/cpu_name.h"
#include "common/json.h"
#include "common/options.h"
#include "common/tool.h"
#include "rapt/rapt.h"
#include "verbs.h"

struct info_options {
    bool json;
};

const struct option_row info_option_rows[] = {
    {OPTION_HEADING, "Form", NULL, "Lines of text by default.", 0},
    {OPTION_FLAG, "json", NULL, "Print it as JSON.", offsetof(struct info_options, json)},
    {OPTION_HEADING, NULL, NULL, NULL, 0},
};

static bool as_json;

static void field(const char *name, const char *text) {
    if (!text[0]) return;
    if (as_json)
        json_text(name, text);
    else
        printf("%-12s %s\n", name, text);
}

/* A file's first line without its end, "" if there is none. */
static const char *first_line(const char *path, char text[96]) {
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(text, 96, file) == NULL) text[0] = '\0';
    if (file) fclose(file);
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static void tell_system(void) {
    struct utsname system;
    char text[256] = "";
    if (uname(&system) == 0)
        snprintf(text, sizeof text, "%.60s %.100s, %.60s", system.sysname, system.release, system.machine);
    field("system", text);
}

static void tell_cpu(void) {
    static char text[8192];
    field("cpu", cpu_name("/proc/cpuinfo", text, sizeof text));
    snprintf(text, sizeof text, "%ld online", sysconf(_SC_NPROCESSORS_ONLN));
    field("cores", text);
}

static void tell_caches(void) {
    char text[256] = "";
    for (int i = 0; i < 8; i++) {
        char path[96], level[96], type[96], size[96];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
        if (first_line(path, level)[0] == '\0') break;
        strcpy(strrchr(path, '/'), "/type");
        if (strcmp(first_line(path, type), "Instruction") == 0) continue;
        strcpy(strrchr(path, '/'), "/size");
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%sL%.8s %.16s", used ? ", " : "", level, first_line(path, size));
    }
    field("caches", text);
}

static void tell_memory(void) {
    char text[96];
    glob_t nodes;
    if (glob("/sys/devices/system/node/node[0-9]*", 0, NULL, &nodes) == 0) {
        snprintf(text, sizeof text, "%zu", nodes.gl_pathc);
        field("numa nodes", text);
        globfree(&nodes);
    }
    field("huge pages", first_line("/sys/kernel/mm/transparent_hugepage/enabled", text));
}

static void tell_build(void) {
    char text[96];
    field("compiler", RAPT_BUILD_COMPILER);
    field("options", RAPT_BUILD_OPTIONS);
    field("blas", RAPT_BUILD_BLAS);
    const int threads = rapt_openmp_threads();
    snprintf(text, sizeof text, "%d thread%s", threads, threads == 1 ? "" : "s");
    field("openmp", threads ? text : "not in this build");
}

static void tell_features(void) {
    static char flags[8192];
    size_t length = rapt_cpu_features(NULL, 0);
    char *text = tool_allocate((int64_t)length, 1, "cpu features");
    rapt_cpu_features(text, length + 1);
    field("features", length ? text : "none that rapt knows");
    field("all features", cpu_flags("/proc/cpuinfo", flags, sizeof flags));
}

static void tell_tables(void) {
    char text[128] = "";
    for (int isa = RAPT_ISA_AUTO + 1; rapt_isa_name((rapt_isa)isa); isa++) {
        if (!rapt_isa_available((rapt_isa)isa)) continue;
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "", rapt_isa_name((rapt_isa)isa));
    }
    field("kernels", text);
}

/* If RAPT_ISA leads to a refusal, users look here for the reason. */
static void tell_chosen(void) {
    char text[256];
    rapt_isa isa = RAPT_ISA_AUTO;
    const rapt_status status = rapt_isa_chosen(&isa);
    const char *asked = getenv("RAPT_ISA"), *features = rapt_isa_needs(isa);
    if (status != RAPT_OK)
        snprintf(text, sizeof text, "none: %s: RAPT_ISA=%s", rapt_status_text(status), asked ? asked : "");
    else
        snprintf(text, sizeof text, "%s%s, which uses %s", rapt_isa_name(isa),
                 asked && asked[0] ? " (by RAPT_ISA)" : "",
                 features[0] ? features : "nothing beyond the compiler's baseline");
    field("chosen", text);
}

int verb_info(int argc, char **argv) {
    struct info_options options = {0};
    char version[64];
    options_parse("info", info_option_rows, &options, argc, argv);
    as_json = options.json;
    if (as_json) json_open(NULL, '{');
    snprintf(version, sizeof version, "%s, numerics %d", rapt_version(), rapt_numerics_version());
    field("rapt", version);
    tell_system();
    tell_cpu();
    tell_caches();
    tell_memory();
    tell_build();
    tell_features();
    tell_tables();
    tell_chosen();
    if (as_json) json_close();
    return EXIT_SUCCESS;
}
