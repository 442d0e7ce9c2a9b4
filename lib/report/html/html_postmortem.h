/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The post-mortem of a job on a page, with the contents of the text
 * report (report/text/render_postmortem.h).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * postmortem: collwatch.postmortem/1, hostile input like all of a bundle. Writes sections of a
 * page; is_alone: no incident precedes them, so they begin with the facts that an incident's top
 * would show.
 */
void html_put_postmortem(FILE *out, const json_t *postmortem, bool is_alone);
