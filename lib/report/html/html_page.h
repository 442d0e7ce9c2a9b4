/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning and end of all pages. The beginning has the style sheet and the policy that forbids
 * the browser to run or fetch anything. The caller writes the title, as text, between begin and
 * body.
 */
#pragma once

#include <stdio.h>

void html_page_begin(FILE *out);
void html_page_body(FILE *out);
/* Returns 0, or -EIO if a part of the page could not be written. */
int html_page_end(FILE *out);
