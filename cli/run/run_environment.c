/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/nearest.h"
#include "common/environment.h"
#include "common/parse.h"
#include "common/text.h"

#define PREFIX "COLLWATCH_"
#define N_OF(list) (sizeof(list) / sizeof((list)[0]))

enum kind {
	KIND_SOCKET,
	KIND_DIRECTORY, /* an absolute path */
	KIND_TIME,
	KIND_SWITCH, /* "on", "off" or one of the words */
	KIND_OFF,    /* "off" or one of the words */
	KIND_WORD,   /* one of the words */
	KIND_WORDS,  /* several of the words, separated by commas */
};

/* The variables whose values are restricted. All other variables take any value. */
static const struct rule {
	const char *name;
	enum kind kind;
	const char *words[3];
} rules[] = {
	{ PREFIX "SOCKET", KIND_SOCKET, { NULL } },
	{ PREFIX "CONTROL_SOCKET", KIND_SOCKET, { NULL } },
	{ PREFIX "POLICY", KIND_WORD, { "training", "serving", "off" } },
	{ PREFIX "JOB_TIMEOUT", KIND_TIME, { NULL } },
	{ "COLLWATCH", KIND_SWITCH, { NULL } },
	{ PREFIX "DISABLE", KIND_SWITCH, { NULL } },
	{ PREFIX "PROGRESS", KIND_SWITCH, { "auto", "timed" } },
	{ PREFIX "SUMMARY", KIND_OFF, { "sampled", "full" } },
	{ PREFIX "COMPLETE", KIND_DIRECTORY, { NULL } },
	{ PREFIX "STOP_AT", KIND_WORDS, { "nonfinite", "headroom" } },
	{ PREFIX "CALL_STACKS", KIND_SWITCH, { NULL } },
	{ PREFIX "PYTHON_STACKS", KIND_SWITCH, { NULL } },
	{ PREFIX "PTRACER", KIND_SWITCH, { NULL } },
	{ PREFIX "RECORD", KIND_DIRECTORY, { NULL } },
};

/* ---- values ---- */

static bool has_word(const struct rule *rule, const char *word, size_t len)
{
	for (size_t i = 0; i < N_OF(rule->words) && rule->words[i]; i++)
		if (strlen(rule->words[i]) == len && strncmp(rule->words[i], word, len) == 0)
			return true;
	return false;
}

static bool has_all_words(const struct rule *rule, const char *list)
{
	for (const char *at = list;; at++) {
		size_t len = strcspn(at, ",");

		if (!has_word(rule, at, len))
			return false;
		at += len;
		if (!*at)
			return true;
	}
}

static bool is_switch(const char *value, bool may_be_on)
{
	bool is_on = false;

	return cw_parse_switch(value, &is_on) == 0 && (may_be_on || !is_on);
}

static int refuse_words(const struct rule *rule, const char *value, struct cw_err *err)
{
	struct cw_nearest near = { .typed = value };
	char words[80] = "";

	if (rule->kind == KIND_SWITCH)
		cw_text_append(words, sizeof(words), "on, off");
	else if (rule->kind == KIND_OFF)
		cw_text_append(words, sizeof(words), "off");
	for (size_t i = 0; i < N_OF(rule->words) && rule->words[i]; i++) {
		cw_text_append(words, sizeof(words), "%s%s", *words ? ", " : "", rule->words[i]);
		cw_nearest_offer(&near, rule->words[i]);
	}
	if (near.word)
		return cw_err_set(err, EINVAL, "%s=%.40s: did you mean %s?", rule->name, value,
				  near.word);
	return cw_err_set(err, EINVAL, "%s=%.40s: it takes %s", rule->name, value, words);
}

static int check_value(const struct rule *rule, const char *value, struct cw_err *err)
{
	int64_t ns;

	switch (rule->kind) {
	case KIND_SOCKET:
		return run_environment_check_socket(rule->name, value, err);
	case KIND_DIRECTORY:
		return *value == '/' ? 0
				     : cw_err_set(err, EINVAL, "%s=%.80s: not an absolute path",
						  rule->name, value);
	case KIND_TIME:
		return cw_parse_duration_ns(value, &ns) == 0
			       ? 0
			       : cw_err_set(err, EINVAL, "%s=%.40s: not a duration like 30min",
					    rule->name, value);
	case KIND_SWITCH:
	case KIND_OFF:
		if (is_switch(value, rule->kind == KIND_SWITCH))
			return 0;
		break;
	case KIND_WORDS:
		if (has_all_words(rule, value))
			return 0;
		break;
	case KIND_WORD:
		break;
	}
	return has_word(rule, value, strlen(value)) ? 0 : refuse_words(rule, value, err);
}

int run_environment_check_socket(const char *what, const char *path, struct cw_err *err)
{
	size_t most = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

	if (strlen(path) <= most)
		return 0;
	return cw_err_set(err, EINVAL,
			  "%s is too long for a socket: %zu bytes, at most %zu: choose a shorter "
			  "path",
			  what, strlen(path), most);
}

/* ---- names ---- */

static bool is_known(const char *name)
{
	for (size_t i = 0; i < cw_environment_count; i++)
		if (strcmp(cw_environment[i].name, name) == 0)
			return true;
	return false;
}

/* True for the variables that Kubernetes makes for a service named collwatch. */
static bool is_of_kubernetes(const char *name)
{
	name += strlen(PREFIX);
	return strncmp(name, "SERVICE_", 8) == 0 || strncmp(name, "PORT", 4) == 0 ||
	       strstr(name, "_SERVICE_HOST") || strstr(name, "_SERVICE_PORT") ||
	       strstr(name, "_PORT_");
}

/* Checks a name that begins with the common prefix. We compare only the rest of the name. */
static int check_name(const char *name, struct cw_err *err)
{
	struct cw_nearest near = { .typed = name + strlen(PREFIX) };

	if (is_known(name) || is_of_kubernetes(name))
		return 0;
	for (size_t i = 0; i < cw_environment_count; i++)
		if (strncmp(cw_environment[i].name, PREFIX, strlen(PREFIX)) == 0)
			cw_nearest_offer(&near, cw_environment[i].name + strlen(PREFIX));
	if (near.word)
		return cw_err_set(err, EINVAL, "%s: did you mean " PREFIX "%s?", name, near.word);
	fprintf(stderr, "collwatch: %s is not a variable of collwatch, ignoring\n", name);
	return 0;
}

int run_environment_check(struct cw_err *err)
{
	for (char **p = environ; *p; p++) {
		size_t len = strcspn(*p, "=");
		const char *value = *p + len + 1;
		char name[64];
		int r;

		if ((strncmp(*p, PREFIX, strlen(PREFIX)) != 0 &&
		     strncmp(*p, "COLLWATCH=", strlen("COLLWATCH=")) != 0) ||
		    !(*p)[len] || len >= sizeof(name))
			continue;
		(void)snprintf(name, sizeof(name), "%.*s", (int)len, *p);
		cw_text_sanitise_line(name);
		r = check_name(name, err);
		for (size_t i = 0; r == 0 && *value && i < N_OF(rules); i++)
			if (strcmp(rules[i].name, name) == 0)
				r = check_value(&rules[i], value, err);
		if (r < 0)
			return r;
	}
	return 0;
}

bool run_environment_is_disabled(void)
{
	return cw_parse_agent_is_off(getenv("COLLWATCH"), getenv(PREFIX "DISABLE"));
}
