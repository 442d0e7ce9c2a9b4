/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We make names from left to right. A buffer holds the part of the name that we have finished. For
 * each number of a bracket, we append the number and make the rest of the name.
 */
#include "cli/hostlist.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/or_exit/or_exit.h"

/* The length of the longest name of a node. */
#define MAX_NAME 255u
/* The limit on the digits of a number. Real numbers have fewer, and 64 bits hold this many. */
#define MAX_DIGITS 9u

struct maker {
	char **names; /* has room for max names and a final NULL */
	unsigned n, max;
	char name[MAX_NAME + 1];
	struct cw_err *err;
};

static int wrong(const struct maker *m, const char *at, const char *what)
{
	return cw_err_set(m->err, EINVAL, "host list, at \"%.40s\": %s", at, what);
}

static int add(struct maker *m, const char *entry)
{
	if (!m->name[0])
		return wrong(m, entry, "a name is missing; example: gpu[001-500],login1");
	if (m->n == m->max)
		return cw_err_set(m->err, E2BIG, "host list: more than %u names", m->max);
	m->names[m->n++] = cw_or_exit(strdup(m->name));
	return 0;
}

static int append(struct maker *m, const char *text, size_t len)
{
	size_t at = strlen(m->name);

	if (at + len > MAX_NAME)
		return wrong(m, text, "the name is too long");
	memcpy(m->name + at, text, len);
	m->name[at + len] = '\0';
	return 0;
}

/* Reads the number at *p and advances *p. *ret_width: number of digits. */
static int take_number(struct maker *m, const char **p, uint64_t *ret, unsigned *ret_width)
{
	const char *digits = *p;

	*ret_width = (unsigned)strspn(digits, "0123456789");
	if (!*ret_width)
		return wrong(m, digits, "a number is missing; example: [1-4,7]");
	if (*ret_width > MAX_DIGITS)
		return wrong(m, digits, "the number is too long");
	*ret = 0;
	for (; isdigit((unsigned char)**p); (*p)++)
		*ret = 10 * *ret + (uint64_t)(**p - '0');
	return 0;
}

static int make(struct maker *m, const char *entry, const char *rest, const char *end);

/*
 * Expands a range such as "1-4". Appends each number to the name so far, and then the text after
 * the bracket.
 */
static int make_range(struct maker *m, const char *entry, const char **p, const char *rest,
		      const char *end)
{
	size_t len = strlen(m->name);
	const char *range = *p;
	uint64_t first, last;
	unsigned width, last_width;
	char number[24];
	int r = take_number(m, p, &first, &width);

	last = first;
	if (r == 0 && **p == '-') {
		(*p)++;
		r = take_number(m, p, &last, &last_width);
	}
	if (r == 0 && last < first)
		r = wrong(m, range, "the range ends before it begins");
	for (uint64_t i = first; i <= last && r == 0; i++) {
		(void)snprintf(number, sizeof(number), "%0*llu", (int)width, (unsigned long long)i);
		r = append(m, number, strlen(number));
		if (r == 0)
			r = make(m, entry, rest, end);
		m->name[len] = '\0';
	}
	return r;
}

/* Makes the names for `rest`, the rest of an entry that ends before `end`. */
static int make(struct maker *m, const char *entry, const char *rest, const char *end)
{
	size_t len = strcspn(rest, "[]"), before = strlen(m->name);
	const char *close, *p;
	int r;

	if (len >= (size_t)(end - rest)) {
		r = append(m, rest, (size_t)(end - rest));
		if (r == 0)
			r = add(m, entry);
		m->name[before] = '\0';
		return r;
	}
	if (rest[len] == ']')
		return wrong(m, entry, "a ] without its [");
	/* an entry ends outside brackets, so it contains the ] */
	close = memchr(rest + len, ']', (size_t)(end - rest) - len);
	if (!close)
		return wrong(m, entry, "a [ without its ]");
	r = append(m, rest, len);
	for (p = rest + len; r == 0 && (p == rest + len || *p == ',');) {
		p++;
		r = make_range(m, entry, &p, close + 1, end);
	}
	m->name[before] = '\0';
	return r == 0 && p != close
		       ? wrong(m, p, "only numbers, \"-\" and \",\" are allowed; example: [1-4,7]")
		       : r;
}

/* Returns the end of an entry, which is a comma outside brackets or the end of the text. */
static const char *end_of(const char *text)
{
	const char *p = text;

	for (unsigned depth = 0; *p && (*p != ',' || depth); p++) {
		depth += *p == '[';
		depth -= *p == ']' && depth;
	}
	return p;
}

int cw_hostlist_expand(const char *text, unsigned max, char ***ret, unsigned *ret_n,
		       struct cw_err *err)
{
	struct maker m = { .names = cw_or_exit(calloc((size_t)max + 1, sizeof(char *))),
			   .max = max,
			   .err = err };
	const char *entry = text, *end;
	int r = 0;

	for (; r == 0; entry = end + 1) {
		end = end_of(entry);
		r = make(&m, entry, entry, end);
		if (!*end)
			break;
	}
	if (r < 0) {
		m.names = cw_hostlist_free(m.names);
		return r;
	}
	*ret = m.names;
	*ret_n = m.n;
	return 0;
}

char **cw_hostlist_free(char **names)
{
	for (unsigned i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
	return NULL;
}
