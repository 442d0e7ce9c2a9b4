/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects the judge of tensor values to the daemon (digest/extension.h). Its findings are those of
 * numerics/node/tensor_stats.h, its pages are the documents of numerics/doc/tensor_samples_doc.h.
 */
#pragma once

#include "digest/extension.h"

/* The kinds of findings, as indices of cw_numerics_extension.kinds. */
enum {
	CW_NUMERICS_NONFINITE = 0,
	CW_NUMERICS_HEADROOM = 1,
};

extern const struct cw_extension cw_numerics_extension;
