/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dispatch.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/completion.h"
#include "cli/nearest.h"
#include "cli/terminal/pager.h"
#include "cli/verb.h"

static void print_usage(const struct cw_command *command, FILE *out)
{
	fprintf(out, "Usage: %s VERB [OPTION…]\n\n%s\n\n", command->name, command->about);
	for (size_t i = 0; i < command->count; i++)
		fprintf(out, "  %-13s %s\n", command->verbs[i].name, command->verbs[i].summary);
	fprintf(out, "  %-13s %s\n", "completion", "make bash, zsh or fish complete what is typed");
	fprintf(out,
		"\n`%s VERB --help` tells more.\n"
		"Exit status: 0 healthy or done, 1 usage or I/O error, 2 a hang was found, 3 not "
		"enough data.\n",
		command->name);
}

/* Results are of no use to anybody when they could not be written. */
static int finish(const struct cw_command *command, int status)
{
	int r = cw_pager_close();

	if (r == 0 && fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "%s: cannot write to standard output: %s\n", command->name,
		strerror(r < 0 ? -r : errno));
	return CW_EXIT_ERROR;
}

const struct cw_verb *cw_dispatch_find(const struct cw_command *command, const char *name)
{
	for (size_t i = 0; i < command->count; i++)
		if (strcmp(name, command->verbs[i].name) == 0)
			return &command->verbs[i];
	return NULL;
}

/* Who only mistyped it needs no list. */
static int complain(const struct cw_command *command, const char *typed)
{
	struct cw_nearest nearest = { .typed = typed };

	for (size_t i = 0; i < command->count; i++)
		cw_nearest_offer(&nearest, command->verbs[i].name);
	cw_nearest_offer(&nearest, "completion");
	fprintf(stderr, "%s: there is no verb \"%s\"", command->name, typed);
	if (nearest.word) {
		fprintf(stderr, "; did you mean \"%s\"?\n", nearest.word);
	} else {
		fputs("\n\n", stderr);
		print_usage(command, stderr);
	}
	return CW_EXIT_ERROR;
}

int cw_dispatch(const struct cw_command *command, int argc, char **argv)
{
	const struct cw_verb *verb;
	char name[64];

	argp_err_exit_status = CW_EXIT_ERROR;
	if (argc < 2) {
		print_usage(command, stderr);
		return CW_EXIT_ERROR;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		print_usage(command, stdout);
		return finish(command, CW_EXIT_OK);
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		puts(command->version);
		return finish(command, CW_EXIT_OK);
	}
	if (strcmp(argv[1], "--complete") == 0)
		return finish(command, cw_completion_words(command, argc - 2, argv + 2));
	verb = cw_dispatch_find(command, argv[1]);
	if (!verb && strcmp(argv[1], "completion") != 0)
		return complain(command, argv[1]);
	(void)snprintf(name, sizeof(name), "%s %s", command->name, argv[1]);
	argv[1] = name;
	if (!verb)
		return finish(command, cw_completion_script(command, argc - 1, argv + 1));
	return finish(command, verb->run(argc - 1, argv + 1));
}
