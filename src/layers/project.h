/* SPDX-License-Identifier: MIT
 * The projections of the layers. */
#ifndef RAPT_LAYERS_PROJECT_H
#define RAPT_LAYERS_PROJECT_H

#include "rapt/matmul.h"

/* out = x * weight + bias, like rapt_matmul: by the BLAS that the library was
 * built with (Meson option `blas`); by rapt_matmul without one, or if a BLAS
 * does not take the strides or sizes. A BLAS has its own idea of threads, does
 * not stop, and gives its own bits.
 * ASSUME rapt_matmul accepts desc: a BLAS does not check it. */
rapt_status rapt_project(const rapt_matmul_desc *desc, const rapt_run_options *options, rapt_message *message);

#endif
