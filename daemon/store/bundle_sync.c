/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child syncs the bundles of one item. Two children run at the same time, and further items wait
 * in a queue. An item has one deadline for all its bundles. Its callback comes at this deadline
 * even if the disk hangs. If a child survives SIGKILL, the disk hangs, and we no longer wait for
 * this child.
 */
#include "daemon/store/bundle_sync.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "loop/children.h"
#include "loop/events.h"

/* The child writes no output. Its exit status is the result. */
#define MAX_OUTPUT 1
/*
 * Tries of a child for one bundle. If the daemon replaces a bundle while the child reads it, the
 * child must start again with the new one.
 */
#define ATTEMPTS 3

struct sync_item {
	struct sync_item *next, *prev;
	struct cw_bundle_sync *owner;
	char **ids;
	size_t n;
	struct cw_child *child; /* NULL = the item waits in the queue */
	struct event *timer;
	cw_bundle_sync_fn fn;
	void *user;
};

struct cw_bundle_sync {
	struct event_base *base;
	char *dir;
	struct cw_children *children;
	struct sync_item *items; /* oldest item first */
	unsigned running;
	uint64_t missed;
};

/* ---- in the child ---- */

static int sync_file(int dir_fd, const char *name)
{
	_cleanup_(closep) int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int sync_bundle(int parent_fd, const char *id)
{
	int fd = openat(parent_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			r = sync_file(fd, entry->d_name);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	(void)closedir(dir); /* harmless: we only read the directory */
	return r;
}

static int child_main(int out_fd, const void *arg)
{
	const struct sync_item *item = arg;
	int fd = open(item->owner->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;

	for (size_t i = 0; i < item->n && r == 0; i++) {
		r = sync_bundle(fd, item->ids[i]);
		for (unsigned again = 1; again < ATTEMPTS && r == -ENOENT; again++)
			r = sync_bundle(fd, item->ids[i]);
	}
	return r == 0 && fsync(fd) == 0 ? 0 : 1;
}

/* ---- the queue ---- */

static void item_free(struct sync_item *item)
{
	event_freep(&item->timer);
	for (size_t i = 0; item->ids && i < item->n; i++)
		free(item->ids[i]);
	free(item->ids);
	free(item);
}

static void pump(struct cw_bundle_sync *s);

/* Removes the item from the list. If it has a child, we no longer wait for this child. */
static void take_out(struct sync_item *item)
{
	if (item->child) {
		cw_child_cancel(item->child);
		item->owner->running--;
	}
	DL_DELETE(item->owner->items, item);
}

static void finish(struct sync_item *item, bool is_on_disk)
{
	struct cw_bundle_sync *s = item->owner;
	cw_bundle_sync_fn fn = item->fn;
	void *user = item->user;

	if (!is_on_disk) {
		s->missed++;
		log_warn("inc=%s: its bundle is not synced to disk yet, and the alert does not "
			 "wait for that",
			 item->ids[0]);
	}
	take_out(item);
	item_free(item);
	pump(s);
	fn(is_on_disk, user);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	finish(arg, false);
}

static void on_child(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct sync_item *item = user;

	item->child = NULL;
	item->owner->running--;
	finish(item, end == CW_CHILD_EXITED);
}

/*
 * Starts children for waiting items. If we cannot start a child, its item waits in the queue until
 * its deadline, because the reason may pass.
 */
static void pump(struct cw_bundle_sync *s)
{
	struct sync_item *item;

	DL_FOREACH (s->items, item) {
		struct cw_child_config config = {
			.main = child_main,
			.arg = item,
			.deadline_ms = CW_BUNDLE_SYNC_MS,
			.max_output = MAX_OUTPUT,
			.fn = on_child,
			.user = item,
		};

		if (s->running >= CW_BUNDLE_SYNC_RUNNING)
			return;
		if (!item->child && cw_child_start(s->children, &config, &item->child) == 0)
			s->running++;
	}
}

static int copy_ids(struct sync_item *item, const char *const *ids, size_t n)
{
	item->ids = calloc(n + 1, sizeof(*item->ids));
	if (!item->ids)
		return -ENOMEM;
	for (; item->n < n; item->n++) {
		item->ids[item->n] = strdup(ids[item->n]);
		if (!item->ids[item->n])
			return -ENOMEM;
	}
	return 0;
}

int cw_bundle_sync_start(struct cw_bundle_sync *s, const char *const *ids, size_t n,
			 cw_bundle_sync_fn fn, void *user)
{
	/*
	 * If a child survived SIGKILL, it hangs on this disk. A new child would hang, too, so do
	 * not wait for it.
	 */
	bool is_hopeless = cw_children_abandoned(s->children) > 0;
	const struct timeval deadline = { .tv_sec = is_hopeless ? 0 : CW_BUNDLE_SYNC_MS / 1000 };
	struct sync_item *item = calloc(1, sizeof(*item));

	if (!item)
		return -ENOMEM;
	item->owner = s;
	item->fn = fn;
	item->user = user;
	item->timer = evtimer_new(s->base, on_timeout, item);
	if (copy_ids(item, ids, n) < 0 || !item->timer || evtimer_add(item->timer, &deadline) < 0) {
		item_free(item);
		return -ENOMEM;
	}
	DL_APPEND(s->items, item);
	if (!is_hopeless)
		pump(s);
	return 0;
}

void cw_bundle_sync_cancel(struct cw_bundle_sync *s, const void *user)
{
	struct sync_item *item, *tmp;

	DL_FOREACH_SAFE (s->items, item, tmp) {
		if (item->user != user)
			continue;
		take_out(item);
		item_free(item);
	}
}

uint64_t cw_bundle_sync_missed(const struct cw_bundle_sync *s)
{
	return s->missed;
}

int cw_bundle_sync_new(struct event_base *base, const char *dir, struct cw_bundle_sync **ret)
{
	struct cw_bundle_sync *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->base = base;
	s->dir = strdup(dir);
	if (!s->dir || cw_children_new(base, &s->children) < 0) {
		(void)cw_bundle_sync_free(s); /* always NULL */
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

struct cw_bundle_sync *cw_bundle_sync_free(struct cw_bundle_sync *s)
{
	struct sync_item *item, *tmp;

	if (!s)
		return NULL;
	DL_FOREACH_SAFE (s->items, item, tmp) {
		take_out(item);
		item_free(item);
	}
	(void)cw_children_free(s->children); /* always NULL */
	free(s->dir);
	free(s);
	return NULL;
}
