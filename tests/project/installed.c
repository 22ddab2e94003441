/* SPDX-License-Identifier: MIT
 * An installed prefix: a program that is given librapt_layers' place finds librapt, too. Also rapt as a
 * subproject of another Meson project, and machines that it refuses.
 * Usage: test_installed MESON BUILD_ROOT SOURCE_ROOT COMPILER */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"

static char **arguments;
static char folder[] = "/tmp/rapt_installed.XXXXXX";

static void shell(const char *script) {
    char line[2048];
    snprintf(line, sizeof line,
             "cd %s; meson='%s' build='%s' source='%s' cc='%s'; unset LD_LIBRARY_PATH; set -e; %s", folder,
             arguments[1], arguments[2], arguments[3], arguments[4], script);
    if (system(line) != 0)
        fail_msg("%s", script);
}

static int begin(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    shell("DESTDIR=$PWD \"$meson\" install -C \"$build\" --no-rebuild --quiet >log 2>&1 || { cat log; false; }");
    return 0;
}

static int end(void **state) {
    (void)state;
    shell("rm -r \"$PWD\"");
    return 0;
}

static void test_program(void **state) {
    (void)state;
    shell("lib=$(dirname $(find $PWD -name librapt_layers.so));"
          "include=$(dirname $(dirname $(find $PWD -name rapt.h)));"
          "$cc \"$source\"/examples/heads.c -I$include -L$lib -lrapt_layers -Wl,-rpath,$lib -o heads; ./heads >out;"
          "grep -q journey out");
}

static void test_sonames(void **state) {
    (void)state;
    shell("lib=$(dirname $(find $PWD -name librapt_layers.so)); test -e $lib/librapt.so.0.1;"
          "test -e $lib/librapt_layers.so.0.1; test ! -e $lib/librapt.so.0");
}

/* Names in the archive's members that a program's own could clash with. */
static void test_names(void **state) {
    (void)state;
    shell("nm --defined-only -g $(find $PWD -name librapt.a) >names; grep -q ' T rapt_' names;"
          "! grep -E ' [A-Z] ' names | grep -v ' rapt_'");
}

/* With the archive: nothing of rapt is exported, and RAPT_STATIC is optional. */
static void test_archive(void **state) {
    (void)state;
    shell("lib=$(dirname $(find $PWD -name librapt.a)); include=$(dirname $(dirname $(find $PWD -name rapt.h)));"
          "omp=; nm $lib/librapt.a 2>/dev/null | grep -q GOMP_ && omp=-fopenmp;"
          "$cc \"$source\"/examples/first.c -I$include $lib/librapt.a $omp -rdynamic -o first;"
          "./first | grep -q 'last token, head 0: +0.011344'; ! nm -D --defined-only first | grep rapt_");
}

/* Every pkg-config file has the URL of an existing page, with all that it links to. */
static void test_url(void **state) {
    (void)state;
    shell("for pc in $(find $PWD -name rapt.pc) $(find $PWD -name rapt_layers.pc); do"
          " url=$(sed -n 's/^URL: //p' $pc); prefix=$(sed -n 's/^prefix=//p' $pc); case $url in"
          " https://*) ;;"
          " file://*) page=$PWD$(echo \"${url#file://}\" | sed \"s,^[$]{prefix},$prefix,\");"
          "  head -n 1 $page | grep -q rapt;"
          "  for to in $(grep -o ']([^)#:]*[)#]' $page | tr -d '])(#' | grep -v ^include); do"
          "   test -e $(dirname $page)/$to; done ;;"
          " *) echo \"$pc: URL is $url\"; false ;; esac; done");
}

static void test_home_page(void **state) {
    (void)state;
    shell("$meson setup other \"$source\" -Dhome_page=https://attention.example/rapt -Dtests=disabled -Dtools=disabled"
          " >log 2>&1 || { cat log; false; };"
          "for name in rapt rapt_layers; do"
          " grep -qx 'URL: https://attention.example/rapt' other/meson-private/$name.pc; done");
}

/* README.md: only the library is built; and files are compiled one by one, since tables cannot share a unit. */
static void test_subproject(void **state) {
    (void)state;
    shell("mkdir -p parent/subprojects; ln -s \"$source\" parent/subprojects/rapt;"
          "cp \"$source\"/examples/first.c parent; cd parent; printf '%s\\n' \"project('parent', 'c')\""
          " \"executable('first', 'first.c', dependencies: dependency('rapt', fallback: 'rapt'))\" >meson.build;"
          "{ CFLAGS='-Og -DRAPT_PLAIN_LOOPS' $meson setup build --unity=subprojects -Drapt:isas=scalar"
          "  -Drapt:default_library=static && $meson compile -C build; } >log 2>&1 || { cat log; false; };"
          "build/first | grep -q 'last token, head 0: +0.011344';"
          "! find build -name '*.o' | grep -E 'reference|tools|test'");
}

/* Flags stand in for the other compiler, which is rarely installed. */
static void test_other_machines(void **state) {
    (void)state;
    shell("refused() { CFLAGS=\"-U$1 -D$1=$2\" $meson setup refused \"$source\" -Dtests=disabled -Dtools=disabled"
          " >log 2>&1 && { echo \"$1=$2 was taken\"; return 1; }; grep -q \"ERROR.*$3\" log || { cat log; return 1; };"
          " rm -r refused; };"
          "refused __SIZEOF_POINTER__ 4 'pointers of 4 bytes'; refused __BYTE_ORDER__ 4321 'order of bytes'");
}

/* A compiler that has AVX-512 but not all of its later parts, as GCC 9. */
static void test_older_compiler(void **state) {
    (void)state;
    shell("[ $(uname -m) = x86_64 ] || exit 0;"
          "printf '#!/bin/sh\\ncase $* in *-mavx512bf16*) exit 1 ;; esac; exec %s \"$@\"\\n' \"$cc\" >older;"
          "chmod +x older; setup() { rm -rf older_build; CC=$PWD/older $meson setup older_build \"$source\""
          "  -Dtests=disabled -Dtools=disabled $1 >log 2>&1; }; setup && { echo 'it was taken'; false; };"
          "grep -q 'ERROR: .*GCC 10.*-Disas=avx2' log || { cat log; false; };"
          "setup -Disas=avx2 || { cat log; false; }");
}

int main(int count, char **given) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_program), cmocka_unit_test(test_sonames),
                                       cmocka_unit_test(test_names), cmocka_unit_test(test_archive),
                                       cmocka_unit_test(test_url), cmocka_unit_test(test_home_page),
                                       cmocka_unit_test(test_subproject), cmocka_unit_test(test_other_machines),
                                       cmocka_unit_test(test_older_compiler)};
    if (count != 5) {
        fputs("usage: test_installed MESON BUILD_ROOT SOURCE_ROOT COMPILER\n", stderr);
        return 2;
    }
    arguments = given;
    return cmocka_run_group_tests_name("installed", tests, begin, end);
}
