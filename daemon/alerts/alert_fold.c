/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each user has a token bucket. If the bucket is empty, we collect the alert: we keep a short entry
 * of its document. When a folded alert is under way, it consists of the first n_under_way entries.
 * Later entries wait for the next folded alert.
 */
#include "daemon/alerts/alert_fold.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/htable.h"
#include "common/job_env.h"
#include "common/parse.h"
#include "identity/quota.h"
#include "report/json_util.h"

/*
 * A folded alert counts up to MAX_JOBS jobs in its document, and names up to MAX_NAMED of them in
 * its sentence.
 */
#define MAX_JOBS 32u
#define MAX_NAMED 4u
#define SENTENCE_BYTES 1024u

struct user {
	uint32_t uid;
	uint32_t tokens;
	int64_t refilled_ns;
	int64_t since_ns; /* when we collected the first item; 0 = no item */
	/* The first n_under_way of the n items are in the folded alert under way. */
	size_t n, n_under_way;
	json_t *items[CW_FOLD_MAX_PER_USER];
	/* The id and the job of each item. */
	const char *ids[CW_FOLD_MAX_PER_USER], *jobs[CW_FOLD_MAX_PER_USER];
	json_t *first; /* whole document of the first item; we need it if no other item comes */
	json_t *doc;   /* the folded document; NULL = none is under way */
	UT_hash_handle hh;
};

struct cw_alert_fold {
	uint32_t burst;
	int64_t every_ns;
	struct user *users;
	uint32_t n;
};

int cw_alert_fold_new(uint32_t burst, int64_t every_ns, struct cw_alert_fold **ret)
{
	struct cw_alert_fold *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	cw_alert_fold_limit(f, burst, every_ns);
	*ret = f;
	return 0;
}

void cw_alert_fold_limit(struct cw_alert_fold *f, uint32_t burst, int64_t every_ns)
{
	f->burst = burst;
	f->every_ns = every_ns;
}

/* Drops the first n items of the user. */
static void drop_items(struct cw_alert_fold *f, struct user *u, size_t n)
{
	for (size_t i = 0; i < n; i++)
		json_decref(u->items[i]);
	u->n -= n;
	f->n -= (uint32_t)n;
	memmove(u->items, u->items + n, u->n * sizeof(*u->items));
	memmove(u->ids, u->ids + n, u->n * sizeof(*u->ids));
	memmove(u->jobs, u->jobs + n, u->n * sizeof(*u->jobs));
	json_decref(u->first);
	u->first = NULL;
}

static void forget(struct cw_alert_fold *f, struct user *u)
{
	drop_items(f, u, u->n);
	json_decref(u->doc);
	HASH_DEL(f->users, u);
	free(u);
}

struct cw_alert_fold *cw_alert_fold_free(struct cw_alert_fold *f)
{
	if (!f)
		return NULL;
	while (f->users)
		forget(f, f->users);
	free(f);
	return NULL;
}

static void refill(const struct cw_alert_fold *f, struct user *u, int64_t now_ns)
{
	int64_t n = f->every_ns > 0 ? (now_ns - u->refilled_ns) / f->every_ns : f->burst;

	if (n <= 0)
		return;
	u->tokens = n >= f->burst - u->tokens ? f->burst : u->tokens + (uint32_t)n;
	u->refilled_ns = u->tokens == f->burst ? now_ns : u->refilled_ns + n * f->every_ns;
}

static struct user *find(const struct cw_alert_fold *f, uint32_t uid)
{
	struct user *u;

	HASH_FIND(hh, f->users, &uid, sizeof(uid), u);
	return u;
}

/*
 * Forgets users with a full bucket and no collected alert. If such a user returns, a new entry is
 * as good as the old one.
 */
static void forget_idle(struct cw_alert_fold *f, int64_t now_ns)
{
	struct user *u, *tmp;

	HASH_ITER (hh, f->users, u, tmp) {
		refill(f, u, now_ns);
		if (u->tokens >= f->burst && !u->n)
			forget(f, u);
	}
}

static struct user *get(struct cw_alert_fold *f, uint32_t uid, int64_t now_ns)
{
	struct user *u = find(f, uid);

	if (u) {
		if (u->tokens > f->burst) /* the limit may be lower since the last alert */
			u->tokens = f->burst;
		refill(f, u, now_ns);
		return u;
	}
	forget_idle(f, now_ns);
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	u->tokens = f->burst;
	u->refilled_ns = now_ns;
	HASH_ADD(hh, f->users, uid, sizeof(u->uid), u);
	if (cw_htable_added(u))
		return u;
	free(u);
	return NULL;
}

static bool is_collected(const struct user *u, const char *id)
{
	for (size_t i = 0; i < u->n; i++)
		if (!strcmp(u->ids[i], id))
			return true;
	return false;
}

static uint32_t users_with_items(const struct cw_alert_fold *f, const struct user *other)
{
	uint32_t n = 1;

	for (const struct user *u = f->users; u; u = u->hh.next)
		n += u->n && u != other;
	return n;
}

static bool has_room(const struct cw_alert_fold *f, const struct user *u)
{
	const struct cw_quota_count count = { .capacity = CW_FOLD_MAX,
					      .taken = f->n,
					      .users = users_with_items(f, u),
					      .own = (uint32_t)u->n };

	return u->n < CW_FOLD_MAX_PER_USER && cw_quota_ask(&count) == CW_QUOTA_ADMIT;
}

/* Returns one incident's entry in the folded document. */
static json_t *brief(const char *id, const json_t *doc)
{
	return cw_json_object((struct cw_json_member[]){
		{ "id", json_string(id) },
		{ "job", cw_json_text(cw_json_str(doc, "job", "")) },
		{ "class", cw_json_text(cw_json_str(doc, "class", "")) },
		{ "confidence", cw_json_text(cw_json_str(doc, "confidence", "")) },
		{ "summary", cw_json_text(cw_json_str(doc, "summary", "")) },
		{ "command", cw_json_text(cw_json_str(doc, "command", "")) },
		{ "leader", cw_json_text(cw_json_str(doc, "leader", "")) },
		{ NULL },
	});
}

static enum cw_fold_answer collect(struct cw_alert_fold *f, struct user *u, const char *id,
				   json_t *doc, int64_t now_ns)
{
	json_t *item = has_room(f, u) ? brief(id, doc) : NULL;

	if (!item)
		return CW_FOLD_FULL;
	if (u->n == u->n_under_way)
		u->since_ns = now_ns;
	if (u->n == 0)
		u->first = json_incref(doc);
	u->items[u->n] = item;
	u->ids[u->n] = json_string_value(json_object_get(item, "id"));
	u->jobs[u->n] = json_string_value(json_object_get(item, "job"));
	u->n++;
	f->n++;
	return CW_FOLD_COLLECTED;
}

enum cw_fold_answer cw_alert_fold_ask(struct cw_alert_fold *f, uint32_t uid, const char *id,
				      json_t *doc, int64_t now_ns)
{
	struct user *u = get(f, uid, now_ns);

	if (!u)
		return CW_FOLD_SEND; /* out of memory: rather one alert too many than one too few */
	if (is_collected(u, id))
		return CW_FOLD_COLLECTED;
	if (u->n || !u->tokens)
		return collect(f, u, id, doc, now_ns);
	u->tokens--;
	return CW_FOLD_SEND;
}

void cw_alert_fold_charge(struct cw_alert_fold *f, uint32_t uid, int64_t now_ns)
{
	struct user *u = get(f, uid, now_ns);

	if (u && u->tokens)
		u->tokens--;
}

void cw_alert_fold_refund(struct cw_alert_fold *f, uint32_t uid)
{
	struct user *u = find(f, uid);

	if (u && u->tokens < f->burst)
		u->tokens++;
}

/* ---- the folded alert ---- */

struct job_count {
	const char *job;
	json_int_t n;
};

static unsigned count_jobs(const struct user *u, struct job_count jobs[MAX_JOBS],
			   json_int_t *ret_others)
{
	unsigned n = 0;

	*ret_others = 0;
	for (size_t i = 0; i < u->n; i++) {
		unsigned k = 0;

		while (k < n && strcmp(jobs[k].job, u->jobs[i]) != 0)
			k++;
		if (k == MAX_JOBS) {
			++*ret_others;
			continue;
		}
		if (k == n)
			jobs[n++] = (struct job_count){ u->jobs[i], 0 };
		jobs[k].n++;
	}
	return n;
}

static void make_sentence(const struct cw_alert_fold *f, const struct user *u,
			  const struct job_count *jobs, unsigned n_jobs, char *buf, size_t len)
{
	char every[64];
	size_t at;

	at = (size_t)snprintf(buf, len, "%zu more hang%s of uid %" PRIu32 " within %s: ", u->n,
			      u->n == 1 ? "" : "s", u->uid,
			      cw_format_duration(f->every_ns, every, sizeof(every)));
	for (unsigned i = 0; i < n_jobs && i < MAX_NAMED && at < len; i++)
		at += (size_t)snprintf(buf + at, len - at, "%s%.160s (%" JSON_INTEGER_FORMAT ")",
				       i ? ", " : "job ", cw_job_env_shown(jobs[i].job), jobs[i].n);
	if (n_jobs > MAX_NAMED && at < len)
		(void)snprintf(buf + at, len - at, " and other jobs");
}

static json_t *jobs_doc(const struct job_count *jobs, unsigned n, json_int_t others)
{
	json_t *list = json_array();
	int bad = 0;

	for (unsigned i = 0; i < n; i++)
		bad |= json_array_append_new(
			list, json_pack("{s:s, s:I}", "job", jobs[i].job, "count", jobs[i].n));
	if (others)
		bad |= json_array_append_new(list, json_pack("{s:n, s:I}", "job", "count", others));
	return cw_json_finish(list, bad);
}

static json_t *listed(const struct user *u)
{
	json_t *list = json_array();
	int bad = 0;

	for (size_t i = 0; i < u->n && i < CW_FOLD_LISTED; i++)
		bad |= json_array_append(list, u->items[i]);
	return cw_json_finish(list, bad);
}

static json_t *fold_doc(const struct cw_alert_fold *f, const struct user *u, int64_t now_ns,
			int64_t wall_ns)
{
	struct job_count jobs[MAX_JOBS];
	char sentence[SENTENCE_BYTES];
	json_int_t others;
	unsigned n_jobs = count_jobs(u, jobs, &others);

	make_sentence(f, u, jobs, n_jobs, sentence, sizeof(sentence));
	return cw_json_object((struct cw_json_member[]){
		{ "schema", json_string("collwatch.folded/1") },
		{ "id", json_string(u->ids[0]) },
		{ "uid", json_integer(u->uid) },
		{ "count", json_integer((json_int_t)u->n) },
		{ "since", cw_json_wall(wall_ns - (now_ns - u->since_ns)) },
		{ "jobs", jobs_doc(jobs, n_jobs, others) },
		{ "incidents", listed(u) },
		{ "leader", json_incref(json_object_get(u->items[0], "leader")) },
		{ "summary", cw_json_text(sentence) },
		{ "command", json_string("collwatch report") },
		{ NULL },
	});
}

static bool is_due(const struct cw_alert_fold *f, const struct user *u, int64_t now_ns)
{
	return u->n && !u->n_under_way && now_ns - u->since_ns >= f->every_ns;
}

bool cw_alert_fold_next(struct cw_alert_fold *f, int64_t now_ns, int64_t wall_ns,
			struct cw_folded *ret)
{
	struct user *u = f->users;

	while (u && !is_due(f, u, now_ns))
		u = u->hh.next;
	if (!u)
		return false;
	refill(f, u, now_ns);
	if (u->n > 1 || !u->first) {
		u->doc = fold_doc(f, u, now_ns, wall_ns);
		if (!u->doc) { /* out of memory: retry after one interval */
			u->since_ns = now_ns;
			return false;
		}
	}
	u->tokens -= u->tokens ? 1 : 0;
	u->n_under_way = u->n;
	return cw_alert_fold_under_way(f, u->uid, ret);
}

/*
 * Drops item i. If it is the first one, its whole document goes, too. A single remaining alert then
 * goes out as a folded alert of one incident.
 */
static void drop_item(struct cw_alert_fold *f, struct user *u, size_t i)
{
	json_decref(u->items[i]);
	u->n--;
	f->n--;
	memmove(u->items + i, u->items + i + 1, (u->n - i) * sizeof(*u->items));
	memmove(u->ids + i, u->ids + i + 1, (u->n - i) * sizeof(*u->ids));
	memmove(u->jobs + i, u->jobs + i + 1, (u->n - i) * sizeof(*u->jobs));
	if (i)
		return;
	json_decref(u->first);
	u->first = NULL;
}

void cw_alert_fold_drop_over(struct cw_alert_fold *f, cw_alert_fold_over_fn is_over, void *user)
{
	for (struct user *u = f->users; u; u = u->hh.next)
		for (size_t i = u->n_under_way; i < u->n;)
			if (is_over(u->uid, u->ids[i], user))
				drop_item(f, u, i);
			else
				i++;
}

bool cw_alert_fold_under_way(const struct cw_alert_fold *f, uint32_t uid, struct cw_folded *ret)
{
	const struct user *u = find(f, uid);

	if (!u || !u->n_under_way)
		return false;
	*ret = (struct cw_folded){ .uid = u->uid,
				   .n = u->n_under_way,
				   .ids = u->ids,
				   .jobs = u->jobs,
				   .only = u->doc ? NULL : u->first,
				   .doc = u->doc };
	return true;
}

void cw_alert_fold_clear(struct cw_alert_fold *f)
{
	for (struct user *u = f->users; u; u = u->hh.next) {
		drop_items(f, u, u->n);
		json_decref(u->doc);
		u->doc = NULL;
		u->n_under_way = 0;
	}
}

void cw_alert_fold_done(struct cw_alert_fold *f, uint32_t uid, bool was_delivered, int64_t now_ns)
{
	struct user *u = find(f, uid);
	size_t n = u ? u->n_under_way : 0;

	if (!n)
		return;
	json_decref(u->doc);
	u->doc = NULL;
	u->n_under_way = 0;
	if (was_delivered)
		drop_items(f, u, n);
	else
		u->since_ns = now_ns;
}

uint32_t cw_alert_fold_count(const struct cw_alert_fold *f)
{
	return f->n;
}
