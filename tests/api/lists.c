/* SPDX-License-Identifier: MIT
 * Lists that change after planning, between guard pages, so that stray accesses fault. */
#define _GNU_SOURCE /* REG_EFL */
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "support/cmocka_all.h"
#include "support/problem.h"

static const rapt_run_options serial = {.struct_size = sizeof serial, .max_threads = 1};

static void change_lists(struct random *random, const struct problem_call *call) {
    static const int64_t extremes[] = {0, 1, -1, 4, 1000, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, INT64_C(1) << 48};
    struct problem *problem = problem_new(call);
    rapt_index_list *const lists[] = {&problem->desc.query_lengths, &problem->desc.kv_lengths,
                                      &problem->desc.query_position, &problem->desc.key_position};
    int64_t entries[4][8], legal[4][8];
    for (int i = 0; i < 4; i++)
        for (int b = 0; b < 8; b++)
            legal[i][b] = i == 0 ? call->query_length : i == 1 ? call->kv_length : 0;
    memcpy(entries, legal, sizeof entries);
    for (int i = 0; i < 4; i++)
        if (lists[i]->data)
            *lists[i] = rapt_int64_list(entries[i], 8);
    rapt_plan plan;
    size_t bytes;
    assert_int_equal(rapt_plan_init(&plan, &problem->desc, NULL), RAPT_OK);
    assert_int_equal(rapt_plan_workspace_bytes(&plan, 1, &bytes), RAPT_OK);
    struct guarded workspace = guarded_new(bytes, GUARD_END, 0, 0xff);
    for (int round = 0; round < 20; round++) {
        /* All entries, or one that is only a little too large: the work stays the same. */
        memcpy(entries, legal, sizeof entries);
        const int64_t one = random_below(random, 4), batch = random_below(random, call->batch);
        for (int i = 0; round % 2 && i < 4; i++)
            for (int b = 0; b < 8; b++)
                entries[i][b] = extremes[random_below(random, sizeof extremes / sizeof *extremes)];
        entries[one][batch] += round % 2 ? 0 : random_between(random, -2, 300);
        const rapt_status status = rapt_run(&plan, workspace.data, bytes, &serial);
        assert_true(status == RAPT_OK || status == RAPT_INVALID_VALUE);
        if (entries[1][batch] > call->kv_length && lists[1]->data)
            assert_int_equal(status, RAPT_INVALID_VALUE);
        for (int name = 0; name < ARRAYS; name++)
            assert_true(!problem->arrays[name].memory.data || guarded_is_clean(&problem->arrays[name].memory));
        assert_true(guarded_is_clean(&workspace));
    }
    guarded_free(&workspace);
    problem_free(problem);
}

static void test_changed_lists(void **state) {
    struct random random = {5};
    const unsigned lists = USE_QUERY_LENGTHS | USE_KV_LENGTHS | USE_KEY_POSITION;
    (void)state;
    for (int64_t round = scaled_work(100); round > 0; round--) {
        struct problem_call call = random_call_of_any((uint64_t)round, 200000);
        call.use |= lists;
        call.batch += call.batch == 0;
        change_lists(&random, &call);
    }
    const struct problem_call split = {1, 2, 1, 1, 9000, 16, 16, lists | USE_CAUSAL, DATA_NORMAL, RAPT_ORIGIN_GIVEN, 0,
                                       1, 0};
    change_lists(&random, &split);
}

/* ---- trees and lists of key blocks, read while tasks run */

/* Copies a list to memory that ends with it, as 8-byte integers. */
static struct guarded copy_list(rapt_index_list *list, int64_t count) {
    struct guarded copy = guarded_new((size_t)count * 8, GUARD_END, 0, 0);
    for (int64_t i = 0; i < count; i++)
        ((int64_t *)(void *)copy.data)[i] = list->index_bytes == 4 ? ((const int32_t *)list->data)[i]
                                                                   : ((const int64_t *)list->data)[i];
    *list = rapt_int64_list((const int64_t *)(void *)copy.data, count);
    return copy;
}

static void change_some(struct random *random, const struct guarded *list) {
    static const int64_t extremes[] = {0, 1, -1, 3, 1000, INT32_MAX, INT64_MAX, INT64_MIN, INT64_C(1) << 40};
    int64_t *entries = (int64_t *)(void *)list->data;
    const int64_t count = (int64_t)list->bytes / 8;
    for (int64_t i = 0; i < count; i++)
        if (random_chance(random, 30))
            entries[i] = random_chance(random, 50) ? extremes[random_below(random, 9)] : random_between(random, -2, 40);
}

static void change_selections(struct random *random, const struct problem_call *call) {
    struct problem *problem = problem_new(call);
    rapt_attention_desc *desc = &problem->desc;
    const int64_t offsets = problem->arrays[ARRAY_BLOCK_OFFSETS].count[3];
    struct guarded lists[] = {copy_list(&desc->key_blocks.offsets, offsets),
                              copy_list(&desc->key_blocks.entries, desc->key_blocks.entries.count),
                              copy_list(&desc->tree_masks, call->batch * call->query_length)};
    rapt_plan plan;
    size_t bytes;
    assert_int_equal(rapt_plan_init(&plan, desc, NULL), RAPT_OK);
    assert_int_equal(rapt_plan_workspace_bytes(&plan, 1, &bytes), RAPT_OK);
    struct guarded workspace = guarded_new(bytes, GUARD_END, 0, 0xff);
    for (int round = 0; round < 10; round++) {
        change_some(random, &lists[round % 3]);
        assert_int_equal(rapt_run(&plan, workspace.data, bytes, &serial), RAPT_OK);
        for (int name = 0; name < ARRAYS; name++)
            assert_true(!problem->arrays[name].memory.data || guarded_is_clean(&problem->arrays[name].memory));
        assert_true(guarded_is_clean(&workspace));
    }
    guarded_free(&workspace);
    for (int i = 0; i < 3; i++)
        guarded_free(&lists[i]);
    problem_free(problem);
}

static void test_changed_selections(void **state) {
    struct random random = {6};
    (void)state;
    for (int64_t round = scaled_work(100); round > 0; round--) {
        struct problem_call call = random_call_of_any((uint64_t)round + 5000, 200000);
        call.use = (call.use | USE_TREE | USE_BLOCKS) & ~(unsigned)(USE_QUERY_LENGTHS | USE_KV_LENGTHS);
        call.batch += call.batch == 0;
        change_selections(&random, &call);
    }
}

/* ---- a list that changes at each read: its page faults, has other content for one instruction, faults again */

#if defined(__x86_64__) && defined(__linux__)

enum { BATCH = 20, KEYS = 5, LONGER = 200, TRAP_FLAG = 0x100 }; /* short, or the work would be cut differently */

static struct {
    int64_t *lengths;
    size_t bytes;
    uint64_t next; /* a bit per read: whether the lengths are too large */
    int looks;
} list;

static void show_next(int number, siginfo_t *info, void *context) {
    ucontext_t *interrupted = context;
    if ((char *)info->si_addr < (char *)list.lengths || (char *)info->si_addr >= (char *)list.lengths + list.bytes) {
        signal(number, SIG_DFL); /* not an access to the list: it faults again */
        return;
    }
    mprotect(list.lengths, list.bytes, PROT_READ | PROT_WRITE);
    for (int b = 0; b < BATCH; b++)
        list.lengths[b] = list.next >> list.looks % 64 & 1 ? LONGER : KEYS;
    list.looks++;
    interrupted->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void hide(int number, siginfo_t *info, void *context) {
    ucontext_t *interrupted = context;
    mprotect(list.lengths, list.bytes, PROT_NONE);
    interrupted->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    (void)number, (void)info;
}

static void set_handlers(struct sigaction previous[2]) {
    struct sigaction on_fault = {.sa_flags = SA_SIGINFO}, on_trap = on_fault;
    on_fault.sa_sigaction = show_next;
    on_trap.sa_sigaction = hide;
    assert_int_equal(sigaction(SIGSEGV, &on_fault, &previous[0]), 0);
    assert_int_equal(sigaction(SIGTRAP, &on_trap, &previous[1]), 0);
}

static rapt_status plan_with(rapt_plan *plan, const rapt_attention_desc *desc, uint64_t next) {
    rapt_message message;
    list.next = next;
    list.looks = 0;
    const rapt_status status = rapt_plan_init(plan, desc, &message);
    assert_true(status == RAPT_OK || status == RAPT_INVALID_VALUE);
    assert_true(status == RAPT_OK || list.looks <= BATCH || strstr(message.text, " changed "));
    return status;
}

/* Whatever a read finds, a run is refused or stays within the tensors. */
static void run_patterns(struct problem *problem) {
    struct random random = {1};
    rapt_plan plan;
    size_t bytes;
    int refused = 0, answered = 0;
    assert_int_equal(plan_with(&plan, &problem->desc, 0), RAPT_OK);
    assert_int_equal(rapt_plan_workspace_bytes(&plan, 1, &bytes), RAPT_OK);
    struct guarded workspace = guarded_new(bytes, GUARD_END, 0, 0xff);
    for (int i = 0; i < 200; i++) {
        const int first = i % 50;
        rapt_plan other;
        list.next = first < 45 ? UINT64_C(1) << first : random_bits(&random); /* one read, or any */
        list.looks = 0;
        const rapt_status status = rapt_run(&plan, workspace.data, bytes, &serial);
        assert_true(status == RAPT_OK || status == RAPT_INVALID_VALUE);
        *(status == RAPT_OK ? &answered : &refused) += 1;
        if (plan_with(&other, &problem->desc, random_bits(&random) << random_below(&random, 64)) == RAPT_OK)
            rapt_run(&other, workspace.data, bytes, &serial);
    }
    assert_true(refused > 0 && answered > 0 && guarded_is_clean(&workspace));
    guarded_free(&workspace);
}

static void test_lists_that_change_between_looks(void **state) {
    static const struct problem_call call = {.batch = BATCH, .query_heads = 1, .kv_heads = 1, .query_length = 1,
                                             .kv_length = KEYS, .head_dim = 1, .value_dim = 1};
    static const int32_t pages[BATCH];
    struct problem *problem = problem_new(&call);
    struct sigaction previous[2];
    (void)state;
    list.bytes = (size_t)sysconf(_SC_PAGESIZE);
    list.lengths = mmap(NULL, list.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(list.lengths != MAP_FAILED);
    problem->desc.kv_lengths = rapt_int64_list(list.lengths, BATCH);
    set_handlers(previous);
    run_patterns(problem);
    problem->desc.key_pages = (rapt_page_table){.kind = RAPT_PAGES_DENSE, .page_tokens = KEYS, .pages = BATCH,
                                                .entries = rapt_int32_list(pages, 1), .batch_stride_bytes = 4};
    problem->desc.key.page_stride_bytes = problem->desc.key.batch_stride_bytes;
    run_patterns(problem);
    sigaction(SIGSEGV, &previous[0], NULL);
    sigaction(SIGTRAP, &previous[1], NULL);
    assert_true(problem_is_clean(problem));
    munmap(list.lengths, list.bytes);
    problem_free(problem);
}

#else

static void test_lists_that_change_between_looks(void **state) {
    (void)state;
    skip();
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_changed_lists),
                                       cmocka_unit_test(test_changed_selections),
                                       cmocka_unit_test(test_lists_that_change_between_looks)};
    return cmocka_run_group_tests_name("api_lists", tests, NULL, NULL);
}
