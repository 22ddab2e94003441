/* SPDX-License-Identifier: MIT
 * Results are not lost: all files or none, under any name, despite errors and signals. argv as of command.c. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "command/run.h"

#define ATTEND "$rapt attend --query q.npy --key k.npy --value v.npy --out new.npy "
#define FAILING "$rapt_failing attend --query q.npy --key k.npy --value v.npy "

static void one_file_by_two_names(void **state) {
    (void)state;
    expect_error("two results cannot", ATTEND "--lse ./new.npy");
    expect_error("two results cannot", ATTEND "--lse \"$PWD/new.npy\"");
    expect_error("two results cannot", "echo before > old.npy; ln -s old.npy link.npy; " ATTEND
                 "--out old.npy --lse link.npy");
    expect_error("two results cannot", "mkdir there; " ATTEND "--lse there/../new.npy");
    assert_string_equal(expect_success("cat old.npy").out, "before\n");
    expect_success(ATTEND "--out link.npy && test -L link.npy && cmp old.npy e.npy");
}

/* Whichever is checked first, and by whatever name. */
static void inputs_are_not_replaced(void **state) {
    (void)state;
    write_random("in.npy", 4, 1, 4, 3, 8);
    expect_success("cp in.npy before.npy; ln -s in.npy in_link.npy; ln in.npy in_hard.npy; mkdir in");
#define IN "$rapt attend --query in.npy --key k.npy --value v.npy "
    expect_error("rapt: --out: in.npy is also --query\n", IN "--out in.npy");
    expect_error("rapt: --out: ./in.npy is also --query in.npy\n", IN "--out ./in.npy");
    expect_error("rapt: --out: in_link.npy is also --query in.npy\n", IN "--out=in_link.npy");
    expect_error("rapt: --out: in_hard.npy is also --query in.npy\n", IN "--out in_hard.npy");
    expect_error("rapt: --out: in.npy is also --query in_link.npy\n", IN "--out in.npy --query in_link.npy");
    expect_error("rapt: --lse: in.npy is also --expect\n", ATTEND "--lse in.npy --expect in.npy");
    expect_error("rapt: --out: in.npy is also --query /dev/stdin\n", IN "--out in.npy --query /dev/stdin <in.npy");
    expect_error("rapt: --out: words.txt is also --tokens\n", "seq 6 > words.txt; " ATTEND
                 "--out words.txt --tokens words.txt");
    expect_error("two results cannot be the same file", ATTEND "--out in.npy --lse in_hard.npy");
    expect_error("rapt: --out: in.npy is also --input\n", "$rapt layer simplified --input in.npy --out in.npy");
    expect_error("rapt: --all-outputs: in/scores.npy is also --value in.npy\n",
                 "ln in.npy in/scores.npy; $rapt layer dot --query in.npy --key in.npy --value in.npy --out new.npy "
                 "--all-outputs in");
    expect_error("is also --", "ln -s in.npy in.svg; $rapt heatmap --attention in.npy --out in.svg");
    expect_success("cmp in.npy before.npy && test $(ls | grep -c '^in') = 5 && test $(ls in | wc -l) = 1");
}

/* Nobody would read .npy bytes under such a name. */
static void archives_are_no_results(void **state) {
    (void)state;
    expect_error("rapt: --out: new.npz: results are .npy files", ATTEND "--out new.npz");
    expect_error("rapt: --out: new.npz:q: results are .npy files", ATTEND "--out new.npz:q");
    expect_error("rapt: --lse: new.npz: results are .npy files", ATTEND "--lse new.npz");
    expect_error("rapt: --attention-out: new.npz:a: results are .npy files", ATTEND "--attention-out new.npz:a");
    expect_error("rapt: --out: .npz: results are .npy files", ATTEND "--out .npz");
    expect_error("rapt: --weights-out: new.npz: results are .npy files",
                 "$rapt layer simplified --input q.npy --out new.npy --weights-out new.npz");
}

/* Checked before inputs are read: here they do not exist. */
static void bad_results_are_found_first(void **state) {
    (void)state;
    expect_error("none/lse.npy: cannot be written: No such file", ATTEND "--query none.npy --lse none/lse.npy");
    expect_error("none/a.npy: cannot be written: No such file", ATTEND "--query none.npy --attention-out none/a.npy");
    expect_error(".: cannot be written: Is a directory", ATTEND "--query none.npy --out .");
    expect_error("read.npy: cannot be written: it is read-only",
                 "echo before > read.npy; chmod 444 read.npy; " ATTEND "--query none.npy --lse read.npy");
    assert_string_equal(expect_success("cat read.npy").out, "before\n");
    write_random("row.npy", 2, 1, 1, 1, 3);
    expect_error("row.npy [1, 3] does not fit the result", ATTEND "--expect row.npy --repeat 1000000");
}

static void modes_are_kept(void **state) {
    struct stat status;
    (void)state;
    expect_success("touch secret.npy; chmod 620 secret.npy; umask 027; " ATTEND "--out secret.npy --lse fresh.npy");
    assert_int_equal(stat("secret.npy", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0620);
    assert_int_equal(stat("fresh.npy", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
}

static void expect_files(const char *prefix, int expected, const char *line) {
    DIR *folder = opendir(".");
    int found = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) found++;
    }
    closedir(folder);
    if (found != expected) fail_msg("%s\nleaves %d files %s*, not %d", line, found, prefix, expected);
}

/* Whichever rename fails, all files are as before. */
static void names_for_all_or_none(void **state) {
    char said[128];
    (void)state;
    snprintf(said, sizeof said, "cannot be written: %s", strerror(EIO));
    expect_success("echo lse > old_lse.npy; echo out > old_out.npy");
    for (int n = 1; n <= 3; n++) {
        expect_error(said,
                     "RAPT_TEST_FAIL_RENAME=%d; export RAPT_TEST_FAIL_RENAME; " FAILING
                     "--out old_out.npy --weights new_w.npy --lse old_lse.npy", n);
        assert_string_equal(expect_success("cat old_out.npy old_lse.npy").out, "out\nlse\n");
        expect_files("old_", 2, "a rename that fails");
    }
    expect_success(FAILING "--out old_out.npy --weights w.npy --lse old_lse.npy && cmp old_out.npy e.npy");
    expect_files("old_", 2, "success");
}

static void wait_for_temporary(void) {
    const struct timespec while_it_starts = {.tv_nsec = 10000000};
    for (int i = 0; i < 3000; i++) {
        if (system("ls new.npy.* >/dev/null 2>&1") == 0) return;
        nanosleep(&while_it_starts, NULL);
    }
    fail_msg("no temporary file appears");
}

/* The signal arrives while the command waits for a query. */
static void signals_leave_nothing(void **state) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int status = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            signal(numbers[i], SIG_DFL);
            execl("/bin/sh", "sh", "-c", "ulimit -c 0; exec " ATTEND "--query fifo --lse new_lse.npy", (char *)NULL);
            _exit(127);
        }
        wait_for_temporary();
        kill(child, numbers[i]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i]);
        expect_files("new", 0, "a signal");
    }
}

/* Ignored signals, as under nohup, stay ignored: the command goes on and fails for the next reason. */
static void ignored_signals_stay_ignored(void **state) {
    int status = 0;
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGHUP, SIG_IGN);
        execl("/bin/sh", "sh", "-c", "exec " ATTEND "--query fifo 2>err.txt", (char *)NULL);
        _exit(127);
    }
    wait_for_temporary();
    kill(child, SIGHUP);
    expect_success(": > fifo");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    expect_files("new", 0, "a signal that is ignored");
}

static void readers_that_leave(void **state) {
    (void)state;
    expect_success("rm -f r.npy; { sleep 0.2; " ATTEND "--out r.npy; echo $? >status.txt; } | true; cmp r.npy e.npy");
    assert_string_equal(expect_success("cat status.txt").out, "0\n");
    expect_success("{ sleep 0.2; $rapt help attend; echo $? >status.txt; } | true");
    assert_string_equal(expect_success("cat status.txt").out, "0\n");
    /* The result's own reader leaves. */
    write_random("big.npy", 4, 1, 4, 1000, 8);
    expect_error("pipe: cannot be written: Broken pipe",
                 "mkfifo pipe; head -c 1 pipe >head.txt & " ATTEND "--query big.npy --out pipe --lse new_lse.npy");
}

/* Readers of a result from a pipe would get report lines first. */
static void result_and_report_in_one_place(void **state) {
    (void)state;
    expect_error("rapt: --out: /dev/stdout: the report goes there as well", ATTEND "--out /dev/stdout >both.npy");
    expect_error("rapt: --lse: both.npy: the report goes there as well", ATTEND "--lse both.npy >both.npy");
    expect_success(ATTEND "--out /dev/stdout --quiet >both.npy && cmp both.npy e.npy");
    expect_error("rapt: --out: /dev/stdout: the report goes there as well: --quiet leaves it out",
                 "mkfifo both; cat both >got.npy & " ATTEND "--out /dev/stdout >both");
    expect_success("cat both >got.npy & " ATTEND "--out /dev/stdout --quiet >both; wait; cmp got.npy e.npy");
    expect_error("rapt: --out: /dev/stdout: the report goes there as well",
                 "cat both >got.npy & $rapt layer simplified --input q3.npy --out /dev/stdout >both");
}

/* Others may write before and after the result, and the file may have lost its name. */
static void result_in_a_descriptor(void **state) {
    (void)state;
    expect_success("{ echo first; " ATTEND "--out /dev/stdout --quiet; echo last; } >three.txt && "
                   "{ echo first; cat e.npy; echo last; } | cmp - three.txt");
    expect_success("echo first >two.txt; " ATTEND "--out /dev/stdout --quiet >>two.txt && "
                   "{ echo first; cat e.npy; } | cmp - two.txt");
    expect_error("rapt: --out: /dev/stdout: cannot be written: Bad file descriptor",
                 ATTEND "--out /dev/stdout --quiet >&-");
    if (command_shell("test -d /proc/self/fd").status != 0) skip();
    expect_success("ln -s /proc/self/fd/8 link; { rm gone.npy; " ATTEND "--out link --quiet && "
                   "cmp /proc/self/fd/8 e.npy; } 8<>gone.npy && test -L link && ! test -e gone.npy");
    expect_error("rapt: --out: link: cannot be written: Bad file descriptor", ATTEND "--out link --quiet 8<e.npy");
}

/* The longest that a file system allows, while other files are replaced. */
static void longest_names(void **state) {
    (void)state;
    expect_success("long=$(printf '%%0251d' 0).npy; touch $long old.npy; " ATTEND "--out $long --lse old.npy && "
                   "cmp $long e.npy && rm $long");
    expect_files("000", 0, "a long name");
}

static void links_to_nothing(void **state) {
    (void)state;
    expect_error("dangling.npy: cannot be written: it is a link to a file that does not exist",
                 "ln -s nothing.npy dangling.npy; " ATTEND "--out dangling.npy");
    expect_success("test -L dangling.npy && rm dangling.npy");
}

/* A folder made for results is removed with them. */
static void folders_without_results(void **state) {
    (void)state;
#define DOT "$rapt layer dot --query q.npy --key q.npy --value q.npy --out new.npy --all-outputs folder "
    expect_error("isa = ", DOT "--isa $(uname -m | grep -q x86 && echo neon || echo avx2)");
    expect_files("folder", 0, "a refusal");
    expect_success(DOT "&& rm new.npy && ls folder/scores.npy folder/attention.npy");
    expect_error("isa = ", DOT "--isa $(uname -m | grep -q x86 && echo neon || echo avx2)");
    expect_files("folder", 1, "a refusal after success");
}

/* A file opened in place of standard error would receive the warnings. */
static void closed_streams(void **state) {
    (void)state;
    write_random("long.npy", 4, 1, 4, 20, 8);
#define WARNED ATTEND "--query long.npy --causal --quiet "
    assert_non_null(strstr(command_shell(WARNED "&& mv new.npy long_e.npy").err, "rapt: warning: "));
    expect_success(WARNED "2>&- && cmp new.npy long_e.npy");
    assert_int_equal(command_shell(ATTEND ">&-").status, 2);
    assert_int_equal(command_shell("$rapt version <&- >/dev/null").status, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_file_by_two_names), cmocka_unit_test(inputs_are_not_replaced),
        cmocka_unit_test(archives_are_no_results),
        cmocka_unit_test(bad_results_are_found_first),
        cmocka_unit_test(modes_are_kept),        cmocka_unit_test(names_for_all_or_none),
        cmocka_unit_test(signals_leave_nothing), cmocka_unit_test(ignored_signals_stay_ignored),
        cmocka_unit_test(readers_that_leave),    cmocka_unit_test(result_and_report_in_one_place),
        cmocka_unit_test(result_in_a_descriptor), cmocka_unit_test(longest_names),
        cmocka_unit_test(links_to_nothing),      cmocka_unit_test(folders_without_results),
        cmocka_unit_test(closed_streams),
    };
    if (argc < 4) return 2;
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    write_random("q.npy", 4, 1, 4, 3, 8);
    write_random("q3.npy", 3, 1, 4, 3, 8);
    write_random("k.npy", 4, 1, 2, 6, 8);
    write_random("v.npy", 4, 1, 2, 6, 8);
    expect_success(ATTEND "&& mv new.npy e.npy");
    assert_int_equal(mkfifo("fifo", 0600), 0);
    int failed = cmocka_run_group_tests_name("command_results", tests, NULL, NULL);
    command_stop();
    return failed;
}
