/* SPDX-License-Identifier: MIT
 * The pictures of `rapt heatmap`. argv as of command.c. */
#include <math.h>

#include "command/pictures.h"

enum { HEADS = 3, QUERIES = 30, KEYS = 26 };

static void expect_cells(const struct picture *picture, const float *weights, float most, int side, int x, int y,
                         double root(double)) {
    for (int i = 0; i < QUERIES; i++) {
        for (int j = 0; j < KEYS; j++) {
            uint32_t colour = viridis(root((double)weights[i * KEYS + j] / (double)most));
            assert_int_equal(pixel(picture, x + side * j, y + side * i), colour);
            assert_int_equal(pixel(picture, x + side * j + side - 1, y + side * i + side - 1), colour);
        }
    }
}

static double linear(double place) { return place; }

static float largest(const float *weights, int count) {
    float most = 0;
    for (int i = 0; i < count; i++) most = fmaxf(most, weights[i]);
    return most;
}

static void cells_have_their_colours(void **state) {
    const struct npy_array array = npy_read("w.npy", NPY_FLOAT32);
    const float *weights = (const float *)array.data + 2 * QUERIES * KEYS;
    (void)state;
    for (int zoom = 1; zoom <= 2; zoom++) {
        struct command_result said =
            expect_success("$rapt heatmap --weights w.npy --head 2 --out m.png --zoom %d", zoom);
        struct picture picture = read_png("m.png", said.out);
        int x = 0, y = 0;
        find_cells(&picture, &x, &y);
        expect_cells(&picture, weights, largest(weights, QUERIES * KEYS), 21 * zoom, x, y, linear);
        assert_int_equal(pixel(&picture, 0, 0), 0xffffff);
        cairo_surface_destroy(picture.surface);
    }
}

static void a_root_parts_small_weights(void **state) {
    const struct npy_array array = npy_read("w.npy", NPY_FLOAT32);
    const float *weights = array.data;
    (void)state;
    struct command_result said = expect_success("$rapt heatmap --weights w.npy --scale sqrt --out m.png --zoom 1");
    struct picture picture = read_png("m.png", said.out);
    int x = 0, y = 0;
    find_cells(&picture, &x, &y);
    expect_cells(&picture, weights, largest(weights, QUERIES * KEYS), 21, x, y, sqrt);
    cairo_surface_destroy(picture.surface);
    expect_error("--scale sqrt is for weights within 0 ... 1",
                 "$rapt heatmap --weights signed.npy --scale sqrt --out m.png");
    expect_error("--scale", "$rapt heatmap --weights w.npy --scale cube --out m.png");
}

/* Cells of exactly 0 are hatched paper; in scores 0 is an ordinary number. */
static void unseen_cells_are_hatched(void **state) {
    enum { SIDE = 64 };
    (void)state;
    for (int scores = 0; scores < 2; scores++) {
        const float weights[4] = {1, 0, 0.5f, scores ? -0.5f : 0.5f};
        write_npy("unseen.npy", NPY_FLOAT32, weights, 2, (const int64_t[]){2, 2});
        struct command_result said = expect_success("$rapt heatmap --weights unseen.npy --out m.png --zoom 1");
        struct picture picture = read_png("m.png", said.out);
        int x = 0, y = 0, paper = 0, lines = 0;
        find_cells(&picture, &x, &y);
        for (int i = 0; i < SIDE * SIDE; i++) {
            uint32_t colour = pixel(&picture, x + SIDE + i % SIDE, y + i / SIDE);
            paper += colour == 0xffffff;
            lines += colour == 0x909090;
        }
        /* Numbers of scores have white pixels. */
        assert_true(scores ? paper + lines < SIDE : paper + lines == SIDE * SIDE);
        if (!scores) assert_in_range(lines, SIDE * SIDE / 6, SIDE * SIDE / 4);
        cairo_surface_destroy(picture.surface);
    }
}

/* A page is about 1000 units wide. */
static void grids_fit_a_page(void **state) {
    (void)state;
    write_random("any.npy", 3, 1, 12, 28, 28);
    struct command_result said = expect_success("$rapt heatmap --weights any.npy --head all --out any.png --zoom 1");
    struct picture picture = read_png("any.png", said.out);
    assert_in_range(picture.width, 800, 1100);
    assert_in_range(picture.height, 4 * 280, 1500);
    cairo_surface_destroy(picture.surface);
}

static void a_grid_shares_its_scale(void **state) {
    const struct npy_array array = npy_read("w.npy", NPY_FLOAT32);
    const float *weights = array.data, most = largest(weights, HEADS * QUERIES * KEYS);
    enum { SIDE = 280 / QUERIES };
    (void)state;
    struct command_result said =
        expect_success("$rapt heatmap --weights w.npy --head all --out m.png --zoom 1 --theme dark");
    struct picture picture = read_png("m.png", said.out);
    assert_int_equal(pixel(&picture, 0, 0), 0x15171c);
    int x = 0, y = 0;
    find_cells(&picture, &x, &y);
    for (int h = 0; h < HEADS; h++) {
        int at = x + h * (SIDE * KEYS + 16);
        expect_cells(&picture, weights + h * QUERIES * KEYS, most, SIDE, at, y, linear);
        assert_false(is_coloured(pixel(&picture, at - 1, y)));
    }
    cairo_surface_destroy(picture.surface);
}

/* Cell counts that bring out every form of labels, axes, bar and grid. */
static void all_sizes(void **state) {
    static const int sizes[][3] = {{1, 1, 1}, {1, 12, 12}, {1, 128, 128}, {12, 2, 2},   {1, 1, 700},
                                   {1, 700, 1}, {5, 40, 33}, {7, 129, 3},   {1, 5, 20}, {25, 4, 4}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        write_random("any.npy", 3, 1, sizes[i][0], sizes[i][1], sizes[i][2]);
        struct command_result said = expect_success("$rapt heatmap --weights any.npy --head all --out any.png");
        struct picture picture = read_png("any.png", said.out);
        assert_in_range(picture.width, 2 * sizes[i][2], 3600);
        assert_in_range(picture.height, 2 * sizes[i][1], 3600);
        if (i > 0) assert_non_null(strstr(said.out, "as weights lie outside 0 ... 1"));
        cairo_surface_destroy(picture.surface);
    }
    /* As a column of page width, 20,000 pixels high. */
    write_random("any.npy", 3, 1, 128, 10, 10);
    struct command_result said = expect_success("$rapt heatmap --weights any.npy --head all --zoom 1 --out any.png");
    struct picture picture = read_png("any.png", said.out);
    assert_in_range(picture.width, 3400, 3800);
    assert_in_range(picture.height, 3400, 3800);
    cairo_surface_destroy(picture.surface);
    write_random("any.npy", 2, 1, 1, 1, 20000);
    expect_error("pixels, more than 16384 per side", "$rapt heatmap --weights any.npy --out new.png");
}

static void expect_well_formed(const char *path) {
    if (command_shell("command -v xmllint").status == 0)
        expect_success("xmllint --noout %s", path);
    else if (command_shell("command -v python3").status == 0)
        expect_success("python3 -c 'import sys, xml.dom.minidom as d; d.parse(sys.argv[1])' %s", path);
}

static void hostile_tokens(void **state) {
    static const char tokens[] =
        "\"'<&>]]>\n<script>\n\xc3\xa9\xff\xfe\n\t\x01\x1b\n\xe4\xbd\xa0\n\xe2\x80\xae\n\n&#0;%s%n\n";
    char whole[sizeof tokens + 200000];
    float scores[81] = {NAN, INFINITY, -3};
    (void)state;
    memcpy(whole, tokens, sizeof tokens - 1);
    memset(whole + sizeof tokens - 1, 'x', 200000);
    write_bytes("hostile.txt", whole, sizeof whole - 1);
    write_npy("nine.npy", NPY_FLOAT32, scores, 2, (const int64_t[]){9, 9});
    for (int theme = 0; theme < 2; theme++) {
        const char *line =
            "$rapt heatmap --attention nine.npy --tokens hostile.txt --title '</svg>&' --theme %s --out m.%s 2>warned";
        struct command_result said = expect_success(line, theme ? "dark" : "light", "svg");
        assert_non_null(strstr(said.out, "\ncolours  -3 ... 0, as"));
        assert_non_null(strstr(said.out, "\ngrey     1 NaN, 1 infinite\n"));
        expect_well_formed("m.svg");
        said = expect_success(line, theme ? "dark" : "light", "png");
        cairo_surface_destroy(read_png("m.png", said.out).surface);
    }
}

static void failed_writes(void **state) {
    (void)state;
    expect_error("none/new.svg: cannot be written: No such file", "$rapt heatmap --weights w.npy --out none/new.svg");
    expect_error("File too large", "ulimit -f 1; $rapt heatmap --weights w.npy --out new.png");
    expect_error("standard output: No space left", "$rapt heatmap --weights w.npy --out new.png >/dev/full");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_have_their_colours), cmocka_unit_test(a_root_parts_small_weights),
        cmocka_unit_test(unseen_cells_are_hatched), cmocka_unit_test(grids_fit_a_page),
        cmocka_unit_test(a_grid_shares_its_scale),
        cmocka_unit_test(all_sizes),                cmocka_unit_test(hostile_tokens),
        cmocka_unit_test(failed_writes),
    };
    float weights[HEADS * QUERIES * KEYS];
    if (argc < 4) return 2;
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    for (int i = 0; i < HEADS * QUERIES * KEYS; i++) {
        int head = i / (QUERIES * KEYS);
        weights[i] = (float)(1 + i * 37 % 101) / (float)(101 + 50 * head); /* not 0, which is hatched */
    }
    write_npy("signed.npy", NPY_FLOAT32, (const float[]){-1, 1}, 2, (const int64_t[]){1, 2});
    write_npy("w.npy", NPY_FLOAT32, weights, 3, (const int64_t[]){HEADS, QUERIES, KEYS});
    int failed = cmocka_run_group_tests_name("pictures", tests, NULL, NULL);
    cairo_debug_reset_static_data();
    command_stop();
    return failed;
}
