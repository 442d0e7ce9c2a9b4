/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice for an incident: the steps for its class and detail, cheapest step first, with commands
 * that name the culprit's host and pid. Users paste commands into shells. So we insert text of the
 * document into a command only if the text consists of harmless characters. Pure; documents may be
 * hostile.
 */
#pragma once

#include "model/incident_list.h"

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

void cw_advice(const struct cw_incident_facts *incident, struct advice *ret);
