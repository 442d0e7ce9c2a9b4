/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to do next about an incident: for its class and detail, cheapest step first; commands to run
 * with the culprit's host and pid filled in. People paste commands into shells, so nothing of the
 * document gets into one unless it is made of harmless characters. Pure; documents may be hostile.
 */
#pragma once

#include <jansson.h>

#define ADVICE_MAX 8u

struct advice_step {
	const char *id;    /* static: of its row */
	const char *text;  /* static: one or two sentences */
	char command[256]; /* "" = none */
};

struct advice {
	struct advice_step steps[ADVICE_MAX];
	unsigned n;
};

void cw_advice(const json_t *incident, struct advice *ret);
