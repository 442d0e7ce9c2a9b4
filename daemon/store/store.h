/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundles on disk: one directory per incident under <state>/incidents. We write it under another
 * name and rename it, so a reader never sees half of it. If the disk is full, we first remove the
 * oldest bundles on disk. We keep the newest bundles in memory (bounded) and retry.
 *
 * The name of the directory is the incident's id, which covers the uid. A bundle belongs to the
 * user and the job of its first put. We refuse and count a put for another user or job. So no id,
 * however obtained, replaces another user's bundle.
 *
 * Loop thread only. Writes are small, to the local disk, and not synced here. Before an alert names
 * a bundle, daemon/store/bundle_sync.h syncs it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/err.h"
#include "daemon/store/sent_ids.h"
#include "report/bundle.h"
#include "report/incident_filter.h"

struct cw_store;

struct cw_store_config {
	const char *state_dir; /* created if missing, 0750 */
	uint64_t max_bytes;
	int64_t max_age_ns;
	const struct cw_clock *clock;
};

int cw_store_open(const struct cw_store_config *config, struct cw_store **ret, struct cw_err *err);
struct cw_store *cw_store_close(struct cw_store *store);

/*
 * Writes or replaces the bundle of bundle->incident's id, then applies retention. ret_path gets its
 * absolute directory, even if the bundle is only in memory for now. 0, or -errno: the bundle is in
 * memory and cw_store_retry() writes it later. -ENOMEM: it may be lost. -EINVAL: it lacks id or
 * uid. -EPERM: the id belongs to another user or job. After -EINVAL or -EPERM we keep nothing.
 */
int cw_store_put(struct cw_store *store, const struct cw_bundle *bundle, char *ret_path,
		 size_t path_len);

/*
 * Retries to write the bundles in memory. Call it every few seconds. Returns the number of bundles
 * that remain.
 */
unsigned cw_store_retry(struct cw_store *store);

/*
 * waiting: bundles only in memory. lost: bundles dropped from memory before the disk took them.
 * removed: bundles removed from disk, for their age or to make room. refused: puts under an id of
 * another user or job, or files with more lines than we ever write. error: the reason why we cannot
 * write now, as errno; 0 = we can.
 */
struct cw_store_stats {
	unsigned waiting;
	int error;
	uint64_t lost, removed, refused;
};
void cw_store_stats(struct cw_store *store, struct cw_store_stats *ret);

struct cw_store_query {
	bool is_of_all; /* all users and bundles without a user; else only uid */
	uint32_t uid;
	struct cw_incident_filter filter;
	size_t max;         /* limit of entries; 0 = all */
	size_t max_bytes;   /* limit of the total as compact JSON; 0 = all */
	size_t extra_bytes; /* bytes that the caller adds to each entry */
};

/*
 * Returns a new reference to an array of {"id","uid" (-1 = unknown),"job","class","time","summary",
 * "closed_as" (null: open),"path"}, newest confirmation first. An entry has "severity" and
 * "suppressed" if its incident has them. If a bundle has only a post-mortem, the entry has
 * "postmortem": true. *ret_omitted is the number of older matches beyond a limit; ret_omitted may
 * be NULL. We build no entry for these, nor for bundles that do not match.
 */
json_t *cw_store_list(struct cw_store *store, const struct cw_store_query *query,
		      size_t *ret_omitted);

/*
 * Reads one bundle, from disk or memory. Omits a snapshot above 4 MiB. 0, -ENOENT or another
 * -errno.
 */
int cw_store_get(struct cw_store *store, const char *id, struct cw_bundle *ret);

/*
 * Returns the incident of this user's bundle of this job, a new reference; NULL = no such bundle.
 * *ret_is_whole: at the last write no stacks were missing.
 */
json_t *cw_store_incident(struct cw_store *store, uint32_t uid, const char *job, const char *id,
			  bool *ret_is_whole);
/*
 * Replaces the incident of an existing bundle, and keeps the rest of the bundle. 0; -ENOENT: this
 * user and job have no such bundle; or -errno.
 */
int cw_store_update_incident(struct cw_store *store, json_t *incident);

/*
 * Adds the n-th tensor summary from another node to a bundle, counted from 1 (report/bundle.h). doc
 * is an object or its text. 0. -ENOENT: this user and job have no such bundle. -EBUSY: the bundle
 * is only in memory now, without room for summaries. -ENOSPC: n is above 1, and the bundle would
 * exceed a sixteenth of the store's limit. Or another -errno.
 */
int cw_store_add_remote_summaries(struct cw_store *store, uint32_t uid, const char *job,
				  const char *id, unsigned n, const json_t *doc);

/*
 * An open bundle counts as unseen if no node has had its incident open for this long. We then close
 * it as "unseen". Its leader has changed or was restarted, and we do not know when the hang ended.
 * The time is far longer than a new leader needs to find the hang again.
 */
#define CW_STORE_UNSEEN_NS (600 * CW_NS_PER_S)
/* True if some node has this user's incident open, as far as this node knows. */
typedef bool (*cw_store_open_fn)(uint32_t uid, const char *job, const char *id, void *user);
/*
 * Closes one unseen bundle, if there is one. Call it every few seconds. True if it closed one. A
 * leader that finds the hang again reopens it.
 */
bool cw_store_close_unseen(struct cw_store *store, cw_store_open_fn is_open, void *user);
/*
 * Stores a job's post-mortem, a collwatch.postmortem/1, in the bundle of its id or in a bundle of
 * its own. 0. -EEXIST: the bundle has one already. -EINVAL and -EPERM as for cw_store_put(). After
 * another -errno it is in memory, like a bundle.
 */
int cw_store_put_postmortem(struct cw_store *store, json_t *postmortem);

/*
 * Returns the job label of this bundle; NULL = this user has no such bundle. Borrowed until the
 * next put.
 */
const char *cw_store_job(struct cw_store *store, uint32_t uid, const char *id);

/*
 * True if the alert with this uid and id is settled. We remember this across restarts, so that no
 * alert goes out twice.
 */
bool cw_store_was_sent(struct cw_store *store, uint32_t uid, const char *id);
/* Returns the word that settled the alert; "" = it was sent, or is not settled. */
const char *cw_store_sent_how(struct cw_store *store, uint32_t uid, const char *id);
/* The word for an alert that another node's webhook accepted. */
#define CW_STORE_DELIVERED_BY_PEER "elsewhere"
/*
 * The word for an incident that was over before its alert was delivered. If the incident is
 * reopened, its alert goes out.
 */
#define CW_STORE_OVER CW_SENT_OVER
/* True if this user's bundle exists and says that its incident is over. Reads only memory. */
bool cw_store_is_over(struct cw_store *store, uint32_t uid, const char *id);
/*
 * Finds an alert that may not have been delivered, because the server was away until the job or the
 * daemon ended. Returns a new reference to the incident of a bundle of the last day whose id is not
 * marked as sent. We return the same incident again only after five minutes. NULL = none.
 */
json_t *cw_store_next_unsent(struct cw_store *store);
/* Skips the wait of five minutes, because the route to the server has changed. */
void cw_store_resend_soon(struct cw_store *store);
/* Like cw_store_mark_sent(), but for many ids in one write. */
int cw_store_mark_all_sent(struct cw_store *store, uint32_t uid, const char *const *ids, size_t n,
			   const char *how);
/* Notes that an alert is settled. how says why no alert was sent; "" = the server has it. */
int cw_store_mark_sent(struct cw_store *store, uint32_t uid, const char *id, const char *how);
