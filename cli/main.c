/* SPDX-License-Identifier: Apache-2.0 */
/* The command that users run on the nodes of a cluster. */
#include <stdio.h>
#include <string.h>

#include "cli/dispatch.h"
#include "cli/verb.h"
#include "common/commit.h"
#include "common/environment.h"

const char *argp_program_version = "collwatch " CW_VERSION ", commit " CW_COMMIT;

static const struct cw_verb verbs[] = {
	{ "run", cw_verb_run, "run a program with the agent loaded", &cw_argp_run, NULL, NULL },
	{ "status", cw_verb_status,
	  "show the jobs that this node's daemon watches, and their state", &cw_argp_status, NULL,
	  NULL },
	{ "top", cw_verb_top, "show the current calls of this node's ranks, and late ranks",
	  &cw_argp_top, NULL, NULL },
	{ "report", cw_verb_report, "list incidents, or show one", &cw_argp_report, cw_report_value,
	  NULL },
	{ "stacks", cw_verb_stacks, "show where a job's ranks are now", &cw_argp_stacks, NULL,
	  NULL },
	{ "doctor", cw_verb_doctor, "find out why collwatch sees less than it could",
	  &cw_argp_doctor, NULL, NULL },
	{ "mute", cw_verb_mute, "send no alerts about a job, for a while", &cw_argp_mute, NULL,
	  NULL },
	{ "analyze", cw_verb_analyze, "find the rank that hangs a job from recordings",
	  &cw_argp_analyze, NULL, NULL },
	{ "numerics", cw_verb_numerics, "find NaN, overflow and divergence in tensor summaries",
	  &cw_argp_numerics, NULL, NULL },
	{ "baseline", cw_verb_baseline, "record a run's tensors, and compare another run with them",
	  &cw_argp_baseline, NULL, NULL },
	{ "record", cw_verb_record, "show the contents of a rank's flight record", &cw_argp_record,
	  NULL, NULL },
	{ "init-cluster", cw_verb_init_cluster, "create a key and configurations for several nodes",
	  &cw_argp_init_cluster, NULL, NULL },
#ifdef CW_HAS_LAB
	{ "demo", cw_verb_lab, "diagnose a simulated hang on this machine, without a GPU", NULL,
	  NULL, cw_verb_lab_complete },
	{ "suite", cw_verb_lab, "run labelled scenarios, and count the right verdicts", NULL, NULL,
	  cw_verb_lab_complete },
#endif
};

/*
 * README.md and collwatch(1) have the same rows, and tests/e2e/test_manual.py compares them. The
 * rows follow from agent/base/nccl_functions.h, agent/base/cuda_abi.h, agent/python/,
 * agent/check-abi.sh and daemon/kernel/.
 */
static const struct cw_supported supported[] = {
	{ "NCCL", "2.14 to 2.32; AMD's RCCL is not supported" },
	{ "CUDA", "11.7 and newer" },
	{ "Python", "CPython 3.11 to 3.14; older versions without the lines of earlier calls" },
	{ "glibc", "2.28 and newer; musl is not supported" },
	{ "kernel", "Linux 5.3 and newer; the causes of deaths need 5.8 with BTF" },
};

/* Prints the environment variables for the manual page. The option for it is hidden. */
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
		.supported = supported,
		.n_supported = sizeof(supported) / sizeof(*supported),
	};

	if (argc == 2 && strcmp(argv[1], "--scdoc-environment") == 0) {
		print_environment();
		return CW_EXIT_OK;
	}
	if (argc == 2 && strcmp(argv[1], "--scdoc-exits") == 0) {
		cw_exit_print_scdoc(stdout);
		return CW_EXIT_OK;
	}
	return cw_dispatch(&command, argc, argv);
}
