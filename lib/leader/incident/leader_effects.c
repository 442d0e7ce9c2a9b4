/* SPDX-License-Identifier: Apache-2.0 */
#include "leader/incident/leader_effects.h"

#include <string.h>

void leader_log(const struct cw_leader_effects *effects, int level, const char *fmt, ...)
{
	va_list ap;

	if (!effects->log)
		return;
	va_start(ap, fmt);
	effects->log(effects->user, level, fmt, ap);
	va_end(ap);
}

void cw_leader_effects_name_user(const struct cw_leader_effects *effects, uint32_t uid, json_t *doc)
{
	const char *name;

	if (!doc || !effects->user_name || json_object_get(doc, "user"))
		return;
	name = effects->user_name(effects->user, uid);
	if (name)
		/* On failure the document has only the uid. */
		(void)json_object_set_new(doc, "user", json_string(name));
}

const struct cw_peer *cw_leader_effects_peer(const struct cw_leader_effects *effects,
					     const char *name)
{
	unsigned n;
	const struct cw_peer *peers = effects->peers(effects->user, &n);

	for (unsigned i = 0; i < n; i++)
		if (!strcmp(peers[i].name, name))
			/* cppcheck-suppress returnDanglingLifetime ; n is only their number */
			return &peers[i];
	return NULL;
}
