/* SPDX-License-Identifier: Apache-2.0 */
/* The post-mortem of a job, for a terminal. Pure; the document is untrusted. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct cw_text;

/* Prints postmortem, a collwatch.postmortem/1. is_alone: the report shows no incident before it. */
void cw_render_postmortem(const struct cw_text *t, const json_t *postmortem, bool is_alone);
