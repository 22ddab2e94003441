/* SPDX-License-Identifier: MIT
 * Is the ggml that loads this backend the one whose headers it was compiled with? */
#ifndef RAPT_GGML_RELEASE_H
#define RAPT_GGML_RELEASE_H

#include <stdbool.h>

#include "ggml-backend.h"

/* False, with a message, where names, numbers, sizes or the places of fields differ. ggml changes these between
 * releases without a sign in the library. */
bool rapt_ggml_knows_release(void);

/* The same for the structs of devices and backends, as far as another device of the same ggml shows them. */
bool rapt_ggml_knows_device(ggml_backend_dev_t device);

#endif
