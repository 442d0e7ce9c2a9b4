/* SPDX-License-Identifier: Apache-2.0 */
#include "record/group_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define HASH_DIGITS 40u
#define SHOWN_DIGITS 8u
#define NO_DESCRIPTION "undefined"
/*
 * torch numbers groups from 0, which is the default group. torch may create that group's
 * communicator before it sets the description (seen with 2.15).
 */
#define DEFAULT_NAME "0"
#define DEFAULT_DESCRIPTION "default_pg"

static bool is_hash(const char *name)
{
	return strlen(name) == HASH_DIGITS && strspn(name, "0123456789abcdef") == HASH_DIGITS;
}

static bool is_number(const char *name)
{
	return name[0] && strspn(name, "0123456789") == strlen(name);
}

static char *say(const char *desc, size_t desc_len, const char *name, char *ret, size_t len)
{
	size_t shown = is_hash(name) ? SHOWN_DIGITS : strlen(name);
	size_t around = shown + sizeof(" ()"), room = around < len ? len - around : 0;

	bool has_desc = desc_len != 0 && (desc_len != strlen(NO_DESCRIPTION) ||
					  memcmp(desc, NO_DESCRIPTION, desc_len) != 0);

	if (!has_desc && strcmp(name, DEFAULT_NAME) == 0)
		(void)snprintf(ret, len, "%s (%s)", DEFAULT_DESCRIPTION, name);
	else if (!has_desc)
		(void)snprintf(ret, len, "%s%.*s", is_hash(name) ? "group " : "", (int)shown, name);
	else /* truncate the description, not the name: only the name is unique */
		(void)snprintf(ret, len, "%.*s (%.*s)", (int)(desc_len < room ? desc_len : room),
			       desc, (int)shown, name);
	return ret;
}

char *cw_group_name(const char *desc, const char *name, char *ret, size_t len)
{
	return say(desc, strlen(desc), name, ret, len);
}

char *cw_group_name_of_comm(const char *comm_name, char *ret, size_t len)
{
	const char *colon = strrchr(comm_name, ':');

	if (colon && (is_number(colon + 1) || is_hash(colon + 1)))
		return say(comm_name, (size_t)(colon - comm_name), colon + 1, ret, len);
	(void)snprintf(ret, len, "%s", comm_name);
	return ret;
}
