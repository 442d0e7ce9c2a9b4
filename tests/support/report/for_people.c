/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/report/for_people.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "model/op.h"

#define TEXT_BYTES 8192u
#define TOKEN_BYTES 64u
#define AROUND_BYTES 40u

static const char *const never[] = {
	"comm comm",  " 1 ranks", " 1 nodes", " 1 processes", " 1 others",
	" 1 members", " 1 hangs", " 1 days",  " 0.0 s",       "  ",
	" ,",         ";.",       "(null)",   "rank -1",      "?",
};
/* Prefixes of job labels: "name:train". In a sentence, a colon has a space after it. */
static const char *const labels[] = {
	"job", "name", "comm", "slurm", "pbs", "lsf", "torchelastic", "pmix", "ompi", "master",
};
/* A function of PyTorch that advice may name. */
static const char *const others[] = { "batch_isend_irecv" };

static bool is_in(const char *const *list, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], word))
			return true;
	return false;
}

static bool is_call(const char *word)
{
	for (unsigned kind = 0; kind < CW_OP__MAX; kind++)
		if (!strcmp(cw_op_kind_name(kind), word))
			return true;
	return false;
}

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool is_for_programs(const char *word, char after, char then)
{
	if (after == ':' && then != ' ' && is_in(labels, sizeof(labels) / sizeof(*labels), word))
		return true;
	return islower((unsigned char)*word) && strchr(word, '_') &&
	       strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(word) &&
	       !is_call(word) && !is_in(others, sizeof(others) / sizeof(*others), word);
}

static const char *show(const char *text, const char *at, char *buf, size_t len)
{
	const char *from = (size_t)(at - text) > AROUND_BYTES ? at - AROUND_BYTES : text;

	(void)snprintf(buf, len, "%.*s>>>%.*s", (int)(at - from), from, (int)AROUND_BYTES, at);
	return buf;
}

/*
 * Copies a text for the check. Text to type (`…`) becomes one word, and so does a date in Slack's
 * form (<!date^…|).
 */
static void copy_prose(const char *text, char *to, size_t len)
{
	size_t used = 0;

	while (*text && used + 1 < len) {
		const char *end = *text == '`' ? strchr(text + 1, '`') : NULL;

		if (!end && !strncmp(text, "<!date^", 7))
			end = strchr(text, '|');
		to[used++] = end ? 'x' : *text;
		text = end ? end + 1 : text + 1;
	}
	to[used] = '\0';
}

const char *for_people_slip(const char *text, char *buf, size_t len)
{
	char prose[TEXT_BYTES], word[TOKEN_BYTES];
	const char *at = prose;

	copy_prose(text, prose, sizeof(prose));
	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++) {
		const char *found = strstr(prose, never[i]);

		if (found)
			return show(prose, found, buf, len);
	}
	while (*at) {
		size_t n = 0;

		while (is_of_word(at[n]))
			n++;
		(void)snprintf(word, sizeof(word), "%.*s", (int)n, at);
		if (n && is_for_programs(word, at[n], at[n] ? at[n + 1] : '\0'))
			return show(prose, at, buf, len);
		at += n ? n : 1;
	}
	return NULL;
}

void for_people(const char *text)
{
	char buf[256];
	const char *slip = for_people_slip(text, buf, sizeof(buf));

	cr_assert_null(slip, "%s", slip);
}
