/* SPDX-License-Identifier: MIT
 * CMake projects that use rapt: an installed and moved prefix, and each CMakeLists.txt in docs/cmake.md.
 * Usage: test_cmake CMAKE MESON BUILD_ROOT SOURCE_ROOT COMPILER */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"

static char **arguments;
static char folder[] = "/tmp/rapt_cmake.XXXXXX";

static int run(const char *script) {
    char line[4096];
    snprintf(line, sizeof line,
             "cd %s; cmake='%s' meson='%s' build='%s' source='%s'; export CC='%s' CMAKE_GENERATOR=Ninja;"
             "PATH=$(dirname \"$meson\"):$PATH; unset LD_LIBRARY_PATH DESTDIR MESON_TESTTHREADS; set -e; { "
             "%s; } >log 2>&1",
             folder, arguments[1], arguments[2], arguments[3], arguments[4], arguments[5], script);
    return system(line);
}

static void shell(const char *script) {
    if (run(script) != 0) {
        char line[64];
        snprintf(line, sizeof line, "cat %s/log >&2", folder);
        assert_int_equal(system(line), 0);
        fail_msg("%s", script);
    }
}

/* An example, and an installation moved from where it was configured. */
static int begin(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    shell("DESTDIR=$PWD/stage \"$meson\" install -C \"$build\" --no-rebuild --quiet;"
          "mv $(dirname $(dirname $(dirname $(find stage -name rapt.h)))) prefix;"
          "cp \"$source\"/examples/decode.c program.c;"
          "cp \"$source\"/examples/heads.c .");
    return 0;
}

static int end(void **state) {
    (void)state;
    return run("cd /; rm -r \"$OLDPWD\"; exec >/dev/null");
}

/* Every target, from C, and from a project without C. */
static void test_targets(void **state) {
    (void)state;
    shell("mkdir targets; cd targets; cat >CMakeLists.txt <<'E'\n"
          "cmake_minimum_required(VERSION 3.16)\n"
          "project(targets C)\n"
          "find_package(rapt REQUIRED CONFIG)\n"
          "foreach(kind \"\" _static)\n"
          "    if(TARGET rapt::rapt${kind})\n"
          "        add_executable(program${kind} ../program.c)\n"
          "        target_link_libraries(program${kind} PRIVATE rapt::rapt${kind})\n"
          "        add_executable(heads${kind} ../heads.c)\n"
          "        target_link_libraries(heads${kind} PRIVATE rapt::layers${kind})\n"
          "    endif()\n"
          "endforeach()\n"
          "E\n"
          "$cmake -S . -B build -DCMAKE_PREFIX_PATH=$PWD/../prefix; $cmake --build build;"
          "for program in build/program*; do ./$program | grep 'same bits'; done;"
          "for program in build/heads*; do ./$program | grep journey; done;"
          "! test -e build/program_static || ! nm -D --defined-only build/program_static | grep rapt_");
}

static void test_versions(void **state) {
    (void)state;
    shell(
        "mkdir versions; cd versions; printf '%s\\n' 'cmake_minimum_required(VERSION 3.19)' 'project(v NONE)'"
        " 'find_package(rapt ${ask} REQUIRED)' >CMakeLists.txt;"
        "at=$(dirname $(find $PWD/../prefix -name rapt-config.cmake));"
        "v=$(sed -n 's/^set(PACKAGE_VERSION \"\\([0-9.]*\\)\")/\\1/p' $at/rapt-config-version.cmake); test "
        "-n \"$v\";"
        "ask() { rm -rf build; $cmake -S . -B build -Drapt_DIR=$at -Dask=$1; };"
        "for good in $v ${v%.*} ${v%.*}.0 0.0.1...9 ''; do ask $good; done;"
        "for bad in ${v%.*}.99 9 0.99 '0.0.1...<0.0.9'; do ! ask $bad || { echo $bad was taken; false; }; "
        "done");
}

/* Meson keeps folders outside the prefix absolute. */
static void test_folders_outside_the_prefix(void **state) {
    (void)state;
    shell("mkdir outside; cd outside; printf '%s\\n' 'cmake_minimum_required(VERSION 3.16)' 'project(outside NONE)'"
          " 'find_package(rapt REQUIRED CONFIG)'"
          " 'get_target_property(headers rapt::rapt INTERFACE_INCLUDE_DIRECTORIES)'"
          " 'message(\"headers: ${headers}.\")' >CMakeLists.txt;"
          "for folders in '--libdir=/a/lib --includedir=include' '--libdir=lib --includedir=/b/include'; do"
          " rm -rf rapt build; headers=/p/include; case $folders in */b/include) headers=/b/include; esac;"
          " \"$meson\" setup rapt \"$source\" -Dtests=disabled -Dtools=disabled -Disas=scalar --prefix=/p $folders;"
          " $cmake -S . -B build -Drapt_DIR=$PWD/rapt/cmake 2>&1 | tee said; grep -F \"headers: $headers.\" said;"
          "done");
}

/* take FOLDER HEADING: the CMakeLists.txt under a heading of docs/cmake.md, with the program. For the archives that
 * these link, one kernel table with little optimisation builds sooner. */
#define TAKE                                                                                                 \
    "take() { mkdir $1; cp program.c $1; cd $1; awk -v h=\"## $2\" '$0 == h { here = 1 } /^```$/ { on = "    \
    "here = on ? 0 : here }"                                                                                 \
    " on { print } here && /^```cmake$/ { on = 1 }' \"$source\"/docs/cmake.md >CMakeLists.txt; grep -q "     \
    "project CMakeLists.txt;"                                                                                \
    " sed -i 's/meson setup/& -Disas=scalar -Ddefault_library=static/' CMakeLists.txt; };"                   \
    " export CFLAGS='-Og -DRAPT_PLAIN_LOOPS';"

static void test_documented_find_package(void **state) {
    (void)state;
    shell(TAKE "take installed Installed; $cmake -S . -B build -DCMAKE_PREFIX_PATH=$PWD/../prefix;"
               "$cmake --build build; build/program | grep 'same bits'");
}

static void test_documented_fetch_content(void **state) {
    (void)state;
    shell(TAKE "take fetched \"Fetched and built with the project's configuration\";"
               "$cmake -S . -B build -DFETCHCONTENT_SOURCE_DIR_RAPT=\"$source\"; $cmake --build build;"
               "build/program | grep 'same bits'");
}

/* The page requires OpenMP, which Clang often comes without. */
static void test_documented_external_project(void **state) {
    (void)state;
    if (run("echo '#include <omp.h>' >omp.c; echo 'int main(void) { return omp_get_max_threads() < 1; }' >>omp.c;"
            "$CC -fopenmp omp.c -o omp") != 0) {
        print_message("# %s has no OpenMP\n", arguments[5]);
        skip();
    }
    shell(TAKE
          "take external 'Built beside the project';"
          "tar -cf rapt.tar -C \"$source\" --exclude=./build* --exclude=./.git .;"
          "$cmake -S . -B build -DRAPT_URL=$PWD/rapt.tar; $cmake --build build; build/program | grep 'same bits'");
}

int main(int count, char **given) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_targets), cmocka_unit_test(test_versions),
                                       cmocka_unit_test(test_folders_outside_the_prefix),
                                       cmocka_unit_test(test_documented_find_package),
                                       cmocka_unit_test(test_documented_fetch_content),
                                       cmocka_unit_test(test_documented_external_project)};
    if (count != 6) {
        fputs("usage: test_cmake CMAKE MESON BUILD_ROOT SOURCE_ROOT COMPILER\n", stderr);
        return 2;
    }
    arguments = given;
    return cmocka_run_group_tests_name("cmake", tests, begin, end);
}
