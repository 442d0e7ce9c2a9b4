/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of alerts that are settled: a server has accepted the alert, or there is a reason not to
 * send it. The ids survive a restart of the daemon, so that no alert goes out twice. A small text
 * file has one line "id wall_ns how uid" per id. We replace the file by rename. `how` is "sent", or
 * the reason for not sending the alert. The key of an alert is its uid and its id together. A user
 * therefore cannot settle another user's alert.
 *
 * A line "# forgotten uid wall_ns" means that we have dropped ids of this user because of a limit.
 * wall_ns is the time of the newest dropped id. A uid of -1 means every user.
 *
 * Loop thread only. Adding an id writes and syncs a file of at most a few hundred KiB.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cw_sent_ids;

/*
 * The word for an incident that was over before its alert was delivered. A later word replaces this
 * one.
 */
#define CW_SENT_OVER "over"

/*
 * Reads the ids from <dirfd>/sent. A missing file means no ids. We skip invalid lines. If the file
 * has more lines than we ever write, we refuse and count the rest (cw_sent_ids_refused()). dirfd:
 * borrowed until cw_sent_ids_close(); -1 = the directory does not exist yet. Returns 0 or -ENOMEM.
 */
int cw_sent_ids_open(int dirfd, struct cw_sent_ids **ret);
/*
 * Sets the directory, now that it exists. Reads the ids in its file, which count as older than the
 * ids in memory, and writes the file.
 */
void cw_sent_ids_attach(struct cw_sent_ids *ids, int dirfd);
/* Returns the number of files that had more lines than we ever write. */
uint64_t cw_sent_ids_refused(const struct cw_sent_ids *ids);
struct cw_sent_ids *cw_sent_ids_close(struct cw_sent_ids *ids);

/*
 * Returns the wall time since when the ids of this user are complete. 0 = we have never dropped an
 * id of this user. At the limit we drop the oldest id of the user with the most ids. A user with
 * thousands of alerts therefore loses only ids of this user.
 */
int64_t cw_sent_ids_complete_since(const struct cw_sent_ids *ids, uint32_t uid);

/* True if the id was added with this uid. */
bool cw_sent_ids_has(const struct cw_sent_ids *ids, uint32_t uid, const char *id);
/*
 * Returns the word of an id. "" = the alert was sent, or the id is unknown. Borrowed until the next
 * addition.
 */
const char *cw_sent_ids_how(const struct cw_sent_ids *ids, uint32_t uid, const char *id);

/*
 * Adds an id and writes the file. how: a word; "" = the alert was sent. Returns 0 or -errno.
 * -EINVAL: the id or word is malformed. -ENOMEM: the id may be lost. After any other -errno the id
 * is in memory, and cw_sent_ids_flush() tries to write the file again.
 */
int cw_sent_ids_add(struct cw_sent_ids *ids, uint32_t uid, const char *id, int64_t wall_ns,
		    const char *how);

/*
 * Like cw_sent_ids_add(), but does not write the file. Use this for many ids, and then call
 * cw_sent_ids_flush(). Returns 0, -EINVAL or -ENOMEM.
 */
int cw_sent_ids_note(struct cw_sent_ids *ids, uint32_t uid, const char *id, int64_t wall_ns,
		     const char *how);

/* Writes the file if it lacks ids. Returns 0 if the file is complete, otherwise -errno. */
int cw_sent_ids_flush(struct cw_sent_ids *ids);
