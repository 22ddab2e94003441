/* SPDX-License-Identifier: MIT
 * Python's stable ABI from 3.11, the first with the buffer protocol: one build serves all later versions. */
#ifndef RAPT_PYTHON_H
#define RAPT_PYTHON_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#endif
