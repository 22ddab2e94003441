/* SPDX-License-Identifier: MIT
 * The kernels of narrow tiles for float8, by lookup: one type here, whose kernels take either table. */
#ifndef RAPT_X86_VBMI_NARROW_H
#define RAPT_X86_VBMI_NARROW_H

#include "x86/vbmi/bytes.h"

#define RAPT_WORD_FORMATS(X, rows) X(f8_e4m3, F8_E4M3, rows)
#define RAPT_STORED_FORMATS(X) X(f8_e4m3, F8_E4M3)

#include "generic/exp2.h"
#include "generic/beside.h"
#include "x86/vbmi/kind.h"

#endif
