/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice for an incident: the steps for its class and detail, the cheapest first, and commands to
 * run with the culprit's host and pid filled in. Users paste commands into shells, so a command
 * contains no text of the document unless that text consists of harmless characters. Pure;
 * documents may be hostile.
 */
#pragma once

#include <jansson.h>

#define ADVICE_MAX 8u

struct advice_step {
	const char *id;    /* static: the row's id */
	const char *text;  /* static: one or two sentences */
	char command[256]; /* "" = none */
};

struct advice {
	struct advice_step steps[ADVICE_MAX];
	unsigned n;
};

void cw_advice(const json_t *incident, struct advice *ret);
