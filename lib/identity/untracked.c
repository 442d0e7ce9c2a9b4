/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of entries, one per process or job that is not watched. The key of an entry is a text of
 * all its names. For each user we also store the last number that we logged. We log a sentence when
 * the user's number has doubled, or after CW_UNTRACKED_SAY_AGAIN_NS. We drop an entry when its
 * process has ended, or when no caller has noted it for keep_ns.
 */
#include "identity/untracked.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/htable.h"
#include "common/job_env.h"
#include "common/log.h"
#include "common/pidfd.h"
#include "identity/job_label.h"
#include "identity/quota.h"

/*
 * The key is "UID PID START LABEL". The label, which may contain spaces, comes last, so two entries
 * never have the same key.
 */
#define KEY_BYTES (CW_JOB_LABEL_BYTES + 64)
/* A sentence names at most this many jobs. */
#define MAX_NAMED 4u
#define SENTENCE_BYTES (MAX_NAMED * (CW_JOB_LABEL_BYTES + 2) + 512)

struct entry {
	char key[KEY_BYTES];
	char label[CW_JOB_LABEL_BYTES];
	uint32_t uid;
	int32_t pid;
	int pidfd;
	int64_t since_ns, noted_ns;
	UT_hash_handle hh;
};

/*
 * The numbers that we have logged about a user. This struct lives as long as the user has entries,
 * and a while longer.
 */
struct user {
	uint32_t uid;
	uint32_t n, said_n;
	int64_t said_ns;
	UT_hash_handle hh;
};

struct cw_untracked {
	struct cw_untracked_config config;
	struct entry *entries;
	struct user *users;
	uint64_t dropped;
};

int cw_untracked_new(const struct cw_untracked_config *config, struct cw_untracked **ret)
{
	struct cw_untracked *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->config = *config;
	*ret = u;
	return 0;
}

static struct user *user_of(const struct cw_untracked *u, uint32_t uid)
{
	struct user *user;

	HASH_FIND(hh, u->users, &uid, sizeof(uid), user);
	return user;
}

static void drop(struct cw_untracked *u, struct entry *e)
{
	struct user *user = user_of(u, e->uid);

	if (user)
		user->n--;
	HASH_DEL(u->entries, e);
	closep(&e->pidfd);
	free(e);
}

struct cw_untracked *cw_untracked_free(struct cw_untracked *u)
{
	struct user *user, *tmp;

	if (!u)
		return NULL;
	while (u->entries)
		drop(u, u->entries);
	HASH_ITER (hh, u->users, user, tmp) {
		HASH_DEL(u->users, user);
		free(user);
	}
	free(u);
	return NULL;
}

static void make_key(const struct cw_untracked_item *item, char key[KEY_BYTES])
{
	(void)snprintf(key, KEY_BYTES, "%" PRIu32 " %" PRId32 " %" PRIu64 " %.*s", item->uid,
		       item->pid, item->start_ticks, CW_JOB_LABEL_BYTES - 1,
		       item->pid ? "" : item->label);
}

static struct entry *find(const struct cw_untracked *u, const struct cw_untracked_item *item)
{
	char key[KEY_BYTES];
	struct entry *e;

	make_key(item, key);
	HASH_FIND_STR(u->entries, key, e);
	return e;
}

/*
 * Drops an entry if the table is full for the user, so that a new one fits. Returns false if the
 * user may have no further entry.
 */
static bool make_room(struct cw_untracked *u, uint32_t uid)
{
	uint32_t n = HASH_COUNT(u->entries);
	_cleanup_(freep) struct cw_quota_charge *charges = NULL;
	void *displaced = NULL;

	if (n < CW_UNTRACKED_MAX - CW_UNTRACKED_MAX / CW_QUOTA_RESERVE)
		return true;
	charges = calloc(n, sizeof(*charges));
	if (!charges)
		return false;
	n = 0;
	for (struct entry *e = u->entries; e; e = e->hh.next)
		charges[n++] = (struct cw_quota_charge){ .uid = e->uid,
							 .since_ns = e->since_ns,
							 .holder = e };
	switch (cw_quota_charge_for(uid, charges, n, CW_UNTRACKED_MAX, &displaced)) {
	case CW_QUOTA_ADMIT:
		return true;
	case CW_QUOTA_DISPLACE:
		drop(u, displaced);
		u->dropped++;
		return true;
	default:
		return false;
	}
}

static struct user *add_user(struct cw_untracked *u, uint32_t uid)
{
	struct user *user = user_of(u, uid);

	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	HASH_ADD(hh, u->users, uid, sizeof(user->uid), user);
	if (cw_htable_added(user))
		return user;
	free(user);
	return NULL;
}

static struct entry *add(struct cw_untracked *u, const struct cw_untracked_item *item,
			 int64_t now_ns)
{
	struct user *user;
	struct entry *e;

	if (!make_room(u, item->uid))
		return NULL;
	user = add_user(u, item->uid);
	e = user ? calloc(1, sizeof(*e)) : NULL;
	if (!e)
		return NULL;
	make_key(item, e->key);
	e->uid = item->uid;
	e->pid = item->pid;
	e->pidfd = -1;
	e->since_ns = now_ns;
	HASH_ADD_STR(u->entries, key, e);
	if (!cw_htable_added(e)) {
		free(e);
		return NULL;
	}
	user->n++;
	return e;
}

void cw_untracked_note(struct cw_untracked *u, const struct cw_untracked_item *item, int pidfd,
		       int64_t now_ns)
{
	_cleanup_(closep) int fd = pidfd;
	struct entry *e = find(u, item);

	if (!e)
		e = add(u, item, now_ns);
	if (!e) {
		u->dropped++;
		return;
	}
	e->noted_ns = now_ns;
	(void)snprintf(e->label, sizeof(e->label), "%s", item->label);
	if (e->pidfd < 0)
		e->pidfd = steal_fd(&fd);
}

void cw_untracked_forget(struct cw_untracked *u, const struct cw_untracked_item *item)
{
	struct entry *e = find(u, item);

	if (e)
		drop(u, e);
}

/* ---- sentences ---- */

/* Writes the jobs of one user, as in "a, b and others". Returns the text's length. */
static size_t put_jobs(const struct cw_untracked *u, uint32_t uid, char *buf, size_t len)
{
	const char *named[MAX_NAMED];
	unsigned n = 0;
	size_t at = 0;

	for (const struct entry *e = u->entries; e; e = e->hh.next) {
		unsigned i = 0;

		if (e->uid != uid || !*e->label)
			continue;
		while (i < n && strcmp(named[i], e->label) != 0)
			i++;
		if (i < n)
			continue;
		if (n == MAX_NAMED)
			return at + (size_t)snprintf(buf + at, len - at, " and others");
		named[n++] = e->label;
		at += (size_t)snprintf(buf + at, len - at, "%s%s", n > 1 ? ", " : "",
				       cw_job_env_shown(e->label));
	}
	return at;
}

static void make_sentence(const struct cw_untracked *u, const struct user *user, char *buf,
			  size_t len)
{
	size_t at = (size_t)snprintf(buf, len, "%" PRIu32 " %s of uid %" PRIu32 " (job ", user->n,
				     user->n == 1 ? u->config.one : u->config.many, user->uid);
	size_t jobs = put_jobs(u, user->uid, buf + at, len - at);

	at = jobs ? at + jobs : at - strlen("job ");
	(void)snprintf(buf + at, len - at, "%s %s not watched: %s", jobs ? ")" : "not named yet)",
		       user->n == 1 ? "is" : "are", u->config.why);
}

/*
 * Returns whether to log the user's number now. We log the first entry at once, and then each
 * doubling. We log other changes after CW_UNTRACKED_SAY_AGAIN_NS.
 */
static bool is_worth_a_line(const struct user *user, int64_t now_ns)
{
	if (user->n == user->said_n)
		return false;
	return user->said_n == 0 || user->n >= 2 * user->said_n ||
	       now_ns - user->said_ns >= CW_UNTRACKED_SAY_AGAIN_NS;
}

static void say(struct cw_untracked *u, struct user *user, int64_t now_ns)
{
	char sentence[SENTENCE_BYTES];

	if (user->n) {
		make_sentence(u, user, sentence, sizeof(sentence));
		u->config.log(u->config.user, CW_LOG_WARN, sentence);
	} else {
		(void)snprintf(sentence, sizeof(sentence),
			       "all %s of uid %" PRIu32 " are watched again, or have ended",
			       u->config.many, user->uid);
		u->config.log(u->config.user, CW_LOG_NOTICE, sentence);
	}
	user->said_n = user->n;
	user->said_ns = now_ns;
}

void cw_untracked_tick(struct cw_untracked *u, int64_t now_ns)
{
	struct entry *e, *next;
	struct user *user, *tmp;
	unsigned lines = 0;

	HASH_ITER (hh, u->entries, e, next)
		if (now_ns - e->noted_ns > u->config.keep_ns ||
		    (e->pidfd >= 0 && cw_pidfd_has_ended(e->pidfd)))
			drop(u, e);
	HASH_ITER (hh, u->users, user, tmp) {
		if (lines < CW_UNTRACKED_LINES_PER_S && is_worth_a_line(user, now_ns)) {
			say(u, user, now_ns);
			lines++;
		}
		if (user->n == 0 && user->said_n == 0) {
			HASH_DEL(u->users, user);
			free(user);
		}
	}
}

/* ---- queries ---- */

uint32_t cw_untracked_count(const struct cw_untracked *u)
{
	return HASH_COUNT(u->entries);
}

uint64_t cw_untracked_dropped(const struct cw_untracked *u)
{
	return u->dropped;
}

uint32_t cw_untracked_of_job(const struct cw_untracked *u, uint32_t uid, const char *label)
{
	uint32_t n = 0;

	for (const struct entry *e = u->entries; e; e = e->hh.next)
		n += e->uid == uid && !strcmp(e->label, label);
	return n;
}

void cw_untracked_each(const struct cw_untracked *u, cw_untracked_fn fn, void *user)
{
	for (const struct entry *e = u->entries; e; e = e->hh.next)
		fn(&(struct cw_untracked_entry){ .uid = e->uid,
						 .label = e->label,
						 .pid = e->pid,
						 .since_ns = e->since_ns },
		   user);
}

void cw_untracked_each_user(const struct cw_untracked *u, cw_untracked_user_fn fn, void *user)
{
	char sentence[SENTENCE_BYTES];

	for (const struct user *of = u->users; of; of = of->hh.next) {
		if (!of->n)
			continue;
		make_sentence(u, of, sentence, sizeof(sentence));
		fn(&(struct cw_untracked_user){ .uid = of->uid, .n = of->n, .sentence = sentence },
		   user);
	}
}
