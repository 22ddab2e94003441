/* SPDX-License-Identifier: MIT
 * The projections of the layers. */
#ifndef RAPT_LAYERS_PROJECT_H
#define RAPT_LAYERS_PROJECT_H

#include "rapt/matmul.h"

/* out = x * weight + bias, as rapt_matmul has it: by the BLAS that the library
 * was built with (Meson option `blas`), otherwise, and where the strides are
 * none that a BLAS takes, by rapt_matmul. A BLAS has its own idea of threads and
 * does not stop. With a BLAS the bits are those of the BLAS.
 * ASSUME desc is one that rapt_matmul accepts: a BLAS does not look. */
rapt_status rapt_project(const rapt_matmul_desc *desc, const rapt_run_options *options, rapt_message *message);

#endif
