/* SPDX-License-Identifier: MIT
 * Multi-head attention, step 6 of docs/tutorial.md, without files: six words, two heads, no word sees a later one.
 * Weights and expected numbers are those of a PyTorch program. */
#include <rapt/layers.h>

#include <stdio.h>

enum { WORDS = 6, DIM = 3, HEADS = 2, WIDTH = 2 };

static const char *const names[WORDS] = {"Your", "journey", "starts", "with", "one", "step"};
static const float words[WORDS][DIM] = {{0.43f, 0.15f, 0.89f}, {0.55f, 0.87f, 0.66f}, {0.57f, 0.85f, 0.64f},
                                        {0.22f, 0.58f, 0.33f}, {0.77f, 0.25f, 0.10f}, {0.05f, 0.80f, 0.55f}};

/* [out][in], as in torch.nn.Linear; row h yields what head h sees of each word. */
static const float to_query[WIDTH][DIM] = {{-0.23542964f, 0.019124476f, -0.28674594f},
                                           {0.21772662f, -0.4919342f, 0.42322308f}};
static const float to_key[WIDTH][DIM] = {{-0.4196414f, -0.45901766f, -0.36482018f},
                                         {0.2614782f, -0.2133264f, 0.21605217f}};
static const float to_value[WIDTH][DIM] = {{-0.49001414f, -0.35029206f, -0.2119892f},
                                           {-0.11346072f, -0.44043937f, 0.37804362f}};
static const float to_out[WIDTH][WIDTH] = {{-0.16675779f, 0.22697258f}, {0.500026f, 0.13173823f}};
static const float out_bias[WIDTH] = {0.19335887f, 0.68254095f};

static const float expected[WORDS][WIDTH] = {{0.3190183f, 0.4857629f},   {0.294346f, 0.38967627f},
                                             {0.28557467f, 0.3592777f},  {0.26926368f, 0.38732666f},
                                             {0.26387054f, 0.3927957f},  {0.2574736f, 0.40278262f}};

int main(void) {
    float out[WORDS][WIDTH];
    rapt_attention_desc how = RAPT_ATTENTION_DESC_INIT;
    how.batch = 1;
    how.query_heads = how.kv_heads = HEADS;
    how.query_length = how.kv_length = WORDS;
    how.features = RAPT_CAUSAL;
    rapt_multi_head_desc layer = RAPT_MULTI_HEAD_DESC_INIT;
    layer.attention = &how;
    layer.query = rapt_linear_of(to_query[0], NULL, DIM, WIDTH);
    layer.key = rapt_linear_of(to_key[0], NULL, DIM, WIDTH);
    layer.value = rapt_linear_of(to_value[0], NULL, DIM, WIDTH);
    layer.output = rapt_linear_of(to_out[0], out_bias, WIDTH, WIDTH);
    layer.x = words[0];
    layer.out = out[0];
    rapt_message message;
    if (rapt_multi_head_attention(&layer, NULL, &message) != RAPT_OK) {
        fprintf(stderr, "%s\n", message.text);
        return 1;
    }
    int differences = 0;
    for (int i = 0; i < WORDS; i++) {
        printf("%-8s %.4f %.4f\n", names[i], (double)out[i][0], (double)out[i][1]);
        for (int d = 0; d < WIDTH; d++) {
            float difference = out[i][d] - expected[i][d];
            differences += difference > 1e-6f || difference < -1e-6f;
        }
    }
    return differences != 0;
}
