/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle as one self-contained page: no network, no script, any browser. */
#pragma once

#include <stdio.h>

#include "report/bundle.h"

/*
 * 0 or -errno (of the stream, -ENOMEM, or -EBADMSG if the incident, or the post-mortem of a bundle
 * without incident, lacks required fields). With an unreadable snapshot the page has no pictures
 * and says so.
 */
int cw_render_html(FILE *out, const struct cw_bundle *bundle);
