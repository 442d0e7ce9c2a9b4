/* SPDX-License-Identifier: Apache-2.0 */
/* One collwatch.evidence/1 as text: the activity of a process at the moment of inspection. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "report/text.h"

/*
 * Prints the Python frames, then the native ones, each line indented. The document may be hostile.
 */
void cw_render_evidence(const struct cw_text *t, const json_t *evidence, bool all_frames);
