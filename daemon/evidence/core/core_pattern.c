/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/core/core_pattern.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

#define ANY "\1"

/*
 * Returns the value of a specifier, in buf if it is a number. ANY: we do not know the value. NULL:
 * the kernel writes nothing for it.
 */
static const char *value_of(char letter, const struct cw_core_subject *s, char buf[static 16])
{
	switch (letter) {
	case '%':
		return "%";
	case 'p':
		(void)snprintf(buf, 16, "%d", (int)s->own_pid);
		return buf;
	case 'P':
		(void)snprintf(buf, 16, "%d", (int)s->pid);
		return buf;
	case 'u':
		(void)snprintf(buf, 16, "%u", (unsigned)s->uid);
		return buf;
	case 'g':
		(void)snprintf(buf, 16, "%u", (unsigned)s->gid);
		return buf;
	case 'h':
		return s->host;
	case 'i': /* thread */
	case 'I':
	case 'd': /* mode of dumping */
	case 's': /* signal */
	case 't': /* time */
	case 'e': /* name of the thread */
	case 'f': /* program */
	case 'E': /* path of the program */
	case 'c': /* limit of the core's size */
	case 'C': /* CPU */
	case 'F': /* pidfd */
		return ANY;
	default:
		return NULL;
	}
}

/* Expands the specifiers of a pattern. Returns false if the result does not fit. */
static bool expand(const char *pattern, const struct cw_core_subject *s, char *to, size_t len,
		   bool *ret_has_pid)
{
	size_t n = 0;
	char number[16];

	for (const char *p = pattern; *p; p++) {
		char own[2] = { *p, '\0' };
		const char *text = own;

		if (*p == '%') {
			if (!*++p)
				break; /* the kernel drops a % at the end */
			*ret_has_pid |= *p == 'p';
			text = value_of(*p, s, number);
		}
		for (; text && *text; text++) {
			if (n + 1 >= len)
				return false;
			to[n++] = *text;
		}
	}
	to[n] = '\0';
	return true;
}

static enum cw_core_pattern_kind kind_of_program(const char *program)
{
	size_t len = strcspn(program, " ");
	const char *slash = memrchr(program, '/', len);
	const char *name = slash ? slash + 1 : program;

	len -= (size_t)(name - program);
	return len == 16 && strncmp(name, "systemd-coredump", len) == 0 ? CW_CORE_SYSTEMD
									: CW_CORE_PROGRAM;
}

enum cw_core_pattern_kind cw_core_pattern_expand(const char *pattern, bool uses_pid,
						 const struct cw_core_subject *s, char *dir,
						 char name[CW_CORE_NAME_MAX])
{
	char path[PATH_MAX], text[256], *slash;
	bool has_pid = false;

	(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(pattern, "\n"), pattern);
	if (*text == '|')
		return kind_of_program(text + 1 + strspn(text + 1, " "));
	if (!*text && !uses_pid)
		return CW_CORE_NONE;
	if (*text == '@') /* the kernel sends the core to a socket, from Linux 6.16 on */
		return CW_CORE_PROGRAM;
	if (!expand(text, s, path, sizeof(path), &has_pid))
		return CW_CORE_UNKNOWN;
	if (uses_pid && !has_pid)
		cw_text_append(path, sizeof(path), ".%d", (int)s->own_pid);
	slash = strrchr(path, '/');
	(void)snprintf(name, CW_CORE_NAME_MAX, "%s", slash ? slash + 1 : path);
	if (slash)
		*slash = '\0';
	if (*path == '/' || (slash == path))
		(void)snprintf(dir, PATH_MAX, "%s", slash && slash > path ? path : "/");
	else if (*s->cwd != '/' || snprintf(dir, PATH_MAX, "%s%s%s", s->cwd, slash ? "/" : "",
					    slash ? path : "") >= PATH_MAX)
		return CW_CORE_UNKNOWN;
	return strchr(dir, *ANY) || !*name ? CW_CORE_UNKNOWN : CW_CORE_FILE;
}

bool cw_core_pattern_fits(const char *name, const char *file)
{
	const char *star = NULL, *from = file;

	while (*file) {
		if (*name == *ANY) {
			star = name++;
			from = file;
		} else if (*name == *file) {
			name++;
			file++;
		} else if (star) {
			name = star + 1;
			file = ++from;
		} else {
			return false;
		}
	}
	while (*name == *ANY)
		name++;
	return !*name;
}
