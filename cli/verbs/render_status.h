/* SPDX-License-Identifier: Apache-2.0 */
/* Renders the control socket's documents as tables for people. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Renders collwatch.status/1. */
void cw_render_status(FILE *out, const json_t *status, bool color);

/*
 * Renders collwatch.status/1 in at most `lines` lines (0 = no limit). Jobs in trouble come first. A
 * last line has the number of jobs that do not fit.
 */
void cw_render_status_lines(FILE *out, const json_t *status, bool color, unsigned lines,
			    unsigned columns);
/* Renders one line per rank that comes late, from collwatch.status/1. */
void cw_render_late(FILE *out, const json_t *status);
/* Renders collwatch.incidents/1. */
void cw_render_incidents(FILE *out, const json_t *incidents, bool color);
/* Renders collwatch.mute/1. */
void cw_render_mute(FILE *out, const json_t *mute, bool color);

/*
 * Returns the exit status (enum cw_exit) for the jobs of this status. 2: a job hangs. 3: no job
 * hangs, but a job is not watched. 0: neither. Jobs that other nodes lead do not count, because
 * only those nodes know their state.
 */
int cw_render_status_exit(const json_t *status);
