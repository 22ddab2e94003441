/* SPDX-License-Identifier: MIT
 * Invalid graphs: declined, or refused with a status; nothing crashes. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "../../tests/support/cmocka_all.h"

static const struct shape plain = {64, 64, 4, 2, 3, 40, 2, GGML_TYPE_F16, GGML_TYPE_F16, true, true, 8, 30};

static void declines(struct node *n, int line) {
    if (ggml_backend_dev_supports_op(rapt_device, n->out))
        fail_msg("line %d: taken", line);
    free_node(n);
}

#define DECLINED(...)                      \
    {                                      \
        struct node n = make_node(&plain); \
        __VA_ARGS__;                       \
        declines(&n, __LINE__);            \
    }

static void set_parameter(struct node *n, int which, float value) { memcpy(&n->out->op_params[which], &value, 4); }

void test_hostile(void **state) {
    (void)state;
    struct node taken = make_node(&plain);
    assert_true(ggml_backend_dev_supports_op(rapt_device, taken.out));
    free_node(&taken);
    for (int i = 5; i < (int)(GGML_MAX_OP_PARAMS / sizeof(int32_t)); i++)
        DECLINED(n.out->op_params[i] = 1)
    for (int i = 5; i < GGML_MAX_SRC; i++)
        DECLINED(n.out->src[i] = n.q)
    for (int i = 0; i < 3; i++) {
        DECLINED(set_parameter(&n, i, NAN))
        DECLINED(set_parameter(&n, i, INFINITY))
        DECLINED(n.out->src[i] = NULL)
        DECLINED(n.out->src[i]->nb[0] = 1)
        DECLINED(n.out->src[i]->ne[1] = -1)
        DECLINED(n.out->src[i]->ne[0] = INT64_MAX)
        DECLINED(n.out->src[i]->ne[2] = 3)
        DECLINED(n.out->src[i]->ne[3] = 7)
        DECLINED(n.out->src[i]->nb[1] = SIZE_MAX)
        DECLINED(n.out->src[i]->nb[3] = (size_t)INT64_MAX - 1)
        DECLINED(n.out->src[i]->view_offs = 1)
        DECLINED(n.out->src[i]->type = GGML_TYPE_I32)
        DECLINED(n.out->src[i]->type = (enum ggml_type)GGML_TYPE_COUNT)
    }
    DECLINED(set_parameter(&n, 2, -30))
    DECLINED(n.k->nb[1] = 3)
    DECLINED(n.q->type = GGML_TYPE_F16)
    DECLINED(n.out->type = GGML_TYPE_F16)
    DECLINED(n.out->ne[1] = 3)
    DECLINED(n.out->nb[2] = 0)
    DECLINED(n.mask->ne[0] = 39)
    DECLINED(n.mask->ne[1] = 2)
    DECLINED(n.mask->ne[2] = 0)
    DECLINED(n.mask->ne[3] = 3)
    DECLINED(n.mask->type = GGML_TYPE_F32)
    DECLINED(n.mask->nb[0] = 4)
    DECLINED(n.mask->view_offs = 3)
    DECLINED(n.sinks->ne[0] = 3)
    DECLINED(n.sinks->view_offs = 2)
    DECLINED(n.out->op = GGML_OP_MUL_MAT)
    DECLINED(n.q->ne[2] = n.out->ne[1] = n.sinks->ne[0] = 2048)
}

static enum ggml_status status_of(ggml_backend_t backend, struct node *n) {
    return ggml_backend_graph_compute(backend, n->graph);
}

/* What supports_op cannot know: memory. */
void test_memory(void **state) {
    (void)state;
    ggml_backend_t backend = make_backend(rapt_device, 2);
    struct ggml_tensor *of[6];
    for (int i = 0; i < 6; i++) {
        struct node n = make_node(&plain);
        fill_node(&n);
        struct ggml_tensor *all[] = {n.q, n.k, n.v, n.mask, n.sinks, n.out};
        memcpy(of, all, sizeof of);
        char *const data = of[i]->data;
        assert_int_equal(status_of(backend, &n), GGML_STATUS_SUCCESS);
        of[i]->data = data + 1;
        assert_int_equal(status_of(backend, &n), GGML_STATUS_FAILED);
        of[i]->data = (char *)ggml_backend_buffer_get_base(n.buffer) + ggml_backend_buffer_get_size(n.buffer) - 4;
        assert_int_equal(status_of(backend, &n), GGML_STATUS_FAILED);
        of[i]->data = (char *)ggml_backend_buffer_get_base(n.buffer) - 64;
        assert_int_equal(status_of(backend, &n), GGML_STATUS_FAILED);
        of[i]->data = NULL;
        assert_int_equal(status_of(backend, &n), GGML_STATUS_FAILED);
        of[i]->data = data;
        assert_int_equal(status_of(backend, &n), GGML_STATUS_SUCCESS);
        free_node(&n);
    }
    struct node n = make_node(&plain);
    fill_node(&n);
    ((float *)n.sinks->data)[1] = NAN;
    assert_int_equal(status_of(backend, &n), GGML_STATUS_FAILED);
    n.out->op = GGML_OP_ADD;
    assert_int_equal(status_of(backend, &n), GGML_STATUS_FAILED);
    free_node(&n);
    ggml_backend_free(backend);
}
