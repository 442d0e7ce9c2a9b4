/* SPDX-License-Identifier: Apache-2.0 */
/* Renders collwatch.ops/1 as tables for people, one per job. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

void cw_render_ops(FILE *out, const json_t *ops, bool color);
