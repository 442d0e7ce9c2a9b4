/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle as text for a terminal. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "report/bundle.h"

struct cw_render_opts {
	bool color;
	bool all_frames; /* do not fold interpreter and libc frames */
	int width;       /* columns; 0 = the default of 100 */
};

/*
 * Prints the report. Returns 0 or -errno: the error of the stream, -ENOMEM, or -EBADMSG if the
 * incident lacks required fields. After an error the output is incomplete.
 */
int cw_render_text(FILE *out, const struct cw_bundle *bundle, const struct cw_render_opts *opts);
