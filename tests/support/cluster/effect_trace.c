/* SPDX-License-Identifier: Apache-2.0 */
#include "effect_trace.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "proto/codec.h"
#include "report/doc/said_doc.h"

#define TEXT_MAX 8192
/* Limit on the pairs of nodes, kinds of beats and jobs. A cluster has far fewer. */
#define PATHS_MAX 4096u
#define NO_HASH UINT64_C(14695981039346656037)

/* The hash of the last beat of one kind between two nodes. */
struct path {
	uint64_t id, said;
};

/* The beats since the last line. */
struct beats {
	unsigned n;
	int64_t first_ns, last_ns;
	uint64_t hash;
};

struct effect_trace {
	struct cluster *c;
	struct network_observer observer;
	int64_t start_ns;
	bool is_full;
	FILE *out;
	char *text;
	size_t len;
	struct beats beats;
	struct path paths[PATHS_MAX];
};

/* The trace that receives lines of the log; NULL = none. */
static struct effect_trace *current;

/* Continues an FNV-1a hash. It must show differences, but need not withstand an attacker. */
static uint64_t hash_on(uint64_t h, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * UINT64_C(1099511628211);
	return h;
}

static uint64_t hash_text(const char *text)
{
	return hash_on(NO_HASH, text, strlen(text));
}

/* Returns the 48 bits of a hash that we print. */
static uint64_t shown(uint64_t hash)
{
	return (hash ^ hash >> 48) & UINT64_C(0xffffffffffff);
}

/* ---- lines ---- */

static double seconds(const struct effect_trace *t, int64_t ns)
{
	return (double)(ns - t->start_ns) / 1e9;
}

static void flush_beats(struct effect_trace *t)
{
	const struct beats *b = &t->beats;

	if (b->n)
		fprintf(t->out, "%.3f-%.3f %u beats #%012" PRIx64 "\n", seconds(t, b->first_ns),
			seconds(t, b->last_ns), b->n, shown(b->hash));
	t->beats = (struct beats){ .hash = NO_HASH };
}

__attribute__((format(printf, 3, 4))) static void line(struct effect_trace *t, const char *node,
						       const char *fmt, ...)
{
	va_list args;

	flush_beats(t);
	fprintf(t->out, "%.3f %s ", seconds(t, t->c->now_ns), node);
	va_start(args, fmt);
	(void)vfprintf(t->out, fmt, args);
	va_end(args);
	fputc('\n', t->out);
}

/* ---- messages ---- */

struct said {
	char what[TEXT_MAX];  /* the part that shows whether a beat repeats the last one */
	char count[TEXT_MAX]; /* text that the hash of joined beats includes */
};

__attribute__((format(printf, 2, 3))) static void say(char *text, const char *fmt, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text + len, TEXT_MAX - len, fmt, args);
	va_end(args);
}

static void say_job(char *text, const struct cw_job_key *key, uint32_t uid, const char *label)
{
	say(text, " job=%u/%s%s", uid, label ? label : "", cw_job_key_is_set(key) ? " key" : "");
}

/*
 * Epochs and numbers of requests begin with the wall clock at the daemon's start. Returns the part
 * that was added since the cluster's start.
 */
static uint64_t since_start(uint64_t wall_ns)
{
	const uint64_t start_ns = UINT64_C(1700001000) * CW_NS_PER_S;

	return wall_ns >= start_ns ? wall_ns - start_ns : wall_ns;
}

/* Appends a number, or nothing for 0. */
static void say_number(char *text, const char *name, uint64_t n)
{
	if (n)
		say(text, " %s=%" PRIu64, name, n);
}

static void say_digest(const struct cw_msg_digest *d, struct said *ret)
{
	unsigned ended = 0, pending = 0, comms = 0, wrong = 0;
	uint64_t seq = 0;

	for (uint32_t r = 0; r < d->n_ranks; r++) {
		ended += cw_liveness_is_dead(d->ranks[r].liveness);
		comms += d->ranks[r].n_members;
		for (uint32_t m = 0; m < d->ranks[r].n_members; m++) {
			const struct cw_msg_member *member = &d->ranks[r].members[m];

			pending += member->pending != NULL;
			wrong += member->async_error != 0;
			if (member->coll_entered > seq)
				seq = member->coll_entered;
		}
	}
	say_job(ret->what, &d->job_key, d->uid, d->label);
	say(ret->what, " of=%s epoch=%" PRIu64 " ranks=%u comms=%u", d->node, since_start(d->epoch),
	    d->n_ranks, comms);
	say_number(ret->what, "pending", pending);
	say_number(ret->what, "dead", ended);
	say_number(ret->what, "errors", wrong);
	say_number(ret->what, "untracked", d->untracked);
	say_number(ret->what, "muted_until", d->muted_until_ns);
	say(ret->count, " number=%" PRIu64 " seq=%" PRIu64, d->number, seq);
}

static void say_members(const struct cw_msg_members *m, struct said *ret)
{
	say_job(ret->what, &m->job_key, m->uid, m->label);
	say(ret->what, " leader=%s standing=%u nodes=", m->leader, m->standing);
	for (uint32_t i = 0; i < m->n_nodes; i++)
		say(ret->what, "%s%s", i ? "," : "", m->nodes[i]);
	say(ret->what, " of=%u", m->n_nodes_in_all);
	say(ret->count, " number=%" PRIu64, m->number);
}

static void say_windows_wanted(const struct cw_msg_window_request *q, struct said *ret)
{
	say_job(ret->what, &q->job_key, q->uid, q->label);
	say(ret->count, " id=%" PRIu64, since_start(q->id));
	say(ret->what, " comms=");
	for (uint32_t i = 0; i < q->n_comm_ids; i++)
		say(ret->what, "%s%#" PRIx64, i ? "," : "", q->comm_ids[i]);
	say(ret->what, " max_ops=%u seq=%" PRIu64 "-%" PRIu64, q->max_ops, q->from_seq, q->to_seq);
}

static void say_windows(const struct cw_msg_window_reply *w, struct said *ret)
{
	say(ret->count, " id=%" PRIu64, since_start(w->id));
	say(ret->what, " ops=");
	for (uint32_t i = 0; i < w->n_windows; i++)
		say(ret->what, "%s%d:%u", i ? "," : "", w->windows[i].pid, w->windows[i].n_ops);
	say(ret->what, " stacks=%u", w->n_stacks);
}

static void say_evidence_wanted(const struct cw_msg_evidence_request *q, struct said *ret)
{
	say_job(ret->what, &q->job_key, q->uid, q->label);
	say(ret->what, " id=%" PRIu64 " within=%ums pids=", since_start(q->id), q->deadline_ms);
	for (uint32_t i = 0; i < q->n_targets; i++)
		say(ret->what, "%s%d:%#x", i ? "," : "", q->targets[i].pid, q->targets[i].what);
}

static void say_announced(const struct cw_msg_incident_announce *a, struct said *ret)
{
	say_job(ret->what, &a->job_key, a->uid, a->label);
	say(ret->what, " inc=%s from=%s words=#%012" PRIx64, a->id, a->node,
	    shown(hash_text(a->summary)));
}

static void describe(const struct cw_message *m, struct said *ret)
{
	say(ret->what, "%s", cw_message_name(m->type));
	switch (m->type) {
	case CW_MSG_DIGEST:
		say_digest(&m->digest, ret);
		break;
	case CW_MSG_DIGEST_COPY: /* a copy of the digest */
		say_job(ret->what, &m->digest.job_key, m->digest.uid, m->digest.label);
		say(ret->count, " number=%" PRIu64, m->digest.number);
		break;
	case CW_MSG_MEMBERS:
		say_members(&m->members, ret);
		break;
	case CW_MSG_WINDOW_REQUEST:
		say_windows_wanted(&m->window_request, ret);
		break;
	case CW_MSG_WINDOW_REPLY:
		say_windows(&m->window_reply, ret);
		break;
	case CW_MSG_EVIDENCE_REQUEST:
		say_evidence_wanted(&m->evidence_request, ret);
		break;
	case CW_MSG_EVIDENCE_REPLY:
		say(ret->what, " id=%" PRIu64 " pid=%d more=%u", since_start(m->evidence_reply.id),
		    m->evidence_reply.pid, m->evidence_reply.remaining);
		break;
	case CW_MSG_INCIDENT_ANNOUNCE:
		say_announced(&m->incident_announce, ret);
		break;
	case CW_MSG_INCIDENT_OBJECTION:
		say(ret->what, " job=%u/%s inc=%s from=%s: %s", m->incident_objection.uid,
		    m->incident_objection.label, m->incident_objection.id,
		    m->incident_objection.node, m->incident_objection.reason);
		break;
	case CW_MSG_INCIDENT_DELIVERED:
		say(ret->what, " job=%u/%s inc=%s", m->incident_delivered.uid,
		    m->incident_delivered.label, m->incident_delivered.id);
		break;
	case CW_MSG_RANK_SEARCH:
		say_job(ret->what, &m->rank_search.job_key, m->rank_search.uid,
			m->rank_search.label);
		break;
	default:
		break;
	}
}

/*
 * Returns a hash of all bytes of a message. For a message that used no network, we encode its
 * frame.
 */
static uint64_t hash_message(const struct cw_message *m, const uint8_t *frame, size_t len)
{
	_cleanup_(freep) uint8_t *encoded = NULL;

	if (!frame) {
		cr_assert_eq(cw_message_encode(m, &encoded, &len), 0);
		frame = encoded;
	}
	return hash_on(NO_HASH, frame, len);
}

/* Returns the user of the job that the message concerns; NULL = it names no job. */
static const uint32_t *uid_of(const struct cw_message *m)
{
	switch (m->type) {
	case CW_MSG_DIGEST:
	case CW_MSG_DIGEST_COPY:
		return &m->digest.uid;
	case CW_MSG_MEMBERS:
		return &m->members.uid;
	case CW_MSG_WINDOW_REQUEST:
		return &m->window_request.uid;
	default:
		return NULL;
	}
}

/* True if the message repeats the last one of its kind between these two nodes. */
static bool is_nothing_new(struct effect_trace *t, const char *way, const struct cw_message *m,
			   const struct said *said)
{
	uint64_t id, now = hash_text(said->what);
	const uint32_t *uid = uid_of(m);
	bool is_same;

	id = hash_on(hash_text(way), &m->type, sizeof(m->type));
	if (uid)
		id = hash_on(id, uid, sizeof(*uid));
	for (unsigned i = 0; i < PATHS_MAX; i++) {
		struct path *p = &t->paths[(id + i) % PATHS_MAX];

		if (p->id && p->id != id)
			continue;
		is_same = p->id && p->said == now;
		*p = (struct path){ .id = id, .said = now };
		return is_same;
	}
	cr_assert_fail("more ways than %u", PATHS_MAX);
	return false;
}

static void count_beat(struct effect_trace *t, const char *text)
{
	struct beats *b = &t->beats;
	int64_t now = t->c->now_ns;

	if (!b->n++)
		b->first_ns = now;
	b->last_ns = now;
	b->hash = hash_on(b->hash, &now, sizeof(now));
	b->hash = hash_on(b->hash, text, strlen(text) + 1);
}

/*
 * Describes a received message by its type only, because we printed its content when it was sent.
 */
static void say_shortly(const struct cw_message *m, struct said *ret)
{
	(void)snprintf(ret->what, sizeof(ret->what), "%s", cw_message_name(m->type));
	ret->count[0] = '\0';
}

static void on_message(void *user, const struct network_node *n, bool is_out, const char *peer,
		       const struct cw_message *m, const uint8_t *frame, size_t len)
{
	static struct said said;
	static char text[3 * TEXT_MAX];
	struct effect_trace *t = user;
	char way[64];
	bool is_beat;

	said = (struct said){ 0 };
	describe(m, &said);
	(void)snprintf(way, sizeof(way), "%s %s %s", n->name, is_out ? ">" : "<", peer);
	is_beat = is_nothing_new(t, way, m, &said);
	if (frame && !is_out) {
		is_beat |= m->type == CW_MSG_DIGEST || m->type == CW_MSG_DIGEST_COPY ||
			   m->type == CW_MSG_MEMBERS;
		if (!t->is_full)
			say_shortly(m, &said);
	}
	(void)snprintf(text, sizeof(text), "%s %s%s #%012" PRIx64, way, said.what, said.count,
		       shown(hash_message(m, frame, len)));
	if (is_beat && !t->is_full)
		count_beat(t, text);
	else
		line(t, n->name, "%s", text + strlen(n->name) + 1);
}

/* ---- documents ---- */

struct document_hash {
	uint64_t facts, words;
};

/* True for a key of sayings. They repeat a text of the document. */
static bool is_said(const char *key)
{
	size_t n = strlen(key), suffix = strlen(CW_SAID_SUFFIX);

	return n > suffix && strcmp(key + n - suffix, CW_SAID_SUFFIX) == 0;
}

/* Adds a text to one of the two hashes. A text with blanks is a sentence for users. */
static void hash_string(const char *text, struct document_hash *h)
{
	if (strchr(text, ' '))
		h->words = hash_on(h->words, text, strlen(text) + 1);
	else
		h->facts = hash_on(h->facts, text, strlen(text) + 1);
}

static void hash_json(const json_t *j, struct document_hash *h)
{
	_cleanup_(freep) char *text = NULL;
	const int type = json_typeof(j);
	const char *key;
	json_t *value;
	size_t i;

	h->facts = hash_on(h->facts, &type, sizeof(type));
	if (json_is_string(j)) {
		hash_string(json_string_value(j), h);
	} else if (json_is_array(j)) {
		json_array_foreach (j, i, value)
			hash_json(value, h);
	} else if (json_is_object(j)) {
		json_object_foreach ((json_t *)j, key, value) {
			if (is_said(key))
				continue;
			h->facts = hash_on(h->facts, key, strlen(key) + 1);
			hash_json(value, h);
		}
	} else {
		text = json_dumps(j, JSON_ENCODE_ANY);
		cr_assert_not_null(text);
		h->facts = hash_on(h->facts, text, strlen(text) + 1);
	}
}

static void say_hash(char *text, const char *name, const json_t *j)
{
	struct document_hash h = { NO_HASH, NO_HASH };

	if (!j)
		return;
	hash_json(j, &h);
	say(text, " %s=#%012" PRIx64, name, shown(h.facts));
	if (h.words != NO_HASH)
		say(text, " words=#%012" PRIx64, shown(h.words));
}

static const char *word_of(const json_t *doc, const char *key)
{
	const char *word = json_string_value(json_object_get(doc, key));

	return word && *word ? word : "-";
}

static void say_incident(char *text, const json_t *doc)
{
	const json_t *times = json_object_get(doc, "times");
	json_t *culprit;
	size_t i;

	say(text, "inc=%s job=%s class=%s detail=%s confidence=%s culprits=", word_of(doc, "id"),
	    word_of(doc, "job"), word_of(doc, "class"), word_of(doc, "detail"),
	    word_of(doc, "confidence"));
	json_array_foreach (json_object_get(doc, "culprits"), i, culprit)
		say(text, "%s%d", i ? "," : "",
		    (int)json_integer_value(json_object_get(culprit, "rank")));
	say(text, " resolved=%s",
	    json_is_string(json_object_get(times, "resolved")) ? "yes" : "no");
	say_hash(text, "facts", doc);
}

/* Describes a snapshot. Usually we have only its text. */
static void say_snapshot(char *text, const json_t *snapshot)
{
	json_t *doc;

	if (!json_is_string(snapshot)) {
		say_hash(text, "snapshot", snapshot);
		return;
	}
	doc = json_loads(json_string_value(snapshot), 0, NULL);
	cr_assert_not_null(doc);
	say_hash(text, "snapshot", doc);
	json_decref(doc);
}

static void on_put(void *user, const struct network_node *n, const struct cw_bundle *bundle)
{
	char text[TEXT_MAX] = "";

	say_incident(text, bundle->incident);
	say_snapshot(text, bundle->snapshot);
	say_hash(text, "evidence", bundle->evidence);
	say_hash(text, "stacks", bundle->stacks);
	line(user, n->name, "store %s", text);
}

static void on_update_incident(void *user, const struct network_node *n, const json_t *incident)
{
	char text[TEXT_MAX] = "";

	say_incident(text, incident);
	line(user, n->name, "update %s", text);
}

static void on_alert(void *user, const struct network_node *n, const struct cw_incident_due *due,
		     const json_t *doc, int r)
{
	char text[TEXT_MAX] = "";

	say_incident(text, doc);
	line(user, n->name, "alert uid=%u %s%s", due->uid, text, r < 0 ? ": refused" : "");
}

static void on_event(void *user, const struct network_node *n, const char *what)
{
	line(user, n->name, "is %s", what);
}

/* ---- the log ---- */

void __wrap_cw_log(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void __wrap_cw_log_v(int level, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
void __wrap_cw_log_event(int level, const char *message_id, const char *text,
			 const char *const *fields);

static void log_line(int level, const char *text)
{
	const struct effect_trace *t = current;

	if (t && level <= CW_LOG_INFO)
		line(current, t->c->net->running ? t->c->net->running->name : "-", "log <%d> %s",
		     level, text);
}

void __wrap_cw_log_v(int level, const char *fmt, va_list ap)
{
	char text[TEXT_MAX];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	log_line(level, text);
}

void __wrap_cw_log(int level, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	__wrap_cw_log_v(level, fmt, args);
	va_end(args);
}

void __wrap_cw_log_event(int level, const char *message_id, const char *text,
			 const char *const *fields)
{
	char all[TEXT_MAX] = "";

	say(all, "%s {%s", text, message_id ? message_id : "-");
	for (; fields && *fields; fields++)
		say(all, " %s", *fields);
	say(all, "}");
	log_line(level, all);
}

/* ---- all of it ---- */

struct effect_trace *effect_trace_new(struct cluster *c, bool is_full)
{
	struct effect_trace *t = calloc(1, sizeof(*t));

	cr_assert_not_null(t);
	t->c = c;
	t->start_ns = c->now_ns;
	t->is_full = is_full;
	t->beats.hash = NO_HASH;
	t->out = open_memstream(&t->text, &t->len);
	cr_assert_not_null(t->out);
	t->observer = (struct network_observer){ .on_message = on_message,
						 .on_put = on_put,
						 .on_update_incident = on_update_incident,
						 .on_alert = on_alert,
						 .on_event = on_event,
						 .user = t };
	c->net->observer = &t->observer;
	current = t;
	return t;
}

char *effect_trace_end(struct effect_trace *t)
{
	char *text;

	flush_beats(t);
	t->c->net->observer = NULL;
	current = NULL;
	(void)fclose(t->out);
	text = t->text;
	free(t);
	return text;
}
