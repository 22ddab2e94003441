/* SPDX-License-Identifier: MIT
 * Members of NumPy's .npz archives, which are zip files of .npy files. */
#ifndef RAPT_NPZ_H
#define RAPT_NPZ_H

#include <stdbool.h>
#include <stdio.h>

/* NULL if path is not FILE.npz:NAME, or is an existing file. Dies if there is no such member. */
FILE *npz_open(const char *path);

/* Whether the archive of FILE.npz:NAME has that member. Dies if there is no such archive. */
bool npz_has(const char *path);

/* If path is an archive and no .npy file: dies with a hint on naming one of its arrays. */
void npz_refuse_archive(const char *path);

#endif
