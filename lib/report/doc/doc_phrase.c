/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/doc_phrase.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/job_env.h"
#include "common/parse.h"
#include "common/text.h"
#include "model/cause.h"
#include "model/op.h"
#include "model/rankset.h"
#include "model/verdict_types.h"
#include "report/doc/incident_doc.h"
#include "report/doc/incident_facts.h"
#include "report/frame_origin.h"
#include "report/json_util.h"

/*
 * We show only the first and the last waits of a longer chain. The last waits include the rank at
 * the end of the chain.
 */
#define WAITS_FIRST 3u
#define WAITS_LAST 6u
#define MAX_ALIKE 1024u
/* A century, in seconds. We ignore a longer duration, because only a hostile document has one. */
#define MAX_LASTED_S 3.2e9
/*
 * We show at most this many frames per call stack: a few helpers that all calls share, and their
 * callers.
 */
#define FRAMES_MAX 3u

/* Returns the text for people, as from cw_op_kind_text(), for the name of a kind; NULL = "?". */
static const char *phrase_kind(const char *name)
{
	if (!name)
		return "?";
	return cw_op_kind_from_name(name) == CW_OP_NONE ? cw_op_kind_text(CW_OP_NONE) : name;
}

static bool is_none(const char *name)
{
	return !name || strcmp(name, "none") == 0;
}

static void say_op(const struct cw_incident_call *op, bool has_peer, char *buf, size_t len)
{
	(void)snprintf(buf, len, "%s", phrase_kind(op ? op->kind.text : NULL));
	if (!op)
		return;
	if (!is_none(op->dtype.text))
		cw_text_append(buf, len, " %s x %" PRIu64, op->dtype.text, op->count);
	if (!is_none(op->redop.text))
		cw_text_append(buf, len, " %s", op->redop.text);
	if (op->root != -1)
		cw_text_append(buf, len, " root %" PRId32, op->root);
	if (has_peer && op->peer != -1)
		cw_text_append(buf, len, " %s comm rank %" PRId32,
			       op->kind.number == CW_OP_RECV ? "from" : "to", op->peer);
}

char *phrase_doc_op(const struct cw_incident_call *op, char *buf, size_t len)
{
	say_op(op, true, buf, len);
	return buf;
}

/* The parts of a frame's text, "/u/train.py:41 in Trainer.step" or "train+0x12". */
struct issued_frame {
	const char *file; /* without directories */
	int file_len;
	const char *line; /* ":41" */
	int line_len;
	const char *function; /* NULL: not a Python frame */
};

static struct issued_frame read_frame(const char *text)
{
	const char *in = strstr(text, " in "), *end = in ? in : text + strlen(text);
	struct issued_frame f = { .file = text, .function = in ? in + strlen(" in ") : NULL };
	const char *line = end;

	for (const char *p = text; p < end; p++) {
		if (*p == '/') {
			f.file = p + 1;
			line = end;
		} else if (*p == ':') {
			line = p;
		}
	}
	f.file_len = (int)(line - f.file);
	f.line = line;
	f.line_len = (int)(end - line);
	return f;
}

static bool is_same_file(const struct issued_frame *a, const struct issued_frame *b)
{
	return a->file_len == b->file_len && !strncmp(a->file, b->file, (size_t)a->file_len);
}

/*
 * Appends "issued in step (train.py:41), called by main (:9)". before: the previous frame, or NULL.
 */
static void add_frame(char *buf, size_t len, const struct issued_frame *f,
		      const struct issued_frame *before)
{
	if (!f->function) {
		cw_text_append(buf, len, "issued at %.*s%.*s", f->file_len, f->file, f->line_len,
			       f->line);
		return;
	}
	cw_text_append(buf, len, "%s%s (", before ? ", called by " : "issued in ", f->function);
	if (!before || !is_same_file(f, before))
		cw_text_append(buf, len, "%.*s", f->file_len, f->file);
	cw_text_append(buf, len, "%.*s)", f->line_len, f->line);
}

/* Adds the innermost frames of one origin; returns the number of such frames. */
static size_t add_frames_of(char *buf, size_t len, const struct cw_incident_call *op,
			    enum frame_origin origin)
{
	struct issued_frame f, before;
	size_t n = 0;

	for (uint32_t i = 0; i < op->n_stack && n < FRAMES_MAX; i++) {
		const char *text = op->stack[i];

		if (!strstr(text, " in ") || frame_origin(text) != origin)
			continue;
		f = read_frame(text);
		add_frame(buf, len, &f, n++ ? &before : NULL);
		before = f;
	}
	return n;
}

/* The call stack begins with native frames. The Python frames that called them follow. */
char *phrase_doc_issued(const struct cw_incident_call *op, char *buf, size_t len)
{
	const char *innermost = NULL;
	struct issued_frame f;

	buf[0] = '\0';
	if (!op || add_frames_of(buf, len, op, FRAME_OWN) ||
	    add_frames_of(buf, len, op, FRAME_LIBRARY))
		return buf;
	for (uint32_t i = 0; i < op->n_stack; i++)
		if (!innermost || (strstr(op->stack[i], " in ") && !strstr(innermost, " in ")))
			innermost = op->stack[i];
	if (innermost) {
		f = read_frame(innermost);
		add_frame(buf, len, &f, NULL);
	}
	return buf;
}

char *phrase_doc_comm(uint64_t id, const char *name, char *buf, size_t len)
{
	if (name && *name)
		(void)snprintf(buf, len, "%s", name);
	else if (id)
		(void)snprintf(buf, len, "communicator 0x%016" PRIx64, id);
	else
		(void)snprintf(buf, len, "communicator ?");
	return buf;
}

char *phrase_doc_rank(int32_t rank, char *buf, size_t len)
{
	if (rank >= 0)
		(void)snprintf(buf, len, "rank %" PRId32, rank);
	else
		(void)snprintf(buf, len, "a process without a rank number");
	return buf;
}

bool phrase_is_many(const char *rank_set)
{
	return strpbrk(rank_set, ",-");
}

static bool is_class(const struct cw_incident_facts *incident, enum cw_class verdict_class)
{
	return incident->verdict_class.number == (int)verdict_class;
}

char *phrase_doc_seq(const struct cw_incident_where *where, char *buf, size_t len)
{
	bool is_between = where->after_seq != CW_INCIDENT_NO_SEQ;

	*buf = '\0';
	if (is_between && where->after_seq)
		cw_text_append(buf, len,
			       ", a collective after #%" PRIu64 ", #%" PRIu64 " at the latest",
			       where->after_seq, where->coll_seq);
	else if (is_between)
		cw_text_append(buf, len, ", a collective up to #%" PRIu64, where->coll_seq);
	else if (where->coll_seq)
		cw_text_append(buf, len, ", collective #%" PRIu64, where->coll_seq);
	return buf;
}

bool phrase_doc_is_unseen(const struct cw_incident_facts *incident)
{
	return incident->closed_as.number == CW_CLOSED_AS_UNSEEN;
}

bool phrase_doc_is_resolved(const struct cw_incident_facts *incident)
{
	return incident->times && incident->times->resolved_wall_ns;
}

const char *phrase_doc_flag(const struct cw_incident_facts *incident)
{
	if (incident->severity.number == CW_SEVERITY_FAILED)
		return "FAILED";
	if (phrase_doc_is_resolved(incident))
		return "RESOLVED";
	if (phrase_doc_is_unseen(incident))
		return "UNSEEN";
	if (is_class(incident, CW_CLASS_MISMATCH) && incident->victims && !incident->victims->count)
		return "MISMATCH";
	/*
	 * NOTICE tells the reader that the job may continue by itself. A recording only shows one
	 * moment, so its incident is a HANG.
	 */
	return incident->severity.number == CW_SEVERITY_NOTICE &&
			       strcmp(cw_fact_text(incident->leader), CW_LEADER_ANALYZE) != 0
		       ? "NOTICE"
		       : "HANG";
}

/* Class and detail names are for programs; we show words to users. */
static void add_words(char *buf, size_t len, const char *name)
{
	char *at = buf + strlen(buf);
	bool begins = true; /* at the start of a word: "oom" inside "room" is no word */

	cw_text_append(buf, len, "%s", name);
	for (; *at; at++) {
		if (*at == '_')
			*at = ' ';
		else if (begins && strncmp(at, "nccl", 4) == 0)
			memcpy(at, "NCCL", 4);
		else if (begins && strncmp(at, "oom", 3) == 0)
			memcpy(at, "OOM", 3);
		begins = *at == ' ';
	}
}

char *cw_doc_words(const char *name, char *buf, size_t len)
{
	buf[0] = '\0';
	add_words(buf, len, name);
	return buf;
}

char *cw_doc_class(const char *verdict_class, const char *detail, char *buf, size_t len)
{
	buf[0] = '\0';
	add_words(buf, len, verdict_class ? verdict_class : "?");
	if (detail && *detail) {
		cw_text_append(buf, len, ": ");
		add_words(buf, len, detail);
	}
	return buf;
}

const char *cw_phrase_job(const char *label, const char *fallback)
{
	return label && *label ? cw_job_env_shown(label) : fallback;
}

const char *cw_doc_job(const json_t *doc, const char *fallback)
{
	return cw_phrase_job(cw_json_str(doc, "job", ""), fallback);
}

char *cw_doc_user(int64_t uid, const char *name, char *buf, size_t len)
{
	bool has_name = name && *name;

	buf[0] = '\0';
	if (has_name)
		cw_text_append(buf, len, "%s", name);
	if (uid >= 0)
		cw_text_append(buf, len, has_name ? " (uid %" PRId64 ")" : "uid %" PRId64, uid);
	return buf;
}

char *phrase_doc_summary(const struct cw_incident_facts *incident, char *buf, size_t len)
{
	double lasted_s = incident->lasted_s;
	char span[64];

	buf[0] = '\0';
	/* The summary of a post-mortem is about the end. */
	if (incident->closed_as.number == CW_CLOSED_AS_JOB_ENDED &&
	    incident->severity.number != CW_SEVERITY_FAILED)
		cw_text_append(buf, len, "as the job ended: ");
	else if (phrase_doc_is_resolved(incident) && lasted_s > 0 && lasted_s < MAX_LASTED_S)
		cw_text_append(buf, len, "after %s: ",
			       cw_format_duration((int64_t)(lasted_s * 1e9), span, sizeof(span)));
	cw_text_append(buf, len, "%s", cw_fact_text(incident->summary.text));
	return buf;
}

char *cw_doc_last_call(const struct cw_incident_last_call *call, char *buf, size_t len)
{
	buf[0] = '\0';
	cw_text_append(buf, len, "%s", phrase_kind(call ? call->kind.text : NULL));
	if (call && call->coll_seq)
		cw_text_append(buf, len, " #%" PRIu64, call->coll_seq);
	if (call && *cw_fact_text(call->comm_name))
		cw_text_append(buf, len, " on %s", call->comm_name);
	return buf;
}

const char *cw_doc_end_verb(const struct cw_incident_end *end)
{
	int kind = end->cause_kind.number, by = end->cause_by.number;

	return cw_cause_verb(kind > 0 ? (unsigned)kind : CW_CAUSE_UNKNOWN,
			     by > 0 ? (unsigned)by : CW_END_BY_UNKNOWN);
}

const char *cw_doc_end_text(const struct cw_incident_end *end)
{
	if (*cw_fact_text(end->cause))
		return end->cause;
	return end->how ? end->how : "?";
}

const char *phrase_doc_absence(const struct cw_incident_facts *incident)
{
	if (is_class(incident, CW_CLASS_PROCESS_DEAD))
		return "ended before it was done";
	if (is_class(incident, CW_CLASS_DEVICE_STALLED))
		return "enqueued it, but its device has not reached it";
	return is_class(incident, CW_CLASS_P2P_UNMATCHED) ? "did not post the counterpart"
							  : "did not enter";
}

const char *phrase_doc_no_stacks(const struct cw_incident_facts *incident, const json_t *evidence)
{
	if (is_class(incident, CW_CLASS_PROCESS_DEAD))
		return "no stacks: it had ended";
	if (is_class(incident, CW_CLASS_NODE_UNREACHABLE))
		return "no stacks: its node does not answer";
	return json_array_size(evidence) ? "no stacks: the process was gone"
					 : "no stacks in this bundle";
}

/*
 * Names the rank or event that is awaited. The last rank of a chain may wait in a call that every
 * rank has entered.
 */
static void add_awaited(const struct cw_incident_facts *incident,
			const struct cw_incident_wait *wait, char *buf, size_t len)
{
	if (wait->waits_for >= 0)
		cw_text_append(buf, len, " for rank %" PRId32, wait->waits_for);
	else if (is_class(incident, CW_CLASS_MISMATCH))
		cw_text_append(buf, len, ", where the calls differ");
	else if (is_class(incident, CW_CLASS_IN_COLLECTIVE))
		cw_text_append(buf, len, ", which all members entered");
	else if (is_class(incident, CW_CLASS_P2P_UNMATCHED))
		cw_text_append(buf, len, ", whose counterpart has a different size");
	else
		cw_text_append(buf, len, " for a rank that is not visible");
}

char *phrase_doc_wait(const struct cw_incident_facts *incident, const struct cw_incident_wait *wait,
		      char *buf, size_t len)
{
	/*
	 * add_awaited() names the awaited rank by its number in the job, not in the communicator.
	 */
	bool has_peer = wait->waits_for < 0;
	char text[256];

	say_op(wait->op, has_peer, text, sizeof(text));
	(void)snprintf(buf, len, "rank %" PRId32 " waits in %s", wait->rank, text);
	cw_text_append(buf, len, " on %s",
		       phrase_doc_comm(wait->comm, wait->comm_name, text, sizeof(text)));
	add_awaited(incident, wait, buf, len);
	return buf;
}

size_t doc_waits_omitted(size_t n, size_t i)
{
	return n > WAITS_FIRST + WAITS_LAST + 1 && i == WAITS_FIRST ? n - WAITS_FIRST - WAITS_LAST
								    : 0;
}

static bool is_same_process(const struct cw_incident_culprit *culprit, const json_t *evidence)
{
	return cw_json_int(evidence, "pid", -2) == culprit->pid &&
	       strcmp(cw_json_str(evidence, "host", ""), cw_fact_text(culprit->host)) == 0;
}

const json_t *doc_evidence_of(const struct cw_incident_culprit *culprit, const json_t *evidence)
{
	const json_t *one;
	size_t i;

	json_array_foreach (evidence, i, one)
		if (is_same_process(culprit, one))
			return one;
	return NULL;
}

/* True if we can mention "node-a" and "its node has stopped reporting" once for both ranks. */
static bool is_alike(const struct cw_incident_culprit *a, const struct cw_incident_culprit *b)
{
	return strcmp(cw_fact_text(a->host), cw_fact_text(b->host)) == 0 &&
	       strcmp(cw_fact_text(a->reason.text), cw_fact_text(b->reason.text)) == 0;
}

size_t doc_culprits_alike(const struct cw_incident_facts *incident, size_t from,
			  const json_t *evidence)
{
	const struct cw_incident_culprit *first = &incident->culprits[from];
	size_t n = 1;

	if (doc_evidence_of(first, evidence))
		return 1;
	for (; n < MAX_ALIKE && from + n < incident->n_culprits; n++)
		if (!is_alike(first, first + n) || doc_evidence_of(first + n, evidence))
			break;
	return n;
}

char *phrase_doc_ranks(const struct cw_incident_facts *incident, size_t from, size_t n, char *buf,
		       size_t len)
{
	int32_t labels[MAX_ALIKE];
	size_t i;

	for (i = 0; i < n && i < MAX_ALIKE; i++)
		labels[i] = incident->culprits[from + i].rank;
	(void)snprintf(buf, len, "ranks ");
	(void)cw_rankset_format(labels, i, buf + strlen(buf), len - strlen(buf));
	return buf;
}

#define COPY_FACT(form, type, name, ...) .name = culprit->name,

struct cw_incident_process cw_phrase_process_of(const struct cw_incident_culprit *culprit)
{
	return (struct cw_incident_process){ CW_INCIDENT_PROCESS_FACTS(COPY_FACT) };
}

char *cw_doc_where(const struct cw_incident_process *who, bool with_pid, char *buf, size_t len)
{
	buf[0] = '\0';
	if (*cw_fact_text(who->host))
		cw_text_append(buf, len, " on %.100s", who->host);
	if (with_pid && who->pid > 0)
		cw_text_append(buf, len, ", pid %" PRId32, who->pid);
	return buf;
}

/* Appends the row's words, with the value in the place of "%s". */
static void add_shown(char *buf, size_t len, const char *shown, const char *value)
{
	const char *at = strstr(shown, "%s");

	if (at && *value)
		cw_text_append(buf, len, "%.*s%s%s", (int)(at - shown), shown, value, at + 2);
}

static const char *text_of_i32(int32_t value, char text[static 16])
{
	(void)snprintf(text, 16, "%" PRId32, value);
	return value > 0 ? text : "";
}

#define VALUE_TEXT(name) cw_fact_text(who->name)
#define VALUE_I32(name) text_of_i32(who->name, number)
#define SHOW_FACT(form, type, name, key, presence, secrecy, shown, ...)                            \
	add_shown(buf, len, shown, VALUE_##form(name));

char *cw_doc_place(const struct cw_incident_process *who, char *buf, size_t len)
{
	const char *ns = cw_fact_text(who->pod_namespace);
	char number[16];

	buf[0] = '\0';
	CW_INCIDENT_PLACE_FACTS(SHOW_FACT)
	if (*cw_fact_text(who->pod)) {
		cw_text_append(buf, len, ", pod %s%s%s", ns, *ns ? "/" : "", who->pod);
		CW_INCIDENT_POD_FACTS(SHOW_FACT)
	}
	CW_INCIDENT_SEEN_FACTS(SHOW_FACT)
	return buf;
}

bool doc_is_culprit(const struct cw_incident_facts *incident, const json_t *evidence)
{
	for (uint32_t i = 0; i < incident->n_culprits; i++)
		if (is_same_process(&incident->culprits[i], evidence))
			return true;
	return false;
}
