/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file has the mutes of this node. Mutes of other nodes exist only in memory, as long as
 * digests report them. If a job has several mutes, the longest counts. For each change we write a
 * whole new file and rename it. If this fails, we try again later.
 */
#include "daemon/alerts/mutes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/store/state_file.h"
#include "identity/quota.h"

#define FILE_NAME "mutes"
#define TEMP_NAME ".mutes.new"
/* Longest label of a job that fits into messages. */
#define MAX_LABEL 1024

struct mute {
	struct mute *next, *prev;
	char *node; /* the node that reported the mute; NULL = this node */
	char *label;
	uint32_t uid;
	int64_t until_wall_ns;
	int64_t last_seen_ns; /* awake time of the last report; only for mutes of other nodes */
};

struct cw_mutes {
	char *dir;
	int dir_fd;    /* -1 = we could not open the directory yet */
	bool is_dirty; /* the file lacks at least one change */
	const struct cw_clock *clock;
	struct mute *list;
	uint64_t refused, unconfirmed;
};

static void forget(struct cw_mutes *m, struct mute *mute)
{
	DL_DELETE(m->list, mute);
	free(mute->node);
	free(mute->label);
	free(mute);
}

static void drop_old(struct cw_mutes *m)
{
	int64_t wall = cw_clock_wall_ns(m->clock), now = cw_clock_awake_ns(m->clock);
	struct mute *mute, *tmp;

	DL_FOREACH_SAFE (m->list, mute, tmp)
		if (mute->until_wall_ns <= wall ||
		    (mute->node && now - mute->last_seen_ns > CW_MUTES_REMOTE_KEEP_NS))
			forget(m, mute);
}

static struct mute *find(const struct cw_mutes *m, const char *node, uint32_t uid,
			 const char *label)
{
	struct mute *mute;

	DL_FOREACH (m->list, mute)
		if (mute->uid == uid && !strcmp(mute->label, label) && !mute->node == !node &&
		    (!node || !strcmp(mute->node, node)))
			return mute;
	return NULL;
}

/*
 * Makes room for one more mute of uid. Returns false if the number of mutes is at its limit and the
 * quotas protect all of them.
 */
static bool make_room(struct cw_mutes *m, uint32_t uid)
{
	static struct cw_quota_charge charges[CW_MUTES_MAX];
	void *displaced = NULL;
	struct mute *mute;
	size_t n = 0;

	DL_FOREACH (m->list, mute) {
		/* The list is in order of arrival, so the index serves as the time. */
		charges[n] = (struct cw_quota_charge){ .uid = mute->uid,
						       .since_ns = (int64_t)n,
						       .holder = mute };
		n++;
	}
	switch (cw_quota_charge_for(uid, charges, n, CW_MUTES_MAX, &displaced)) {
	case CW_QUOTA_ADMIT:
		return true;
	case CW_QUOTA_DISPLACE:
		mute = displaced;
		log_notice(
			"job=%s uid=%u: no longer muted, to make room for a mute of another user",
			mute->label, mute->uid);
		forget(m, mute);
		return true;
	default:
		return false;
	}
}

static int add(struct cw_mutes *m, const char *node, uint32_t uid, const char *label,
	       struct mute **ret)
{
	unsigned same = 0;
	struct mute *mute;

	/* Limit each other node, so that its reports cannot use up the limit of all mutes. */
	DL_FOREACH (m->list, mute) {
		if (node)
			same += mute->node && !strcmp(mute->node, node);
		else
			same += !mute->node && mute->uid == uid;
	}
	if (same >= CW_MUTES_MAX_PER_UID || !make_room(m, uid)) {
		m->refused++;
		return same >= CW_MUTES_MAX_PER_UID ? -EDQUOT : -ENOSPC;
	}
	mute = calloc(1, sizeof(*mute));
	if (mute)
		mute->label = strdup(label);
	if (mute && node)
		mute->node = strdup(node);
	if (!mute || !mute->label || (node && !mute->node)) {
		if (mute)
			free(mute->label);
		free(mute);
		return -ENOMEM;
	}
	mute->uid = uid;
	DL_APPEND(m->list, mute);
	*ret = mute;
	return 0;
}

/* ---- the file: one line per mute, "uid until_wall_ns label" ---- */

static void load(struct cw_mutes *m, FILE *file)
{
	char line[MAX_LABEL + 64];
	struct mute *mute;

	for (unsigned lines = 0; fgets(line, sizeof(line), file); lines++) {
		int64_t until = 0;
		uint32_t uid = 0;
		int at = 0;

		if (lines == CW_MUTES_MAX) {
			m->refused++;
			log_err("the state directory's file of mutes has more than %u lines, "
				"refusing the rest",
				CW_MUTES_MAX);
			return;
		}
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%" SCNu32 " %" SCNd64 " %n", &uid, &until, &at) < 2 || !at ||
		    !line[at] || find(m, NULL, uid, line + at) ||
		    add(m, NULL, uid, line + at, &mute) < 0)
			continue;
		mute->until_wall_ns = until;
	}
}

static int write_all(const struct cw_mutes *m, int fd)
{
	const struct mute *mute;

	DL_FOREACH (m->list, mute)
		if (!mute->node && dprintf(fd, "%" PRIu32 " %" PRId64 " %s\n", mute->uid,
					   mute->until_wall_ns, mute->label) < 0)
			return errno > 0 ? -errno : -EIO;
	return fsync(fd) < 0 ? -errno : 0;
}

static int save(struct cw_mutes *m)
{
	_cleanup_(closep) int fd = cw_state_file_create(m->dir_fd, TEMP_NAME);
	int r = fd < 0 ? fd : write_all(m, fd);

	if (r == 0 && renameat(m->dir_fd, TEMP_NAME, m->dir_fd, FILE_NAME) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		/* If this fails, the next save replaces the file. */
		(void)unlinkat(m->dir_fd, TEMP_NAME, 0);
	m->is_dirty = r < 0;
	return r;
}

/*
 * Opens the directory and loads the file. Mutes that were set before this stay, because they are
 * newer than the file.
 */
static void attach(struct cw_mutes *m)
{
	FILE *file = NULL;
	int fd;

	m->dir_fd = open(m->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->dir_fd < 0)
		return; /* the store logs the reason */
	fd = cw_state_file_open(m->dir_fd, FILE_NAME);
	if (fd >= 0)
		file = fdopen(fd, "re");
	if (file) {
		load(m, file);
		(void)fclose(file); /* harmless: we only read the file */
	} else if (fd >= 0) {
		(void)close(fd); /* harmless: we only opened it */
	}
	drop_old(m);
}

int cw_mutes_open(const char *dir, const struct cw_clock *clock, struct cw_mutes **ret)
{
	struct cw_mutes *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->dir = strdup(dir);
	if (!m->dir) {
		free(m);
		return -ENOMEM;
	}
	m->clock = clock;
	attach(m);
	*ret = m;
	return 0;
}

void cw_mutes_retry(struct cw_mutes *m)
{
	if (m->dir_fd < 0)
		attach(m);
	if (m->is_dirty && m->dir_fd >= 0)
		(void)save(m); /* if this fails, the next call tries again */
}

struct cw_mutes *cw_mutes_close(struct cw_mutes *m)
{
	if (!m)
		return NULL;
	while (m->list)
		forget(m, m->list);
	closep(&m->dir_fd);
	free(m->dir);
	free(m);
	return NULL;
}

/* ---- mutes ---- */

int cw_mutes_set(struct cw_mutes *m, uint32_t uid, const char *label, int64_t until_wall_ns)
{
	struct mute *mute;
	int r;

	if (!*label || *label == ' ' || strlen(label) > MAX_LABEL || strchr(label, '\n'))
		return -EINVAL;
	drop_old(m);
	mute = find(m, NULL, uid, label);
	r = mute ? 0 : add(m, NULL, uid, label, &mute);
	if (r < 0)
		return r;
	mute->until_wall_ns = until_wall_ns;
	return save(m);
}

int cw_mutes_unset(struct cw_mutes *m, uint32_t uid, const char *label)
{
	struct mute *mute, *tmp;

	drop_old(m);
	if (!find(m, NULL, uid, label))
		return -ENOENT;
	/*
	 * Forget the mutes that other nodes reported, too. If a node still mutes the job, it
	 * reports this again within 1 s.
	 */
	DL_FOREACH_SAFE (m->list, mute, tmp)
		if (mute->uid == uid && !strcmp(mute->label, label))
			forget(m, mute);
	return save(m);
}

void cw_mutes_merge_remote(struct cw_mutes *m, const char *node, uint32_t uid, const char *label,
			   int64_t until_wall_ns)
{
	struct mute *mute = m->list ? find(m, node, uid, label) : NULL;

	if (until_wall_ns <= 0) {
		if (mute)
			forget(m, mute);
		return;
	}
	if (!mute) {
		drop_old(m);
		if (add(m, node, uid, label, &mute) < 0)
			return; /* over a limit: we do not mute the job */
		log_notice("job=%s uid=%" PRIu32 ": muted on %s", label, uid, node);
	}
	mute->until_wall_ns = until_wall_ns;
	mute->last_seen_ns = cw_clock_awake_ns(m->clock);
}

int64_t cw_mutes_own_until(struct cw_mutes *m, uint32_t uid, const char *label)
{
	const struct mute *mute;

	if (!m->list)
		return 0;
	drop_old(m);
	mute = find(m, NULL, uid, label);
	return mute ? mute->until_wall_ns : 0;
}

/* Returns the job's mute that ends last; NULL = the job is not muted. */
static const struct mute *longest(struct cw_mutes *m, uint32_t uid, const char *label)
{
	const struct mute *mute, *best = NULL;

	drop_old(m);
	DL_FOREACH (m->list, mute)
		if (mute->uid == uid && !strcmp(mute->label, label) &&
		    (!best || mute->until_wall_ns > best->until_wall_ns))
			best = mute;
	return best;
}

int64_t cw_mutes_until(struct cw_mutes *m, uint32_t uid, const char *label)
{
	const struct mute *mute = longest(m, uid, label);

	return mute ? mute->until_wall_ns : 0;
}

const char *cw_mutes_where(struct cw_mutes *m, uint32_t uid, const char *label)
{
	const struct mute *mute = longest(m, uid, label);

	return !mute ? NULL : mute->node ? mute->node : "";
}

void cw_mutes_note_unconfirmed(struct cw_mutes *m, const char *node, uint32_t uid,
			       const char *label)
{
	m->unconfirmed++;
	log_warn("job=%s uid=%" PRIu32 ": %s wants it muted and has no ranks of it, ignoring",
		 label, uid, node);
}

uint64_t cw_mutes_unconfirmed(const struct cw_mutes *m)
{
	return m->unconfirmed;
}

uint64_t cw_mutes_refused(const struct cw_mutes *m)
{
	return m->refused;
}

void cw_mutes_each(struct cw_mutes *m, cw_mutes_fn fn, void *user)
{
	const struct mute *mute;

	drop_old(m);
	DL_FOREACH (m->list, mute)
		if (!mute->node)
			fn(mute->uid, mute->label, mute->until_wall_ns, user);
}
