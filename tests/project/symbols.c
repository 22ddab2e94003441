/* SPDX-License-Identifier: MIT
 * What the shared library exports and imports. Usage: test_symbols LIBRARY HEADER ...; reads the ELF dynamic symbols
 * itself. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *library_path;
static char **header_paths;
static int header_count;
static char *library, *headers[16];

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long bytes = ftell(file);
    char *text = calloc((size_t)bytes + 1, 1);
    rewind(file);
    assert_int_equal(fread(text, 1, (size_t)bytes, file), bytes);
    fclose(file);
    return text;
}

static int load(void **state) {
    (void)state;
    library = read_file(library_path);
    assert_in_range(header_count, 1, 16);
    for (int i = 0; i < header_count; i++)
        headers[i] = read_file(header_paths[i]);
    return 0;
}

static int unload(void **state) {
    (void)state;
    free(library);
    for (int i = 0; i < header_count; i++)
        free(headers[i]);
    return 0;
}

/* Calls visit(name, whether the library defines it) for every dynamic symbol; returns their number. */
static int each_symbol(void (*visit)(const char *name, int defined)) {
    const Elf64_Ehdr *elf = (const void *)library;
    const Elf64_Shdr *sections = (const void *)(library + elf->e_shoff);
    int visited = 0;
    assert_int_equal(memcmp(elf->e_ident, ELFMAG, SELFMAG), 0);
    for (int s = 0; s < elf->e_shnum; s++) {
        const Elf64_Sym *symbols = (const void *)(library + sections[s].sh_offset);
        for (size_t i = 1; sections[s].sh_type == SHT_DYNSYM && i < sections[s].sh_size / sizeof *symbols; i++) {
            const char *name = library + sections[sections[s].sh_link].sh_offset + symbols[i].st_name;
            if (ELF64_ST_BIND(symbols[i].st_info) != STB_LOCAL) {
                visit(name, symbols[i].st_shndx != SHN_UNDEF);
                visited++;
            }
        }
    }
    return visited;
}

static int exported;

static int is_declared(const char *name) {
    char declaration[128];
    snprintf(declaration, sizeof declaration, "%s(", name);
    for (int i = 0; i < header_count; i++)
        if (strstr(headers[i], declaration))
            return 1;
    return 0;
}

static void check_export(const char *name, int defined) {
    if (!defined || strcmp(name, "_init") == 0 || strcmp(name, "_fini") == 0 || strncmp(name, "RAPT_", 5) == 0)
        return;
    if (strncmp(name, "rapt_", 5) != 0 || !is_declared(name))
        fail_msg("%s is exported, but not declared in a header", name);
    exported++;
}

static void test_exports(void **state) {
    (void)state;
    int declared = 0;
    for (int i = 0; i < header_count; i++)
        for (const char *at = headers[i]; (at = strchr(at, '\n')); at++)
            declared += strncmp(at, "\nRAPT_API ", 10) == 0 || strncmp(at, "\nRAPT_LAYERS_API ", 17) == 0;
    exported = 0;
    assert_true(each_symbol(check_export) > 0);
    assert_true(declared > 0);
    assert_int_equal(exported, declared);
}

static int sanitized;

static void find_sanitizer(const char *name, int defined) {
    sanitized += !defined && (strstr(name, "san_") != NULL);
}

/* Nothing that prints, aborts, starts threads or rounds as libm pleases. */
static void check_import(const char *name, int defined) {
    static const char *const allowed[] = {
        "memcpy", "memset", "memmove", "memcmp", "strcmp", "strncmp", "strlen", "snprintf", "vsnprintf",
        "__memcpy_chk", "__memset_chk", "__snprintf_chk", "__vsnprintf_chk", "__stack_chk_fail",
        "bcmp",                                      /* Clang's memcmp where only equality counts */
        "malloc", "free",                            /* the one-call form */
        "getenv", "secure_getenv", "getauxval",      /* dispatch */
        "__getauxval",                               /* libgcc's atomics on ARM */
        "getpid",                                    /* fork */
        "sysconf",                                   /* processors, without OpenMP */
        "syscall",                                   /* permission to use tiles */
        "cblas_sgemm",                               /* with the Meson option blas */
#ifdef RAPT_ASSERTIONS
        "__assert_fail",
#endif
        "__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable",
    };
    /* rapt_*: the layers' imports from the library; the linker refuses other undefined rapt symbols. */
    if (defined || strncmp(name, "rapt_", 5) == 0 || strncmp(name, "omp_", 4) == 0 || strncmp(name, "GOMP_", 5) == 0 ||
        strncmp(name, "__kmpc_", 7) == 0)
        return;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (strcmp(name, allowed[i]) == 0)
            return;
    fail_msg("the library asks for %s", name);
}

static void test_imports(void **state) {
    (void)state;
    sanitized = 0;
    each_symbol(find_sanitizer);
    if (sanitized)
        skip();
    each_symbol(check_import);
}

/* With two copies in a process, the dynamic linker finds one first: each must call itself. */
static void test_calls_stay_inside(void **state) {
    const Elf64_Ehdr *elf = (const void *)library;
    const Elf64_Shdr *sections = (const void *)(library + elf->e_shoff);
    int relocations = 0;
    (void)state;
    for (int s = 0; s < elf->e_shnum; s++) {
        const Elf64_Rela *entries = (const void *)(library + sections[s].sh_offset);
        const Elf64_Shdr *names = &sections[sections[s].sh_link];
        for (size_t i = 0; sections[s].sh_type == SHT_RELA && i < sections[s].sh_size / sizeof *entries; i++) {
            const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(library + names->sh_offset) +
                                      ELF64_R_SYM(entries[i].r_info);
            const char *name = library + sections[names->sh_link].sh_offset + symbol->st_name;
            relocations++;
            if (symbol->st_shndx != SHN_UNDEF && strncmp(name, "rapt_", 5) == 0)
                fail_msg("%s is looked up outside of the library", name);
        }
    }
    assert_true(relocations > 0);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exports), cmocka_unit_test(test_imports),
                                       cmocka_unit_test(test_calls_stay_inside)};
    if (count < 3) {
        fputs("usage: test_symbols LIBRARY HEADER ...\n", stderr);
        return 2;
    }
    library_path = arguments[1];
    header_paths = arguments + 2;
    header_count = count - 2;
    return cmocka_run_group_tests_name("symbols", tests, load, unload);
}
