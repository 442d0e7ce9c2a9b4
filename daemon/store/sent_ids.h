/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of alerts a server has accepted, across restarts of the daemon, so that none goes out
 * twice: a small text file, one "id wall_ns how uid" per line, replaced by rename. `how` says why
 * an alert was settled without being sent; "sent" where it was. An alert is known by uid and id
 * together: nobody settles another user's.
 *
 * "# forgotten uid wall_ns" says of a user whose ids had to make room when the newest of these was
 * added.
 *
 * Lines of older versions, "id wall_ns [how]", do not say whose: they are kept, under
 * CW_SENT_NO_UID alone, and mean nothing for an alert of a known user (cw_store_sent_before()).
 *
 * Loop thread only. Adding an id writes and syncs a file of at most a few hundred KiB.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cw_sent_ids;

#define CW_SENT_NO_UID (-1)
/* The word of one that was over before an alert was delivered: a later word replaces it. */
#define CW_SENT_OVER "over"

/*
 * Reads <dirfd>/sent (missing = none yet; unreadable lines are skipped, and what is beyond the
 * number that was ever written is refused: cw_sent_ids_refused()). dirfd is borrowed for the
 * object's life; -1 = there is no directory yet. 0 or -ENOMEM.
 */
int cw_sent_ids_open(int dirfd, struct cw_sent_ids **ret);
/* There is one now: what lies there comes before what was added meanwhile, which is written. */
void cw_sent_ids_attach(struct cw_sent_ids *ids, int dirfd);
/* Lines of the file that are none of ours by their number. */
uint64_t cw_sent_ids_refused(const struct cw_sent_ids *ids);
struct cw_sent_ids *cw_sent_ids_close(struct cw_sent_ids *ids);

/*
 * This user's ids added after this wall time are all still known; 0 = none was ever forgotten.
 * Where all places are taken, the oldest of the user with most of them goes: a user whose alerts
 * come by the thousand makes only their own be forgotten.
 */
int64_t cw_sent_ids_complete_since(const struct cw_sent_ids *ids, int64_t uid);

/* uid: as it was added, CW_SENT_NO_UID included; it stands for no other. */
bool cw_sent_ids_has(const struct cw_sent_ids *ids, int64_t uid, const char *id);
/* The word it was added with; "" = sent, or not there. Borrowed until the next addition. */
const char *cw_sent_ids_how(const struct cw_sent_ids *ids, int64_t uid, const char *id);

/*
 * Remembers id; how: a word, "" = it was sent. 0, -EINVAL when malformed, or another -errno: then
 * it is remembered in memory and cw_sent_ids_flush() tries the file again.
 */
int cw_sent_ids_add(struct cw_sent_ids *ids, uint32_t uid, const char *id, int64_t wall_ns,
		    const char *how);

/* Those without a uid that were added with this word. */
typedef void (*cw_sent_ids_fn)(const char *id, void *user);
void cw_sent_ids_each_unowned(const struct cw_sent_ids *ids, const char *how, int64_t since_wall_ns,
			      cw_sent_ids_fn fn, void *user);

/* The same for several at once: in memory only, until cw_sent_ids_flush(). 0, -EINVAL or -ENOMEM.
 */
int cw_sent_ids_note(struct cw_sent_ids *ids, uint32_t uid, const char *id, int64_t wall_ns,
		     const char *how);

/* 0 when the file holds everything. */
int cw_sent_ids_flush(struct cw_sent_ids *ids);
