/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/uid_count.h"

#include <errno.h>
#include <stdlib.h>

#include "common/htable.h"

struct cw_uid_count {
	UT_hash_handle hh;
	uid_t uid;
	uint32_t n;
};

static struct cw_uid_count *find(struct cw_uid_count *table, uid_t uid)
{
	struct cw_uid_count *c;

	HASH_FIND(hh, table, &uid, sizeof(uid), c);
	return c;
}

uint32_t cw_uid_count_get(struct cw_uid_count *table, uid_t uid)
{
	const struct cw_uid_count *c = find(table, uid);

	return c ? c->n : 0;
}

int cw_uid_count_add(struct cw_uid_count **table, uid_t uid)
{
	struct cw_uid_count *c = find(*table, uid);

	if (!c) {
		c = calloc(1, sizeof(*c));
		if (!c)
			return -ENOMEM;
		c->uid = uid;
		HASH_ADD(hh, *table, uid, sizeof(c->uid), c);
		if (!cw_htable_added(c)) {
			free(c);
			return -ENOMEM;
		}
	}
	c->n++;
	return 0;
}

uint32_t cw_uid_count_users(struct cw_uid_count *table, uid_t uid)
{
	return HASH_COUNT(table) + (find(table, uid) == NULL);
}

void cw_uid_count_remove(struct cw_uid_count **table, uid_t uid)
{
	struct cw_uid_count *c = find(*table, uid);

	if (!c || --c->n > 0)
		return;
	HASH_DEL(*table, c);
	free(c);
}
