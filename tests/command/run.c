/* SPDX-License-Identifier: MIT */
#include "command/run.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/support.h"

/* With a space, to catch missing quotes. */
static char folder[] = "/tmp/rapt command-XXXXXX";
static bool has_wrapper;

/* A script of this name, for shell lines to call by the variable of this name. */
static void set_command(const char *name, const char *wrapper, const char *resolved) {
    char path[64];
    snprintf(path, sizeof path, "bin/%s-tested", name);
    FILE *script = fopen(path, "w");
    assert_non_null(script);
    fprintf(script, "#!/bin/sh\nexec %s '%s' \"$@\"\n", wrapper, resolved);
    assert_int_equal(fclose(script), 0);
    assert_int_equal(chmod(path, 0755), 0);
    setenv(name, path + strlen("bin/"), 1);
}

void command_start(const char *wrapper, const char *rapt, const char *rapt_failing) {
    char path[4096], *resolved = realpath(rapt, NULL), *failing = realpath(rapt_failing, NULL);
    assert_true(resolved && failing);
    has_wrapper = wrapper[0] != '\0';
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkdir("bin", 0755), 0);
    set_command("rapt", wrapper, resolved);
    set_command("rapt_failing", wrapper, failing);
    snprintf(path, sizeof path, "%s/bin:%s", folder, getenv("PATH"));
    setenv("PATH", path, 1);
    free(resolved);
    free(failing);
}

bool command_is_emulated(void) { return has_wrapper; }

const char *command_link(const char *name, const char *target) {
    if (access(target, F_OK) != 0) return target;
    assert_int_equal(symlink(target, name), 0);
    return name;
}

void command_stop(void) {
    char line[64];
    snprintf(line, sizeof line, "rm -r '%s'", folder);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(system(line), 0);
}

static void read_text(const char *path, char *text, size_t bytes) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, bytes - 1, file)] = '\0';
    fclose(file);
}

struct command_result command_shell(const char *line) {
    char whole[2048];
    struct command_result result;
    snprintf(whole, sizeof whole, "( %s ) >stdout.txt 2>stderr.txt", line);
    int status = system(whole);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    read_text("stdout.txt", result.out, sizeof result.out);
    read_text("stderr.txt", result.err, sizeof result.err);
    return result;
}

struct command_result expect_success(const char *format, ...) {
    char line[1536];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    struct command_result result = command_shell(line);
    if (result.status != 0 || result.err[0])
        fail_msg("%s\nexits %d: %s%s", line, result.status, result.out, result.err);
    return result;
}

static void expect_no_file(const char *prefix, const char *line) {
    DIR *directory = opendir(".");
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            fail_msg("%s\nleaves %s", line, entry->d_name);
    }
    closedir(directory);
}

void expect_error(const char *said, const char *format, ...) {
    char line[1536];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    struct command_result result = command_shell(line);
    const char *end = strchr(result.err, '\n');
    if (result.status != 2 || strncmp(result.err, "rapt: ", 6) != 0 || !end || end[1] ||
        !strstr(result.err, said)) {
        fail_msg("%s\nexits %d without '%s': %s", line, result.status, said, result.err);
    }
    expect_no_file("new", line);
}

static void write_parts(const char *path, const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(a, 1, a_bytes, file), a_bytes);
    assert_int_equal(fwrite(b, 1, b_bytes, file), b_bytes);
    assert_int_equal(fclose(file), 0);
}

void write_bytes(const char *path, const void *bytes, size_t count) {
    write_parts(path, bytes, count, "", 0);
}

void write_npy(const char *path, enum npy_type type, const void *data, int dims, const int64_t *shape) {
    char header[256];
    size_t bytes = (size_t)npy_item_bytes(type);
    for (int i = 0; i < dims; i++) bytes *= (size_t)shape[i];
    write_parts(path, header, (size_t)npy_header(header, type, dims, shape), data, bytes);
}

void write_dict(const char *path, const char *dict, size_t data_bytes) {
    char header[128] = "\x93NUMPY\x01\x00\x76\x00";
    size_t length = strlen(dict);
    assert_true(length < 118);
    memcpy(header + 10, dict, length);
    memset(header + 10 + length, ' ', 118 - length);
    header[127] = '\n';
    void *zeros = calloc(1, data_bytes + 1);
    assert_non_null(zeros);
    write_parts(path, header, sizeof header, zeros, data_bytes);
    free(zeros);
}

void write_random(const char *path, int dims, int64_t batch, int64_t heads, int64_t tokens, int64_t dim) {
    static struct random random = {1};
    const int64_t shape[4] = {batch, heads, tokens, dim};
    int64_t count = batch * heads * tokens * dim;
    float *values = malloc((size_t)(count + 1) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) values[i] = 2 * random_uniform(&random);
    write_npy(path, NPY_FLOAT32, values, dims, shape + 4 - dims);
    free(values);
}
