/* SPDX-License-Identifier: MIT
 * What docs/tutorial.md begins with: three words, and what each makes of the others. The sums are written out
 * beside what the library computes, and the program fails where they differ. */
#include <rapt/rapt.h>

#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 3, DIM = 3 };

static const char *const names[WORDS] = {"Hello", "shiny", "sun!"};
static const float words[WORDS][DIM] = {{0.34f, 0.22f, 0.54f}, {0.53f, 0.34f, 0.98f}, {0.29f, 0.54f, 0.93f}};

/* How well two words match. */
static float dot(const float *a, const float *b) {
    float sum = 0;
    for (int d = 0; d < DIM; d++) sum += a[d] * b[d];
    return sum;
}

/* The words, mixed. */
static void mix(const float weights[WORDS], float context[DIM]) {
    for (int d = 0; d < DIM; d++) {
        context[d] = 0;
        for (int j = 0; j < WORDS; j++) context[d] += weights[j] * words[j][d];
    }
}

/* Every word is query, key and value at once. weights: raw scores or probabilities, as kind says. */
static void attend(rapt_weights_kind kind, float weights[WORDS][WORDS], float context[WORDS][DIM]) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = desc.query_heads = desc.kv_heads = 1;
    desc.query_length = desc.kv_length = WORDS;
    desc.head_dim = DIM;
    desc.features = RAPT_SCALE;
    desc.scale = 1;
    desc.query = desc.key = desc.value = rapt_input_bhsd(words[0], 1, 1, WORDS, DIM);
    desc.out = rapt_output_bhsd(context[0], 1, 1, WORDS, DIM);
    desc.weights = rapt_output_bhsd(weights[0], 1, 1, WORDS, WORDS);
    desc.weights_kind = kind;
    rapt_message message;
    if (rapt_attention(&desc, NULL, &message) != RAPT_OK) {
        fprintf(stderr, "%s\n", message.text);
        exit(1);
    }
}

static void print(const char *what, const float numbers[3]) {
    printf("%s  %.4f %.4f %.4f\n", what, (double)numbers[0], (double)numbers[1], (double)numbers[2]);
}

static int differ(float a, float b) {
    return a - b > 1e-6f || b - a > 1e-6f;
}

int main(void) {
    float scores[WORDS][WORDS], weights[WORDS][WORDS], context[WORDS][DIM], mixed[DIM];
    int differences = 0;
    attend(RAPT_WEIGHTS_RAW, scores, context);
    attend(RAPT_WEIGHTS_SOFTMAX, weights, context);
    for (int i = 0; i < WORDS; i++) {
        mix(weights[i], mixed);
        for (int j = 0; j < WORDS; j++) differences += differ(scores[i][j], dot(words[i], words[j]));
        for (int d = 0; d < DIM; d++) differences += differ(context[i][d], mixed[d]);
    }
    printf("%s\n", names[1]);
    print("scores ", scores[1]);
    print("weights", weights[1]);
    print("context", context[1]);
    return differences != 0;
}
