/* SPDX-License-Identifier: MIT
 * Members of NumPy's .npz archives, which are zip files of .npy files. */
#ifndef RAPT_NPZ_H
#define RAPT_NPZ_H

#include <stdio.h>

/* NULL where path is not FILE.npz:NAME, or is a file of its own. Dies where there is no such member. */
FILE *npz_open(const char *path);

#endif
