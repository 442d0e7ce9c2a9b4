/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of alerts that a server has accepted. We keep them across restarts of the daemon, so that
 * no alert goes out twice. The store is a small text file with one "id wall_ns how uid" per line,
 * replaced by rename. `how` is the reason why an alert was settled without being sent, or "sent".
 * The key of an alert is uid and id together, so no user can settle another user's alert.
 *
 * A line "# forgotten uid wall_ns" records that some ids of this user were dropped at the limit.
 * The time is that of the newest dropped id. The uid -1 stands for every user.
 *
 * Loop thread only. Adding an id writes and syncs a file of at most a few hundred KiB.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cw_sent_ids;

/*
 * The word for an incident that was over before its alert was delivered. A later word replaces it.
 */
#define CW_SENT_OVER "over"

/*
 * Reads <dirfd>/sent. A missing file means no ids. We skip unreadable lines. If the file has more
 * lines than we ever write, we refuse the rest: cw_sent_ids_refused(). dirfd is borrowed for the
 * object's life; -1 = no directory yet. 0 or -ENOMEM.
 */
int cw_sent_ids_open(int dirfd, struct cw_sent_ids **ret);
/*
 * Attaches the directory once it exists, and writes the result. The ids in its file count as older
 * than the ids added meanwhile.
 */
void cw_sent_ids_attach(struct cw_sent_ids *ids, int dirfd);
/* Returns how often a file had more lines than we write. */
uint64_t cw_sent_ids_refused(const struct cw_sent_ids *ids);
struct cw_sent_ids *cw_sent_ids_close(struct cw_sent_ids *ids);

/*
 * Returns a wall time. All ids of this user that were added after it are still known; 0 = we never
 * dropped any. At the limit, we drop the oldest id of the user with the most ids. So a user with
 * thousands of alerts only loses their own ids.
 */
int64_t cw_sent_ids_complete_since(const struct cw_sent_ids *ids, uint32_t uid);

/* True if the id was added with this uid. */
bool cw_sent_ids_has(const struct cw_sent_ids *ids, uint32_t uid, const char *id);
/* Returns the word of the id; "" = sent, or the id is unknown. Borrowed until the next addition. */
const char *cw_sent_ids_how(const struct cw_sent_ids *ids, uint32_t uid, const char *id);

/*
 * Adds an id. how is a word; "" = sent. 0, -EINVAL if malformed, or -ENOMEM (the id may be lost).
 * After another -errno the id is in memory, and cw_sent_ids_flush() writes the file again.
 */
int cw_sent_ids_add(struct cw_sent_ids *ids, uint32_t uid, const char *id, int64_t wall_ns,
		    const char *how);

/*
 * Like cw_sent_ids_add(), but only in memory until cw_sent_ids_flush(). Use it for many ids. 0,
 * -EINVAL or -ENOMEM.
 */
int cw_sent_ids_note(struct cw_sent_ids *ids, uint32_t uid, const char *id, int64_t wall_ns,
		     const char *how);

/* Writes the file if it is not complete. 0 if it is complete now. */
int cw_sent_ids_flush(struct cw_sent_ids *ids);
