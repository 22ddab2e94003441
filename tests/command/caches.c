/* SPDX-License-Identifier: MIT
 * `rapt attend` with keys and values in pages, trees, lists of key blocks. argv as of command.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "command/run.h"

enum { B = 2, H = 4, KV = 2, SQ = 6, SK = 12, D = 32, PAGE = 4, EACH = SK / PAGE, PAGES = 8, T = 5 };

#define ATTEND "$rapt attend --query q.npy --key k.npy --value v.npy "
#define PAGED "$rapt attend --query q.npy --key kp.npy --value vp.npy "
#define CHECK " --check --tolerance 2e-6 --out p.npy"
#define SAME " --expect o.npy --tolerance 0 --out p.npy"

static const int32_t table[B][EACH] = {{5, 0, 3}, {2, 7, 4}};

/* The same numbers, in pages; the rest is NaN. */
static void write_pages(const char *path, const char *from, bool bshd) {
    static uint32_t pages[PAGES][KV * PAGE][D];
    const struct npy_array array = npy_read(from, NPY_FLOAT32);
    const int64_t shape[] = {PAGES, bshd ? PAGE : KV, bshd ? KV : PAGE, D};
    memset(pages, 0xff, sizeof pages);
    for (int row = 0; row < B * KV * SK; row++) {
        const int b = row / SK / KV, h = row / SK % KV, t = row % SK;
        uint32_t *to = pages[table[b][t / PAGE]][bshd ? t % PAGE * KV + h : h * PAGE + t % PAGE];
        memcpy(to, (const float *)array.data + row * D, D * sizeof(float));
    }
    write_npy(path, NPY_FLOAT32, pages, 4, shape);
}

static void pages_are_the_rows_that_they_hold(void **state) {
    (void)state;
    expect_success(ATTEND "--causal --out o.npy");
    expect_success(PAGED "--causal --pages table.npy --lse l.npy" SAME);
    expect_success(PAGED "--causal --pages table.npy --lse l.npy" CHECK);
    expect_success(PAGED "--causal --pages table.npy --kv-type f32" SAME);
    expect_success(ATTEND "--causal --key-type q8_0 --value-type bf16 --out o.npy");
    expect_success(PAGED "--causal --pages table.npy --key-type q8_0 --value-type bf16" SAME);
    write_pages("kb.npy", "k.npy", true);
    write_pages("vb.npy", "v.npy", true);
    write_random("qb.npy", 4, B, SQ, H, D);
    expect_success("$rapt attend --layout bshd --query qb.npy --key kb.npy --value vb.npy --pages table.npy" CHECK);
}

/* A table may have more entries than a sequence reads. */
static void pages_after_the_length(void **state) {
    static const int64_t ragged[B][EACH] = {{5, -7, 1 << 30}, {2, 7, PAGES}}, one[] = {5, 0, 3};
    (void)state;
    write_npy("ragged.npy", NPY_INT64, ragged, 2, (const int64_t[]){B, EACH});
    write_npy("lengths.npy", NPY_INT32, (const int32_t[]){PAGE, 2 * PAGE}, 1, (const int64_t[]){B});
    expect_success(ATTEND "--kv-lengths lengths.npy --out o.npy");
    expect_success(PAGED "--kv-lengths lengths.npy --pages ragged.npy" SAME);
    write_random("q1.npy", 3, 1, H, SQ, D);
    write_npy("one.npy", NPY_INT64, one, 1, (const int64_t[]){EACH});
    expect_success("$rapt attend --query q1.npy --key kp.npy --value vp.npy --pages one.npy" CHECK);
    expect_error("ragged.npy: page 1 of sequence 0 is -7, outside 0 ... 7",
                 PAGED "--pages ragged.npy --out new.npy");
    write_npy("lengths.npy", NPY_INT32, (const int32_t[]){PAGE, 2 * PAGE + 1}, 1, (const int64_t[]){B});
    expect_error("ragged.npy: page 2 of sequence 1 is 8, outside 0 ... 7",
                 PAGED "--pages ragged.npy --kv-lengths lengths.npy --out new.npy");
    expect_error("one.npy [3]: expected the pages of each of 2 sequences", PAGED "--pages one.npy --out new.npy");
    expect_error("kq.npy [4, 6, 32]: expected 4 dimensions, with --pages",
                 "cp q1.npy kq.npy; $rapt attend --query q.npy --key kq.npy --value kq.npy --pages table.npy "
                 "--out new.npy");
    write_random("short.npy", 4, PAGES - 1, KV, PAGE, D);
    expect_error("8 pages",
                 "$rapt attend --query q.npy --key kp.npy --value short.npy --pages table.npy --out new.npy");
    write_random("empty.npy", 4, PAGES, KV, 0, D);
    expect_error("table.npy: its pages have 0 tokens",
                 "$rapt attend --query q.npy --key empty.npy --value empty.npy --pages table.npy --out new.npy");
    expect_error("table.npy: holds int32, expected bool", PAGED "--pages table.npy --mask table.npy --out new.npy");
}

/* A tree is a mask of the last keys. */
static void trees(void **state) {
    bool tree[B][SQ][T], mask[B][1][SQ][SK];
    (void)state;
    for (int row = 0; row < B * SQ; row++) {
        for (int j = 0; j < SK; j++) {
            const bool seen = (row / SQ + row * 7 + j * 5) % 3 != 0;
            mask[row / SQ][0][row % SQ][j] = j < SK - T || seen;
            if (j >= SK - T) tree[row / SQ][row % SQ][j - (SK - T)] = seen;
        }
    }
    write_npy("tree.npy", NPY_BOOL, tree, 3, (const int64_t[]){B, SQ, T});
    write_npy("mask.npy", NPY_BOOL, mask, 4, (const int64_t[]){B, 1, SQ, SK});
    expect_success(ATTEND "--mask mask.npy --out o.npy");
    expect_success(ATTEND "--tree tree.npy" SAME);
    expect_success(ATTEND "--tree tree.npy" CHECK);
    expect_success(ATTEND "--causal --mask mask.npy --out o.npy");
    expect_success(ATTEND "--causal --tree tree.npy" SAME);
    write_npy("shared.npy", NPY_BOOL, tree, 2, (const int64_t[]){SQ, T});
    write_npy("first.npy", NPY_BOOL, mask, 2, (const int64_t[]){SQ, SK});
    expect_success(ATTEND "--mask first.npy --out o.npy");
    expect_success(ATTEND "--tree shared.npy" SAME);
    expect_error("mask.npy [2, 1, 6, 12]: expected [batch, queries, tokens of the tree], here [2, 6, 1 ... 64]",
                 ATTEND "--tree mask.npy --out new.npy");
    write_npy("tree.npy", NPY_BOOL, tree, 2, (const int64_t[]){SQ - 1, T});
    expect_error("tree.npy [5, 5]: expected [batch, queries", ATTEND "--tree tree.npy --out new.npy");
    static const bool wide[SQ][65];
    write_npy("tree.npy", NPY_BOOL, wide, 2, (const int64_t[]){SQ, 65});
    expect_error("tree.npy [6, 65]: a tree has 1 ... 64 tokens, not 65", ATTEND "--tree tree.npy --out new.npy");
    write_npy("tree.npy", NPY_BOOL, wide, 2, (const int64_t[]){SQ, 0});
    expect_error("tree.npy [6, 0]: a tree has 1 ... 64 tokens, not 0", ATTEND "--tree tree.npy --out new.npy");
    expect_error("k.npy: holds float32, expected bool", ATTEND "--tree k.npy --out new.npy");
}

enum { QUERY_BLOCKS = 2, KEY_BLOCKS = 3, LISTED = 3 }; /* of 4 queries and 5 keys */

static void blocks_are_masks(void **state) {
    static const int64_t lists[B][KV][QUERY_BLOCKS][LISTED] = {{{{2, 0, -1}, {1, -1, -1}}, {{0, 1, 2}, {2, 2, 0}}},
                                                               {{{-1, 1, 0}, {2, 1, 0}}, {{1, 2, -1}, {-1, -1, -1}}}};
    bool mask[B][H][SQ][SK] = {{{{0}}}};
    (void)state;
    for (int row = 0; row < B * H * SQ; row++) {
        const int b = row / SQ / H, h = row / SQ % H, i = row % SQ;
        for (int j = 0; j < SK; j++)
            for (int n = 0; n < LISTED; n++) mask[b][h][i][j] |= lists[b][h / (H / KV)][i / 4][n] == j / 5;
    }
    write_npy("lists.npy", NPY_INT64, lists, 4, (const int64_t[]){B, KV, QUERY_BLOCKS, LISTED});
    write_npy("mask.npy", NPY_BOOL, mask, 4, (const int64_t[]){B, H, SQ, SK});
    expect_success(ATTEND "--mask mask.npy --out o.npy");
    expect_success(ATTEND "--key-blocks lists.npy --block-size 4,5" SAME);
    expect_success(ATTEND "--key-blocks lists.npy --block-size 4,5" CHECK);
    /* One list for all heads of a sequence; here those of KV heads 0 and 1 of sequence 0. */
    bool each[B][1][SQ][SK];
    for (int b = 0; b < B; b++) memcpy(each[b][0], mask[0][b * (H / KV)], sizeof each[b][0]);
    write_npy("lists.npy", NPY_INT64, lists, 4, (const int64_t[]){B, 1, QUERY_BLOCKS, LISTED});
    write_npy("mask.npy", NPY_BOOL, each, 4, (const int64_t[]){B, 1, SQ, SK});
    expect_success(ATTEND "--mask mask.npy --out o.npy");
    expect_success(ATTEND "--key-blocks lists.npy --block-size 4,5" SAME);
    write_npy("lists.npy", NPY_INT64, lists, 3, (const int64_t[]){KV, QUERY_BLOCKS, LISTED});
    write_npy("mask.npy", NPY_BOOL, mask, 3, (const int64_t[]){H, SQ, SK});
    expect_success(ATTEND "--causal --mask mask.npy --out o.npy");
    expect_success(ATTEND "--causal --key-blocks lists.npy --block-size 4,5" SAME);
    write_npy("lists.npy", NPY_INT64, lists, 2, (const int64_t[]){QUERY_BLOCKS, LISTED});
    write_npy("mask.npy", NPY_BOOL, mask, 2, (const int64_t[]){SQ, SK});
    expect_success(ATTEND "--mask mask.npy --out o.npy");
    expect_success(ATTEND "--key-blocks lists.npy --block-size 4,5" SAME);
}

static void bad_blocks(void **state) {
    static const int32_t lists[QUERY_BLOCKS][LISTED] = {{0, 1, 2}, {0, KEY_BLOCKS, -1}};
    (void)state;
    write_npy("lists.npy", NPY_INT32, lists, 2, (const int64_t[]){QUERY_BLOCKS, LISTED});
    expect_error("lists.npy: number 4, 3, is outside -1 ... 2",
                 ATTEND "--key-blocks lists.npy --block-size 4,5 --out new.npy");
    expect_error("lists.npy [2, 3]: expected [batch, key heads, blocks of queries, n], here [2, 2, 1, 1 or more]",
                 ATTEND "--key-blocks lists.npy --block-size 6,5 --out new.npy");
    expect_error("--key-blocks requires --block-size", ATTEND "--key-blocks lists.npy --out new.npy");
    expect_error("--block-size changes nothing without --key-blocks", ATTEND "--block-size 4,5 --out new.npy");
    expect_error("--block-size: 0,5: a block has 1 token or more",
                 ATTEND "--key-blocks lists.npy --block-size 0,5 --out new.npy");
    expect_error("--block-size: 4,0: a block has 1 token or more",
                 ATTEND "--key-blocks lists.npy --block-size 4,0 --out new.npy");
    write_npy("low.npy", NPY_INT32, (const int32_t[]){0, -2}, 2, (const int64_t[]){QUERY_BLOCKS, 1});
    expect_error("low.npy: number 1, -2, is outside -1 ... 2",
                 ATTEND "--key-blocks low.npy --block-size 4,5 --out new.npy");
    write_npy("heads.npy", NPY_INT32, (const int32_t[6]){0}, 3, (const int64_t[]){3, QUERY_BLOCKS, 1});
    expect_error("heads.npy [3, 2, 1]: expected [batch, key heads",
                 ATTEND "--key-blocks heads.npy --block-size 4,5 --out new.npy");
    write_npy("many.npy", NPY_INT32, (const int32_t[6]){0}, 4, (const int64_t[]){3, 1, QUERY_BLOCKS, 1});
    expect_error("many.npy [3, 1, 2, 1]: expected [batch, key heads",
                 ATTEND "--key-blocks many.npy --block-size 4,5 --out new.npy");
    static const bool trees[3][SQ][1];
    write_npy("trees.npy", NPY_BOOL, trees, 3, (const int64_t[]){3, SQ, 1});
    expect_error("trees.npy [3, 6, 1]: expected [batch, queries", ATTEND "--tree trees.npy --out new.npy");
    expect_error("--block-size: '4' is not two integers", ATTEND "--key-blocks lists.npy --block-size 4 --out new.npy");
}

/* Each allocation fails once: one line, no file. */
static void failed_allocations(void **state) {
    static const char *const calls[] = {
        "--query q.npy --key kp.npy --value vp.npy --pages table.npy --key-type q8_0 --value-type bf16 --check",
        "--query q.npy --key k.npy --value v.npy --tree all.npy --kv-type f16 --out-type bf16 --lse new_lse.npy",
        "--query q.npy --key k.npy --value v.npy --key-blocks some.npy --block-size 4,5 --kv-lengths lengths.npy"};
    static const bool all[SQ][T];
    static const int64_t lists[QUERY_BLOCKS][1] = {{0}, {1}};
    (void)state;
    if (command_is_emulated()) skip(); /* many processes, which behave as they do natively */
    write_npy("lengths.npy", NPY_INT32, (const int32_t[]){PAGE, SK}, 1, (const int64_t[]){B});
    write_npy("all.npy", NPY_BOOL, all, 2, (const int64_t[]){SQ, T});
    write_npy("some.npy", NPY_INT64, lists, 2, (const int64_t[]){QUERY_BLOCKS, 1});
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int n = 1;
        for (; n < 100; n++) {
            char line[512];
            snprintf(line, sizeof line, "export RAPT_TEST_FAIL_ALLOCATION=%d; $rapt_failing attend %s --out new.npy", n,
                     calls[i]);
            if (command_shell(line).status == 0) break;
            expect_error("out of memory", "%s", line);
        }
        assert_in_range(n, 8, 99);
        assert_int_equal(command_shell("rm new*.npy").status, 0);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_the_rows_that_they_hold),
        cmocka_unit_test(pages_after_the_length),
        cmocka_unit_test(trees),
        cmocka_unit_test(blocks_are_masks),
        cmocka_unit_test(bad_blocks),
        cmocka_unit_test(failed_allocations),
    };
    if (argc < 4) return 2;
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    write_random("q.npy", 4, B, H, SQ, D);
    write_random("k.npy", 4, B, KV, SK, D);
    write_random("v.npy", 4, B, KV, SK, D);
    write_pages("kp.npy", "k.npy", false);
    write_pages("vp.npy", "v.npy", false);
    write_npy("table.npy", NPY_INT32, table, 2, (const int64_t[]){B, EACH});
    int failed = cmocka_run_group_tests_name("command_caches", tests, NULL, NULL);
    command_stop();
    return failed;
}
