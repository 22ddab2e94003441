/* SPDX-License-Identifier: MIT
 * Refusals of the matrix product. */
#ifndef RAPT_VALIDATE_MATMUL_H
#define RAPT_VALIDATE_MATMUL_H

#include "rapt/matmul.h"

/* Every refusal of a product. ASSERT with RAPT_OK its sizes and strides are safe to compute with. message may be
 * NULL. */
__attribute__((noinline)) rapt_status rapt_validate_matmul(const rapt_matmul_desc *desc, rapt_message *message);

#endif
