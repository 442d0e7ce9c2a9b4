/* SPDX-License-Identifier: Apache-2.0 */
/* Renders the control socket's documents as tables for people. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* collwatch.status/1 */
void cw_render_status(FILE *out, const json_t *status, bool color);

/* Renders at most that many lines (0 = all), jobs in trouble first, and counts the rest. */
void cw_render_status_lines(FILE *out, const json_t *status, bool color, unsigned lines,
			    unsigned columns);
/* Renders one line per rank that comes late, from the same document. */
void cw_render_late(FILE *out, const json_t *status);
/* collwatch.incidents/1 */
void cw_render_incidents(FILE *out, const json_t *incidents, bool color);
/* collwatch.mute/1 */
void cw_render_mute(FILE *out, const json_t *mute, bool color);

/*
 * The exit status (enum cw_exit) for these jobs: 2 if one hangs, else 3 if one is not watched, else
 * 0. Jobs that other nodes lead do not count: those nodes know their state.
 */
int cw_render_status_exit(const json_t *status);
