/* SPDX-License-Identifier: MIT
 * The C of docs/tutorial.md, step by step; the page shows these lines. Usage: example_tutorial [STEP], from the top of
 * the tree, or with RAPT_TUTORIAL_DATA defined as the path of tests/data. */
#include <rapt/layers.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef RAPT_TUTORIAL_DATA
#define RAPT_TUTORIAL_DATA "tests/data"
#endif

static const char *const six[6] = {"Your", "journey", "starts", "with", "one", "step"};
static rapt_message message;

/* Ends the program, with the reason, if rapt refuses. */
static void require(rapt_status status) {
    if (status == RAPT_OK) return;
    fprintf(stderr, "%s\n", message.text[0] ? message.text : rapt_status_text(status));
    exit(1);
}

/* The first count numbers of a .npy file of float32 in C order. Two bytes at offset 8 hold the header's length. */
static void load(const char *name, float *numbers, size_t count) {
    char path[512];
    unsigned char start[10];
    snprintf(path, sizeof path, "%s/%s.npy", RAPT_TUTORIAL_DATA, name);
    FILE *file = fopen(path, "rb");
    if (!file || fread(start, 1, sizeof start, file) != sizeof start ||
        fseek(file, 10 + start[8] + 256 * start[9], SEEK_SET) != 0 ||
        fread(numbers, sizeof *numbers, count, file) != count) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
}

static void print(const char *name, const float *numbers, int count) {
    printf("%-8s", name);
    for (int i = 0; i < count; i++) printf(" %.4f", (double)numbers[i]);
    printf("\n");
}

/* ---- 1 to 3: three words of three numbers each */

static const float words[3][3] = {{0.34f, 0.22f, 0.54f}, {0.53f, 0.34f, 0.98f}, {0.29f, 0.54f, 0.93f}};
static float scores[3][3], weights[3][3], context[3][3];

static void attend_to_words(rapt_weights_kind kind, float received[3][3]) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = desc.query_heads = desc.kv_heads = 1;
    desc.query_length = desc.kv_length = 3;
    desc.head_dim = 3;
    desc.features = RAPT_SCALE, desc.scale = 1;
    desc.query = desc.key = desc.value = rapt_input_bhsd(words[0], 1, 1, 3, 3);
    desc.out = rapt_output_bhsd(context[0], 1, 1, 3, 3);
    desc.weights = rapt_output_bhsd(received[0], 1, 1, 3, 3);
    desc.weights_kind = kind;
    require(rapt_attention(&desc, NULL, &message));
}

static void step_1(void) {
    attend_to_words(RAPT_WEIGHTS_RAW, scores);
    for (int j = 0; j < 3; j++) {
        float product = 0;
        for (int d = 0; d < 3; d++)
            product += words[1][d] * words[j][d];
        printf("shiny and word %d: %.4f, by hand %.4f\n", j, (double)scores[1][j], (double)product);
    }
}

static void step_2(void) {
    attend_to_words(RAPT_WEIGHTS_SOFTMAX, weights);
    for (int i = 0; i < 3; i++)
        printf("%.4f + %.4f + %.4f = %.4f\n", (double)weights[i][0], (double)weights[i][1], (double)weights[i][2],
               (double)(weights[i][0] + weights[i][1] + weights[i][2]));
}

static void step_3(void) {
    attend_to_words(RAPT_WEIGHTS_SOFTMAX, weights);
    float mixed[3] = {0};
    for (int j = 0; j < 3; j++)
        for (int d = 0; d < 3; d++)
            mixed[d] += weights[1][j] * words[j][d];
    print("by hand", mixed, 3);
    print("rapt", context[1], 3);
}

/* ---- 4 to 6: six words, learned weights */

static void step_4(void) {
    float x[6][3], w_q[3][2], w_k[3][2], w_v[3][2], out[6][2];
    load("layers/02a_self_attention_v1/x", x[0], 18);
    load("layers/02a_self_attention_v1/w_q", w_q[0], 6);
    load("layers/02a_self_attention_v1/w_k", w_k[0], 6);
    load("layers/02a_self_attention_v1/w_v", w_v[0], 6);
    rapt_attention_desc how = RAPT_ATTENTION_DESC_INIT;
    how.batch = how.query_heads = how.kv_heads = 1;
    how.query_length = how.kv_length = 6;
    rapt_multi_head_desc layer = RAPT_MULTI_HEAD_DESC_INIT;
    layer.attention = &how;
    layer.query = rapt_linear_in_out(w_q[0], NULL, 3, 2); /* x times a matrix [3][2], no bias */
    layer.key = rapt_linear_in_out(w_k[0], NULL, 3, 2);
    layer.value = rapt_linear_in_out(w_v[0], NULL, 3, 2);
    layer.x = x[0], layer.out = out[0];
    require(rapt_multi_head_attention(&layer, NULL, &message));
    for (int i = 0; i < 6; i++)
        print(six[i], out[i], 2);
}

static void step_5(void) {
    float q[6][2], k[6][2], v[6][2], out[6][2], attention[6][6];
    load("layers/03a_causal/q", q[0], 12);
    load("layers/03a_causal/k", k[0], 12);
    load("layers/03a_causal/v", v[0], 12);
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = desc.query_heads = desc.kv_heads = 1;
    desc.query_length = desc.kv_length = 6, desc.head_dim = 2;
    desc.query = rapt_input_bhsd(q[0], 1, 1, 6, 2);
    desc.key = rapt_input_bhsd(k[0], 1, 1, 6, 2);
    desc.value = rapt_input_bhsd(v[0], 1, 1, 6, 2);
    desc.out = rapt_output_bhsd(out[0], 1, 1, 6, 2);
    desc.weights = rapt_output_bhsd(attention[0], 1, 1, 6, 6);
    desc.weights_kind = RAPT_WEIGHTS_SOFTMAX;
    desc.features = RAPT_CAUSAL; /* a query does not see the keys after it */
    require(rapt_attention(&desc, NULL, &message));
    for (int i = 0; i < 6; i++)
        print(six[i], attention[i], 6);
}

static void step_6(void) {
    float x[6][3], w_q[2][3], w_k[2][3], w_v[2][3], w_o[2][2], b_o[2], out[6][2];
    load("layers/06a_mha_split/x", x[0], 18);
    load("layers/06a_mha_split/w_q", w_q[0], 6);
    load("layers/06a_mha_split/w_k", w_k[0], 6);
    load("layers/06a_mha_split/w_v", w_v[0], 6);
    load("layers/06a_mha_split/w_o", w_o[0], 4);
    load("layers/06a_mha_split/b_o", b_o, 2);
    rapt_attention_desc how = RAPT_ATTENTION_DESC_INIT;
    how.batch = 1;
    how.query_length = how.kv_length = 6;
    how.query_heads = how.kv_heads = 2;
    how.features = RAPT_CAUSAL;
    rapt_multi_head_desc layer = RAPT_MULTI_HEAD_DESC_INIT;
    layer.attention = &how;
    layer.query = rapt_linear_of(w_q[0], NULL, 3, 2); /* weights as torch.nn.Linear stores them: [out][in] */
    layer.key = rapt_linear_of(w_k[0], NULL, 3, 2);
    layer.value = rapt_linear_of(w_v[0], NULL, 3, 2);
    layer.output = rapt_linear_of(w_o[0], b_o, 2, 2);
    layer.x = x[0], layer.out = out[0];
    require(rapt_multi_head_attention(&layer, NULL, &message));
    for (int i = 0; i < 6; i++)
        print(six[i], out[i], 2);
}

/* ---- 7: a real model's heads; 8: two sequences */

static void step_7(void) {
    static float query[12][28][32], key[12][28][32], value[12][28][32], out[12][28][32], attention[12][28][28];
    load("minilm/first_layer/query", query[0][0], 12 * 28 * 32);
    load("minilm/first_layer/key", key[0][0], 12 * 28 * 32);
    load("minilm/first_layer/value", value[0][0], 12 * 28 * 32);
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = 1, desc.query_heads = desc.kv_heads = 12;
    desc.query_length = desc.kv_length = 28, desc.head_dim = 32;
    desc.query = rapt_input_bhsd(query[0][0], 1, 12, 28, 32); /* batch, heads, tokens, dim */
    desc.key = rapt_input_bhsd(key[0][0], 1, 12, 28, 32);
    desc.value = rapt_input_bhsd(value[0][0], 1, 12, 28, 32);
    desc.out = rapt_output_bhsd(out[0][0], 1, 12, 28, 32);
    desc.weights = rapt_output_bhsd(attention[0][0], 1, 12, 28, 28);
    desc.weights_kind = RAPT_WEIGHTS_SOFTMAX;
    require(rapt_attention(&desc, NULL, &message));
    float previous = 0;
    for (int i = 1; i < 28; i++)
        previous += attention[2][i][i - 1] / 27;
    printf("head 2 gives the word before %.0f %% of its attention\n", (double)previous * 100);
}

static void step_8(void) {
    static float x_q[2][5][24], x_k[2][11][24], w[4][24][24], b[4][24], out[2][5][24], attention[2][4][5][11];
    static const char *const names[] = {"q", "k", "v", "o"};
    char name[64];
    load("layers/09b_cross_mha/x_q", x_q[0][0], 240);
    load("layers/09b_cross_mha/x_k", x_k[0][0], 528);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "layers/09b_cross_mha/w_%s", names[i]);
        load(name, w[i][0], 576);
        snprintf(name, sizeof name, "layers/09b_cross_mha/b_%s", names[i]);
        load(name, b[i], 24);
    }
    rapt_attention_desc how = RAPT_ATTENTION_DESC_INIT;
    how.batch = 2, how.query_heads = how.kv_heads = 4;
    rapt_multi_head_desc layer = RAPT_MULTI_HEAD_DESC_INIT;
    layer.attention = &how;
    layer.query = rapt_linear_of(w[0][0], b[0], 24, 24);
    layer.key = rapt_linear_of(w[1][0], b[1], 24, 24);
    layer.value = rapt_linear_of(w[2][0], b[2], 24, 24);
    layer.output = rapt_linear_of(w[3][0], b[3], 24, 24);
    const int32_t lengths[2] = {11, 7}; /* real words of each original */
    how.query_length = 5, how.kv_length = 11;
    how.kv_lengths = rapt_int32_list(lengths, 2);
    layer.x = x_q[0][0];      /* the translation asks, */
    layer.memory = x_k[0][0]; /* the original answers */
    layer.out = out[0][0];
    how.weights = rapt_output_bhsd(attention[0][0][0], 2, 4, 5, 11);
    how.weights_kind = RAPT_WEIGHTS_SOFTMAX;
    require(rapt_multi_head_attention(&layer, NULL, &message));
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "word %d", i);
        print(name, attention[1][0][i], 8);
    }
}

int main(int count, char **arguments) {
    static void (*const steps[])(void) = {step_1, step_2, step_3, step_4, step_5, step_6, step_7, step_8};
    const int only = count == 2 && strlen(arguments[1]) == 1 ? arguments[1][0] - '0' : 0;
    if (count > 2 || (count == 2 && (only < 1 || only > 8))) {
        fputs("usage: example_tutorial [STEP], STEP = 1 ... 8\n", stderr);
        return 2;
    }
    for (int step = 1; step <= 8; step++)
        if (only == 0 || only == step) steps[step - 1]();
    return 0;
}
