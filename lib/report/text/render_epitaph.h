/* SPDX-License-Identifier: Apache-2.0 */
/* What a job died of, for a terminal. Pure; the document may be anybody's. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct cw_text;

/* epitaph: collwatch.epitaph/1. is_alone: there is no incident above it. */
void cw_render_epitaph(const struct cw_text *t, const json_t *epitaph, bool is_alone);
