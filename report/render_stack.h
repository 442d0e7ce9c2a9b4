/* SPDX-License-Identifier: Apache-2.0 */
/* One collwatch.evidence/1 as text: what a process was doing when it was looked at. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "report/text.h"

/* Everything: Python frames, then native ones, each line indented. Hostile documents are fine. */
void cw_render_evidence(const struct cw_text *t, const json_t *evidence, bool all_frames);

/*
 * The one line that says most, "read_sample (train_loop.py:88)": the innermost Python frame that is
 * not of the standard library, else the innermost named native one. "" when there is neither.
 * Returns buf.
 */
char *cw_render_where(const json_t *evidence, char *buf, size_t len);
