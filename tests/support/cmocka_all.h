/* SPDX-License-Identifier: MIT
 * cmocka 1.1 requires these headers first. */
#ifndef RAPT_TESTS_CMOCKA_ALL_H
#define RAPT_TESTS_CMOCKA_ALL_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#endif
