/* SPDX-License-Identifier: Apache-2.0 */
#include "leader/incident/leader_effects.h"

#include <string.h>

void leader_log(const struct cw_leader_effects *e, int level, const char *fmt, ...)
{
	va_list ap;

	if (!e->log)
		return;
	va_start(ap, fmt);
	e->log(e->user, level, fmt, ap);
	va_end(ap);
}

void cw_leader_effects_name_user(const struct cw_leader_effects *e, uint32_t uid, json_t *doc)
{
	const char *name;

	if (!doc || !e->user_name || json_object_get(doc, "user"))
		return;
	name = e->user_name(e->user, uid);
	if (name)
		(void)json_object_set_new(doc, "user", json_string(name)); /* or only the uid */
}

const struct cw_peer *cw_leader_effects_peer(const struct cw_leader_effects *e, const char *name)
{
	unsigned n;
	const struct cw_peer *peers = e->peers(e->user, &n);

	for (unsigned i = 0; i < n; i++)
		if (!strcmp(peers[i].name, name))
			/* cppcheck-suppress returnDanglingLifetime ; n is only their number */
			return &peers[i];
	return NULL;
}
