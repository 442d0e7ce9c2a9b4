/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket's documents as tables for people. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* collwatch.status/1 */
void cw_render_status(FILE *out, const json_t *status, bool color);

/*
 * The same in at most that many lines (0 = all): jobs in trouble first, what does not fit is
 * counted.
 */
void cw_render_status_lines(FILE *out, const json_t *status, bool color, unsigned lines,
			    unsigned columns);
/* Of the same, a line for each rank that comes late. */
void cw_render_late(FILE *out, const json_t *status);
/* collwatch.incidents/1 */
void cw_render_incidents(FILE *out, const json_t *incidents, bool color);
/* collwatch.mute/1 */
void cw_render_mute(FILE *out, const json_t *mute, bool color);

/*
 * The exit status (enum cw_exit) that the jobs come to: 2 where one hangs, else 3 where one is not
 * watched, else 0. What others lead, they know.
 */
int cw_render_status_exit(const json_t *status);
