/* SPDX-License-Identifier: Apache-2.0 */
/* What can be shown: one row per scenario, and the verdict that is right for it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct demo_scenario {
	const char *name;
	const char *summary;        /* for --list */
	const char *fault;          /* --fault of the training program; NULL = none */
	const char *happens;        /* "rank 3 …" */
	const char *expected_class; /* of the incident; NULL = no incident */
	bool python;                /* the Python program shows more */
};

/* NULL = there is none of that name. */
const struct demo_scenario *demo_scenario_find(const char *name);
const struct demo_scenario *demo_scenario_default(void);
void demo_scenario_list(FILE *out);

/* Whether doc (an incident or healthy document) is the right verdict, with that one culprit. */
bool demo_scenario_is_right(const struct demo_scenario *s, const json_t *doc, int culprit);
