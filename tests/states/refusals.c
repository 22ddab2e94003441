/* SPDX-License-Identifier: MIT
 * Every refusal of merging states: status, the field in the message, nothing written; and unusual valid inputs. */
#include <math.h>

#include "isa.h"
#include "states/data.h"
#include "support/cmocka_all.h"
#include "support/support.h"

static float memory[400]; /* of all tensors, so that each can overlap another */
static float *const first = memory, *const second = memory + 100, *const outputs = memory + 200;
static rapt_tensor states[2], many[RAPT_MOST_STATES + 1];
static const rapt_tensor none;
static const float sinks[4];

/* Two states of 2 sequences, 2 heads, 3 queries, 4 values. */
static rapt_states_desc fresh(void) {
    rapt_states_desc d = RAPT_STATES_DESC_INIT;
    memset(memory, 0, sizeof memory);
    memset(outputs, 0xff, 200 * sizeof(float));
    d.batch = d.query_heads = 2;
    d.query_length = 3;
    d.value_dim = 4;
    states[0] = rapt_input_bhsd(first, 2, 2, 3, 6);
    states[1] = rapt_input_bhsd(second, 2, 2, 3, 6);
    d.states = states;
    d.count = 2;
    d.merged = rapt_output_bhsd(outputs, 2, 2, 3, 6);
    d.out = rapt_output_bhsd(outputs + 80, 2, 2, 3, 4);
    d.lse = rapt_output_bhsd(outputs + 140, 2, 2, 3, 1);
    return d;
}

static bool is_untouched(void) {
    for (int i = 0; i < 200; i++)
        if (bits_of(outputs[i]) != UINT32_MAX)
            return false;
    return true;
}

static void expect_refused(const rapt_states_desc *d, const rapt_run_options *options, rapt_status expected,
                           const char *text, int line) {
    rapt_message message = {"?"};
    const rapt_status status = rapt_merge_states(d, options, &message);
    if (status != expected || !strstr(message.text, text) || !is_untouched())
        fail_msg("line %d: status %d, message \"%s\", %s", line, (int)status, message.text,
                 is_untouched() ? "nothing written" : "something written");
    assert_int_equal(rapt_merge_states(d, options, NULL), expected);
}

#define REFUSED(status, text, ...)                                                                 \
    do {                                                                                           \
        rapt_states_desc changed = fresh(), *d = &changed;                                         \
        __VA_ARGS__;                                                                               \
        expect_refused(d, NULL, status, text, __LINE__);                                           \
    } while (0)

#define LEGAL(...)                                                                                 \
    do {                                                                                           \
        rapt_states_desc changed = fresh(), *d = &changed;                                         \
        rapt_message message = {"?"};                                                              \
        __VA_ARGS__;                                                                               \
        if (rapt_merge_states(d, NULL, &message) != RAPT_OK || message.text[0])                    \
            fail_msg("line %d: %s", __LINE__, message.text);                                       \
    } while (0)

static void refuse_fields(void) {
    const int64_t absurd = ((int64_t)1 << 40) + 1;
    REFUSED(RAPT_UNSUPPORTED_VERSION, "struct_size = 0", d->struct_size = 0);
    REFUSED(RAPT_UNSUPPORTED_VERSION, "struct_size", d->struct_size -= 4);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "isa = ", d->isa = RAPT_ISA_COUNT);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "isa = -1", d->isa = -1);
    REFUSED(RAPT_INVALID_SHAPE, "batch = -1", d->batch = -1);
    REFUSED(RAPT_INVALID_SHAPE, "query_heads = 0", d->query_heads = 0);
    REFUSED(RAPT_INVALID_SHAPE, "query_length = 1099511627777", d->query_length = absurd);
    REFUSED(RAPT_INVALID_SHAPE, "value_dim = 0", d->value_dim = 0);
    REFUSED(RAPT_INVALID_SHAPE, "value_dim = 1025", d->value_dim = 1025);
    REFUSED(RAPT_SIZE_OVERFLOW, "their product overflows", d->batch = d->query_heads = (int64_t)1 << 27);
    REFUSED(RAPT_SIZE_OVERFLOW, "their product overflows", d->batch = d->query_heads = d->query_length = absurd - 1);
    REFUSED(RAPT_INVALID_VALUE, "count = 0 is outside 1 ... 64", d->count = 0);
    REFUSED(RAPT_INVALID_VALUE, "count = 65", d->count = 65, d->states = many);
    REFUSED(RAPT_INVALID_VALUE, "count = -9223372036854775808", d->count = INT64_MIN);
    REFUSED(RAPT_NULL_POINTER, "states is NULL", d->states = NULL);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "numerics = -1 is outside 0 ... 3", d->numerics = RAPT_NUMERICS_FASTEST);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "numerics = 4", d->numerics = 4);
    REFUSED(RAPT_UNUSED_FIELD, "reserved_zero = 1", d->reserved_zero = 1);
    REFUSED(RAPT_UNUSED_FIELD, "reserved[2] = 7", d->reserved[2] = 7);
    REFUSED(RAPT_NULL_POINTER, "merged.data, out.data and lse.data", d->merged = d->out = d->lse = none);
    REFUSED(RAPT_UNUSED_FIELD, "sinks is set, but out is absent", d->out = none, d->sinks = sinks);
}

static void refuse_memory(void) {
    static const float wrong[2] = {0, NAN};
    static const int32_t lengths[2] = {3, 4};
    REFUSED(RAPT_NULL_POINTER, "states[0].data is NULL", states[0].data = NULL);
    REFUSED(RAPT_NULL_POINTER, "states[1].data is NULL", states[1] = none);
    REFUSED(RAPT_UNUSED_FIELD, "out.data is NULL, but", d->out.data = NULL);
    REFUSED(RAPT_UNUSED_FIELD, "merged.reserved", d->merged.reserved[0] = 1);
    REFUSED(RAPT_UNUSED_FIELD, "states[1].scales", states[1].scales = d);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "states[1].dtype = 3: expected float32, got float16", states[1].dtype = RAPT_F16);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "merged.dtype = 0", d->merged.dtype = 0);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "out.dtype = 2", d->out.dtype = RAPT_BOOL8);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "lse.dtype = 2", d->lse.dtype = RAPT_BOOL8);
    REFUSED(RAPT_MISALIGNED_POINTER, "states[0].data", states[0].data = (char *)states[0].data + 2);
    REFUSED(RAPT_INVALID_STRIDE, "states[1].token_stride_bytes = 6", states[1].token_stride_bytes = 6);
    REFUSED(RAPT_INVALID_STRIDE, "merged.head_stride_bytes = 0 on an output", d->merged.head_stride_bytes = 0);
    REFUSED(RAPT_INVALID_STRIDE, "out.token_stride_bytes = -16 is negative", d->out.token_stride_bytes = -16);
    REFUSED(RAPT_INVALID_STRIDE, "states[0].batch_stride_bytes = 9223372036854775804 overflows",
            states[0].batch_stride_bytes = INT64_MAX - 3);
    REFUSED(RAPT_OUT_OF_EXTENT, "states[1].extent_bytes = 284", states[1].extent_bytes = 284);
    REFUSED(RAPT_OUT_OF_EXTENT, "lse.extent_bytes = 44", d->lse.extent_bytes = 44);
    REFUSED(RAPT_INVALID_VALUE, "merged.extent_bytes = -8", d->merged.extent_bytes = -8);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "merged overlaps itself", d->merged.token_stride_bytes = 20);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "merged overlaps states[1]", states[1].data = outputs + 6);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "merged overlaps states[0]", states[0] = d->merged,
            states[0].token_stride_bytes = 0);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps states[0]", states[0].data = outputs + 80);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "merged overlaps out", d->out.data = outputs + 71);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "merged overlaps sinks", d->sinks = second + 90, d->merged.data = second + 88);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "lse overlaps query_lengths",
            d->query_lengths = rapt_int32_list((const int32_t *)(const void *)(second + 90), 2),
            d->lse.data = second + 88);
    REFUSED(RAPT_INVALID_VALUE, "sinks[1] = nan", d->sinks = wrong);
    REFUSED(RAPT_INVALID_VALUE, "query_lengths[1] = 4 is outside 0 ... 3",
            d->query_lengths = rapt_int32_list(lengths, 2));
    REFUSED(RAPT_OUT_OF_EXTENT, "query_lengths.count = 1", d->query_lengths = rapt_int32_list(lengths, 1));
    REFUSED(RAPT_INVALID_VALUE, "query_lengths.index_bytes = 3", d->query_lengths = rapt_int32_list(lengths, 2),
            d->query_lengths.index_bytes = 3);
}

static void refuse_options(void) {
    const rapt_states_desc right = fresh();
    rapt_run_options options = {.struct_size = sizeof options, .max_threads = -1};
    expect_refused(&right, &options, RAPT_INVALID_VALUE, "options.max_threads = -1", __LINE__);
    expect_refused(NULL, NULL, RAPT_NULL_POINTER, "desc is NULL", __LINE__);
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++)
        if (!rapt_isa_available((rapt_isa)isa))
            REFUSED(RAPT_UNSUPPORTED_ISA, rapt_isa_name((rapt_isa)isa), d->isa = isa);
}

static int never(void *context, int64_t count, void (*task)(void *, int64_t), void *argument) {
    (void)context, (void)count, (void)task, (void)argument;
    return 0;
}

static int fails(void *context, int64_t count, void (*task)(void *, int64_t), void *argument) {
    (void)context, (void)count, (void)task, (void)argument;
    return 1;
}

static int stops(void *context) { return ++*(int *)context > 0; }

/* What a caller's failing loop and its stop lead to. */
static void test_ends(void) {
    const rapt_states_desc d = fresh();
    int asked = 0;
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    options.parallel_for = never;
    expect_refused(&d, &options, RAPT_PARALLEL_FOR_FAILED, "parallel-for", __LINE__);
    options.parallel_for = fails;
    expect_refused(&d, &options, RAPT_PARALLEL_FOR_FAILED, "parallel-for", __LINE__);
    options.parallel_for = NULL;
    options.should_stop = stops;
    options.should_stop_context = &asked;
    expect_refused(&d, &options, RAPT_STOPPED, "stop", __LINE__);
    assert_true(asked > 0);
}

void test_merge_refusals(void **state) {
    (void)state;
    refuse_fields();
    refuse_memory();
    refuse_options();
    test_ends();
}

void test_merge_legal(void **state) {
    (void)state;
    LEGAL((void)d);
    LEGAL(d->count = 1, d->merged = none, d->lse = none, d->sinks = sinks);
    LEGAL(d->out = d->lse = none);
    LEGAL(d->out = rapt_tensor_bhsd(outputs + 80, RAPT_BF16, 2, 2, 3, 4));
    LEGAL(d->merged = d->out = none);
    LEGAL(d->merged = states[0]);
    LEGAL(d->merged = states[1], d->merged.extent_bytes = 0);
    LEGAL(states[1] = states[0]);
    LEGAL(states[0].batch_stride_bytes = states[0].head_stride_bytes = states[0].token_stride_bytes = 0);
    LEGAL(states[0].data = first + 12, states[0].token_stride_bytes = -24, states[0].extent_bytes = 0);
    LEGAL(d->query_heads = 1, states[0].head_stride_bytes = 7, d->out.head_stride_bytes = 0);
    LEGAL(d->batch = 0, d->merged.data = NULL, d->out = none);
    LEGAL(d->query_length = 0, states[0].data = NULL);
    for (int i = 0; i < RAPT_MOST_STATES; i++)
        many[i] = rapt_input_bhsd(first, 2, 2, 3, 6);
    LEGAL(d->states = many, d->count = RAPT_MOST_STATES);
    LEGAL(d->batch = 0);
    assert_true(is_untouched());
}
