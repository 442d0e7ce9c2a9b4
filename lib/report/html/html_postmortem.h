/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the post-mortem of a job into a page. The contents equal those of the text report
 * (report/text/render_postmortem.h).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Writes the sections of postmortem, a collwatch.postmortem/1, which is untrusted. is_alone: the
 * page shows no incident. The sections then begin with the facts that an incident has at its top.
 */
void html_put_postmortem(FILE *out, const json_t *postmortem, bool is_alone);
