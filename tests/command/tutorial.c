/* SPDX-License-Identifier: MIT
 * Every command of docs/tutorial.md and README.md prints what the page says. argv: as of command.c, then the tops of
 * the source and build trees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "command/run.h"

#ifdef RAPT_HAVE_PICTURES
#define PICTURES "1"
#else
#define PICTURES "0"
#endif

static const char *emulator;

/* Speed, threads and kernels depend on the machine, a picture's size on its fonts. */
#define COMPARED "grep -vE '^(kernels|time) |pixels$' | sed 's/ *$//'"

static const struct page {
    const char *name;
    int commands; /* at least */
} pages[] = {{"docs/tutorial.md", 20}, {"README.md", 4}};

static void commands_print_what_the_page_says(void **state) {
    const struct page *page = *state;
    expect_success("awk -v pictures=" PICTURES " -f sources/tests/command/tutorial.awk sources/%s", page->name);
    assert_true(atoi(expect_success("grep -c '^\\$ ' wanted.txt").out) >= page->commands);
    /* Results go to this folder; comparison restores the page's names. */
    expect_success("sed \"s,/tmp/,$here/,g; s,^build/,%s $here/build/,\" script.sh > here.sh", emulator);
    expect_success("name=$rapt; rapt() { $name \"$@\"; }; set -e; cd sources; . $here/here.sh >$here/got.txt");
    expect_success("sed \"s,$here/,/tmp/,g\" got.txt | " COMPARED " > got; "
                   "cat wanted.txt | " COMPARED " > want; diff want got");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(commands_print_what_the_page_says, (void *)&pages[0]),
        cmocka_unit_test_prestate(commands_print_what_the_page_says, (void *)&pages[1])};
    if (argc < 7) return 2;
    setenv("LC_ALL", "C.UTF-8", 1);
    unsetenv("COLUMNS");
    emulator = argv[4];
    command_start(emulator, argv[1], argv[2]);
    command_link("sources", argv[5]);
    command_link("build", argv[6]);
    char outside[] = "/tmp/rapt-tutorial-XXXXXX", here[64], *folder = getcwd(NULL, 0);
    assert_non_null(mkdtemp(outside));
    snprintf(here, sizeof here, "%s/here", outside);
    assert_true(folder && symlink(folder, here) == 0); /* the page's lines have no quotes */
    free(folder);
    setenv("here", here, 1);
    int failed = cmocka_run_group_tests_name("tutorial", tests, NULL, NULL);
    unlink(here);
    rmdir(outside);
    command_stop();
    return failed;
}
