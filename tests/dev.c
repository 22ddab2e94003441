/* SPDX-License-Identifier: MIT
 * The script ./dev, with stand-ins for the programs that it calls. argv: the top of the source tree. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmocka_all.h"

static char folder[] = "/tmp/rapt dev.XXXXXX";

static void shell(const char *script) {
    char line[2048];
    snprintf(line, sizeof line, "set -e; PATH=\"$PWD/bin:$PATH\"; unset CI; %s", script);
    if (system(line) != 0) fail_msg("%s", script);
}

/* Each writes into calls.txt what it is called with. */
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

/* A package that comes later is looked for again, and only then. */
static void packages_that_come(void **state) {
    (void)state;
    shell("mkdir folder; build=$source/tools/dev/build.sh; \"$build\" folder -Dtests=disabled; \"$build\" folder;"
          "touch has-pangocairo; \"$build\" folder; \"$build\" folder;"
          "printf 'meson setup folder -Dtests=disabled\\nninja -C folder --quiet\\nninja -C folder --quiet\\n"
          "meson setup --reconfigure folder\\nninja -C folder --quiet\\nninja -C folder --quiet\\n' >expected.txt;"
          "diff expected.txt calls.txt");
}

static void bench_installs_what_it_needs(void **state) {
    (void)state;
    shell("rm -f calls.txt; ./dev bench --json x.json; head -n 1 calls.txt | grep -qx 'setup bench';"
          "tail -n 1 calls.txt | grep -qx 'bench --json x.json'");
}

static void help_names_all_groups(void **state) {
    (void)state;
    shell("groups=$(sed -n 's/.*groups are \\(.*\\), all\".*/\\1/p' \"$source\"/tools/dev/setup.sh | tr -d ,);"
          "test -n \"$groups\"; ./dev help >help.txt; for group in $groups; do"
          " grep 'setup ' help.txt | grep -q \"[ |]$group[ |]\"; done");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(packages_that_come),
                                       cmocka_unit_test(bench_installs_what_it_needs),
                                       cmocka_unit_test(help_names_all_groups)};
    if (argc != 2) {
        fputs("usage: test_dev SOURCE_ROOT\n", stderr);
        return 2;
    }
    setenv("source", argv[1], 1);
    return cmocka_run_group_tests_name("dev", tests, begin, end);
}
