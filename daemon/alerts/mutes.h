/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs whose hangs nobody wants to be told of for a while: `collwatch mute`. Kept by user and
 * label, so that a job that starts again stays muted, in a small file of the state directory.
 *
 * A mute is typed on any node of the job and kept by all of them that can be reached
 * (control_nodes.h); the leader may be another one, and digests carry it there.
 *
 * Loop thread only; a change writes and syncs a file of a few KiB.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

struct cw_mutes;

/*
 * A user that mutes more jobs than this should not have jobs watched; nor is more believed of one
 * other node, whoever's jobs they are.
 */
#define CW_MUTES_MAX_PER_UID 64u
/* Of all users, who share them (identity/shares.h). */
#define CW_MUTES_MAX 1024u
/* A mute that another node's digests no longer tell of is over after this. */
#define CW_MUTES_HEARD_NS (30 * CW_NS_PER_S)
#define CW_MUTE_FOR_EVER INT64_MAX

/*
 * Reads <dir>/mutes (missing = none; unreadable lines are skipped, and those beyond the number that
 * is ever written refused, counted and said). Where the directory cannot be had, mutes are kept in
 * memory until it can. 0 or -ENOMEM.
 */
int cw_mutes_open(const char *dir, const struct cw_clock *clock, struct cw_mutes **ret);
/* Takes NULL; returns NULL. */
struct cw_mutes *cw_mutes_close(struct cw_mutes *m);

/*
 * Mutes until that wall time; replaces an earlier one. -EDQUOT: this user, -ENOSPC: everybody
 * together has too many; -EINVAL: not a label of one line. Another -errno: it holds, but could not
 * be written, so a restart ends it.
 */
int cw_mutes_set(struct cw_mutes *m, uint32_t uid, const char *label, int64_t until_wall_ns);
/* Also what was heard of it. -ENOENT: was not muted here. Another -errno as above. */
int cw_mutes_unset(struct cw_mutes *m, uint32_t uid, const char *label);

/* A node's digest told that it has muted the job until then; 0 = that it has not. */
void cw_mutes_heard(struct cw_mutes *m, const char *node, uint32_t uid, const char *label,
		    int64_t until_wall_ns);

/* Another node wanted a job muted that it has nothing to do with: counted and logged. */
void cw_mutes_doubted(struct cw_mutes *m, const char *node, uint32_t uid, const char *label);
uint64_t cw_mutes_doubts(const struct cw_mutes *m);

/* Wall time; 0 = not muted. own: by this node itself, else by anybody. */
int64_t cw_mutes_own_until(struct cw_mutes *m, uint32_t uid, const char *label);
int64_t cw_mutes_until(struct cw_mutes *m, uint32_t uid, const char *label);
/* A node that has muted the job, for people; "" = this one, NULL = nobody. */
const char *cw_mutes_where(struct cw_mutes *m, uint32_t uid, const char *label);

/* Writes what could not be written, once the directory is there; call it every few seconds. */
void cw_mutes_retry(struct cw_mutes *m);

/* Those beyond a limit so far. */
uint64_t cw_mutes_refused(const struct cw_mutes *m);

typedef void (*cw_mutes_fn)(uint32_t uid, const char *label, int64_t until_wall_ns, void *user);
/* The own ones. */
void cw_mutes_each(struct cw_mutes *m, cw_mutes_fn fn, void *user);
