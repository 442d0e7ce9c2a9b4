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
/* What a line of it says for "": a word always stands there, so that the uid is the fourth. */
#define HOW_SENT "sent"

/* Zeroed before it is filled: hashed and compared as bytes. */
struct sent_key {
	int64_t uid; /* CW_SENT_NO_UID = not said */
	char id[ID_MAX + 8];
};

struct sent_id {
	struct sent_key key;
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

static void make_key(struct sent_key *key, int64_t uid, const char *id)
{
	memset(key, 0, sizeof(*key));
	key->uid = uid;
	(void)snprintf(key->id, sizeof(key->id), "%s", id);
}

static struct sent_id *find(const struct cw_sent_ids *ids, int64_t uid, const char *id)
{
	struct sent_id *entry;
	struct sent_key key;

	make_key(&key, uid, id);
	HASH_FIND(hh, ids->table, &key, sizeof(key), entry);
	return entry;
}

static void forget(struct cw_sent_ids *ids, struct sent_id *entry)
{
	HASH_DEL(ids->table, entry);
	free(entry);
}

static int remember(struct cw_sent_ids *ids, int64_t uid, const char *id, int64_t wall_ns,
		    const char *how)
{
	struct sent_id *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	make_key(&entry->key, uid, id);
	entry->wall_ns = wall_ns;
	(void)snprintf(entry->how, sizeof(entry->how), "%s", how);
	HASH_ADD(hh, ids->table, key, sizeof(entry->key), entry);
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
	int64_t wall_ns, uid;
	uint32_t said;
	int n;

	while (fgets(line, sizeof(line), f)) {
		how[0] = '\0';
		n = sscanf(line, "%64s %" SCNd64 " %15[a-z_] %" SCNu32, id, &wall_ns, how, &said);
		uid = n == 4 ? (int64_t)said : CW_SENT_NO_UID;
		if (n < 2 || !cw_incident_id_is_valid(id) || find(ids, uid, id))
			continue;
		if (remember(ids, uid, id, wall_ns, strcmp(how, HOW_SENT) == 0 ? "" : how) < 0)
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

bool cw_sent_ids_has(const struct cw_sent_ids *ids, int64_t uid, const char *id)
{
	return find(ids, uid, id) != NULL;
}

const char *cw_sent_ids_how(const struct cw_sent_ids *ids, int64_t uid, const char *id)
{
	const struct sent_id *entry = find(ids, uid, id);

	return entry ? entry->how : "";
}

void cw_sent_ids_each_unowned(const struct cw_sent_ids *ids, const char *how, int64_t since_wall_ns,
			      cw_sent_ids_fn fn, void *user)
{
	const struct sent_id *entry, *next;

	HASH_ITER (hh, ids->table, entry, next) {
		if (entry->key.uid == CW_SENT_NO_UID && entry->wall_ns >= since_wall_ns &&
		    !strcmp(entry->how, how))
			fn(entry->key.id, user);
	}
}

static int write_line(int fd, const struct sent_id *entry)
{
	int n;

	if (entry->key.uid == CW_SENT_NO_UID) /* as it was read */
		n = dprintf(fd, "%s %" PRId64 "%s%s\n", entry->key.id, entry->wall_ns,
			    *entry->how ? " " : "", entry->how);
	else
		n = dprintf(fd, "%s %" PRId64 " %s %" PRId64 "\n", entry->key.id, entry->wall_ns,
			    *entry->how ? entry->how : HOW_SENT, entry->key.uid);
	return n >= 0 ? 0 : errno > 0 ? -errno : -EIO;
}

/* All or nothing: a torn file would make an alert go out twice. */
static int write_file(struct cw_sent_ids *ids, int fd)
{
	struct sent_id *entry, *next;
	int r;

	HASH_ITER (hh, ids->table, entry, next) {
		r = write_line(fd, entry);
		if (r < 0)
			return r;
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

int cw_sent_ids_add(struct cw_sent_ids *ids, uint32_t uid, const char *id, int64_t wall_ns,
		    const char *how)
{
	int r;

	if (!cw_incident_id_is_valid(id) || strlen(how) > HOW_MAX ||
	    how[strspn(how, "abcdefghijklmnopqrstuvwxyz_")])
		return -EINVAL;
	if (find(ids, uid, id))
		return cw_sent_ids_flush(ids);
	r = remember(ids, uid, id, wall_ns, how);
	if (r < 0)
		return r;
	ids->is_dirty = true;
	return cw_sent_ids_flush(ids);
}
