/* SPDX-License-Identifier: MIT
 * `rapt heatmap` in the terminal, and its refusals. argv as of command.c. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "command/run.h"

/* The weights of "Hello shiny sun!", the tutorial's first system. */
static const float hello[3][3] = {
    {0.2994f, 0.3572f, 0.3434f}, {0.2291f, 0.4063f, 0.3646f}, {0.2320f, 0.3841f, 0.3839f}};

static void few_tokens_have_numbers(void **state) {
    (void)state;
    assert_string_equal(expect_success("$rapt heatmap --weights hello.npy --tokens hello.txt").out,
                        "Attention weights: queries down, keys across\n"
                        "\n"
                        "       Hello shiny  sun!\n"
                        "Hello   0.30  0.36  0.34\n"
                        "shiny   0.23  0.41  0.36\n"
                        " sun!   0.23  0.38  0.38\n"
                        "\n"
                        "0  .:-=+*#%@ 0.406\n");
}

static void more_tokens_have_marks(void **state) {
    (void)state;
    assert_string_equal(
        expect_success("COLUMNS=12 $rapt heatmap --weights hello.npy --tokens hello.txt --title 'Three words'").out,
        "Three words: queries down, keys across\n"
        "\n"
        "     H s s \n"
        "     e h u \n"
        "     l i n \n"
        "     l n ! \n"
        "     o y   \n"
        "Hell ##%%%%\n"
        "shin ++@@%%\n"
        "sun! ++@@@@\n"
        "\n"
        "0  .:-=+*#%@ 0.406\n");
}

/* Head 1 of sequence 1 of a 4-D array looks like a file of that slice alone; float64 like float32. */
static void heads_and_sequences(void **state) {
    enum { B = 2, H = 3, Q = 2, K = 4, SLICE = Q * K };
    float weights[B * H * SLICE];
    double wide[B * H * SLICE];
    (void)state;
    for (int i = 0; i < B * H * SLICE; i++) wide[i] = weights[i] = (float)(i * 37 % 101) / 128;
    for (int i = 0; i < H; i++) weights[(H + i) * SLICE] = 0.875f; /* one scale, whatever is shown */
    for (int i = 0; i < B * H * SLICE; i++) wide[i] = weights[i];
    write_npy("four.npy", NPY_FLOAT32, weights, 4, (const int64_t[]){B, H, Q, K});
    write_npy("three.npy", NPY_FLOAT64, wide + H * SLICE, 3, (const int64_t[]){H, Q, K});
    write_npy("two.npy", NPY_FLOAT32, weights + (H + 1) * SLICE, 2, (const int64_t[]){Q, K});
#define TITLE " --title t"
    expect_success("$rapt heatmap --weights two.npy --title '' | head -n 1 | grep -qx 'Queries down, keys across'");
    struct command_result alone = expect_success("$rapt heatmap --weights two.npy" TITLE);
    assert_string_equal(expect_success("$rapt heatmap --weights four.npy --batch 1 --head 1" TITLE).out, alone.out);
    assert_string_equal(expect_success("$rapt heatmap --weights three.npy --head 1" TITLE).out, alone.out);
    struct command_result all = expect_success("$rapt heatmap --weights four.npy --batch 1 --head all" TITLE);
    assert_string_equal(expect_success("$rapt heatmap --weights three.npy --head all" TITLE).out, all.out);
    assert_string_not_equal(expect_success("$rapt heatmap --weights four.npy --head 1" TITLE).out, alone.out);
    const char *map = strstr(alone.out, "\n\n") + 2, *scale = strstr(map, "\n\n");
    char drawn[512];
    snprintf(drawn, sizeof drawn, "head 1\n%.*s\n\nhead 2\n", (int)(scale - map), map);
    assert_non_null(strstr(all.out, drawn));
}

static void write_words(const char *path, int count) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < count; i++) fprintf(file, "%.*s%d\n", i % 7, "tokens", i);
    fclose(file);
}

static void fits_the_width(void **state) {
    static const int columns[] = {1, 2, 3, 20, 40, 80, 133, 200, 400};
    (void)state;
    write_words("words128.txt", 128);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        struct command_result result = expect_success(
            "COLUMNS=%d $rapt heatmap --weights w128.npy --tokens words128.txt --title t | cut -d: -f1", columns[i]);
        int lines = 0, least = columns[i] < 3 ? 3 : columns[i];
        char *at = strstr(result.out, "\n\n") + 2;
        for (char *line = at; *line && *line != '\n'; line += strcspn(line, "\n") + 1, lines++)
            assert_true((int)strcspn(line, "\n") <= least);
        assert_true(lines >= 64);
        assert_int_equal(strstr(at, "\nA line stands for 2 queries") != NULL, columns[i] < 137);
        assert_int_equal(strstr(at, "\nA column stands for ") != NULL, columns[i] < 137);
    }
}

/* A column of many keys shows the largest, and whether one is NaN. */
static void pooling_keeps_peaks(void **state) {
    float weights[100] = {0};
    (void)state;
    weights[57] = 1;
    weights[72] = NAN;
    write_npy("peak.npy", NPY_FLOAT32, weights, 2, (const int64_t[]){1, 100});
    struct command_result result = expect_success("COLUMNS=52 $rapt heatmap --weights peak.npy");
    assert_non_null(strstr(result.out, "\n0                             @       ?             \n"));
    assert_non_null(strstr(result.out, "A column stands for 2 keys"));
}

/* Queries are merged like keys: a map of many tokens stays roughly square, whatever the option's name. */
static void many_lines_are_merged(void **state) {
    static float weights[512 * 512], tall[1000][2];
    (void)state;
    weights[300 * 512 + 400] = 1;
    write_npy("w512.npy", NPY_FLOAT32, weights, 2, (const int64_t[]){512, 512});
    struct command_result result = expect_success("$rapt heatmap --attention w512.npy");
    int lines = 0;
    for (const char *c = result.out; *c; c++) lines += *c == '\n';
    assert_in_range(lines, 60, 90);
    assert_non_null(strstr(result.out, "A column stands for 7 keys"));
    assert_non_null(strstr(result.out, "A line stands for 7 queries, the first of which is named, likewise."));
    const char *peak = strchr(strstr(result.out, "\n294 "), '@');
    assert_non_null(peak); /* query 300 of 294 ... 300, key 400 of 399 ... 405 */
    assert_int_equal(peak - strstr(result.out, "\n294 ") - 5, 57);
    tall[999][1] = 1;
    write_npy("tall.npy", NPY_FLOAT32, tall, 2, (const int64_t[]){1000, 2});
    result = expect_success("$rapt heatmap --attention tall.npy");
    assert_non_null(strstr(result.out, "\n992  0.00 1.00\n"));
    assert_non_null(strstr(result.out, "A line stands for 8 queries, the first of which is named, and shows their "
                                       "largest weight."));
    assert_null(strstr(result.out, "A column stands for"));
}

static void zero_is_marked(void **state) {
    const float scores[4] = {-2, 7, 1, 0};
    (void)state;
    write_npy("signs.npy", NPY_FLOAT32, scores, 2, (const int64_t[]){2, 2});
    assert_non_null(strstr(expect_success("$rapt heatmap --attention signs.npy").out,
                           "\n-2  .:-=+*#%@ 7\n     0\n"));
    assert_null(strstr(expect_success("$rapt heatmap --attention hello.npy").out, "\n  "" 0\n"));
}

static void colours(void **state) {
    (void)state;
    struct command_result result = expect_success("$rapt heatmap --weights hello.npy --colours 24bit");
    assert_non_null(strstr(result.out, "\x1b[30;48;2;253;231;37m 0.41\x1b[0m"));
    result = expect_success("$rapt heatmap --weights hello.npy --colours 256");
    assert_non_null(strstr(result.out, "\x1b[30;48;5;220m 0.41\x1b[0m"));
    result = expect_success("export COLORTERM=truecolor TERM=xterm-256color; $rapt heatmap --weights hello.npy");
    assert_null(strchr(result.out, '\x1b'));
}

/* A pseudo-terminal, which a bare chroot may lack. */
static int open_terminal(void) {
    const char *ci = getenv("CI");
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0)
        return terminal;
    print_message("# no pseudo-terminals here: /dev/pts is not mounted\n");
    assert_false(ci && strcmp(ci, "true") == 0);
    skip();
    return -1;
}

/* What the command prints to a terminal of `columns` columns. */
static const char *on_terminal(const char *environment, int columns) {
    static char text[8192];
    int terminal = open_terminal();
    struct winsize size = {.ws_row = 25, .ws_col = (unsigned short)columns};
    int line = open(ptsname(terminal), O_RDWR | O_NOCTTY); /* keeps the output until it is read */
    assert_true(line >= 0);
    assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
    expect_success("export %s; $rapt heatmap --weights hello.npy >%s", environment, ptsname(terminal));
    fcntl(terminal, F_SETFL, O_NONBLOCK);
    size_t length = 0;
    for (ssize_t more; (more = read(terminal, text + length, sizeof text - 1 - length)) > 0;) length += (size_t)more;
    text[length] = '\0';
    close(line);
    close(terminal);
    return text;
}

static void terminals(void **state) {
    (void)state;
    assert_non_null(strstr(on_terminal("TERM=xterm COLORTERM=truecolor", 80), "\x1b[30;48;2;253;231;37m 0.41\x1b"));
    assert_non_null(strstr(on_terminal("COLORTERM= TERM=xterm-256color", 80), "\x1b[30;48;5;220m 0.41\x1b"));
    assert_null(strchr(on_terminal("NO_COLOR=1 COLORTERM=truecolor", 80), '\x1b'));
    assert_null(strchr(on_terminal("COLORTERM= TERM=vt100", 80), '\x1b'));
    assert_non_null(strstr(on_terminal("COLORTERM= TERM=vt100 LC_ALL=C.UTF-8", 6), "\n1 ▅█▇\r\n"));
    assert_non_null(strstr(on_terminal("COLORTERM= TERM=vt100 LC_ALL=C", 6), "\n1 +@%\r\n"));
}

static void not_numbers_are_said(void **state) {
    const float scores[2][3] = {{-2.5f, NAN, 7}, {-INFINITY, 0, INFINITY}}, grey[2][2] = {{NAN, NAN}, {NAN, NAN}};
    (void)state;
    write_npy("scores.npy", NPY_FLOAT32, scores, 2, (const int64_t[]){2, 3});
    write_npy("grey.npy", NPY_FLOAT32, grey, 2, (const int64_t[]){2, 2});
    struct command_result result = expect_success("$rapt heatmap --weights scores.npy");
    assert_non_null(strstr(result.out, "Attention scores: "));
    assert_non_null(strstr(result.out, "\n0  -2.50   NaN  7.00\n1   -inf  0.00   inf\n\n-2.5 "));
    assert_non_null(strstr(result.out, "@ 7\n       0\n1 NaN and 2 infinite weights are written out.\n"));
    result = expect_success("COLUMNS=8 $rapt heatmap --weights scores.npy");
    assert_non_null(strstr(result.out, "\n0   ?""?@@\n1 ?""?::?""?\n\n-2.5 "));
    assert_non_null(strstr(result.out, "are question marks."));
    assert_non_null(strstr(expect_success("$rapt heatmap --weights grey.npy").out, "\n1   NaN  NaN\n\n0 "));
}

/* Numbers have as many decimals as fit the largest; NaN and infinities fit, too. */
static void numbers_have_room(void **state) {
    const float small[2][3] = {{0.09f, 0.0412f, 0.00123f}, {0, 0.05f, 0.0004f}};
    const float tiny[2] = {0.00012f, 0.00000047f}, large[2] = {-1234567, 8};
    const float masked[2][2] = {{100, -INFINITY}, {NAN, 300}};
    (void)state;
    write_npy("small.npy", NPY_FLOAT32, small, 2, (const int64_t[]){2, 3});
    write_npy("tiny.npy", NPY_FLOAT32, tiny, 2, (const int64_t[]){1, 2});
    write_npy("large.npy", NPY_FLOAT32, large, 2, (const int64_t[]){1, 2});
    write_npy("masked.npy", NPY_FLOAT32, masked, 2, (const int64_t[]){2, 2});
    assert_non_null(strstr(expect_success("$rapt heatmap --weights small.npy").out,
                           "\n0  0.090 0.041 0.001\n1  0.000 0.050 0.000\n"));
    assert_non_null(strstr(expect_success("$rapt heatmap --weights tiny.npy").out, "\n0  1.2e-04 4.7e-07\n"));
    assert_non_null(strstr(expect_success("$rapt heatmap --weights large.npy").out, "\n0  -1.2e+06  8.0e+00\n"));
    assert_non_null(strstr(expect_success("$rapt heatmap --weights masked.npy").out,
                           "\n0   100 -inf\n1   NaN  300\n"));
}

static void hostile_tokens(void **state) {
    static const char tokens[] = "\x1b[2J\x07\n\xff\xc3\xa9\n\xe2\x80\xae\tx\n";
    (void)state;
    write_bytes("hostile.txt", tokens, sizeof tokens - 1);
    const char *out = expect_success("LC_ALL=C.UTF-8 $rapt heatmap --weights hello.npy --tokens hostile.txt").out;
    assert_non_null(strstr(out, "\n       ?[2J?    ?é   ??x\n?[2J?   0.30 "));
}

/* Lines may end in \r\n; a \r within a token is part of it. */
static void lines_end_in_two_ways(void **state) {
    (void)state;
    write_bytes("ends.txt", "a\r\nb\rc\n\rd", 9);
    const char *out = expect_success("$rapt heatmap --weights hello.npy --tokens ends.txt").out;
    assert_non_null(strstr(out, "\n        a  b?c   ?d\n"));
}

/* Read once, though it names queries and keys. */
static void tokens_from_a_pipe(void **state) {
    (void)state;
    const char *file = strdup(expect_success("$rapt heatmap --weights hello.npy --tokens hello.txt").out);
    assert_string_equal(expect_success("cat hello.txt | $rapt heatmap --weights hello.npy --tokens /dev/stdin").out,
                        file);
    free((void *)(uintptr_t)file);
}

/* Without a locale, tokens are UTF-8. */
static void no_locale(void **state) {
    (void)state;
    write_bytes("accents.txt", "\xc3\xa9t\xc3\xa9\na\nb\n", 10);
    const char *out = expect_success("unset LC_ALL LC_CTYPE LANG; $rapt heatmap --weights hello.npy --tokens "
                                     "accents.txt").out;
    assert_non_null(strstr(out, "\nété  0.30"));
    out = expect_success("LC_ALL=C $rapt heatmap --weights hello.npy --tokens accents.txt").out;
    assert_non_null(strstr(out, "\n??t?? "));
}

static void refusals(void **state) {
    (void)state;
    write_words("two.txt", 2);
    write_words("five.txt", 5);
    write_random("one.npy", 2, 1, 1, 1, 3);
    write_random("none.npy", 3, 1, 2, 0, 3);
    write_random("wide.npy", 4, 2, 2, 2, 5);
    write_dict("line.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 12);
    write_dict("five.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 2, 3), }", 24);
    write_dict("ints.npy", "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 3), }", 36);
#define HELLO "$rapt heatmap --weights hello.npy "
#define WIDE "$rapt heatmap --weights wide.npy "
    expect_error("heatmap: --attention FILE is required", "$rapt heatmap --tokens hello.txt");
    expect_error("gone.npy: No such file", "$rapt heatmap --weights gone.npy");
    expect_error("gone.txt: No such file", HELLO "--tokens gone.txt");
    expect_error(".: Is a directory", HELLO "--tokens .");
    expect_error("/dev/zero: a line has more than 1048576 bytes", HELLO "--tokens /dev/zero");
    expect_error("/dev/stdin: more than 1048579 lines", "yes | " HELLO "--tokens /dev/stdin");
    expect_error("line.npy [3]: expected 2, 3 or 4 dimensions", "$rapt heatmap --weights line.npy");
    expect_error("five.npy [1, 1, 1, 2, 3]: expected 2, 3 or 4 dimensions", "$rapt heatmap --weights five.npy");
    expect_error("ints.npy: holds int32, expected float32 or float64", "$rapt heatmap --weights ints.npy");
    expect_error("none.npy [2, 0, 3]: there is nothing to draw", "$rapt heatmap --weights none.npy");
    expect_error("two.txt: 2 lines for the 3 queries of hello.npy [3, 3]", HELLO "--tokens two.txt");
    expect_error("five.txt: 5 lines for the 3 queries of hello.npy [3, 3]", HELLO "--tokens five.txt");
    expect_error("two.txt: 2 lines for the 5 keys of wide.npy [2, 2, 2, 5]; --key-tokens FILE names the keys",
                 WIDE "--tokens two.txt");
    expect_error("two.txt: 2 lines for the 5 keys of wide.npy [2, 2, 2, 5]\n",
                 WIDE "--tokens two.txt --key-tokens two.txt");
    expect_error("--head: 1: hello.npy [3, 3] has 1 head, from 0", HELLO "--head 1");
    expect_error("--head: 2: wide.npy [2, 2, 2, 5] has 2 heads, from 0", WIDE "--head 2");
    expect_error("--head: -1: ", WIDE "--head=-1");
    expect_error("--head: 'every' is not an integer", WIDE "--head every");
    expect_error("--batch: 2: wide.npy [2, 2, 2, 5] has 2 sequences, from 0", WIDE "--batch 2");
    expect_error("--out: 'new.jpg' ends neither in .png nor in .svg", HELLO "--out new.jpg");
    expect_error("--out: '.png' ends neither", HELLO "--out .png");
    expect_error("--theme: 'grey' is not one of light dark", HELLO "--out new.png --theme grey");
    expect_error("--theme changes nothing without --out", HELLO "--theme dark");
    expect_error("--zoom changes nothing without --out FILE.png", HELLO "--out new.svg --zoom 2");
    expect_error("--zoom: 5 is outside 1 ... 4", HELLO "--out new.png --zoom 5");
    expect_error("--colours: 'red' is not one of auto 24bit 256 none", HELLO "--colours red");
    expect_error("--colours is for the terminal", HELLO "--out new.png --colours none");
    expect_success(HELLO "--key-tokens hello.txt"); /* queries are numbered */
    expect_error("standard output: No space left", HELLO ">/dev/full");
#ifndef RAPT_HAVE_PICTURES
    expect_error("--out: this rapt was built without pictures: it needs Pango", HELLO "--out new.png");
#endif
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_tokens_have_numbers), cmocka_unit_test(more_tokens_have_marks),
        cmocka_unit_test(heads_and_sequences),     cmocka_unit_test(fits_the_width),
        cmocka_unit_test(pooling_keeps_peaks),     cmocka_unit_test(many_lines_are_merged),
        cmocka_unit_test(zero_is_marked),          cmocka_unit_test(colours),
        cmocka_unit_test(terminals),               cmocka_unit_test(not_numbers_are_said),
        cmocka_unit_test(hostile_tokens),          cmocka_unit_test(tokens_from_a_pipe),
        cmocka_unit_test(no_locale),               cmocka_unit_test(refusals),
        cmocka_unit_test(numbers_have_room),       cmocka_unit_test(lines_end_in_two_ways),
    };
    if (argc < 4) return 2;
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    unsetenv("COLUMNS");
    unsetenv("NO_COLOR");
    write_npy("hello.npy", NPY_FLOAT32, hello, 2, (const int64_t[]){3, 3});
    write_bytes("hello.txt", "Hello\nshiny\nsun!\n", 17);
    write_random("w128.npy", 2, 1, 1, 128, 128);
    int failed = cmocka_run_group_tests_name("heatmap", tests, NULL, NULL);
    command_stop();
    return failed;
}
