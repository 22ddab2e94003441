/* SPDX-License-Identifier: MIT
 * The matrix product: validate_matmul.c -> matmul.c. */
#ifndef RAPT_MATMUL_INTERNAL_H
#define RAPT_MATMUL_INTERNAL_H

#include "internal.h"
#include "rapt/matmul.h"

/* Every refusal of a product. ASSERT its sizes and strides are safe to
 * compute with when it returns RAPT_OK. message may be NULL. */
__attribute__((noinline)) rapt_status rapt_validate_matmul(const rapt_matmul_desc *desc, rapt_message *message);

#endif
