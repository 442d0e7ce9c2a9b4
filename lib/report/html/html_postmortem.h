/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The post-mortem of a job as part of a page. It has the contents of the text
 * report (report/text/render_postmortem.h).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Writes the sections of postmortem, a collwatch.postmortem/1, which is as hostile as the rest of a
 * bundle. is_alone: no incident precedes them, so they begin with the facts that an incident would
 * show at the top.
 */
void html_put_postmortem(FILE *out, const json_t *postmortem, bool is_alone);
