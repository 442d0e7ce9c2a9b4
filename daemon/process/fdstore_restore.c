/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process/fdstore_restore.h"

#include <errno.h>

#include "common/clock.h"
#include "common/log.h"

static int enter_table(const struct cw_fdstore_restore_config *config, struct cw_process *p)
{
	struct cw_process *displaced;
	int r;

	if (cw_processes_find(*config->table, cw_process_pid(p), p->key.start_ticks))
		return -EEXIST;
	r = cw_processes_make_room(*config->table, p->uid, &config->quota, &displaced);
	if (r < 0 || displaced)
		return -EDQUOT;
	HASH_ADD(hh, *config->table, key, sizeof(p->key), p);
	return cw_htable_added(p) ? 0 : -ENOMEM;
}

static int restore_one(const struct cw_fdstore_restore_config *config,
		       struct cw_fdstore_entry *entry, struct cw_err *err)
{
	int64_t now_ns = cw_clock_now_ns(config->clock);
	struct cw_process *p;
	int r;

	/*
	 * Refuse an end in the future, because its time is from another boot. Also refuse an old
	 * end.
	 */
	if (entry->is_dead &&
	    (entry->ended_ns > now_ns || now_ns - entry->ended_ns > CW_PROCESS_KEEP_DEAD_NS))
		return cw_err_set(err, ETIME, "it ended too long ago");
	r = cw_process_restore(entry, &p, err);
	if (r < 0)
		return r;
	r = enter_table(config, p);
	if (r < 0) {
		(void)cw_process_free(p); /* always NULL */
		return cw_err_set(err, -r, "the limit of rank processes is reached");
	}
	if (entry->is_dead) {
		p->ending_ns = entry->ended_ns;
		config->on_dead(p, &entry->end, config->user);
		return 0;
	}
	r = config->on_living(p, config->user);
	if (r < 0) {
		HASH_DEL(*config->table, p);
		(void)cw_process_free(p); /* always NULL */
		return cw_err_set(err, -r, "out of memory");
	}
	return 0;
}

unsigned cw_fdstore_restore(const struct cw_fdstore_restore_config *config,
			    struct cw_fdstore_entry *list, size_t n)
{
	unsigned restored = 0;
	struct cw_err err;

	for (size_t i = 0; i < n; i++) {
		if (restore_one(config, &list[i], &err) == 0) {
			restored++;
			continue;
		}
		log_debug("rank process pid=%d uid=%u was kept over the restart but cannot be "
			  "restored: %s",
			  (int)list[i].pid, (unsigned)list[i].uid, err.text);
		cw_fdstore_give_up(&list[i], config->clock);
	}
	cw_fdstore_free(list, n);
	if (n)
		log_notice("%u of %zu rank processes kept over the restart are restored", restored,
			   n);
	return restored;
}
