/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the current configuration with a new one, and applies the reloadable keys. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "daemon/config/config.h"
#include "transport/secret.h"

bool cw_config_key_is_number(const struct cw_config_key *key)
{
	return key->type == CW_CONFIG_DURATION || key->type == CW_CONFIG_BYTES ||
	       key->type == CW_CONFIG_COUNT || key->type == CW_CONFIG_LEVEL;
}

static bool same_peers(const struct cw_config *a, const struct cw_config *b)
{
	if (a->n_peers != b->n_peers)
		return false;
	for (unsigned i = 0; i < a->n_peers; i++)
		if (strcmp(a->peers[i].name, b->peers[i].name) ||
		    strcmp(a->peers[i].address, b->peers[i].address))
			return false;
	return true;
}

const char *cw_config_needs_restart(const struct cw_config *a, const struct cw_config *b)
{
	for (unsigned i = 0; i < cw_config_n_keys; i++) {
		const struct cw_config_key *key = &cw_config_keys[i];
		const void *fa = (const char *)a + key->offset, *fb = (const char *)b + key->offset;
		bool same;

		if (key->type == CW_CONFIG_PEERS)
			same = same_peers(a, b);
		else if (cw_config_key_is_number(key))
			same = *(const int64_t *)fa == *(const int64_t *)fb;
		else
			same = !strcmp(*(char *const *)fa, *(char *const *)fb);
		if (!same && !key->can_reload)
			return key->name;
	}
	return NULL;
}

void cw_config_take_reloadable(struct cw_config *to, struct cw_config *from)
{
	for (unsigned i = 0; i < cw_config_n_keys; i++) {
		const struct cw_config_key *key = &cw_config_keys[i];
		void *ft = (char *)to + key->offset, *ff = (char *)from + key->offset;

		if (!key->can_reload)
			continue;
		if (cw_config_key_is_number(key)) {
			*(int64_t *)ft = *(const int64_t *)ff;
		} else {
			cw_config_free_string(&cw_config_keys[i], (char **)ft);
			*(char **)ft = steal_ptr((char **)ff);
		}
	}
	cw_secret_free(to->webhook_headers.text);
	to->webhook_headers = from->webhook_headers;
	from->webhook_headers.text = NULL;
}
