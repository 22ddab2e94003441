/* SPDX-License-Identifier: MIT
 * The headers, and README.md's program, compile without warnings and export nothing: C and C++,
 * every compiler installed.
 * Usage: test_headers SOURCE_ROOT COMPILER... */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka_all.h"

static const char *root;
static char **compilers;
static int compiler_count;
static char folder[] = "/tmp/rapt_headers.XXXXXX";

static const char every_macro[] =
    "#include <rapt/rapt.h>\n"
    "#include <rapt/matmul.h>\n"
    "#include <rapt/cache.h>\n"
    "#include <rapt/states.h>\n"
    "#include <rapt/layers.h>\n"
    "static rapt_attention_desc everywhere = RAPT_ATTENTION_DESC_INIT;\n"
    "int use(void);\n"
    "int use(void) {\n"
    "    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;\n"
    "    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;\n"
    "    rapt_bindings bindings = RAPT_BINDINGS_INIT;\n"
    "    rapt_matmul_desc product = RAPT_MATMUL_DESC_INIT;\n"
    "    rapt_append_desc append = RAPT_APPEND_DESC_INIT;\n"
    "    rapt_rotate_desc rotate = RAPT_ROTATE_DESC_INIT;\n"
    "    rapt_states_desc states = RAPT_STATES_DESC_INIT;\n"
    "    rapt_dot_product_desc dot = RAPT_DOT_PRODUCT_DESC_INIT;\n"
    "    rapt_multi_head_desc heads = RAPT_MULTI_HEAD_DESC_INIT;\n"
    "    rapt_stacked_desc stacked = RAPT_STACKED_DESC_INIT;\n"
    "    rapt_encoder_desc encoder = RAPT_ENCODER_DESC_INIT;\n"
    "    rapt_additive_desc additive = RAPT_ADDITIVE_DESC_INIT;\n"
    "    rapt_luong_desc luong = RAPT_LUONG_DESC_INIT;\n"
    "    const int32_t lengths[2] = {1, 2};\n"
    "    const float numbers[2] = {1, 2};\n"
    "    float results[2];\n"
    "    desc.features = RAPT_CAUSAL | RAPT_WINDOW;\n"
    "    desc.query = rapt_input_bhsd(numbers, 1, 1, 1, 2);\n"
    "    desc.out = rapt_output_bshd(results, 1, 1, 1, 2);\n"
    "    desc.key = rapt_tensor_bshd(numbers, RAPT_F16, 1, 1, 1, 2);\n"
    "    desc.kv_lengths = rapt_int32_list(lengths, 2);\n"
    "    bindings.query = rapt_input_buffer(numbers, 8);\n"
    "    bindings.out = rapt_output_buffer(results, 8);\n"
    "    heads.query = rapt_linear_of(numbers, numbers, 1, 1);\n"
    "    return 0 == (everywhere.struct_size + desc.struct_size + options.struct_size + bindings.struct_size +\n"
    "                 product.struct_size + dot.struct_size + heads.struct_size + stacked.struct_size +\n"
    "                 encoder.struct_size + additive.struct_size + luong.struct_size + append.struct_size +\n"
    "                 rotate.struct_size + states.struct_size);\n"
    "}\n";

static FILE *open_source(const char *name) {
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    return file;
}

static int begin(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    FILE *file = open_source("macros.c");
    fputs(every_macro, file);
    fclose(file);
    return 0;
}

static int end(void **state) {
    char line[96];
    (void)state;
    snprintf(line, sizeof line, "rm -r %s", folder);
    return system(line);
}

static int compile(const char *compiler, const char *language, const char *standard, const char *path) {
    char line[1024];
    const bool is_example = strstr(path, "examples") != NULL; /* in C, with its casts */
    const char *casts = strcmp(language, "c++") == 0 && !is_example ? " -Wold-style-cast" : "";
    snprintf(line, sizeof line,
             "%s -x %s -std=%s -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wcast-qual%s -Werror -I'%s/include'"
             " -fsyntax-only '%s'", compiler, language, standard, casts, root, path);
    const int status = system(line);
    if (status)
        print_error("%s\n", line);
    return status != 0;
}

/* Without its C++ half a C compiler cannot test C++; with CI=true it must be there. */
static bool speaks_cpp(const char *compiler) {
    char line[256];
    const char *ci = getenv("CI");
    snprintf(line, sizeof line, "echo 'class c;' | %s -x c++ -fsyntax-only - 2>/dev/null", compiler);
    return (ci && strcmp(ci, "true") == 0) || system(line) == 0;
}

static void test_no_warnings(void **state) {
    static const char *const c[] = {"c99", "c11", "c17"}, *const cpp[] = {"c++11", "c++14", "c++17", "c++20"};
    int failed = 0;
    (void)state;
    for (int i = 0; i < compiler_count; i++) {
        const bool with_cpp = speaks_cpp(compilers[i]);
        if (!with_cpp)
            printf("# %s: C only\n", compilers[i]);
        for (int file = 0; file < 2; file++) {
            char name[512];
            snprintf(name, sizeof name, "%s/%s", file ? root : folder, file ? "examples/first.c" : "macros.c");
            for (size_t s = 0; s < sizeof c / sizeof *c; s++)
                failed += compile(compilers[i], "c", c[s], name);
            for (size_t s = 0; with_cpp && s < sizeof cpp / sizeof *cpp; s++)
                failed += compile(compilers[i], "c++", cpp[s], name);
        }
    }
    assert_int_equal(failed, 0);
}

/* Two plug-ins of one process may be built with structs of two releases, so neither may call the other's functions. */
static void test_no_symbols(void **state) {
    char line[1024];
    (void)state;
    for (int i = 0; i < compiler_count; i++) {
        if (!speaks_cpp(compilers[i]))
            continue;
        snprintf(line, sizeof line,
                 "cd %s && %s -x c++ -O0 -I'%s/include' -c macros.c -o macros.o && nm --defined-only -g macros.o >names"
                 " && grep -q use names && ! grep rapt_ names",
                 folder, compilers[i], root);
        assert_int_equal(system(line), 0);
    }
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_warnings), cmocka_unit_test(test_no_symbols)};
    if (count < 3) {
        fputs("usage: test_headers SOURCE_ROOT COMPILER...\n", stderr);
        return 2;
    }
    root = arguments[1];
    compilers = arguments + 2;
    compiler_count = count - 2;
    return cmocka_run_group_tests_name("headers", tests, begin, end);
}
