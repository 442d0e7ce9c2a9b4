/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids are in a table in order of arrival. Their key is uid and id. Each flush writes the whole
 * file under a temporary name and renames it. At the limit, the user with the most ids loses the
 * oldest one. The file then has a line with the time since when the ids of this user are complete.
 */
#include "daemon/store/sent_ids.h"

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
#include "common/log.h"
#include "daemon/store/state_file.h"
#include "leader/incident/incident_id.h"

/*
 * Maximum number of ids. An incident gets its alert within minutes, so 4,096 ids are years of
 * hangs. Users share this limit; see sent_ids.h.
 */
#define MAX_IDS 4096u
/*
 * Maximum number of users for whom we note that we have dropped some of their ids. For all further
 * users together we have one note.
 */
#define MAX_FORGETFUL 256u
#define HOW_MAX 15
#define FILE_NAME "sent"
#define TEMP_NAME ".sent.new"
/*
 * The word that we write for "". A line must have four fields, so the third field must not be
 * empty.
 */
#define HOW_SENT "sent"
/* The beginning of a line that is not an id. */
#define FORGOTTEN "# forgotten"
/* The uid in such a line that means every user. */
#define EVERY_USER (-1)
/*
 * Maximum number of lines that we ever write. If a file has more, another program wrote it. Reading
 * the rest would delay our start.
 */
#define MAX_LINES (MAX_IDS + MAX_FORGETFUL + 1)

/* The key of the table. Fill it with zeros first, because we hash and compare all its bytes. */
struct sent_key {
	uint32_t uid;
	char id[CW_INCIDENT_ID_MAX + 8];
};

struct sent_id {
	struct sent_key key;
	int64_t wall_ns;
	char how[HOW_MAX + 1];
	UT_hash_handle hh; /* the table is in order of arrival: the first id is the oldest */
};

struct forgetful {
	uint32_t uid;
	int64_t wall_ns; /* time of the newest dropped id of this user */
};

struct cw_sent_ids {
	int dirfd;
	struct sent_id *table;
	struct forgetful forgetful[MAX_FORGETFUL];
	unsigned n_forgetful;
	int64_t anybody_ns; /* time of the newest dropped id of all users beyond MAX_FORGETFUL */
	bool is_dirty;
	uint64_t refused;
};

static void make_key(struct sent_key *key, uint32_t uid, const char *id)
{
	memset(key, 0, sizeof(*key));
	key->uid = uid;
	(void)snprintf(key->id, sizeof(key->id), "%s", id);
}

static struct sent_id *find(const struct cw_sent_ids *ids, uint32_t uid, const char *id)
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

static void note_forgotten(struct cw_sent_ids *ids, uint32_t uid, int64_t wall_ns)
{
	struct forgetful *oldest = &ids->forgetful[0];

	for (unsigned i = 0; i < ids->n_forgetful; i++) {
		struct forgetful *f = &ids->forgetful[i];

		if (f->uid == uid) {
			if (wall_ns > f->wall_ns)
				f->wall_ns = wall_ns;
			return;
		}
		if (f->wall_ns < oldest->wall_ns)
			oldest = f;
	}
	if (ids->n_forgetful < MAX_FORGETFUL) {
		ids->forgetful[ids->n_forgetful++] = (struct forgetful){ uid, wall_ns };
		return;
	}
	if (oldest->wall_ns > ids->anybody_ns)
		ids->anybody_ns = oldest->wall_ns;
	*oldest = (struct forgetful){ uid, wall_ns };
}

static int by_uid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns the user with the most ids. At the limit, this user has more than an equal share. */
static uint32_t greediest(const struct cw_sent_ids *ids)
{
	static uint32_t uids[MAX_IDS + 1];
	const struct sent_id *e;
	size_t n = 0, end, most = 0;
	uint32_t found = 0;

	for (e = ids->table; e && n <= MAX_IDS; e = e->hh.next)
		uids[n++] = e->key.uid;
	qsort(uids, n, sizeof(*uids), by_uid);
	for (size_t i = 0; i < n; i = end) {
		for (end = i; end < n && uids[end] == uids[i];)
			end++;
		if (end - i > most) {
			most = end - i;
			found = uids[i];
		}
	}
	return found;
}

static void make_room(struct cw_sent_ids *ids)
{
	uint32_t uid = greediest(ids);
	struct sent_id *e = ids->table;

	while (e->key.uid != uid)
		e = e->hh.next;
	note_forgotten(ids, uid, e->wall_ns);
	forget(ids, e);
}

static int remember(struct cw_sent_ids *ids, uint32_t uid, const char *id, int64_t wall_ns,
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
		make_room(ids);
	return 0;
}

static void load(struct cw_sent_ids *ids, FILE *file)
{
	char line[128], id[CW_INCIDENT_ID_MAX + 1], how[HOW_MAX + 1];
	int64_t wall_ns, forgotten;
	uint32_t uid;

	for (unsigned lines = 0; fgets(line, sizeof(line), file); lines++) {
		if (lines == MAX_LINES) {
			ids->refused++;
			log_err("the state directory's file of sent alerts has more than %u lines, "
				"refusing the rest",
				MAX_LINES);
			return;
		}
		if (sscanf(line, FORGOTTEN " %" SCNd64 " %" SCNd64, &forgotten, &wall_ns) == 2) {
			if (forgotten == EVERY_USER && wall_ns > ids->anybody_ns)
				ids->anybody_ns = wall_ns;
			else if (forgotten >= 0 && forgotten <= UINT32_MAX)
				note_forgotten(ids, (uint32_t)forgotten, wall_ns);
			continue;
		}
		if (sscanf(line, "%64s %" SCNd64 " %15[a-z_] %" SCNu32, id, &wall_ns, how, &uid) !=
			    4 ||
		    !cw_incident_id_is_valid(id) || find(ids, uid, id))
			continue;
		if (remember(ids, uid, id, wall_ns, strcmp(how, HOW_SENT) == 0 ? "" : how) < 0)
			return;
	}
}

static int by_time(const struct sent_id *a, const struct sent_id *b)
{
	return (a->wall_ns > b->wall_ns) - (a->wall_ns < b->wall_ns);
}

void cw_sent_ids_attach(struct cw_sent_ids *ids, int dirfd)
{
	bool has_own = ids->table != NULL;
	FILE *f;
	int fd;

	ids->dirfd = dirfd;
	fd = cw_state_file_open(dirfd, FILE_NAME);
	f = fd < 0 ? NULL : fdopen(fd, "re");
	if (f) {
		load(ids, f);
		(void)fclose(f); /* harmless: we only read the file */
	} else if (fd >= 0) {
		(void)close(fd); /* harmless: we only opened it */
	}
	if (!has_own)
		return;
	HASH_SORT(ids->table, by_time);
	ids->is_dirty = true;
	(void)cw_sent_ids_flush(ids); /* if this fails, a later flush tries again */
}

int cw_sent_ids_open(int dirfd, struct cw_sent_ids **ret)
{
	struct cw_sent_ids *ids = calloc(1, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	ids->dirfd = -1;
	if (dirfd >= 0)
		cw_sent_ids_attach(ids, dirfd);
	*ret = ids;
	return 0;
}

uint64_t cw_sent_ids_refused(const struct cw_sent_ids *ids)
{
	return ids->refused;
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

int64_t cw_sent_ids_complete_since(const struct cw_sent_ids *ids, uint32_t uid)
{
	for (unsigned i = 0; i < ids->n_forgetful; i++)
		if (ids->forgetful[i].uid == uid && ids->forgetful[i].wall_ns > ids->anybody_ns)
			return ids->forgetful[i].wall_ns;
	return ids->anybody_ns;
}

bool cw_sent_ids_has(const struct cw_sent_ids *ids, uint32_t uid, const char *id)
{
	return find(ids, uid, id) != NULL;
}

const char *cw_sent_ids_how(const struct cw_sent_ids *ids, uint32_t uid, const char *id)
{
	const struct sent_id *entry = find(ids, uid, id);

	return entry ? entry->how : "";
}

/* Returns the text of the whole file in new memory; NULL = out of memory. */
static char *make_text(const struct cw_sent_ids *ids, size_t *ret_len)
{
	const struct sent_id *entry;
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_len);

	if (!f)
		return NULL;
	if (ids->anybody_ns)
		fprintf(f, FORGOTTEN " %d %" PRId64 "\n", EVERY_USER, ids->anybody_ns);
	for (unsigned i = 0; i < ids->n_forgetful; i++)
		fprintf(f, FORGOTTEN " %" PRIu32 " %" PRId64 "\n", ids->forgetful[i].uid,
			ids->forgetful[i].wall_ns);
	for (entry = ids->table; entry; entry = entry->hh.next)
		fprintf(f, "%s %" PRId64 " %s %" PRIu32 "\n", entry->key.id, entry->wall_ns,
			*entry->how ? entry->how : HOW_SENT, entry->key.uid);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

/*
 * Writes the whole file, or leaves the old one. With half of a file, we would send some alerts
 * twice.
 */
static int write_file(struct cw_sent_ids *ids, int fd)
{
	_cleanup_(freep) char *text = NULL;
	size_t len = 0, done = 0;

	text = make_text(ids, &len);
	if (!text)
		return -ENOMEM;
	while (done < len) {
		ssize_t n = write(fd, text + done, len - done);

		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

int cw_sent_ids_flush(struct cw_sent_ids *ids)
{
	_cleanup_(closep) int fd = -1;
	int r;

	if (!ids->is_dirty)
		return 0;
	fd = cw_state_file_create(ids->dirfd, TEMP_NAME);
	if (fd < 0)
		return fd;
	r = write_file(ids, fd);
	if (r == 0 && renameat(ids->dirfd, TEMP_NAME, ids->dirfd, FILE_NAME) < 0)
		r = -errno;
	if (r < 0) {
		/* If this fails, the next flush replaces the file. */
		(void)unlinkat(ids->dirfd, TEMP_NAME, 0);
		return r;
	}
	ids->is_dirty = false;
	return 0;
}

int cw_sent_ids_note(struct cw_sent_ids *ids, uint32_t uid, const char *id, int64_t wall_ns,
		     const char *how)
{
	struct sent_id *entry;
	int r;

	if (!cw_incident_id_is_valid(id) || strlen(how) > HOW_MAX ||
	    how[strspn(how, "abcdefghijklmnopqrstuvwxyz_")])
		return -EINVAL;
	entry = find(ids, uid, id);
	if (entry && strcmp(entry->how, CW_SENT_OVER) != 0)
		return 0;
	if (entry) {
		(void)snprintf(entry->how, sizeof(entry->how), "%s", how);
		ids->is_dirty = true;
		return 0;
	}
	r = remember(ids, uid, id, wall_ns, how);
	ids->is_dirty = ids->is_dirty || r == 0;
	return r;
}

int cw_sent_ids_add(struct cw_sent_ids *ids, uint32_t uid, const char *id, int64_t wall_ns,
		    const char *how)
{
	int r = cw_sent_ids_note(ids, uid, id, wall_ns, how);

	return r < 0 ? r : cw_sent_ids_flush(ids);
}
