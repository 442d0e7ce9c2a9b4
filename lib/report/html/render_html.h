/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle as one page that needs nothing but itself: no network, no script, any browser. */
#pragma once

#include <stdio.h>

#include "report/bundle.h"

/*
 * 0 or -errno (of the stream, -ENOMEM, or -EBADMSG when the incident, or the epitaph where there is
 * no incident, lacks required fields). A snapshot that cannot be read costs the pictures, and the
 * page says so.
 */
int cw_render_html(FILE *out, const struct cw_bundle *bundle);
