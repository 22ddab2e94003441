/* SPDX-License-Identifier: MIT
 * Is the ggml that loads this backend the one whose headers it was compiled with? */
#ifndef RAPT_GGML_RELEASE_H
#define RAPT_GGML_RELEASE_H

#include <stdbool.h>

#include "ggml-backend.h"

/* False, with a message, if names, numbers, sizes or field offsets differ. ggml changes these between releases without
 * a sign in the library. */
bool rapt_ggml_knows_release(void);

/* The same for structs of devices and backends, as far as another device of the same ggml reveals them. */
bool rapt_ggml_knows_device(ggml_backend_dev_t device);

#endif
