/* SPDX-License-Identifier: MIT */
#include "common/cpu_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From the cores' reference manuals; Linux gives only the numbers. */
static const struct { int maker, part; const char *name; } arm_cores[] = {
    {0x41, 0xd03, "Arm Cortex-A53"},   {0x41, 0xd04, "Arm Cortex-A35"},    {0x41, 0xd05, "Arm Cortex-A55"},
    {0x41, 0xd07, "Arm Cortex-A57"},   {0x41, 0xd08, "Arm Cortex-A72"},    {0x41, 0xd09, "Arm Cortex-A73"},
    {0x41, 0xd0a, "Arm Cortex-A75"},   {0x41, 0xd0b, "Arm Cortex-A76"},    {0x41, 0xd0c, "Arm Neoverse N1"},
    {0x41, 0xd0d, "Arm Cortex-A77"},   {0x41, 0xd40, "Arm Neoverse V1"},   {0x41, 0xd41, "Arm Cortex-A78"},
    {0x41, 0xd44, "Arm Cortex-X1"},    {0x41, 0xd46, "Arm Cortex-A510"},   {0x41, 0xd47, "Arm Cortex-A710"},
    {0x41, 0xd49, "Arm Neoverse N2"},  {0x41, 0xd4f, "Arm Neoverse V2"},   {0x41, 0xd84, "Arm Neoverse V3"},
    {0x41, 0xd8e, "Arm Neoverse N3"},  {0x46, 0x001, "Fujitsu A64FX"},     {0x48, 0xd01, "HiSilicon Kunpeng 920"},
    {0x4e, 0x004, "NVIDIA Carmel"},    {0x61, 0x022, "Apple M1"},          {0x61, 0x023, "Apple M1"},
    {0x61, 0x032, "Apple M2"},         {0x61, 0x033, "Apple M2"},          {0xc0, 0xac3, "Ampere-1"},
};

/* Without the final newline. */
static void put(char *into, size_t bytes, const char *text) {
    snprintf(into, bytes, "%s", text);
    into[strcspn(into, "\n")] = '\0';
}

/* The value after the first line that begins with key and a colon. */
static const char *value_of(const char *path, const char *key, char *value, size_t bytes) {
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    value[0] = '\0';
    while (file && getline(&line, &room, file) >= 0) {
        const char *colon = strchr(line, ':');
        const size_t length = strlen(key);
        if (!colon || strncmp(line, key, length) != 0) continue;
        if (line + length + strspn(line + length, " \t") != colon) continue;
        put(value, bytes, colon + 1 + strspn(colon + 1, " \t"));
        break;
    }
    free(line);
    if (file) fclose(file);
    return value;
}

const char *cpu_name(const char *path, char *name, size_t bytes) {
    char maker[64], part[64];
    if (value_of(path, "model name", name, bytes)[0]) return name;
    value_of(path, "CPU implementer", maker, sizeof maker);
    value_of(path, "CPU part", part, sizeof part);
    if (!maker[0] || !part[0]) return value_of(path, "Processor", name, bytes);
    for (size_t i = 0; i < sizeof arm_cores / sizeof arm_cores[0]; i++) {
        if (arm_cores[i].maker == strtol(maker, NULL, 16) && arm_cores[i].part == strtol(part, NULL, 16))
            put(name, bytes, arm_cores[i].name);
    }
    if (!name[0]) snprintf(name, bytes, "implementer %s, part %s", maker, part);
    return name;
}

const char *cpu_flags(const char *path, char *flags, size_t bytes) {
    if (value_of(path, "flags", flags, bytes)[0]) return flags;
    return value_of(path, "Features", flags, bytes);
}
