/* SPDX-License-Identifier: MIT
 * The script ./dev, with stand-ins for the programs that it calls. argv: the top of the source tree. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka_all.h"

static char folder[] = "/tmp/rapt dev.XXXXXX";

static void shell(const char *script) {
    char line[2048];
    snprintf(line, sizeof line, "set -e; PATH=\"$PWD/bin:$PATH\"; unset CI; %s", script);
    if (system(line) != 0) fail_msg("%s", script);
}

/* Each logs its arguments to calls.txt. */
static int begin(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    shell("mkdir bin build-bench; mkdir build-bench/benchmarks; mkdir -p tools/dev;"
          "printf '#!/bin/sh\\necho meson \"$@\" >>calls.txt; touch folder/build.ninja\\n' >bin/meson;"
          "printf '#!/bin/sh\\necho ninja \"$@\" >>calls.txt\\n' >bin/ninja;"
          "printf '#!/bin/sh\\ntest -e \"has-$2\"\\n' >bin/pkg-config;"
          "printf '#!/bin/sh\\necho setup \"$@\" >>calls.txt\\n' >tools/dev/setup.sh;"
          "printf '#!/bin/sh\\necho build \"$@\" >>calls.txt\\n' >tools/dev/build.sh;"
          "printf '#!/bin/sh\\necho bench \"$@\" >>calls.txt\\n' >build-bench/benchmarks/rapt_bench;"
          "chmod +x bin/* tools/dev/* build-bench/benchmarks/*; cp \"$source\"/dev .");
    return 0;
}

static int end(void **state) {
    (void)state;
    shell("rm -r \"$PWD\"");
    return 0;
}

/* Only a package that appears later is looked for again. Flags are the caller's, sometimes GCC-only. */
static void packages_that_come(void **state) {
    (void)state;
    shell("mkdir folder; build=$source/tools/dev/build.sh; CFLAGS=-g1 \"$build\" folder -Dtests=disabled;"
          "\"$build\" folder; touch has-pangocairo; \"$build\" folder; \"$build\" folder;"
          "printf 'meson setup folder -Dtests=disabled\\nninja -C folder --quiet\\nninja -C folder --quiet\\n"
          "meson setup --reconfigure folder\\nninja -C folder --quiet\\nninja -C folder --quiet\\n' >expected.txt;"
          "sed 's/ -j [1-9][0-9]*$//; s/ -Dc_args=-g1.*//' calls.txt | diff expected.txt -;"
          "grep -q 'quiet -j' calls.txt");
}

static void bench_installs_what_it_needs(void **state) {
    (void)state;
    shell("rm -f calls.txt; ./dev bench --json x.json; head -n 1 calls.txt | grep -qx 'setup bench';"
          "tail -n 1 calls.txt | grep -qx 'bench --json x.json'");
    shell("rm calls.txt; status=0; ./dev bench acuracy >log 2>&1 || status=$?; test $status = 2;"
          "head -n 1 log | grep -qx \"./dev: there is no bench 'acuracy'\"; test ! -e calls.txt");
}

static void help_names_all_groups(void **state) {
    (void)state;
    shell("groups=$(sed -n 's/.*groups are \\(.*\\), all\".*/\\1/p' \"$source\"/tools/dev/setup.sh | tr -d ,);"
          "test -n \"$groups\"; ./dev help | sed -n '/^  setup /,/^  bench /p' >help.txt; for group in $groups; do"
          " grep -q \"[ |]$group|\" help.txt; done");
}

static void old_programs_are_replaced(void **state) {
    (void)state;
    shell("rm -f calls.txt; mkdir old; for program in apt-get dpkg-query pip3 python3 sudo; do"
          " printf '#!/bin/sh\\necho '$program' \"$@\" >>calls.txt\\n' >old/$program; done;"
          "printf '#!/bin/sh\\necho 1.10.2\\n' >old/ninja; printf '#!/bin/sh\\necho 1.0.1\\n' >old/meson;"
          "chmod +x old/*; PATH=\"$PWD/old:$PATH\" \"$source\"/tools/dev/setup.sh >log;"
          "grep -qx 'python3 -m pip install --user ninja>=1.11' calls.txt");
}

static void arguments_that_nobody_reads(void **state) {
    (void)state;
    shell("for verb in test build sweep sanitize lint pictures clean; do"
          " status=0; ./dev $verb X >log 2>&1 || status=$?; test $status = 2;"
          " grep -q \"$verb takes no arguments: X\" log; done; test -d build-bench");
}

/* Before anything is downloaded or built. */
static void wrong_arguments(void **state) {
    (void)state;
    shell("rm -f calls.txt; for line in 'arm wrong' 'ggml wrong' 'python wrong' fuzz 'fuzz descriptor' 'fuzz 0'"
          " 'fuzz 1 wrong' 'fuzz 1 npy more' 'arm analysis more' 'ggml build more' 'ggml sanitize more'"
          " 'python build more' 'python wheel more' 'abi HEAD more'; do set -- $line; name=$1; shift; status=0;"
          " \"$source\"/tools/dev/$name.sh \"$@\" >log 2>&1 || status=$?; test $status = 2;"
          " grep -q \"usage: ./dev $name\" log; done; test ! -e calls.txt");
}

/* CI compiles with little optimisation, measurements with full, in one folder. */
static void flags_of_the_package(void **state) {
    (void)state;
    shell("rm -f calls.txt; unset CFLAGS; mkdir -p build-python/bin;"
          "cp build-bench/benchmarks/rapt_bench build-python/bin/python; CI=true \"$source\"/tools/dev/python.sh build;"
          "\"$source\"/tools/dev/python.sh build; grep ' pip ' calls.txt >log;"
          "head -n 1 log | grep -q 'args=-Disas=.* --config-settings=setup-args=-Dc_args=-Og -DRAPT_PLAIN_LOOPS \\.$';"
          "tail -n 1 log | grep -q 'args=-Disas=auto --config-settings=setup-args=-Dc_args= \\.$'");
}

/* Meson knows only check and threads, and silently skips other names. */
static void named_tests_run(void **state) {
    (void)state;
    if (system("command -v python3 >/dev/null 2>&1") != 0) skip();
    shell("cp \"$source\"/tools/dev/sum_tests.py \"$source\"/tools/dev/tables.sh tools/dev;"
          "printf '#!/bin/sh\\nexit 1\\n' >tools/dev/python.sh;"
          "cp tools/dev/python.sh tools/dev/fuzz.sh; printf '#!/bin/sh\\necho x86_64\\n' >bin/uname;"
          "printf '%s\\n' '#!/bin/sh'"
          " 'while test $# != 0; do case $1 in -C) at=$2;; --logbase) log=$2; esac; shift; done'"
          " 'echo \"$LSAN_OPTIONS\" >options.txt'"
          " 'log=$at/meson-logs/${log-testlog}; mkdir -p $at/meson-logs; for name in check threads; do'"
          " 'echo \"{\\\"name\\\": \\\"rapt / $name\\\", \\\"result\\\": \\\"OK\\\"}\"; done >$log.json'"
          " 'printf \"<a><testsuite name=\\\"rapt.%s\\\" tests=\\\"2\\\"/>\" check >$log.junit.xml'"
          " 'printf \"<testsuite name=\\\"rapt.%s\\\" tests=\\\"2\\\"/></a>\" threads >>$log.junit.xml'"
          " >bin/meson; cp bin/uname bin/qemu-x86_64; chmod +x bin/* tools/dev/*.sh");
    shell("! \"$source\"/tools/dev/sanitize.sh >log; grep -q 'missing:.*tsan was to run examples,' log;"
          "grep -q '4 passed, 1 failed' log; grep -q \"^suppressions='$PWD/tools/dev/leaks.supp':\" options.txt");
    shell("! \"$source\"/tools/dev/test.sh >log; grep -q 'haswell was to run vectors,' log;"
          "grep -q 'nehalem was to run golden,' log; ! grep 'was to run check' log;"
          "grep -q '^native      *4 passed, 0 failed' log; grep -q ' passed, 10 failed' log");
    shell("python3 tools/dev/sum_tests.py some=build/meson-logs/log-native.json:check:threads >log; "
          "! python3 tools/dev/sum_tests.py some=build/meson-logs/nosuch.json:check >log; grep -q 'run check,' log");
}

/* A small library, committed and then changed, stands in for rapt. */
static void abi_begins(void) {
    shell("mkdir -p abi/tools/dev abi/include/rapt; cd abi; cp \"$source\"/tools/dev/abi.*"
          " \"$source\"/tools/dev/numbers.py tools/dev; echo 'build-*' >.gitignore;"
          "printf '#!/bin/sh\\ncc -std=c11 -g -shared -fPIC -Iinclude -Wl,-soname,librapt.so.$(cat soname) library.c -o"
          " $1/src/librapt.so && cp $1/src/librapt.so $1/src/layers/librapt_layers.so\\n' >tools/dev/compile.sh;"
          "printf '#!/bin/sh\\nmkdir -p $1/src/layers; sh tools/dev/compile.sh $1\\n' >tools/dev/build.sh;"
          "printf '#!/bin/sh\\n' >tools/dev/setup.sh; chmod +x tools/dev/*.sh; echo 1 >soname;"
          "printf '%s\\n' '#define RAPT_SOME (1 << 2)' 'typedef enum rapt_dtype { RAPT_F32 = 1 } rapt_dtype;'"
          " 'typedef struct rapt_some_desc {' '  int first;' '  int second;' '  long reserved[2];' '} rapt_some_desc;'"
          " 'int rapt_run(const rapt_some_desc *desc);' 'int rapt_stop(void);' >include/rapt/rapt.h;"
          "printf '%s\\n' '#include <rapt/rapt.h>' 'int rapt_run(const rapt_some_desc *desc) {'"
          " '  return desc->first == RAPT_F32; }' 'int rapt_stop(void) { return 0; }' >library.c;"
          "git init -q .; git add .; git -c user.name=n -c user.email=e commit -qm before");
}

static void abi_says(const char *change, const char *status, const char *text) {
    char script[1024];
    snprintf(script, sizeof script,
             "cd abi; %s; status=0; tools/dev/abi.sh HEAD >log 2>&1 || status=$?; git checkout -q .;"
             "if test $status != %s || ! grep -qF '%s' log; then cat log >&2; false; fi",
             change, status, text);
    shell(script);
}

static void abi_names_what_breaks_programs(void **state) {
    (void)state;
    if (system("command -v abidiff abidw git cc python3 >/dev/null 2>&1") != 0) skip();
    abi_begins();
    abi_says("printf '#!/bin/sh\\necho stopped; exit 1\\n' >../bin/tar; chmod +x ../bin/tar", "1", "stopped");
    abi_says("rm ../bin/tar", "0", "abi: ok");
    shell("cd abi; status=0; tools/dev/abi.sh v0.wrong >log 2>&1 || status=$?; test $status = 2;"
          "grep -qx \"abi: there is no commit 'v0.wrong'\" log");
    abi_says("sed -i 's/.*rapt_stop.*//' library.c", "1", "function int rapt_stop(");
    abi_says("sed -i 's/int second/short second/' include/rapt/rapt.h", "1", "size changed from 32 to 16");
    abi_says("sed -i 's/long res/int third; long res/' include/rapt/rapt.h", "0", "abi: ok");
    abi_says("sed -i 's/long res/int third; long res/; s/int second/short second/' include/rapt/rapt.h", "1",
             "rapt_some_desc.second at bit 32: int");
    abi_says("sed -i 's/RAPT_F32 = 1/RAPT_F32 = 2/' include/rapt/rapt.h", "1", "RAPT_F32 = 1");
    abi_says("sed -i 's/RAPT_F32 = 1/RAPT_F32 = 1, RAPT_F16 = 3/' include/rapt/rapt.h", "0", "abi: ok");
    abi_says("sed -i 's/1 << 2/1 << 3/' include/rapt/rapt.h", "1", "RAPT_SOME is (1 << 2)");
    abi_says("sed -i 's/1 << 2/1 << 3/' include/rapt/rapt.h; echo 2 >soname", "0", "RAPT_SOME is (1 << 2)");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(packages_that_come),
                                       cmocka_unit_test(bench_installs_what_it_needs),
                                       cmocka_unit_test(help_names_all_groups),
                                       cmocka_unit_test(old_programs_are_replaced),
                                       cmocka_unit_test(arguments_that_nobody_reads),
                                       cmocka_unit_test(wrong_arguments),
                                       cmocka_unit_test(flags_of_the_package),
                                       cmocka_unit_test(named_tests_run),
                                       cmocka_unit_test(abi_names_what_breaks_programs)};
    if (argc != 2) {
        fputs("usage: test_dev SOURCE_ROOT\n", stderr);
        return 2;
    }
    setenv("source", argv[1], 1);
    return cmocka_run_group_tests_name("dev", tests, begin, end);
}
