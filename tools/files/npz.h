/* SPDX-License-Identifier: MIT
 * Members of NumPy's .npz archives, which are zip files of .npy files. */
#ifndef RAPT_NPZ_H
#define RAPT_NPZ_H

#include <stdbool.h>
#include <stdio.h>

/* NULL where path is not FILE.npz:NAME, or is a file of its own. Dies where there is no such member. */
FILE *npz_open(const char *path);

/* Whether the archive of FILE.npz:NAME has that member. Dies where there is no such archive. */
bool npz_has(const char *path);

/* Where path, which is no .npy file, is an archive: dies and tells how to name one of its arrays. */
void npz_refuse_archive(const char *path);

#endif
