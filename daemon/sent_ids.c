/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sent_ids.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/htable.h"

/* An incident is alerted within minutes of its birth: 4,096 ids are years of hangs. */
#define MAX_IDS 4096u
#define ID_MAX 64
#define HOW_MAX 15
#define FILE_NAME "sent"
#define TEMP_NAME ".sent.new"

struct sent_id {
	char id[ID_MAX + 1];
	int64_t wall_ns;
	char how[HOW_MAX + 1];
	UT_hash_handle hh; /* in order of arrival: the first is the oldest */
};

struct cw_sent_ids {
	int dirfd;
	struct sent_id *table;
	bool is_dirty;
};

bool cw_incident_id_is_valid(const char *id)
{
	size_t len = strspn(id, "0123456789abcdef-");

	return len > 0 && len <= ID_MAX && id[len] == '\0' && id[0] != '-';
}

static void forget(struct cw_sent_ids *ids, struct sent_id *entry)
{
	HASH_DEL(ids->table, entry);
	free(entry);
}

static int remember(struct cw_sent_ids *ids, const char *id, int64_t wall_ns, const char *how)
{
	struct sent_id *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	(void)snprintf(entry->id, sizeof(entry->id), "%s", id);
	entry->wall_ns = wall_ns;
	(void)snprintf(entry->how, sizeof(entry->how), "%s", how);
	HASH_ADD_STR(ids->table, id, entry);
	if (!cw_htable_added(entry)) {
		free(entry);
		return -ENOMEM;
	}
	while (HASH_COUNT(ids->table) > MAX_IDS)
		forget(ids, ids->table);
	return 0;
}

static void load(struct cw_sent_ids *ids, FILE *f)
{
	char line[128], id[ID_MAX + 1], how[HOW_MAX + 1];
	int64_t wall_ns;

	while (fgets(line, sizeof(line), f)) {
		how[0] = '\0';
		if (sscanf(line, "%64s %" SCNd64 " %15[a-z_]", id, &wall_ns, how) < 2 ||
		    !cw_incident_id_is_valid(id) || cw_sent_ids_has(ids, id))
			continue;
		if (remember(ids, id, wall_ns, how) < 0)
			return;
	}
}

int cw_sent_ids_open(int dirfd, struct cw_sent_ids **ret)
{
	struct cw_sent_ids *ids = calloc(1, sizeof(*ids));
	FILE *f;
	int fd;

	if (!ids)
		return -ENOMEM;
	ids->dirfd = dirfd;
	fd = openat(dirfd, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	f = fd < 0 ? NULL : fdopen(fd, "re");
	if (f) {
		load(ids, f);
		(void)fclose(f); /* only read */
	} else if (fd >= 0) {
		(void)close(fd); /* only opened */
	}
	*ret = ids;
	return 0;
}

struct cw_sent_ids *cw_sent_ids_close(struct cw_sent_ids *ids)
{
	if (!ids)
		return NULL;
	while (ids->table)
		forget(ids, ids->table);
	free(ids);
	return NULL;
}

int64_t cw_sent_ids_complete_since(const struct cw_sent_ids *ids)
{
	return HASH_COUNT(ids->table) < MAX_IDS ? 0 : ids->table->wall_ns;
}

bool cw_sent_ids_has(const struct cw_sent_ids *ids, const char *id)
{
	struct sent_id *entry;

	HASH_FIND_STR(ids->table, id, entry);
	return entry != NULL;
}

const char *cw_sent_ids_how(const struct cw_sent_ids *ids, const char *id)
{
	struct sent_id *entry;

	HASH_FIND_STR(ids->table, id, entry);
	return entry ? entry->how : "";
}

/* All or nothing: a torn file would make an alert go out twice. */
static int write_file(struct cw_sent_ids *ids, int fd)
{
	struct sent_id *entry, *next;

	HASH_ITER (hh, ids->table, entry, next) {
		if (dprintf(fd, "%s %" PRId64 "%s%s\n", entry->id, entry->wall_ns,
			    *entry->how ? " " : "", entry->how) < 0)
			return errno > 0 ? -errno : -EIO;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

int cw_sent_ids_flush(struct cw_sent_ids *ids)
{
	_cleanup_(closep) int fd = -1;
	int r;

	if (!ids->is_dirty)
		return 0;
	fd = openat(ids->dirfd, TEMP_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    0640);
	if (fd < 0)
		return -errno;
	r = write_file(ids, fd);
	if (r == 0 && renameat(ids->dirfd, TEMP_NAME, ids->dirfd, FILE_NAME) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(ids->dirfd, TEMP_NAME, 0); /* it is replaced next time anyway */
		return r;
	}
	ids->is_dirty = false;
	return 0;
}

int cw_sent_ids_add(struct cw_sent_ids *ids, const char *id, int64_t wall_ns, const char *how)
{
	int r;

	if (!cw_incident_id_is_valid(id) || strlen(how) > HOW_MAX ||
	    how[strspn(how, "abcdefghijklmnopqrstuvwxyz_")])
		return -EINVAL;
	if (cw_sent_ids_has(ids, id))
		return cw_sent_ids_flush(ids);
	r = remember(ids, id, wall_ns, how);
	if (r < 0)
		return r;
	ids->is_dirty = true;
	return cw_sent_ids_flush(ids);
}
