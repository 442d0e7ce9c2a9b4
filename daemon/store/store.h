/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundles on disk: one directory per incident under <state>/incidents, written beside and renamed
 * into place, so a reader never sees half of one. When the disk is full the newest bundles are kept
 * in memory (bounded) and retried; the oldest on disk go first.
 *
 * The directory's name is the incident's id. The id covers the uid, and a bundle belongs to the
 * user and the job that it was first put for: a put under another is refused and counted, so that
 * no id, however it was come by, replaces another user's bundle.
 *
 * Loop thread only. Writes are small and to local disk, and not synced here: before an alert names
 * a bundle, daemon/store/bundle_sync.h does that.
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
	const char *state_dir; /* made if missing, 0750 */
	uint64_t max_bytes;
	int64_t max_age_ns;
	const struct cw_clock *clock;
};

int cw_store_open(const struct cw_store_config *config, struct cw_store **ret, struct cw_err *err);
struct cw_store *cw_store_close(struct cw_store *store);

/*
 * Writes or replaces the bundle of bundle->incident's id; then applies retention. ret_path gets its
 * absolute directory (also when it is only held in memory for now). 0, or -errno: the bundle is
 * kept in memory and retried by cw_store_retry(). -EINVAL: no id or no uid is in it, -EPERM: the id
 * is another user's or another job's; then nothing is kept.
 */
int cw_store_put(struct cw_store *store, const struct cw_bundle *bundle, char *ret_path,
		 size_t path_len);

/* Tries again to write what is held in memory; call it every few seconds. Returns how many remain.
 */
unsigned cw_store_retry(struct cw_store *store);

/*
 * Waiting: only in memory; lost: dropped from there before the disk took them; removed: from disk,
 * for their age or to make room; refused: put under an id of another user
 * or job, or lines of a file beyond what is ever written. error: why nothing can be written just
 * now, as errno; 0 = it can.
 */
struct cw_store_stats {
	unsigned waiting;
	int error;
	uint64_t lost, removed, refused;
};
void cw_store_stats(struct cw_store *store, struct cw_store_stats *ret);

struct cw_store_query {
	bool is_of_all; /* users, and those without one; else of uid */
	uint32_t uid;
	struct cw_incident_filter filter;
	size_t max;         /* entries; 0 = all */
	size_t max_bytes;   /* of them as compact JSON; 0 = all */
	size_t extra_bytes; /* that the caller adds to each */
};

/*
 * New reference to an array of {"id","uid" (-1 = not said),"job","class","time","summary",
 * "closed_as" (null: it is open),"path"}, with "severity" and "suppressed" where its incident has
 * them, newest confirmation first. What is an epitaph alone has "epitaph":
 * true. *ret_left_out: older ones that are wanted as well and were beyond a limit; NULL = unasked.
 * Nothing is made for those, nor for what is not wanted.
 */
json_t *cw_store_list(struct cw_store *store, const struct cw_store_query *query,
		      size_t *ret_left_out);

/* Reads one bundle, from disk or memory; of a snapshot above 4 MiB nothing. -ENOENT. */
int cw_store_get(struct cw_store *store, const char *id, struct cw_bundle *ret);

/*
 * The incident of this user's bundle of this job; NULL = there is none. New reference.
 * *ret_is_whole: no stacks were awaited when it was written last.
 */
json_t *cw_store_incident(struct cw_store *store, uint32_t uid, const char *job, const char *id,
			  bool *ret_is_whole);
/*
 * Replaces the incident of a bundle that is there, and leaves all else in it. 0, -ENOENT: there is
 * none of this user and job, or -errno.
 */
int cw_store_amend(struct cw_store *store, json_t *incident);

/*
 * Adds the n-th of other nodes' tensor summaries to a bundle, from 1 on (report/bundle.h): an
 * object or its text. 0; -ENOENT: there is none of this user and job; -EBUSY: it is only in memory
 * just now, where there is no place for that; -ENOSPC: the bundle would be more than a sixteenth of
 * what the store may hold; or -errno.
 */
int cw_store_add_elsewhere(struct cw_store *store, uint32_t uid, const char *job, const char *id,
			   unsigned n, const json_t *doc);

/*
 * An open bundle of an incident that nobody has open any more is closed as "unseen" after this: its
 * leader is another one now, or was started anew, and when the hang ended is not known. Far longer
 * than a hang takes to be found again.
 */
#define CW_STORE_UNSEEN_NS (600 * CW_NS_PER_S)
/* Whether some node has this user's incident open, as far as is known here. */
typedef bool (*cw_store_open_fn)(uint32_t uid, const char *job, const char *id, void *user);
/*
 * Closes one such bundle, if there is one; call it every few seconds. True: it closed one. Whoever
 * finds the hang again opens it again.
 */
bool cw_store_close_unseen(struct cw_store *store, cw_store_open_fn is_open, void *user);
/*
 * Keeps a job's epitaph, a collwatch.epitaph/1: in the bundle of its id, else as one of its own.
 * 0, -EEXIST: that has one already; -EINVAL and -EPERM as cw_store_put(), other -errno: it is kept
 * in memory, as a bundle is.
 */
int cw_store_bury(struct cw_store *store, json_t *epitaph);

/* Whose bundle it is, by its label; NULL = there is none of this user. Borrowed until the next put.
 */
const char *cw_store_job(struct cw_store *store, uint32_t uid, const char *id);

/* Alerts that were delivered, by whose they are and id, across restarts: none goes out twice. */
bool cw_store_was_sent(struct cw_store *store, uint32_t uid, const char *id);
/*
 * The word that an alert was settled with under its id of older versions, which anybody could
 * choose; NULL = it was not. It counts only where they left a bundle of this user's job under it,
 * or where it was noted with this uid. Bundles under such ids are made no more, so nobody can
 * provide one afterwards.
 */
const char *cw_store_sent_before(struct cw_store *store, uint32_t uid, const char *job,
				 const char *old_id);
/* The word its alert was settled with; "" = it was sent, or is not settled. */
const char *cw_store_sent_how(struct cw_store *store, uint32_t uid, const char *id);
/* The word for an alert that another node's webhook took. */
#define CW_STORE_ELSEWHERE "elsewhere"
/* The word for one that was over before an alert of it was delivered: it may be opened again, and
 * then its alert goes out. */
#define CW_STORE_OVER CW_SENT_OVER
/* Whether this user's bundle is there and says that its trouble is over. In memory. */
bool cw_store_is_over(struct cw_store *store, uint32_t uid, const char *id);
/* Ids of the last day that an older version noted so, without saying whose they are. */
void cw_store_each_elsewhere(struct cw_store *store, void (*fn)(const char *id, void *user),
			     void *user);
/*
 * Alerts that nobody is known to have got, because the server was away until the job or the daemon
 * ended: new reference to the incident of a bundle of the last day whose id is not marked as sent,
 * each one again only after five minutes. NULL = there is none.
 */
json_t *cw_store_next_unsent(struct cw_store *store);
/* Forgets the five minutes: the way out is another one now. */
void cw_store_resend_soon(struct cw_store *store);
/* The same for many in one write. */
int cw_store_mark_all_sent(struct cw_store *store, uint32_t uid, const char *const *ids, size_t n,
			   const char *how);
/* how: "" = the server has it; else the word for why nobody was told. */
int cw_store_mark_sent(struct cw_store *store, uint32_t uid, const char *id, const char *how);
