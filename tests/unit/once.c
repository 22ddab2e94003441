/* SPDX-License-Identifier: MIT
 * Tables that are made once: by one of many threads, and again by a child forked meanwhile. */
#define _DEFAULT_SOURCE
#include "x86/unit16/once.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka_all.h"

static struct unit16_once once;
static const struct rapt_table chains = {.name = "chains"};
static int made, child_status = -1;

static bool name(struct rapt_table *table) {
    made++;
    table->name = "made";
    return true;
}

static bool refuse(struct rapt_table *table) {
    (void)table;
    made++;
    return false;
}

/* The child finds its parent making the table. */
static bool fork_meanwhile(struct rapt_table *table) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(20); /* instead of hanging */
        const struct rapt_table *own = unit16_once(&once, &chains, name);
        _exit(own && strcmp(own->name, "made") == 0 && unit16_once(&once, &chains, name) == own && made == 1 ? 0 : 1);
    }
    waitpid(child, &child_status, 0);
    table->name = "of the parent";
    return true;
}

static void test_fork(void **state) {
    (void)state;
    const struct rapt_table *table = unit16_once(&once, &chains, fork_meanwhile);
    assert_int_equal(child_status, 0);
    assert_string_equal(table->name, "of the parent");
    assert_ptr_equal(unit16_once(&once, &chains, name), table);
    assert_int_equal(made, 0);
}

static void test_absent(void **state) {
    static struct unit16_once absent;
    (void)state;
    made = 0;
    assert_null(unit16_once(&absent, &chains, refuse));
    assert_null(unit16_once(&absent, &chains, name));
    assert_int_equal(made, 1);
}

static struct unit16_once shared;
static _Atomic int makers;

static bool make_slowly(struct rapt_table *table) {
    makers++;
    usleep(20000);
    table->name = "made";
    return true;
}

static void *ask(void *unused) {
    (void)unused;
    const struct rapt_table *table = unit16_once(&shared, &chains, make_slowly);
    return (void *)(uintptr_t)(table && strcmp(table->name, "made") == 0);
}

static void test_threads(void **state) {
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *answer = NULL;
        pthread_join(threads[i], &answer);
        assert_non_null(answer);
    }
    assert_int_equal(makers, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fork), cmocka_unit_test(test_absent),
                                       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests_name("unit_once", tests, NULL, NULL);
}
