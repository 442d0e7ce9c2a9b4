/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/completion.h"

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/control.h"
#include "cli/dispatch.h"
#include "cli/nearest.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "common/text.h"

/* Time-out of a query to the daemon. It is short, because the user waits at the keyboard. */
#define TIMEOUT_MS 1000
#define MAX_ABOUT 72
#define MAX_WORDS 256
/* Bytes of the buffer for a word, more than any label or host name has. */
#define MAX_WORD 1024

/* ---- scripts ---- */

/*
 * The scripts per shell. In a script, %n stands for the command's name, and %i for the name as an
 * identifier.
 */
static const struct shell {
	const char *name;
	const char *script;
} shells[] = {
	{ "bash",
	  "# bash completion of %n: eval \"$(%n completion bash)\"\n"
	  "_%n()\n"
	  "{\n"
	  "	local kind word current=${COMP_WORDS[COMP_CWORD]}\n"
	  "	COMPREPLY=()\n"
	  "	[ \"$current\" = = ] && current=\n"
	  "	while IFS=$'\\t' read -r kind word _; do\n"
	  "		case $kind in\n"
	  "		word) COMPREPLY+=(\"$(printf %q \"$word\")\") ;;\n"
	  "		files|directories)\n"
	  "			compopt -o filenames 2>/dev/null\n"
	  "			[ \"$kind\" = files ] && word=-f || word=-d\n"
	  "			while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(\n"
	  "				compgen \"$word\" -- \"$current\") ;;\n"
	  "		programs)\n"
	  "			while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(\n"
	  "				compgen -c -- \"$current\" | sort -u) ;;\n"
	  "		esac\n"
	  "	done < <(\"${COMP_WORDS[0]}\" --complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
	  "}\n"
	  "complete -F _%n %n\n" },
	{ "zsh",
	  "#compdef %n\n"
	  "# zsh completion of %n: source <(%n completion zsh)\n"
	  "_%n()\n"
	  "{\n"
	  "	local kind word about typed=$PREFIX\n"
	  "	local -a flags values\n"
	  "	[[ $PREFIX == --*=* ]] && compset -P '*='\n"
	  "	while IFS=$'\\t' read -r kind word about; do\n"
	  "		case $kind in\n"
	  "		word)\n"
	  "			about=${word//:/\\\\:}${about:+:$about}\n"
	  "			[[ $word == -* ]] && flags+=$about || values+=$about ;;\n"
	  "		files) _files ;;\n"
	  "		directories) _files -/ ;;\n"
	  "		programs) _command_names -e ;;\n"
	  "		esac\n"
	  "	done < <($words[1] --complete \"${(@)words[2,CURRENT-1]}\" \"$typed\" 2>/dev/null)\n"
	  "	(( $#values )) && _describe -t values value values\n"
	  "	(( $#flags )) && _describe -o -t options option flags\n"
	  "}\n"
	  "if [[ $funcstack[1] == _%n ]]; then _%n \"$@\"; else compdef _%n %n; fi\n" },
	{ "fish", "# fish completion of %n: %n completion fish | source\n"
		  "function __%i_words\n"
		  "	set -l typed (commandline -ct)\n"
		  "	set -l option (string match -r -- '^--[^=]*=' $typed)\n"
		  "	set -l words (commandline -opc)\n"
		  "	for line in ($words[1] --complete $words[2..-1] \"$typed\" 2>/dev/null)\n"
		  "		set -l part (string split \\t -- $line)\n"
		  "		switch $part[1]\n"
		  "		case word\n"
		  "			printf '%s\\t%s\\n' \"$option$part[2]\" \"$part[3]\"\n"
		  "		case files\n"
		  "			__fish_complete_path $typed\n"
		  "		case directories\n"
		  "			__fish_complete_directories $typed\n"
		  "		case programs\n"
		  "			complete -C (string replace -r '^--[^=]*=' '' -- $typed)\n"
		  "		end\n"
		  "	end\n"
		  "end\n"
		  "complete -c %n -f -a '(__%i_words)'\n" },
};
#define N_SHELLS (sizeof(shells) / sizeof(shells[0]))

struct script_args {
	const struct shell *shell;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct cw_nearest nearest = { .typed = arg };
	struct script_args *args = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (args->shell)
			argp_error(state, "give one shell only");
		for (size_t i = 0; i < N_SHELLS; i++) {
			if (strcmp(arg, shells[i].name) == 0)
				args->shell = &shells[i];
			cw_nearest_offer(&nearest, shells[i].name);
		}
		if (!args->shell && nearest.word)
			argp_error(state, "unknown shell \"%s\"; did you mean \"%s\"?", arg,
				   nearest.word);
		if (!args->shell)
			argp_error(state, "unknown shell \"%s\": give bash, zsh or fish", arg);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no shell given: give bash, zsh or fish");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp script_argp = {
	.parser = parse_opt,
	.args_doc = "SHELL",
	.doc = "Print a script that makes a shell complete verbs, options, files, jobs and "
	       "incidents.\vPackages install the script. Without a package, in ~/.bashrc: eval "
	       "\"$(collwatch completion bash)\"; in ~/.zshrc, after compinit: source <(collwatch "
	       "completion zsh); and for fish, once: collwatch completion fish > "
	       "~/.config/fish/completions/collwatch.fish",
};

int cw_completion_script(const struct cw_command *command, int argc, char **argv)
{
	struct script_args args = { 0 };

	(void)cw_options_parse(&script_argp, argc, argv, 0, &args);
	for (const char *p = args.shell->script; *p; p++) {
		bool is_name = strncmp(p, "%n", 2) == 0, is_identifier = strncmp(p, "%i", 2) == 0;

		if (!is_name && !is_identifier) {
			(void)putchar(*p);
			continue;
		}
		for (const char *c = command->name; *c; c++)
			(void)putchar(is_identifier && *c == '-' ? '_' : *c);
		p++;
	}
	return CW_EXIT_OK;
}

/* ---- words ---- */

struct typing {
	const struct cw_verb *verb;
	const char *current; /* the word as typed so far; for "--option=value" only the value */
	const char *control; /* value of --control; NULL = not given */
};

/*
 * True if we may offer the word. Labels and hosts come from jobs and other nodes, and the shell
 * writes them to the terminal. So we do not offer a word with control characters. We cannot offer
 * it without these characters either, because no job or host has that name.
 */
static bool is_harmless(const char *word)
{
	char copy[MAX_WORD];

	if (strlen(word) >= sizeof(copy) || strpbrk(word, "\n\t"))
		return false;
	(void)snprintf(copy, sizeof(copy), "%s", word);
	cw_text_sanitise_line(copy);
	return strcmp(copy, word) == 0;
}

/* Prints one completion. The description is cut to one line. */
static void offer(const struct typing *t, const char *word, const char *about)
{
	size_t len = about ? strcspn(about, "\n\t\v") : 0;
	char text[MAX_ABOUT + 1];

	if (len > MAX_ABOUT)
		for (len = MAX_ABOUT; (about[len] & 0xc0) == 0x80; len--)
			; /* cut at the start of a character, not inside it */
	if (strncmp(word, t->current, strlen(t->current)) != 0 || !is_harmless(word))
		return;
	(void)snprintf(text, sizeof(text), "%.*s", (int)len, about ? about : "");
	cw_text_sanitise_line(text);
	printf("word\t%s\t%s\n", word, text);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static json_t *ask(const struct typing *t, const char *verb)
{
	json_t *doc = NULL;
	struct cw_err err;
	uint32_t code;

	if (cw_control_ask(cw_control_path(t->control), verb, NULL, TIMEOUT_MS, &doc, &code, &err) <
	    0)
		return NULL; /* completion has no place for error messages */
	return doc;
}

static void offer_incidents(const struct typing *t)
{
	json_t *doc = ask(t, "incidents"), *one;
	char about[128];
	size_t i;

	json_array_foreach (json_object_get(doc, "incidents"), i, one) {
		(void)snprintf(about, sizeof(about), "%s %s", text_of(one, "class"),
			       text_of(one, "job"));
		offer(t, text_of(one, "id"), about);
	}
	json_decref(doc);
}

/* Offers the labels of the jobs, without the prefix before the colon, which users do not see. */
static void offer_jobs(const struct typing *t)
{
	json_t *doc = ask(t, "status"), *one;
	size_t i;

	json_array_foreach (json_object_get(doc, "jobs"), i, one) {
		const char *label = text_of(one, "job"), *colon = strchr(label, ':');

		offer(t, colon ? colon + 1 : label, text_of(one, "summary"));
	}
	json_decref(doc);
}

static void offer_nodes(const struct typing *t)
{
	json_t *doc = ask(t, "status"), *one;
	size_t i;

	if (doc)
		offer(t, text_of(doc, "node"), "this node");
	json_array_foreach (json_object_get(doc, "peers"), i, one)
		offer(t, text_of(one, "node"), text_of(one, "state"));
	json_decref(doc);
}

static void offer_shells(const struct typing *t)
{
	for (size_t i = 0; i < N_SHELLS; i++)
		offer(t, shells[i].name, NULL);
}

static void offer_times(const struct typing *t)
{
	static const char *const times[] = { "1h", "1d", "7d", "today", "yesterday" };

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		offer(t, times[i], NULL);
}

static const struct argument {
	const char *name;
	const char *kind; /* the shell completes this kind of word itself; NULL = we call `offer` */
	void (*offer)(const struct typing *t);
} arguments[] = {
	{ "FILE", "files", NULL },         { "SOCKET", "files", NULL },
	{ "RECORD", "files", NULL },       { "ARGUMENT", "files", NULL },
	{ "DIR", "directories", NULL },    { "DIRECTORY", "directories", NULL },
	{ "BUNDLE", "directories", NULL }, { "PROGRAM", "programs", NULL },
	{ "ID", NULL, offer_incidents },   { "JOB", NULL, offer_jobs },
	{ "NODE", NULL, offer_nodes },     { "SHELL", NULL, offer_shells },
	{ "TIME", NULL, offer_times },
};

static void offer_argument(const struct typing *t, const char *name)
{
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		if (strcmp(arguments[i].name, name) != 0)
			continue;
		if (arguments[i].kind)
			puts(arguments[i].kind);
		else
			arguments[i].offer(t);
	}
	if (t->verb->value)
		for (unsigned i = 0; t->verb->value(name, i); i++)
			offer(t, t->verb->value(name, i), NULL);
}

/*
 * Offers the values of all words in a usage such as "[ID | DIRECTORY]" or "show FILE". The words
 * may come in any order.
 */
static void offer_arguments(const struct typing *t, const char *doc)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-";
	char word[32], seen[256] = " ";

	while (doc && *(doc += strcspn(doc, letters))) {
		size_t len = strspn(doc, letters), used = strlen(seen);

		(void)snprintf(word, sizeof(word), " %.*s ", (int)len, doc);
		doc += len;
		if (len + 3 > sizeof(word) || word[1] == '-' || strstr(seen, word))
			continue;
		(void)snprintf(seen + used - 1, sizeof(seen) - used + 1, "%s", word);
		word[len + 1] = '\0';
		if (word[1] >= 'a')
			offer(t, word + 1, NULL); /* the usage has this word literally */
		else
			offer_argument(t, word + 1);
	}
}

static void offer_option(const struct argp_option *o, void *user)
{
	char word[64];

	(void)snprintf(word, sizeof(word), "--%s", o->name);
	offer(user, word, o->doc);
}

static void offer_verbs(const struct typing *t, const struct cw_command *command)
{
	const char *own, *summary;

	for (size_t i = 0; i < command->count; i++)
		offer(t, command->verbs[i].name, command->verbs[i].summary);
	for (unsigned i = 0; (own = cw_dispatch_own_verb(i, &summary)); i++)
		offer(t, own, summary);
	if (*t->current == '-') {
		offer(t, "--help", "show the usage");
		offer(t, "--version", "show the version");
	}
}

static void offer_all(struct typing *t, const struct argp *argp, int n, char **words)
{
	struct cw_options_place place = cw_options_place(argp, n, words);
	const char *equals = strchr(t->current, '=');

	for (int i = 1; i < n; i++) {
		if (strcmp(words[i], "--control") == 0 && i + 1 < n)
			t->control = words[i + 1];
		else if (strncmp(words[i], "--control=", 10) == 0)
			t->control = words[i] + 10;
	}
	if (!place.option && !place.is_ended && equals && strncmp(t->current, "--", 2) == 0) {
		char *typed[] = { words[0], (char[64]){ "" } };

		(void)snprintf(typed[1], 64, "%.*s", (int)(equals - t->current), t->current);
		place = cw_options_place(argp, 2, typed);
		t->current = equals + 1;
		if (!place.option)
			return;
	}
	if (place.option)
		offer_arguments(t, place.option->arg);
	else if (*t->current == '-' && !place.is_ended)
		cw_options_each(argp, offer_option, t);
	else
		offer_arguments(t, argp->args_doc);
}

/* Joins "--option=value", which bash splits into three words. */
static int join_equals(int n, char **words, char **ret)
{
	static char nothing[] = "";
	int kept = 0;

	for (int i = 0; i < n && kept < MAX_WORDS; i++) {
		bool is_equals =
			strcmp(words[i], "=") == 0 && i > 0 && strncmp(words[i - 1], "--", 2) == 0;

		if (!is_equals)
			ret[kept++] = words[i];
		else if (i + 1 == n)
			ret[kept++] = nothing;
	}
	return kept;
}

int cw_completion_words(const struct cw_command *command, int n, char **words)
{
	static const struct cw_verb script = { .name = "completion" };
	char *joined[MAX_WORDS + 1];
	struct typing t = { 0 };

	n = join_equals(n, words, joined);
	if (n < 1)
		return CW_EXIT_OK;
	t.current = joined[n - 1];
	if (n == 1 || (n == 2 && strcmp(joined[0], "help") == 0)) {
		offer_verbs(&t, command);
		return CW_EXIT_OK;
	}
	t.verb = strcmp(joined[0], script.name) == 0 ? &script
						     : cw_dispatch_find(command, joined[0]);
	joined[n] = NULL;
	if (t.verb && t.verb->complete)
		return t.verb->complete(n, joined);
	if (t.verb)
		offer_all(&t, t.verb == &script ? &script_argp : t.verb->argp, n - 1, joined);
	return CW_EXIT_OK;
}
