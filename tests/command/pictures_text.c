/* SPDX-License-Identifier: MIT
 * Texts in pictures of `rapt heatmap`, and their colour bar. argv as of command.c. */
#include "command/pictures.h"

static struct picture draw(const char *options, float *numbers, int64_t queries, int64_t keys) {
    write_npy("drawn.npy", NPY_FLOAT32, numbers, 2, (const int64_t[]){queries, keys});
    struct command_result said = expect_success("$rapt heatmap --attention drawn.npy --zoom 1 --out m.png %s", options);
    return read_png("m.png", said.out);
}

/* The last column with ink in rows top to bottom. */
static int last_ink(const struct picture *picture, int top, int bottom) {
    for (int x = picture->width - 1; x >= 0; x--) {
        for (int y = top; y < bottom; y++) {
            if (pixel(picture, x, y) != 0xffffff) return x;
        }
    }
    return -1;
}

/* A small map is as wide as its title; long titles take more lines, longer ones still more. */
static void titles_are_whole(void **state) {
    float one[1] = {0.5f}, many[400] = {0};
    (void)state;
    struct picture narrow = draw("--title x", one, 1, 1);
    struct picture wide = draw("--title 'Attention weights of one head'", one, 1, 1);
    assert_true(wide.width > narrow.width);
    assert_true(last_ink(&wide, 0, 30) < wide.width - 10);
    assert_int_equal(narrow.height, wide.height);
    cairo_surface_destroy(narrow.surface);
    cairo_surface_destroy(wide.surface);
    int height = 0;
    for (int words = 1; words <= 61; words += 20) {
        char options[1024] = "--title '";
        for (int i = 0; i < words; i++) strcat(options, "weights ");
        strcat(options, "'");
        struct picture picture = draw(options, many, 20, 20);
        assert_true(picture.height > height);
        height = picture.height;
        cairo_surface_destroy(picture.surface);
    }
}

/* A longer title is not cut shorter in a picture that has room. */
static void long_titles_are_whole(void **state) {
    static float many[6000];
    char options[1024] = "--title ";
    int ink[2];
    (void)state;
    memset(options + strlen(options), 'm', 250);
    for (int i = 0; i < 2; i++) {
        struct picture picture = draw(options, many, 1, 6000);
        ink[i] = last_ink(&picture, 0, 30);
        cairo_surface_destroy(picture.surface);
        memset(options + strlen(options), 'm', 100);
    }
    assert_true(ink[1] > ink[0] + 1000);
}

static void missing_glyphs_are_warned_of(void **state) {
    static const char tokens[] = "\xf4\x8f\xbf\xbd\n"; /* U+10FFFD, of private use */
    float one[1] = {0.5f};
    (void)state;
    write_npy("drawn.npy", NPY_FLOAT32, one, 2, (const int64_t[]){1, 1});
    write_bytes("private.txt", tokens, sizeof tokens - 1);
    struct command_result said = command_shell("$rapt heatmap --attention drawn.npy --tokens private.txt --out m.png");
    assert_int_equal(said.status, 0);
    assert_non_null(
        strstr(said.err, "warning: the picture of drawn.npy: 2 characters of its texts are in no font here"));
}

struct bar {
    int x, first, last; /* its last column and its rows */
};

static struct bar find_bar(const struct picture *picture) {
    struct bar bar = {picture->width, -1, -1};
    while (bar.first < 0 && bar.x-- > 0) {
        for (int y = 0; y < picture->height; y++) {
            if (!is_coloured(pixel(picture, bar.x, y))) continue;
            if (bar.first < 0) bar.first = y;
            bar.last = y;
        }
    }
    assert_true(bar.first >= 0);
    return bar;
}

/* Uncoloured rows of the bar. */
static int gaps_of(const struct picture *picture, struct bar bar) {
    int gaps = 0;
    for (int y = bar.first; y <= bar.last; y++) gaps += !is_coloured(pixel(picture, bar.x - 4, y));
    return gaps;
}

static bool has_tick(const struct picture *picture, int x, int y) {
    return pixel(picture, x + 2, y - 1) != 0xffffff || pixel(picture, x + 2, y) != 0xffffff;
}

/* Scores on both sides of zero have a line at it; both ends of the bar have numbers, however odd. */
static void bars_are_read(void **state) {
    float signs[4] = {-2, 3.377f, 1, 0}, positive[4] = {0, 3.377f, 1, 2};
    (void)state;
    struct picture scores = draw("", signs, 2, 2), none = draw("", positive, 2, 2);
    struct bar bar = find_bar(&scores);
    assert_in_range(gaps_of(&scores, bar), 2, 5);
    assert_true(has_tick(&scores, bar.x, bar.first));
    assert_true(has_tick(&scores, bar.x, bar.last + 1));
    assert_false(has_tick(&scores, bar.x, bar.first + 4));
    assert_int_equal(gaps_of(&none, find_bar(&none)), 0);
    cairo_surface_destroy(scores.surface);
    cairo_surface_destroy(none.surface);
}

/* Whatever the numbers: the margin stays empty. */
static void bar_numbers_are_whole(void **state) {
    float numbers[][4] = {{-7.51e4f, 5.09e4f, 0, 1}, {-0.000123f, 0.000456f, 0, 0}, {-1.25e-30f, 1, 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct picture picture = draw("", numbers[i], 2, 2);
        assert_true(last_ink(&picture, 0, picture.height) < picture.width - 10);
        cairo_surface_destroy(picture.surface);
    }
}

/* Weights below 0.1: no number is cut, so cells have their colour at both edges. */
static void small_numbers_are_whole(void **state) {
    enum { SIDE = 15, CELL = 640 / SIDE };
    float weights[SIDE * SIDE];
    (void)state;
    for (int i = 0; i < SIDE * SIDE; i++) weights[i] = i % 11 == 0 ? 0.09f : i % 3 ? 0.0412f : 0.000123f;
    struct picture picture = draw("", weights, SIDE, SIDE);
    int x = 0, y = 0;
    find_cells(&picture, &x, &y);
    for (int i = 0; i < SIDE * CELL; i++) {
        for (int j = 0; j < SIDE; j++) {
            const uint32_t colour = viridis((double)weights[i / CELL * SIDE + j] / (double)0.09f);
            for (int k = 0; k < 2; k++) {
                assert_int_equal(pixel(&picture, x + CELL * j + k, y + i), colour);
                assert_int_equal(pixel(&picture, x + CELL * (j + 1) - 1 - k, y + i), colour);
            }
        }
    }
    cairo_surface_destroy(picture.surface);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(titles_are_whole),
        cmocka_unit_test(long_titles_are_whole),
        cmocka_unit_test(missing_glyphs_are_warned_of),
        cmocka_unit_test(bars_are_read),
        cmocka_unit_test(bar_numbers_are_whole),
        cmocka_unit_test(small_numbers_are_whole),
    };
    if (argc < 4) return 2;
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    int failed = cmocka_run_group_tests_name("pictures_text", tests, NULL, NULL);
    cairo_debug_reset_static_data();
    command_stop();
    return failed;
}
