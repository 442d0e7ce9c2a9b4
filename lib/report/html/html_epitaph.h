/* SPDX-License-Identifier: Apache-2.0 */
/* What a job died of, on a page: what the text report says (report/text/render_epitaph.h). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * epitaph: collwatch.epitaph/1, and hostile input like all of a bundle. Sections of a page;
 * is_alone: there is no incident above them, and they begin with what else its top says.
 */
void html_put_epitaph(FILE *out, const json_t *epitaph, bool is_alone);
