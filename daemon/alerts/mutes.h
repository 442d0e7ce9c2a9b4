/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Muted jobs: users silence the alerts about a job for a while with `collwatch mute`. We keep mutes
 * by user and label, so a job that starts again stays muted. A small file in the state directory
 * holds them.
 *
 * The user mutes a job on any of its nodes, and every reachable node of the job keeps the mute
 * (control_nodes.h). The leader may run on another node; digests carry the mute there.
 *
 * Loop thread only; a change writes and syncs a file of a few KiB.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

struct cw_mutes;

/*
 * The limit of mutes of one user. A user with more should not have these jobs watched at all. We
 * also take at most this many from one other node, for all its users together.
 */
#define CW_MUTES_MAX_PER_UID 64u
/* The limit that all users share (identity/quota.h). */
#define CW_MUTES_MAX 1024u
/* A mute of another node ends this long after the last digest that reported it. */
#define CW_MUTES_REMOTE_KEEP_NS (30 * CW_NS_PER_S)
#define CW_MUTE_FOR_EVER INT64_MAX

/*
 * Reads <dir>/mutes. A missing file means no mutes. We skip unreadable lines. If the file has more
 * lines than we ever write, we refuse, count and log the rest. While the directory is unavailable,
 * mutes stay in memory. 0 or -ENOMEM.
 */
int cw_mutes_open(const char *dir, const struct cw_clock *clock, struct cw_mutes **ret);
/* Takes NULL; returns NULL. */
struct cw_mutes *cw_mutes_close(struct cw_mutes *m);

/*
 * Mutes the job until the given wall time and replaces an earlier mute. -EDQUOT: this user has too
 * many. -ENOSPC: all users together have too many. -EINVAL: the label is not a valid label of one
 * line. After another -errno the mute holds, but we could not write it, so a restart ends it.
 */
int cw_mutes_set(struct cw_mutes *m, uint32_t uid, const char *label, int64_t until_wall_ns);
/*
 * Removes the mute, including mutes that other nodes reported. -ENOENT: the job was not muted on
 * this node. Another -errno: the change holds, but we could not write it.
 */
int cw_mutes_unset(struct cw_mutes *m, uint32_t uid, const char *label);

/* Records that a digest of `node` reported a mute of the job until this wall time; 0 = no mute. */
void cw_mutes_merge_remote(struct cw_mutes *m, const char *node, uint32_t uid, const char *label,
			   int64_t until_wall_ns);

/* Counts and logs a mute by a node that neither runs nor leads the job. */
void cw_mutes_note_unconfirmed(struct cw_mutes *m, const char *node, uint32_t uid,
			       const char *label);
uint64_t cw_mutes_unconfirmed(const struct cw_mutes *m);

/*
 * Returns the wall time at which the mute ends; 0 = not muted. cw_mutes_own_until() counts mutes of
 * this node only, cw_mutes_until() those of all nodes.
 */
int64_t cw_mutes_own_until(struct cw_mutes *m, uint32_t uid, const char *label);
int64_t cw_mutes_until(struct cw_mutes *m, uint32_t uid, const char *label);
/*
 * Returns the name of a node that has muted the job, for messages. "" = this node, NULL = not
 * muted.
 */
const char *cw_mutes_where(struct cw_mutes *m, uint32_t uid, const char *label);

/* Writes pending changes as soon as the directory exists. Call it every few seconds. */
void cw_mutes_retry(struct cw_mutes *m);

/* Returns the number of mutes refused so far because of a limit. */
uint64_t cw_mutes_refused(const struct cw_mutes *m);

typedef void (*cw_mutes_fn)(uint32_t uid, const char *label, int64_t until_wall_ns, void *user);
/* Calls fn for each mute of this node. */
void cw_mutes_each(struct cw_mutes *m, cw_mutes_fn fn, void *user);
