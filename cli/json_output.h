/* SPDX-License-Identifier: Apache-2.0 */
/* Documents on standard output, as --json asks for them. */
#pragma once

#include <jansson.h>

/*
 * The document and a line break. To a terminal only ASCII goes, the rest escaped: what a bundle or
 * dump of a stranger says may turn the text around or be a command. Else it is as it is. What
 * cannot be written is told by the stream's error flag.
 */
void cw_print_json(const json_t *doc);
