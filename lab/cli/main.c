/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The laboratory's command: it demonstrates and measures collwatch without a GPU. It is a package
 * of its own; "collwatch demo" and "collwatch suite" start it (cli/verbs/verb_lab.c).
 */
#include "cli/dispatch.h"
#include "common/commit.h"
#include "lab/cli/verb_lab.h"

const char *argp_program_version = "collwatch-lab " CW_VERSION ", commit " CW_COMMIT;

static const struct cw_verb verbs[] = {
	{ "demo", cw_verb_demo, "diagnose a simulated hang on this machine, without a GPU",
	  &cw_argp_demo, cw_demo_value, NULL },
	{ "suite", cw_verb_suite, "run labelled scenarios, and count the right verdicts",
	  &cw_argp_suite, NULL, NULL },
	{ "proxies", cw_verb_proxies, "draw faults of the network and of GPUs, in a model of NCCL",
	  &cw_argp_proxies, NULL, NULL },
};

int main(int argc, char **argv)
{
	const struct cw_command command = {
		.name = "collwatch-lab",
		.about =
			"collwatch-lab shows collwatch at work on a simulated device, and measures "
			"how often it is right.",
		.version = argp_program_version,
		.verbs = verbs,
		.count = sizeof(verbs) / sizeof(*verbs),
	};

	return cw_dispatch(&command, argc, argv);
}
