/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a bundle as one self-contained page: no network, no script, any browser. */
#pragma once

#include <stdio.h>

#include "report/bundle.h"

/*
 * Returns 0 or -errno: the error of the stream, -ENOMEM, or -EBADMSG if required fields are
 * missing. The incident has required fields; in a bundle without an incident, the post-mortem has
 * them. If the snapshot is unreadable, the page has no pictures and says so.
 */
int cw_render_html(FILE *out, const struct cw_bundle *bundle);
