/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Muted jobs. With `collwatch mute` a user suppresses the alerts about a job for a while. A mute is
 * stored by user and label, so a job that starts again stays muted. A small file in the state
 * directory holds the mutes.
 *
 * The user mutes a job on any of its nodes. Every reachable node of the job then stores the mute
 * (control_nodes.h). The leader may run on another node. Digests carry the mute to the leader.
 *
 * Loop thread only; a change writes and syncs a file of a few KiB.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

struct cw_mutes;

/*
 * Maximum number of mutes of one user on this node. A user who needs more should turn collwatch off
 * for these jobs. This is also the limit of mutes that we take from one other node, for all its
 * users together.
 */
#define CW_MUTES_MAX_PER_UID 64u
/* Maximum number of mutes of all users together. Users share them by quotas (identity/quota.h). */
#define CW_MUTES_MAX 1024u
/* We forget another node's mute if its digests have not reported it for this long. */
#define CW_MUTES_REMOTE_KEEP_NS (30 * CW_NS_PER_S)
#define CW_MUTE_FOR_EVER INT64_MAX

/*
 * Reads the mutes from <dir>/mutes. A missing file means no mutes. We skip invalid lines. If the
 * file has more lines than we ever write, we refuse, count and log the rest. While the directory is
 * unavailable, mutes exist only in memory. Returns 0 or -ENOMEM.
 */
int cw_mutes_open(const char *dir, const struct cw_clock *clock, struct cw_mutes **ret);
/* Takes NULL; returns NULL. */
struct cw_mutes *cw_mutes_close(struct cw_mutes *m);

/*
 * Mutes the job until the given wall time, and replaces an earlier mute. Returns 0 or -errno.
 * -EDQUOT: this user has too many mutes. -ENOSPC: all users together have too many. -EINVAL: the
 * label is not a valid label of one line. After any other -errno the mute exists only in memory,
 * because we could not write it. A restart ends it.
 */
int cw_mutes_set(struct cw_mutes *m, uint32_t uid, const char *label, int64_t until_wall_ns);
/*
 * Removes the job's mute, also if another node reported it. Returns 0 or -errno. -ENOENT: the job
 * was not muted on this node. After any other -errno the mute is removed only in memory, because we
 * could not write the file.
 */
int cw_mutes_unset(struct cw_mutes *m, uint32_t uid, const char *label);

/* Records that a digest of `node` reported the job as muted until this wall time; 0 = not muted. */
void cw_mutes_merge_remote(struct cw_mutes *m, const char *node, uint32_t uid, const char *label,
			   int64_t until_wall_ns);

/* Counts and logs a mute from a node that neither runs nor leads the job. We do not obey it. */
void cw_mutes_note_unconfirmed(struct cw_mutes *m, const char *node, uint32_t uid,
			       const char *label);
uint64_t cw_mutes_unconfirmed(const struct cw_mutes *m);

/*
 * Return the wall time at which the mute ends; 0 = the job is not muted. cw_mutes_own_until() looks
 * only at mutes of this node, cw_mutes_until() at those of all nodes.
 */
int64_t cw_mutes_own_until(struct cw_mutes *m, uint32_t uid, const char *label);
int64_t cw_mutes_until(struct cw_mutes *m, uint32_t uid, const char *label);
/*
 * Returns the name of a node that has muted the job, for messages. "" = this node; NULL = the job
 * is not muted.
 */
const char *cw_mutes_where(struct cw_mutes *m, uint32_t uid, const char *label);

/* Writes changes that could not be written before. Call this every few seconds. */
void cw_mutes_retry(struct cw_mutes *m);

/* Returns the number of mutes refused since the start because of a limit. */
uint64_t cw_mutes_refused(const struct cw_mutes *m);

typedef void (*cw_mutes_fn)(uint32_t uid, const char *label, int64_t until_wall_ns, void *user);
/* Calls fn for each mute of this node. */
void cw_mutes_each(struct cw_mutes *m, cw_mutes_fn fn, void *user);
