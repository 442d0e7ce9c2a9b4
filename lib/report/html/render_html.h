/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a bundle as one self-contained page: no network, no script, any browser. */
#pragma once

#include <stdio.h>

#include "report/bundle.h"

/*
 * Returns 0 or -errno: that of the stream, -ENOMEM, or -EBADMSG if required fields are missing.
 * Required are fields of the incident or, in a bundle without one, of the post-mortem. If the
 * snapshot is unreadable, the page has no pictures and says so.
 */
int cw_render_html(FILE *out, const struct cw_bundle *bundle);
