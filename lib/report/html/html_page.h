/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all pages begin and end with: the policy that forbids the browser to run or fetch anything,
 * and the style sheet. Between begin and body stands the title, as text.
 */
#pragma once

#include <stdio.h>

void html_page_begin(FILE *out);
void html_page_body(FILE *out);
/* 0 or -EIO: something of it could not be written. */
int html_page_end(FILE *out);
