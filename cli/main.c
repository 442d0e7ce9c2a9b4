/* SPDX-License-Identifier: Apache-2.0 */
/* The command: what people use on the nodes of a cluster. */
#include <stdio.h>
#include <string.h>

#include "cli/dispatch.h"
#include "cli/verb.h"
#include "common/environment.h"

const char *argp_program_version = "collwatch " CW_VERSION;

static const struct cw_verb verbs[] = {
	{ "run", cw_verb_run, "run a program with the agent loaded" },
	{ "status", cw_verb_status, "jobs this node's daemon watches, and how they are" },
	{ "report", cw_verb_report, "list incidents, or show one" },
	{ "stacks", cw_verb_stacks, "where a job's ranks are right now" },
	{ "doctor", cw_verb_doctor, "find out why collwatch sees less than it could" },
	{ "mute", cw_verb_mute, "alert nobody about a job, for a while" },
	{ "analyze", cw_verb_analyze, "decide from recordings who hangs a job" },
	{ "record", cw_verb_record, "show what one rank's flight record holds" },
	{ "init-cluster", cw_verb_init_cluster, "make a key and configurations for several nodes" },
#ifdef CW_HAS_LAB
	{ "demo", cw_verb_lab, "watch a hang being diagnosed, on this machine, without a GPU" },
	{ "suite", cw_verb_lab, "run labelled scenarios, say how often the verdict is right" },
#endif
};

/* For the manual page: hidden. */
static void print_environment(void)
{
	for (size_t i = 0; i < cw_environment_count; i++)
		printf("*%s*%s\n\t%s\n\n", cw_environment[i].name, cw_environment[i].value,
		       cw_environment[i].help);
}

int main(int argc, char **argv)
{
	const struct cw_command command = {
		.name = "collwatch",
		.about = "collwatch finds the rank that hangs a distributed GPU job.",
		.version = argp_program_version,
		.verbs = verbs,
		.count = sizeof(verbs) / sizeof(*verbs),
	};

	if (argc == 2 && strcmp(argv[1], "--scdoc-environment") == 0) {
		print_environment();
		return CW_EXIT_OK;
	}
	return cw_dispatch(&command, argc, argv);
}
