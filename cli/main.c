/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verb.h"
#include "common/environment.h"

const char *argp_program_version = "collwatch " CW_VERSION;

struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
};

static const struct verb verbs[] = {
	{ "run", cw_verb_run, "run a program with the agent loaded" },
	{ "status", cw_verb_status, "jobs this node's daemon watches, and how they are" },
	{ "report", cw_verb_report, "list incidents, or show one" },
	{ "stacks", cw_verb_stacks, "where a job's ranks are right now" },
	{ "doctor", cw_verb_doctor, "find out why collwatch sees less than it could" },
	{ "mute", cw_verb_mute, "alert nobody about a job, for a while" },
	{ "analyze", cw_verb_analyze, "decide from recordings who hangs a job" },
	{ "record", cw_verb_record, "show what one rank's flight record holds" },
	{ "init-cluster", cw_verb_init_cluster, "make a key and configurations for several nodes" },
	{ "demo", cw_verb_demo, "watch a hang being diagnosed, on this machine, without a GPU" },
	{ "suite", cw_verb_suite, "run labelled scenarios, say how often the verdict is right" },
};

static void print_usage(FILE *out)
{
	fputs("Usage: collwatch VERB [OPTION…]\n\n"
	      "collwatch finds the rank that hangs a distributed GPU job.\n\n",
	      out);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		fprintf(out, "  %-13s %s\n", verbs[i].name, verbs[i].summary);
	fputs("\n`collwatch VERB --help` tells more.\n"
	      "Exit status: 0 healthy or done, 1 usage or I/O error, 2 a hang was found, 3 not "
	      "enough "
	      "data.\n",
	      out);
}

/* For the manual page: hidden. */
static void print_environment(void)
{
	for (size_t i = 0; i < cw_environment_count; i++)
		printf("*%s*%s\n\t%s\n\n", cw_environment[i].name, cw_environment[i].value,
		       cw_environment[i].help);
}

/* Results are of no use to anybody when they could not be written. */
static int finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "collwatch: cannot write to standard output: %s\n", strerror(errno));
	return CW_EXIT_ERROR;
}

int main(int argc, char **argv)
{
	argp_err_exit_status = CW_EXIT_ERROR;
	if (argc < 2) {
		print_usage(stderr);
		return CW_EXIT_ERROR;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		print_usage(stdout);
		return finish(CW_EXIT_OK);
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		puts(argp_program_version);
		return finish(CW_EXIT_OK);
	}
	if (strcmp(argv[1], "--scdoc-environment") == 0) {
		print_environment();
		return finish(CW_EXIT_OK);
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		char name[64];

		if (strcmp(argv[1], verbs[i].name) != 0)
			continue;
		snprintf(name, sizeof(name), "collwatch %s", verbs[i].name);
		argv[1] = name;
		return finish(verbs[i].run(argc - 1, argv + 1));
	}
	fprintf(stderr, "collwatch: there is no verb \"%s\"\n\n", argv[1]);
	print_usage(stderr);
	return CW_EXIT_ERROR;
}
