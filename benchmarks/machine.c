/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include "rapt/rapt.h"

#include <stdio.h>
#include <string.h>

void machine_line(char *text, size_t text_bytes) {
    static const char *const fields[] = {"model name", "cpu family", "model\t", "CPU implementer",
                                         "CPU part"};
    char line[512];
    size_t used = 0;
    FILE *file = fopen("/proc/cpuinfo", "r");
    text[0] = '\0';
    while (file && fgets(line, sizeof line, file) && line[0] != '\n') {
        for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
            char *value = strchr(line, ':');
            if (!value || strncmp(line, fields[f], strlen(fields[f])) != 0 || used >= text_bytes)
                continue;
            int field_length = (int)strcspn(fields[f], "\t");
            used += (size_t)snprintf(text + used, text_bytes - used, "%s%.*s %.*s", used ? ", " : "",
                                     field_length, fields[f], (int)strcspn(value + 2, "\n"), value + 2);
        }
    }
    if (file)
        fclose(file);
    if (used == 0)
        snprintf(text, text_bytes, "not told by the system");
}

void isa_line(char *text, size_t text_bytes) {
    rapt_isa chosen = RAPT_ISA_AUTO;
    size_t used = 0;
    rapt_isa_chosen(&chosen);
    text[0] = '\0';
    for (int isa = RAPT_ISA_SCALAR; rapt_isa_name((rapt_isa)isa) && used < text_bytes; isa++)
        if (rapt_isa_available(isa))
            used += (size_t)snprintf(text + used, text_bytes - used, "%s%s%s", used ? ", " : "",
                                     rapt_isa_name(isa), isa == (int)chosen ? " (default)" : "");
}
