/* SPDX-License-Identifier: MIT
 * What each of two shared objects, which both contain the archive of rapt, lets the program do (embed.c). */
#ifndef RAPT_TESTS_EMBED_PART_H
#define RAPT_TESTS_EMBED_PART_H

struct embed_part {
    int (*attend)(float out[2]);                         /* two keys, one query; a rapt_status */
    int (*plan)(void *plan, float out[2]);               /* 4096 bytes */
    int (*run)(const void *plan);
    const void *(*where)(void);                          /* rapt lies in this copy */
};

extern const struct embed_part embed_one, embed_two;

#endif
