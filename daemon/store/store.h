/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of bundles: one directory per incident under <state>/incidents. We write a bundle under
 * a temporary name and then rename it, so a reader never sees half of it. If the disk is full, we
 * first remove the oldest bundles from it. If we still cannot write, we keep the newest bundles in
 * memory, up to a limit, and try again later.
 *
 * A bundle's directory has the incident's id as its name. The id includes the uid. A bundle belongs
 * to the user and the job of its first cw_store_put(). We refuse and count a later put for another
 * user or job. A user who knows the id therefore cannot replace another user's bundle.
 *
 * Loop thread only. Writes are small, go to the local disk, and are not synced here.
 * daemon/store/bundle_sync.h syncs a bundle before an alert names it.
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
	const char *state_dir; /* created with mode 0750 if it is missing */
	uint64_t max_bytes;
	int64_t max_age_ns;
	const struct cw_clock *clock;
};

int cw_store_open(const struct cw_store_config *config, struct cw_store **ret, struct cw_err *err);
struct cw_store *cw_store_close(struct cw_store *store);

/*
 * Writes or replaces the bundle with the id of bundle->incident. Then applies the limits of the
 * store. Writes the path of its directory into ret_path, even if the bundle is only in memory.
 * Returns 0 or -errno. -EINVAL: the incident has no id or uid. -EPERM: the id belongs to another
 * user or job. After these two we keep nothing. -ENOMEM: the bundle may be lost. After any other
 * -errno the bundle is in memory, and cw_store_retry() writes it later.
 */
int cw_store_put(struct cw_store *store, const struct cw_bundle *bundle, char *ret_path,
		 size_t path_len);

/*
 * Tries to write the bundles in memory. Call this every few seconds. Returns the number of bundles
 * that are still only in memory.
 */
unsigned cw_store_retry(struct cw_store *store);

/*
 * waiting: bundles that are only in memory. error: the errno of why we cannot write; 0 = we can.
 * lost: bundles dropped from memory before they were on disk. removed: bundles removed from disk
 * because of their age or to make room. refused: puts for another user's or job's id, and files
 * with more lines than we ever write.
 */
struct cw_store_stats {
	unsigned waiting;
	int error;
	uint64_t lost, removed, refused;
};
void cw_store_stats(struct cw_store *store, struct cw_store_stats *ret);

struct cw_store_query {
	/* True = bundles of all users, and those without a user; false = only those of uid. */
	bool is_of_all;
	uint32_t uid;
	struct cw_incident_filter filter;
	size_t max;         /* maximum number of entries; 0 = no limit */
	size_t max_bytes;   /* maximum size of all entries as compact JSON; 0 = no limit */
	size_t extra_bytes; /* bytes that the caller will add to each entry */
};

/*
 * Lists bundles, the newest confirmation first. Returns a new reference to an array of {"id","uid"
 * (-1 = unknown),"job","class","time","summary", "closed_as" (null: open),"path"}. An entry has
 * "severity" and "suppressed" if its incident has them. *ret_omitted: the number of older matches
 * beyond a limit; ret_omitted may be NULL. We make entries only for bundles in the list.
 */
json_t *cw_store_list(struct cw_store *store, const struct cw_store_query *query,
		      size_t *ret_omitted);

/*
 * Reads one bundle, from disk or memory, but no snapshot above 4 MiB. Returns 0 or -errno. -ENOENT:
 * there is no such bundle.
 */
int cw_store_get(struct cw_store *store, const char *id, struct cw_bundle *ret);

/*
 * Returns the incident of a bundle, a new reference. NULL = this user and job have no such bundle,
 * or it is a post-mortem without an alert.
 * *ret_is_whole: true if no stacks were missing when the bundle was last written.
 */
json_t *cw_store_incident(struct cw_store *store, uint32_t uid, const char *job, const char *id,
			  bool *ret_is_whole);
/*
 * Replaces the incident of an existing bundle, and keeps its other documents and the facts about
 * the job's end. Returns 0 or -errno. -ENOENT: this user and job have no such bundle.
 */
int cw_store_update_incident(struct cw_store *store, json_t *incident);

/*
 * Adds a document with tensor summaries of another node to a bundle. n: its number, from 1 on
 * (report/bundle.h). doc: an object, or a JSON string with its text. Returns 0 or -errno. -ENOENT:
 * this user and job have no such bundle. -EBUSY: the bundle is only in memory now, where it cannot
 * take summaries. -ENOSPC: n is above 1, and the bundle would exceed a sixteenth of the store's
 * limit.
 */
int cw_store_add_remote_summaries(struct cw_store *store, uint32_t uid, const char *job,
				  const char *id, unsigned n, const json_t *doc);

/*
 * If no node has had an open bundle's incident open for this long, we call the bundle unseen, and
 * close it as "unseen". Its leader has changed or restarted, and we do not know when the hang
 * ended. A new leader needs far less time to find the hang again.
 */
#define CW_STORE_UNSEEN_NS (600 * CW_NS_PER_S)
/* Returns true if some node has this user's incident open, as far as this node knows. */
typedef bool (*cw_store_open_fn)(uint32_t uid, const char *job, const char *id, void *user);
/*
 * Closes one unseen bundle, if there is one. Call this every few seconds. Returns true if it closed
 * a bundle. If a leader finds the hang again, it reopens the bundle.
 */
bool cw_store_close_unseen(struct cw_store *store, cw_store_open_fn is_open, void *user);
/*
 * Stores a job's post-mortem, a collwatch.incident/1 of severity `failed`. If there is a bundle
 * with its id, only the facts about the end join its incident; otherwise it gets a new bundle.
 * Returns 0 or -errno. -EEXIST: the incident says already how the job ended. -EINVAL and -EPERM: as
 * for cw_store_put(). After any other -errno a new bundle is in memory.
 */
int cw_store_put_postmortem(struct cw_store *store, json_t *postmortem);

/*
 * Returns the label of the bundle's job. NULL = this user has no such bundle. Borrowed until the
 * next put.
 */
const char *cw_store_job(struct cw_store *store, uint32_t uid, const char *id);

/*
 * True if this alert is settled: it was sent, or there is a reason not to send it. We remember this
 * across restarts, so that no alert goes out twice.
 */
bool cw_store_was_sent(struct cw_store *store, uint32_t uid, const char *id);
/* Returns the word for how the alert was settled. "" = it was sent, or it is not settled. */
const char *cw_store_sent_how(struct cw_store *store, uint32_t uid, const char *id);
/* The word for an alert that another node has delivered to its webhook. */
#define CW_STORE_DELIVERED_BY_PEER "elsewhere"
/*
 * The word for an incident that was over before its alert was delivered. If the incident opens
 * again, we send its alert.
 */
#define CW_STORE_OVER CW_SENT_OVER
/* True if this user has this bundle and its incident is over. Reads only memory. */
bool cw_store_is_over(struct cw_store *store, uint32_t uid, const char *id);
/*
 * Finds an alert that is not settled. Its server was unreachable until the job or the daemon ended.
 * Looks at bundles of the last day. Returns the bundle's incident, a new reference;
 * NULL = there is none. Returns the same incident again only after five minutes.
 */
json_t *cw_store_next_unsent(struct cw_store *store);
/*
 * Ends all waits of five minutes in cw_store_next_unsent(). Use it when the server may be reachable
 * again.
 */
void cw_store_resend_soon(struct cw_store *store);
/* Like cw_store_mark_sent(), but for n ids with a single write. */
int cw_store_mark_all_sent(struct cw_store *store, uint32_t uid, const char *const *ids, size_t n,
			   const char *how);
/*
 * Notes that an alert is settled. how: the reason for not sending it; "" = the server has accepted
 * it. Returns 0 or -errno.
 */
int cw_store_mark_sent(struct cw_store *store, uint32_t uid, const char *id, const char *how);
