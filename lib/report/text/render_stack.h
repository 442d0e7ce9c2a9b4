/* SPDX-License-Identifier: Apache-2.0 */
/* One collwatch.evidence/1 as text: what a process was doing when it was looked at. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "report/text.h"

/* Everything: Python frames, then native ones, each line indented. Hostile documents are fine. */
void cw_render_evidence(const struct cw_text *t, const json_t *evidence, bool all_frames);
