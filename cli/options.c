/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies words by the rules of getopt_long(). An option's value is not an option, even if it
 * begins with a dash. Names may be shortened, and "--" ends the options. We ignore all other
 * errors, because argp reports them.
 */
#include "cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/nearest.h"

/* Options that argp itself adds. */
static const struct argp_option own[] = {
	{ "help", '?', NULL, 0, "Show this help (also -h)", 0 },
	{ "usage", 0, NULL, 0, "Show the usage", 0 },
	{ "version", 'V', NULL, 0, "Show the version", 0 },
	{ 0 },
};

static void each_of(const struct argp_option *o, cw_option_fn fn, void *user)
{
	for (; o && (o->name || o->key || o->doc || o->group); o++)
		if (o->name && !(o->flags & (OPTION_DOC | OPTION_HIDDEN)))
			fn(o, user);
}

static void each_of_parser(const struct argp *argp, cw_option_fn fn, void *user)
{
	each_of(argp->options, fn, user);
	for (const struct argp_child *c = argp->children; c && c->argp; c++)
		each_of_parser(c->argp, fn, user);
}

void cw_options_each(const struct argp *argp, cw_option_fn fn, void *user)
{
	each_of_parser(argp, fn, user);
	each_of(own, fn, user);
}

/* One word of the command line, and the option that it matches. */
struct word {
	const char *name; /* name of a long option, up to its end or its '=' */
	size_t len;
	char letter;                     /* a short option; `name` is then NULL */
	const struct argp_option *found; /* the option in the table; NULL = none */
	struct cw_nearest nearest;
};

static void compare(const struct argp_option *o, void *user)
{
	struct word *w = user;

	if (!w->name && o->key == w->letter)
		w->found = o;
	if (!w->name)
		return;
	if (strncmp(o->name, w->name, w->len) == 0 && (!w->found || !o->name[w->len]))
		w->found = o;
	cw_nearest_offer(&w->nearest, o->name);
}

static bool takes_next(const struct argp_option *o)
{
	return o && o->arg && !(o->flags & OPTION_ARG_OPTIONAL);
}

/*
 * Returns the option in letters such as "-vo" that takes its value from the next word. The text
 * after a letter may be its value instead. NULL = no option takes the next word.
 */
static const struct argp_option *short_takes_next(const struct argp *argp, const char *letters)
{
	for (; *letters; letters++) {
		struct word w = { .letter = *letters };

		cw_options_each(argp, compare, &w);
		if (!w.found || w.found->arg)
			return takes_next(w.found) && !letters[1] ? w.found : NULL;
	}
	return NULL;
}

static bool has_letter(const struct argp *argp, char letter)
{
	struct word w = { .letter = letter };

	cw_options_each(argp, compare, &w);
	return w.found != NULL;
}

static void find_long(const struct argp *argp, const char *word, struct word *w)
{
	w->name = word + 2;
	w->len = strcspn(w->name, "=");
	cw_options_each(argp, compare, w);
}

struct cw_options_place cw_options_place(const struct argp *argp, int n, char **words)
{
	bool is_in_order = argp->args_doc && strncmp(argp->args_doc, "[--]", 4) == 0;
	struct cw_options_place place = { 0 };

	for (int i = 1; i < n && !place.is_ended; i++) {
		struct word w = { .nearest = { .typed = "" } };

		if (place.option) {
			place.option = NULL;
		} else if (strcmp(words[i], "--") == 0) {
			place.is_ended = true;
		} else if (words[i][0] != '-' || !words[i][1]) {
			place.is_ended = is_in_order;
		} else if (words[i][1] != '-') {
			place.option = short_takes_next(argp, words[i] + 1);
		} else {
			find_long(argp, words[i], &w);
			place.option = takes_next(w.found) && !w.name[w.len] ? w.found : NULL;
		}
	}
	return place;
}

static void suggest(const struct argp *argp, const char *verb, const struct word *w)
{
	fprintf(stderr, "%s: there is no option \"--%.*s\"; did you mean \"--%s\"?\n", verb,
		(int)w->len, w->name, w->nearest.word);
	argp_help(argp, stderr, ARGP_HELP_SEE, (char *)verb); /* argp only reads it */
	exit(argp_err_exit_status);
}

error_t cw_options_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
			 void *input)
{
	bool is_in_order = (flags & ARGP_IN_ORDER) || getenv("POSIXLY_CORRECT");
	static char help[] = "--help";

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *arg = argv[i];
		char typed[CW_NEAREST_MAX + 1];
		struct word w = { .nearest = { .typed = typed } };

		if (arg[0] != '-' || !arg[1]) {
			if (is_in_order)
				break;
			continue;
		}
		if (arg[1] != '-') {
			if (strcmp(arg, "-h") == 0 && !has_letter(argp, 'h'))
				argv[i] = help;
			i += short_takes_next(argp, arg + 1) != NULL;
			continue;
		}
		(void)snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(arg + 2, "="), arg + 2);
		find_long(argp, arg, &w);
		if (!w.found && w.nearest.word)
			suggest(argp, argv[0], &w);
		i += takes_next(w.found) && !w.name[w.len];
	}
	return argp_parse(argp, argc, argv, flags, NULL, input);
}
