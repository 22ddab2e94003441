/* SPDX-License-Identifier: MIT
 * The interface of two shared objects that both contain rapt's archive (embed.c). */
#ifndef RAPT_TESTS_EMBED_PART_H
#define RAPT_TESTS_EMBED_PART_H

struct embed_part {
    int (*attend)(float out[2]);                         /* two keys, one query; a rapt_status */
    int (*plan)(void *plan, float out[2]);               /* 4096 bytes */
    int (*run)(const void *plan);
    const void *(*where)(void);                          /* an address in this copy */
};

extern const struct embed_part embed_one, embed_two;

#endif
