/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/demo_scenario.h"

#include <string.h>

#include "report/json_util.h"

static const struct demo_scenario scenarios[] = {
	{ "never-entered",
	  "a rank blocks in its data loader, the others wait in the next collective",
	  "block-in-data-loader", "blocks in its data loader", "never_entered", true },
	{ "wrong-count", "a rank calls a collective with another count than the others",
	  "wrong-count", "calls a collective with a wrong count", "mismatch", false },
	{ "killed-rank", "a rank is killed (SIGKILL), the others wait for it", "kill-self",
	  "is killed by SIGKILL", "process_dead", false },
	{ "healthy", "nothing goes wrong; nothing must be reported", NULL, NULL, NULL, true },
};

#define N_SCENARIOS (sizeof(scenarios) / sizeof(*scenarios))

const struct demo_scenario *demo_scenario_find(const char *name)
{
	for (size_t i = 0; i < N_SCENARIOS; i++)
		if (strcmp(scenarios[i].name, name) == 0)
			return &scenarios[i];
	return NULL;
}

const struct demo_scenario *demo_scenario_default(void)
{
	return &scenarios[0];
}

void demo_scenario_list(FILE *out)
{
	for (size_t i = 0; i < N_SCENARIOS; i++)
		fprintf(out, "%-14s %s\n", scenarios[i].name, scenarios[i].summary);
}

bool demo_scenario_is_right(const struct demo_scenario *s, const json_t *doc, int culprit)
{
	const json_t *culprits = json_object_get(doc, "culprits");

	if (!s->expected_class)
		return strcmp(cw_json_str(doc, "schema", ""), "collwatch.healthy/1") == 0;
	return strcmp(cw_json_str(doc, "class", ""), s->expected_class) == 0 &&
	       json_array_size(culprits) == 1 &&
	       cw_json_int(json_array_get(culprits, 0), "rank", -1) == culprit;
}
