/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index has one struct cw_store_entry per bundle, in memory. Listing bundles therefore reads no
 * disk, and the rules for removing bundles (store_retention.h) know all sizes, ages and owners.
 * When the store opens, we make the index from the directories. There is no index on disk, because
 * it could disagree with the bundles.
 *
 * If we cannot write a bundle (disk full, read-only, or gone), its entry keeps the bundle in memory
 * until cw_store_retry() has written it. On ENOSPC we first remove bundles from disk. Another
 * program may be filling the disk, so we remove only a few per try.
 */
#include "daemon/store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/htable.h"
#include "common/log.h"
#include "daemon/store/sent_ids.h"
#include "daemon/store/store_clock.h"
#include "daemon/store/store_dir.h"
#include "daemon/store/store_retention.h"
#include "model/verdict_types.h"
#include "report/doc/incident_facts.h"
#include "report/incident_filter.h"

/*
 * Maximum number of entries in the index. Beyond this number we remove bundles from disk. With a
 * store of 1 GiB this is 64 KiB per bundle.
 */
#define MAX_ENTRIES 16384u
/*
 * Maximum number and total size of the bundles in memory while we cannot write to the disk. They
 * suffice for some hangs of a large job.
 */
#define MAX_HELD 16u
#define MAX_HELD_BYTES (64u << 20)
/* Maximum number of bundles that we remove per try to make room on a full disk. */
#define MAX_EVICT_PER_PUT 8u
/* Maximum number of bundles that we check in one call of cw_store_close_unseen(). */
#define MAX_LOOK 256u
/* Greatest age of an alert that we still send. An older one is no news to any user. */
#define UNSENT_WITHIN_NS (86400 * CW_NS_PER_S)
/*
 * Time until we return an unsent alert again. It is longer than all attempts of the webhook
 * together.
 */
#define RESEND_EVERY_NS (300 * CW_NS_PER_S)
/*
 * Largest snapshot that we read for a query. A larger one does not fit into an answer of one MiB,
 * and reading it would block the loop.
 */
#define MAX_SNAPSHOT_READ (4u << 20)
/* Maximum size of summaries that we read. More would not fit into a message. */
#define MAX_REMOTE_SUMMARIES_READ (1u << 20)
/*
 * The summaries of other nodes may extend a bundle up to 1/16 of the store. Without this limit, a
 * single bundle of one user could push out other users' bundles.
 */
#define REMOTE_SUMMARIES_SHARE 16

struct cw_store {
	char path[PATH_MAX]; /* path of the directory "incidents" */
	char state_dir[PATH_MAX];
	int state_fd, dir_fd; /* -1 = we could not open the directories yet */
	int error;            /* errno of why we cannot write; 0 = we can */
	uint64_t max_bytes;
	int64_t max_age_ns;
	const struct cw_clock *clock;
	struct cw_store_clock age_clock;
	struct cw_store_entry *table;
	struct cw_sent_ids *sent;
	/* Position in the index at which the next check for unseen bundles continues. */
	unsigned looked_at;
	/* User of the bundle that cw_store_next_unsent() returned last. */
	int64_t resent_uid;
	uint64_t lost, removed, refused; /* see struct cw_store_stats */
};

/* ---- the index ---- */

/* Frees the entry and removes it from the index. The bundle on disk stays. */
static void forget(struct cw_store *store, struct cw_store_entry *e)
{
	HASH_DEL(store->table, e);
	cw_bundle_fini(&e->bundle);
	free(e->job);
	free(e->class);
	free(e->summary);
	json_decref(e->hosts);
	free(e);
}

static void entryp(struct cw_store_entry **e)
{
	if (*e)
		free(*e);
}

static struct cw_store_entry *entry_find(struct cw_store *store, const char *id)
{
	struct cw_store_entry *e;

	HASH_FIND_STR(store->table, id, e);
	return e;
}

static struct cw_store_entry *entry_get(struct cw_store *store, const char *id)
{
	_cleanup_(entryp) struct cw_store_entry *e = NULL;
	struct cw_store_entry *added = entry_find(store, id);

	if (added)
		return added;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	(void)snprintf(e->id, sizeof(e->id), "%s", id);
	HASH_ADD_STR(store->table, id, e);
	if (!cw_htable_added(e))
		return NULL;
	return steal_ptr(&e);
}

static void set_text(char **field, const char *text)
{
	char *copy = strdup(cw_fact_text(text));

	if (!copy)
		return; /* out of memory: keep the old text */
	free(*field);
	*field = copy;
}

/* Copies the facts that cw_store_list() returns from an incident to its entry. */
static void describe(struct cw_store_entry *e, const struct cw_incident_facts *incident,
		     int64_t wall_ns)
{
	int64_t confirmed_ns = incident->times ? incident->times->confirmed_wall_ns : 0;

	(void)snprintf(e->closed_as, sizeof(e->closed_as), "%.15s",
		       cw_fact_text(incident->closed_as.text));
	(void)snprintf(e->severity, sizeof(e->severity), "%.15s",
		       cw_fact_text(incident->severity.text));
	(void)snprintf(e->suppressed, sizeof(e->suppressed), "%.15s",
		       cw_fact_text(incident->suppressed));
	e->is_postmortem = incident->severity.number == CW_SEVERITY_FAILED;
	e->has_ending = e->has_ending || incident->ending; /* keep_ending() */
	e->unseen_ns = 0;

	e->wall_ns = wall_ns;
	e->uid = incident->uid;
	set_text(&e->job, incident->job);
	set_text(&e->class, incident->verdict_class.text);
	set_text(&e->summary, incident->summary.text);
	json_decref(e->hosts);
	/* If memory runs out, the hosts are unknown. */
	e->hosts = cw_incident_filter_hosts(incident);
	(void)cw_wall_format(confirmed_ns ? confirmed_ns : wall_ns, e->time);
}

/*
 * Reads the facts of an incident that the leader hands over. Returns 0, -ENOMEM, or -EINVAL if it
 * is no incident of a user's job.
 */
static int read_facts(const json_t *incident, struct cw_arena *arena, struct cw_incident_facts *ret)
{
	int r = cw_incident_facts_read(incident, arena, ret, NULL, NULL);

	if (r == -EBADMSG)
		return -EINVAL;
	return r == 0 && (!ret->id || !cw_incident_id_is_valid(ret->id) || ret->uid < 0) ? -EINVAL
											 : r;
}

static void load_bundle(struct cw_store *store, const char *id)
{
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_incident_facts facts;
	struct cw_store_entry *e;
	json_t *incident;
	struct stat st;

	e = entry_find(store, id);
	if (e && e->is_held)
		/*
		 * The bundle in memory dates from a time without a directory, so it is newer than
		 * the bundle on disk.
		 */
		return;
	if (fstatat(store->dir_fd, id, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return;
	incident = cw_store_dir_incident(store->dir_fd, id);
	e = incident && cw_incident_facts_read(incident, &arena, &facts, NULL, NULL) == 0
		    ? entry_get(store, id)
		    : NULL;
	if (e) {
		describe(e, &facts, st.st_mtim.tv_sec * CW_NS_PER_S + st.st_mtim.tv_nsec);
		e->bytes = cw_store_dir_bytes(store->dir_fd, id);
	} else {
		log_warn("store: bundle %s cannot be read, ignoring", id);
	}
	json_decref(incident);
}

/* True for ".<id>.new". Such a directory remains if a daemon is killed before it renames it. */
static bool is_leftover(const char *name)
{
	char id[80];
	size_t len = strlen(name);

	if (len <= strlen("..new") || len >= sizeof(id) || name[0] != '.' ||
	    strcmp(name + len - 4, ".new") != 0)
		return false;
	(void)snprintf(id, sizeof(id), "%.*s", (int)(len - strlen("..new")), name + 1);
	return cw_incident_id_is_valid(id);
}

static int load_index(struct cw_store *store)
{
	int fd = openat(store->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *d;
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		(void)close(fd); /* harmless: we only read the directory */
		return -ENOMEM;
	}
	while ((d = readdir(dir)) && HASH_COUNT(store->table) < MAX_ENTRIES) {
		if (cw_incident_id_is_valid(d->d_name))
			load_bundle(store, d->d_name);
		else if (is_leftover(d->d_name))
			/* If this fails, the next start tries again. */
			(void)cw_store_dir_remove(store->dir_fd, d->d_name);
	}
	(void)closedir(dir); /* harmless: we only read the directory */
	return 0;
}

/* ---- the directories ---- */

static int open_dirs(struct cw_store *store)
{
	/* If mkdir fails, return its reason, because it tells more than ENOENT. */
	int r = cw_store_dir_make(store->state_dir);
	_cleanup_(freep) char *real = realpath(store->state_dir, NULL);

	if (!real)
		return r < 0 ? r : -errno;
	if ((size_t)snprintf(store->path, sizeof(store->path), "%s/incidents", real) >=
	    sizeof(store->path))
		return -ENAMETOOLONG;
	store->state_fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->state_fd < 0)
		return -errno;
	if (mkdirat(store->state_fd, "incidents", 0750) < 0 && errno != EEXIST)
		return -errno;
	store->dir_fd = openat(store->state_fd, "incidents",
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return store->dir_fd < 0 ? -errno : 0;
}

/*
 * Opens the directories and reads the bundles in them. Bundles that were put in memory before this
 * stay.
 */
static int attach(struct cw_store *store)
{
	int r = open_dirs(store);

	if (r == 0)
		r = load_index(store);
	if (r < 0) {
		closep(&store->dir_fd);
		closep(&store->state_fd);
		store->dir_fd = store->state_fd = -1;
		return r;
	}
	cw_store_clock_open(&store->age_clock, store->state_fd, store->clock);
	cw_sent_ids_attach(store->sent, store->state_fd);
	return 0;
}

static int error_of(const struct cw_store *store)
{
	return faccessat(store->dir_fd, ".", W_OK, AT_EACCESS) < 0 ||
			       faccessat(store->state_fd, ".", W_OK, AT_EACCESS) < 0
		       ? errno
		       : 0;
}

/* Checks that the directory exists and is writable, and logs any change of this. */
static void look_at_dirs(struct cw_store *store)
{
	int r = store->dir_fd < 0 ? attach(store) : 0;
	int error = r < 0 ? -r : error_of(store);

	if (error && error != store->error)
		log_err("state directory %s: %s: running without it, incidents are kept in memory "
			"only, and alerts may go out again after a restart",
			store->state_dir, strerror(error));
	if (!error && store->error)
		log_notice("state directory %s: writable again, using it", store->state_dir);
	store->error = error;
}

/* ---- retention ---- */

static bool evict(struct cw_store *store, struct cw_store_entry *e)
{
	int r;

	if (!e)
		return false;
	r = cw_store_dir_remove(store->dir_fd, e->id);
	if (r < 0) {
		log_warn("store: bundle %s cannot be removed: %s", e->id, strerror(-r));
		return false;
	}
	log_info("store: bundle %s of job=%s removed", e->id, e->job ? e->job : "");
	store->removed++;
	forget(store, e);
	return true;
}

/* Removes one bundle from disk, but never `except`. Returns false if there is no other bundle. */
static bool make_room(struct cw_store *store, const struct cw_store_entry *except)
{
	return evict(store,
		     cw_store_retention_displaced(&store->table, CW_STORE_BY_BYTES, false, except));
}

/*
 * Applies the limits of age, of number and of bytes, in this order. Never removes the bundle that
 * was just written.
 */
static void apply_retention(struct cw_store *store, const struct cw_store_entry *newest)
{
	struct cw_store_entry *e;
	int64_t now;
	bool may_age = cw_store_clock_now(&store->age_clock, &now);

	while (may_age && (e = cw_store_retention_oldest(store->table, false, newest)) &&
	       e->wall_ns < now - store->max_age_ns)
		if (!evict(store, e))
			return;
	while (HASH_COUNT(store->table) > MAX_ENTRIES)
		if (!evict(store, cw_store_retention_displaced(&store->table, CW_STORE_BY_NUMBER,
							       false, newest)))
			return;
	while (cw_store_retention_bytes(store->table, false) > store->max_bytes)
		if (!make_room(store, newest))
			return;
}

static unsigned count_held(const struct cw_store *store)
{
	return cw_store_retention_number(store->table, true);
}

/* Drops bundles from memory until they are within the limits. Never drops `newest`. */
static void limit_held(struct cw_store *store, const struct cw_store_entry *newest)
{
	while (count_held(store) > MAX_HELD ||
	       cw_store_retention_bytes(store->table, true) > MAX_HELD_BYTES) {
		enum cw_store_measure measure =
			count_held(store) > MAX_HELD ? CW_STORE_BY_NUMBER : CW_STORE_BY_BYTES;
		struct cw_store_entry *e =
			cw_store_retention_displaced(&store->table, measure, true, newest);

		if (!e)
			return;
		store->lost++;
		log_err("store: bundle %s of job=%s is lost: it cannot be written to disk, and "
			"memory is full (%llu)",
			e->id, e->job ? e->job : "", (unsigned long long)store->lost);
		forget(store, e);
	}
}

/* ---- bundles ---- */

static int write_bundle(struct cw_store *store, struct cw_store_entry *e,
			const struct cw_bundle *bundle)
{
	struct cw_err err = { 0 };
	int r;

	if (store->dir_fd < 0)
		return -store->error;
	r = cw_bundle_write(store->dir_fd, e->id, bundle, &err);
	for (unsigned n = 0; (r == -ENOSPC || r == -EDQUOT) && n < MAX_EVICT_PER_PUT; n++) {
		if (!make_room(store, e))
			break;
		r = cw_bundle_write(store->dir_fd, e->id, bundle, &err);
	}
	if (r < 0)
		return r;
	e->bytes = cw_store_dir_bytes(store->dir_fd, e->id);
	e->is_held = false;
	return 0;
}

static uint64_t json_bytes(const json_t *json)
{
	if (json_is_string(json)) /* the document is a text */
		return json_string_length(json);
	return json ? json_dumpb(json, NULL, 0, JSON_COMPACT) : 0;
}

/*
 * Copies the bundle into its entry. We need a copy, because the caller may change the documents
 * later.
 */
static int hold(struct cw_store *store, struct cw_store_entry *e, const struct cw_bundle *bundle)
{
	struct cw_bundle copy = {
		.incident = json_deep_copy(bundle->incident),
		.snapshot = json_deep_copy(bundle->snapshot),
		.evidence = json_deep_copy(bundle->evidence),
		.stacks = json_deep_copy(bundle->stacks),
		.ops = json_deep_copy(bundle->ops),
		.summaries = json_deep_copy(bundle->summaries),
	};

	if ((bundle->incident && !copy.incident) || (bundle->snapshot && !copy.snapshot) ||
	    (bundle->evidence && !copy.evidence) || (bundle->stacks && !copy.stacks) ||
	    (bundle->ops && !copy.ops) || (bundle->summaries && !copy.summaries)) {
		cw_bundle_fini(&copy);
		return -ENOMEM;
	}
	if (!copy.ops) /* keep the old document if there is no new one */
		copy.ops = json_incref(e->bundle.ops);
	if (!copy.summaries)
		copy.summaries = json_incref(e->bundle.summaries);
	cw_bundle_fini(&e->bundle);
	e->bundle = copy;
	e->is_held = true;
	e->bytes = json_bytes(copy.incident) + json_bytes(copy.snapshot) +
		   json_bytes(copy.evidence) + json_bytes(copy.stacks) + json_bytes(copy.ops) +
		   json_bytes(copy.summaries);
	return 0;
}

/* True if the bundle belongs to this user and job. */
static bool is_of(const struct cw_store_entry *e, int64_t uid, const char *job)
{
	return e->uid == uid && e->job && !strcmp(e->job, job ? job : "");
}

/* Returns the incident of the entry's bundle, a new reference; NULL = it is not readable. */
static json_t *incident_of(const struct cw_store *store, const struct cw_store_entry *e)
{
	return e->is_held ? json_incref(e->bundle.incident)
			  : cw_store_dir_incident(store->dir_fd, e->id);
}

/*
 * An incident's leader may not know how the job ended. The bundle's facts about the end stay.
 * Returns 0 or -ENOMEM.
 */
static int keep_ending(const struct cw_store *store, const struct cw_store_entry *e,
		       json_t *incident)
{
	json_t *old;
	int r;

	if (!e->has_ending || cw_incident_facts_has_ending(incident))
		return 0;
	old = incident_of(store, e);
	/* Without the old incident we write nothing, because its facts about the end would go. */
	r = old ? cw_incident_facts_copy_ending(old, incident) : -ENOMEM;
	json_decref(old);
	return r < 0 ? -ENOMEM : 0;
}

int cw_store_put(struct cw_store *store, const struct cw_bundle *bundle, char *ret_path,
		 size_t path_len)
{
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_incident_facts facts;
	struct cw_store_entry *e;
	int64_t now;
	int r, s;

	r = read_facts(bundle->incident, &arena, &facts);
	if (r < 0)
		return r;
	e = entry_find(store, facts.id);
	if (e && !is_of(e, facts.uid, facts.job)) {
		store->refused++;
		log_err("store: bundle %s is of another user or job, refusing one of uid=%lld",
			facts.id, (long long)facts.uid);
		return -EPERM;
	}
	e = entry_get(store, facts.id);
	if (!e || keep_ending(store, e, bundle->incident) < 0)
		return -ENOMEM;
	/* Use the time even if the clock is not settled. */
	(void)cw_store_clock_now(&store->age_clock, &now);
	describe(e, &facts, now);
	if (ret_path)
		(void)snprintf(ret_path, path_len, "%s/%s", store->path, facts.id);
	r = write_bundle(store, e, bundle);
	if (r == 0) {
		cw_bundle_fini(&e->bundle);
		apply_retention(store, e);
		return 0;
	}
	s = hold(store, e, bundle);
	if (s < 0) {
		if (!e->is_held && e->bytes == 0)
			forget(store, e);
		return s;
	}
	limit_held(store, e);
	return r;
}

json_t *cw_store_incident(struct cw_store *store, uint32_t uid, const char *job, const char *id,
			  bool *ret_is_whole)
{
	struct cw_store_entry *e = entry_find(store, id);

	if (!e || !is_of(e, uid, job) || e->is_postmortem)
		return NULL;
	*ret_is_whole = e->is_held ? cw_store_dir_has_all_stacks(e->bundle.stacks)
				   : cw_store_dir_has_stacks(store->dir_fd, id);
	return e->is_held ? json_deep_copy(e->bundle.incident)
			  : cw_store_dir_incident(store->dir_fd, id);
}

int cw_store_update_incident(struct cw_store *store, json_t *incident)
{
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_incident_facts facts;
	struct cw_store_entry *e;
	struct cw_err err = { 0 };
	json_t *copy;
	int r;

	r = read_facts(incident, &arena, &facts);
	if (r < 0)
		return r == -EINVAL ? -ENOENT : r;
	e = entry_find(store, facts.id);
	if (!e || !is_of(e, facts.uid, facts.job))
		return -ENOENT;
	r = keep_ending(store, e, incident);
	if (r < 0)
		return r;
	if (e->is_held) {
		copy = json_deep_copy(incident);
		if (!copy)
			return -ENOMEM;
		json_decref(e->bundle.incident);
		e->bundle.incident = copy;
	} else {
		r = cw_bundle_update_incident(store->dir_fd, e->id, incident, &err);
		if (r < 0)
			return r;
		e->bytes = cw_store_dir_bytes(store->dir_fd, e->id);
	}
	describe(e, &facts, e->wall_ns);
	return 0;
}

int cw_store_add_remote_summaries(struct cw_store *store, uint32_t uid, const char *job,
				  const char *id, unsigned n, const json_t *doc)
{
	struct cw_store_entry *e = entry_find(store, id);
	int r;

	if (!e || !is_of(e, uid, job))
		return -ENOENT;
	if (e->is_held)
		return -EBUSY;
	/*
	 * Do not limit the first document. It is short, and it lists the nodes whose summaries are
	 * missing.
	 */
	if (n > 1 && e->bytes + json_bytes(doc) > store->max_bytes / REMOTE_SUMMARIES_SHARE)
		return -ENOSPC;
	r = cw_bundle_add_remote_summaries(store->dir_fd, id, n, doc, NULL);
	if (r < 0)
		return r;
	e->bytes = cw_store_dir_bytes(store->dir_fd, id);
	apply_retention(store, e);
	return 0;
}

int cw_store_put_postmortem(struct cw_store *store, json_t *postmortem)
{
	const struct cw_bundle alone = { .incident = postmortem };
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_incident_facts facts;
	struct cw_store_entry *e;
	json_t *incident;
	int r;

	r = read_facts(postmortem, &arena, &facts);
	if (r < 0)
		return r;
	e = entry_find(store, facts.id);
	if (!e || !is_of(e, facts.uid, facts.job)) /* if is_of() is false, the put returns -EPERM */
		return cw_store_put(store, &alone, NULL, 0);
	if (e->has_ending)
		return -EEXIST;
	incident = incident_of(store, e);
	r = incident && cw_incident_facts_copy_ending(postmortem, incident) == 0
		    ? cw_store_update_incident(store, incident)
		    : -ENOMEM;
	json_decref(incident);
	return r;
}

unsigned cw_store_retry(struct cw_store *store)
{
	struct cw_store_entry *e;

	look_at_dirs(store);
	if (store->dir_fd < 0)
		return count_held(store);
	(void)cw_sent_ids_flush(store->sent); /* if this fails, the next call tries again */
	/*
	 * Begin with the oldest bundle. Stop at the first failure, because the next bundle would
	 * fail, too.
	 */
	while ((e = cw_store_retention_oldest(store->table, true, NULL))) {
		if (write_bundle(store, e, &e->bundle) < 0)
			break;
		cw_bundle_fini(&e->bundle);
		log_notice("store: bundle %s is on disk now", e->id);
		apply_retention(store, e);
	}
	return count_held(store);
}

static int close_unseen(struct cw_store *store, const struct cw_store_entry *e)
{
	bool is_whole;
	json_t *incident = cw_store_incident(store, (uint32_t)e->uid, e->job, e->id, &is_whole);
	int r = -ENOMEM;

	if (!incident)
		return -ENOENT;
	if (json_object_set_new(incident, "closed_as", json_string("unseen")) == 0)
		r = cw_store_update_incident(store, incident);
	json_decref(incident);
	return r;
}

/*
 * True if no node has had the bundle's incident open for CW_STORE_UNSEEN_NS. False if the bundle is
 * closed, or some node has its incident open or had it open recently.
 */
static bool is_unseen(struct cw_store *store, struct cw_store_entry *e, cw_store_open_fn is_open,
		      void *user)
{
	int64_t now = cw_clock_awake_ns(store->clock);

	if (*e->closed_as || e->uid < 0 || !e->job)
		return false;
	if (is_open((uint32_t)e->uid, e->job, e->id, user)) {
		e->unseen_ns = 0;
		return false;
	}
	if (!e->unseen_ns)
		e->unseen_ns = now;
	return now - e->unseen_ns >= CW_STORE_UNSEEN_NS;
}

bool cw_store_close_unseen(struct cw_store *store, cw_store_open_fn is_open, void *user)
{
	struct cw_store_entry *e, *next;
	unsigned at = 0, end = store->looked_at + MAX_LOOK;
	int r;

	HASH_ITER (hh, store->table, e, next) {
		if (at++ < store->looked_at)
			continue;
		if (at > end) {
			store->looked_at = end;
			return false;
		}
		if (!is_unseen(store, e, is_open, user))
			continue;
		r = close_unseen(store, e);
		if (r < 0) {
			/* The disk does not accept it: wait for CW_STORE_UNSEEN_NS again. */
			e->unseen_ns = 0;
			log_warn("store: bundle %s cannot be closed: %s", e->id, strerror(-r));
			return false;
		}
		log_notice("job=%s inc=%s: no node has had it open for %lld min, closed as unseen",
			   e->job, e->id, (long long)(CW_STORE_UNSEEN_NS / CW_NS_PER_S / 60));
		return true;
	}
	store->looked_at = 0;
	return false;
}

void cw_store_stats(struct cw_store *store, struct cw_store_stats *ret)
{
	*ret = (struct cw_store_stats){ .waiting = count_held(store),
					.lost = store->lost,
					.removed = store->removed,
					.refused =
						store->refused + cw_sent_ids_refused(store->sent),
					.error = store->error };
}

/*
 * Returns the time of confirmation, by which we sort. It stays the same when a bundle is rewritten.
 */
static int64_t confirmed_ns(const struct cw_store_entry *e)
{
	int64_t ns = cw_wall_parse(e->time);

	return ns > 0 ? ns : e->wall_ns;
}

static int newest_first(const struct cw_store_entry *a, const struct cw_store_entry *b)
{
	int64_t x = confirmed_ns(a), y = confirmed_ns(b);

	return x == y ? (a->wall_ns < b->wall_ns) - (a->wall_ns > b->wall_ns) : (x < y) - (x > y);
}

static bool is_wanted(const struct cw_store_query *query, const struct cw_store_entry *e)
{
	return (query->is_of_all || e->uid == query->uid) &&
	       cw_incident_filter_wants(&query->filter, e->time, e->class ? e->class : "",
					e->job ? e->job : "", e->hosts);
}

/*
 * Makes the entry of one bundle for cw_store_list(). If memory runs out, fields are missing, and
 * cw_control_handle() notices it. In the format, "++" joins path and id.
 */
static json_t *make_line(const struct cw_store *store, const struct cw_store_entry *e)
{
	json_t *line = json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:o, s:s++}", "id", e->id, "uid",
				 (json_int_t)e->uid, "job", e->job ? e->job : "", "class",
				 e->class ? e->class : "", "time", e->time, "summary",
				 e->summary ? e->summary : "", "closed_as",
				 *e->closed_as ? json_string(e->closed_as) : json_null(), "path",
				 store->path, "/", e->id);

	if (*e->severity)
		(void)json_object_set_new(line, "severity", json_string(e->severity));
	if (*e->suppressed)
		(void)json_object_set_new(line, "suppressed", json_string(e->suppressed));
	if (e->hosts)
		(void)json_object_set(line, "hosts", e->hosts);
	return line;
}

json_t *cw_store_list(struct cw_store *store, const struct cw_store_query *query,
		      size_t *ret_omitted)
{
	size_t bytes = 0, omitted = 0;
	json_t *list = json_array();
	struct cw_store_entry *e, *next;

	HASH_SORT(store->table, newest_first);
	HASH_ITER (hh, store->table, e, next) {
		json_t *line;

		if (!is_wanted(query, e))
			continue;
		/*
		 * End the list at the first bundle that does not fit. A later, older bundle might
		 * fit. The user would then not see that a newer one is missing.
		 */
		if (omitted || (query->max && json_array_size(list) >= query->max)) {
			omitted++;
			continue;
		}
		line = make_line(store, e);
		bytes += query->max_bytes
				 ? json_dumpb(line, NULL, 0, JSON_COMPACT) + 1 + query->extra_bytes
				 : 0;
		if (bytes > query->max_bytes) {
			json_decref(line);
			omitted++;
			continue;
		}
		(void)json_array_append_new(list, line);
	}
	if (ret_omitted)
		*ret_omitted = omitted;
	return list;
}

int cw_store_get(struct cw_store *store, const char *id, struct cw_bundle *ret)
{
	const struct cw_bundle_limits limits = { MAX_SNAPSHOT_READ, MAX_REMOTE_SUMMARIES_READ };
	char path[PATH_MAX + 80];
	struct cw_store_entry *e;

	if (!cw_incident_id_is_valid(id))
		return -ENOENT;
	e = entry_find(store, id);
	if (!e)
		return -ENOENT;
	if (e->is_held) {
		const bool is_read = json_bytes(e->bundle.snapshot) <= MAX_SNAPSHOT_READ;

		/*
		 * Share these documents instead of copying them. Their memory is already within our
		 * limits.
		 */
		ret->snapshot = is_read ? json_incref(e->bundle.snapshot) : NULL;
		ret->summaries = json_incref(e->bundle.summaries);
		if (cw_bundle_parse_texts(ret) < 0)
			return -ENOMEM;
		ret->incident = json_incref(e->bundle.incident);
		ret->evidence = json_incref(e->bundle.evidence);
		ret->stacks = json_incref(e->bundle.stacks);
		ret->ops = json_incref(e->bundle.ops);
		return 0;
	}
	(void)snprintf(path, sizeof(path), "%s/%s", store->path, id);
	return cw_bundle_read_up_to(path, &limits, ret, NULL);
}

/*
 * True if cw_store_next_unsent() prefers a to b. Users take turns, so that thousands of bundles of
 * one user do not delay those of others.
 */
static bool comes_before(const struct cw_store *store, const struct cw_store_entry *a,
			 const struct cw_store_entry *b)
{
	bool a_is_next = a->uid > store->resent_uid, b_is_next = b->uid > store->resent_uid;

	if (a->uid == b->uid)
		return a->resent_ns < b->resent_ns;
	return a_is_next != b_is_next ? a_is_next : a->uid < b->uid;
}

json_t *cw_store_next_unsent(struct cw_store *store)
{
	int64_t now = cw_clock_now_ns(store->clock);
	struct cw_store_entry *e, *next, *found = NULL;
	int64_t since;

	/* Use the time even if the clock is not settled. */
	(void)cw_store_clock_now(&store->age_clock, &since);
	since -= UNSENT_WITHIN_NS;
	HASH_ITER (hh, store->table, e, next) {
		/*
		 * Skip bundles of a user if we have dropped ids of that user. Their alerts would
		 * look unsent although they went out.
		 */
		if (e->is_postmortem || e->wall_ns < since ||
		    cw_sent_ids_has(store->sent, e->uid, e->id) ||
		    cw_sent_ids_complete_since(store->sent, e->uid) > since ||
		    (e->resent_ns && now - e->resent_ns < RESEND_EVERY_NS))
			continue;
		if (!found || comes_before(store, e, found))
			found = e;
	}
	if (!found)
		return NULL;
	found->resent_ns = now;
	store->resent_uid = found->uid;
	return found->is_held ? json_incref(found->bundle.incident)
			      : cw_store_dir_incident(store->dir_fd, found->id);
}

void cw_store_resend_soon(struct cw_store *store)
{
	struct cw_store_entry *e, *next;

	HASH_ITER (hh, store->table, e, next)
		e->resent_ns = 0;
}

const char *cw_store_job(struct cw_store *store, uint32_t uid, const char *id)
{
	const struct cw_store_entry *e = entry_find(store, id);

	return e && e->uid == uid ? e->job : NULL;
}

bool cw_store_is_over(struct cw_store *store, uint32_t uid, const char *id)
{
	const struct cw_store_entry *e = entry_find(store, id);

	return e && e->uid == uid && !e->is_postmortem && *e->closed_as;
}

bool cw_store_was_sent(struct cw_store *store, uint32_t uid, const char *id)
{
	return cw_sent_ids_has(store->sent, uid, id);
}

const char *cw_store_sent_how(struct cw_store *store, uint32_t uid, const char *id)
{
	return cw_sent_ids_how(store->sent, uid, id);
}

int cw_store_mark_sent(struct cw_store *store, uint32_t uid, const char *id, const char *how)
{
	return cw_sent_ids_add(store->sent, uid, id, cw_clock_wall_ns(store->clock), how);
}

int cw_store_mark_all_sent(struct cw_store *store, uint32_t uid, const char *const *ids, size_t n,
			   const char *how)
{
	int64_t now = cw_clock_wall_ns(store->clock);
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = cw_sent_ids_note(store->sent, uid, ids[i], now, how);
	return r < 0 ? r : cw_sent_ids_flush(store->sent);
}

int cw_store_open(const struct cw_store_config *config, struct cw_store **ret, struct cw_err *err)
{
	struct cw_store *store = calloc(1, sizeof(*store));

	if (!store)
		return cw_err_set(err, ENOMEM, "out of memory");
	store->state_fd = store->dir_fd = -1;
	store->max_bytes = config->max_bytes;
	store->max_age_ns = config->max_age_ns;
	store->clock = config->clock;
	store->resent_uid = -1;
	(void)snprintf(store->state_dir, sizeof(store->state_dir), "%s", config->state_dir);
	(void)snprintf(store->path, sizeof(store->path), "%.*s/incidents", PATH_MAX - 16,
		       config->state_dir);
	cw_store_clock_open(&store->age_clock, -1, config->clock);
	if (cw_sent_ids_open(-1, &store->sent) < 0) {
		cw_store_close(store);
		return cw_err_set(err, ENOMEM, "out of memory");
	}
	look_at_dirs(store);
	apply_retention(store, NULL);
	*ret = store;
	return 0;
}

struct cw_store *cw_store_close(struct cw_store *store)
{
	if (!store)
		return NULL;
	while (store->table)
		forget(store, store->table);
	store->sent = cw_sent_ids_close(store->sent);
	closep(&store->dir_fd);
	closep(&store->state_fd);
	free(store);
	return NULL;
}
