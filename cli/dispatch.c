/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dispatch.h"

#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/completion.h"
#include "cli/nearest.h"
#include "cli/terminal/pager.h"
#include "cli/verb.h"

/* The verbs that every command has. */
enum own_verb { OWN_COMPLETION, OWN_HELP, OWN_VERSION, OWN__NONE };
static const struct {
	const char *name, *summary;
} own_verbs[] = {
	[OWN_COMPLETION] = { "completion", "print a completion script for bash, zsh or fish" },
	[OWN_HELP] = { "help", "show this help, or the options of a verb" },
	[OWN_VERSION] = { "version", "show the version" },
};
#define N_OWN_VERBS (sizeof(own_verbs) / sizeof(own_verbs[0]))

static enum own_verb own_verb_of(const char *word)
{
	static const struct {
		const char *option;
		enum own_verb verb;
	} options[] = {
		{ "--help", OWN_HELP },       { "-h", OWN_HELP },    { "-?", OWN_HELP },
		{ "--version", OWN_VERSION }, { "-V", OWN_VERSION },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (strcmp(word, options[i].option) == 0)
			return options[i].verb;
	for (unsigned i = 0; i < N_OWN_VERBS; i++)
		if (strcmp(word, own_verbs[i].name) == 0)
			return i;
	return OWN__NONE;
}

const char *cw_dispatch_own_verb(unsigned i, const char **ret_summary)
{
	if (i >= N_OWN_VERBS)
		return NULL;
	*ret_summary = own_verbs[i].summary;
	return own_verbs[i].name;
}

static void print_usage(const struct cw_command *command, FILE *out)
{
	fprintf(out, "Usage: %s VERB [OPTION…]\n\n%s\n\n", command->name, command->about);
	for (size_t i = 0; i < command->count; i++)
		fprintf(out, "  %-13s %s\n", command->verbs[i].name, command->verbs[i].summary);
	for (size_t i = 0; i < N_OWN_VERBS; i++)
		fprintf(out, "  %-13s %s\n", own_verbs[i].name, own_verbs[i].summary);
	fprintf(out, "\n`%s help VERB` shows the options of a verb.\n\n", command->name);
	cw_exit_print(out, cw_dispatch_find(command, "run") != NULL);
}

static void print_supported(const struct cw_command *command)
{
	puts("\nSupported:");
	for (size_t i = 0; i < command->n_supported; i++)
		printf("  %-7s %s\n", command->supported[i].what, command->supported[i].versions);
}

/*
 * Flushes the output and returns the exit status. A verb whose output we could not write has
 * failed.
 */
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

/*
 * Reports an unknown verb. We suggest a known verb that is close to it; otherwise we print the
 * list.
 */
static int complain(const struct cw_command *command, const char *typed)
{
	struct cw_nearest nearest = { .typed = typed };

	for (size_t i = 0; i < command->count; i++)
		cw_nearest_offer(&nearest, command->verbs[i].name);
	for (size_t i = 0; i < N_OWN_VERBS; i++)
		cw_nearest_offer(&nearest, own_verbs[i].name);
	fprintf(stderr, "%s: there is no verb \"%s\"", command->name, typed);
	if (nearest.word) {
		fprintf(stderr, "; did you mean \"%s\"?\n", nearest.word);
	} else {
		fputs("\n\n", stderr);
		print_usage(command, stderr);
	}
	return CW_EXIT_ERROR;
}

static int run_verb(const struct cw_command *command, int argc, char **argv)
{
	const struct cw_verb *verb = cw_dispatch_find(command, argv[0]);
	enum own_verb own = own_verb_of(argv[0]);
	char name[64];

	if (!verb && own != OWN_COMPLETION)
		return complain(command, argv[0]);
	(void)snprintf(name, sizeof(name), "%s %s", command->name, argv[0]);
	argv[0] = name;
	return verb ? verb->run(argc, argv) : cw_completion_script(command, argc, argv);
}

/* Runs "help" or "help VERB". The verbs help and version have no options to show. */
static int help(const struct cw_command *command, int argc, char **argv)
{
	char option[] = "--help", *words[] = { argc > 1 ? argv[1] : NULL, option, NULL };
	enum own_verb own = argc > 1 ? own_verb_of(argv[1]) : OWN_HELP;

	if (own != OWN_HELP && own != OWN_VERSION)
		return run_verb(command, 2, words);
	print_usage(command, stdout);
	return CW_EXIT_OK;
}

static int print_version(const struct cw_command *command, int argc, char **argv)
{
	bool is_verbose = argc > 0 && strcmp(argv[0], "--verbose") == 0;

	if (argc > is_verbose) {
		fprintf(stderr, "%s: the version takes no \"%s\": only --verbose\n", command->name,
			argv[is_verbose]);
		return CW_EXIT_ERROR;
	}
	puts(command->version);
	if (is_verbose)
		print_supported(command);
	return CW_EXIT_OK;
}

static int dispatch(const struct cw_command *command, int argc, char **argv)
{
	switch (own_verb_of(argv[0])) {
	case OWN_HELP:
		return help(command, argc, argv);
	case OWN_VERSION:
		return print_version(command, argc - 1, argv + 1);
	default:
		if (strcmp(argv[0], "--complete") == 0)
			return cw_completion_words(command, argc - 1, argv + 1);
		return run_verb(command, argc, argv);
	}
}

int cw_dispatch(const struct cw_command *command, int argc, char **argv)
{
	argp_err_exit_status = CW_EXIT_ERROR;
	if (argc >= 2)
		return finish(command, dispatch(command, argc - 1, argv + 1));
	print_usage(command, stderr);
	return CW_EXIT_ERROR;
}
