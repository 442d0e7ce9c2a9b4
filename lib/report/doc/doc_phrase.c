/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/doc_phrase.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/job_env.h"
#include "common/parse.h"
#include "common/text.h"
#include "model/rankset.h"
#include "report/doc/incident_doc.h"
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

static void say_op(const json_t *op, bool has_peer, char *buf, size_t len)
{
	const char *dtype = cw_json_str(op, "dtype", "none");
	const char *redop = cw_json_str(op, "redop", "none");
	const char *kind = cw_json_str(op, "kind", "?");
	uint64_t count = 0;

	/* The kind is "none" if the records have lost the call but still have its number. */
	(void)snprintf(buf, len, "%s",
		       strcmp(kind, "none") == 0 ? "a collective of unknown kind" : kind);
	if (strcmp(dtype, "none") != 0) {
		/* stays 0 on failure */
		(void)cw_json_read_u64(json_object_get(op, "count"), &count);
		cw_text_append(buf, len, " %s x %llu", dtype, (unsigned long long)count);
	}
	if (strcmp(redop, "none") != 0)
		cw_text_append(buf, len, " %s", redop);
	if (json_is_integer(json_object_get(op, "root")))
		cw_text_append(buf, len, " root %" JSON_INTEGER_FORMAT, cw_json_int(op, "root", 0));
	if (has_peer && json_is_integer(json_object_get(op, "peer")))
		cw_text_append(buf, len, " %s comm rank %" JSON_INTEGER_FORMAT,
			       strcmp(cw_json_str(op, "kind", ""), "recv") == 0 ? "from" : "to",
			       cw_json_int(op, "peer", 0));
}

char *phrase_doc_op(const json_t *op, char *buf, size_t len)
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
static size_t add_frames_of(char *buf, size_t len, const json_t *stack, enum frame_origin origin)
{
	struct issued_frame f, before;
	const json_t *frame;
	size_t i, n = 0;

	json_array_foreach (stack, i, frame) {
		const char *text = json_string_value(frame);

		if (!text || !strstr(text, " in ") || frame_origin(text) != origin)
			continue;
		f = read_frame(text);
		add_frame(buf, len, &f, n ? &before : NULL);
		before = f;
		if (++n == FRAMES_MAX)
			break;
	}
	return n;
}

/* The call stack begins with native frames. The Python frames that called them follow. */
char *phrase_doc_issued(const json_t *op, char *buf, size_t len)
{
	const json_t *stack = json_object_get(op, "stack"), *frame;
	const char *innermost = NULL;
	struct issued_frame f;
	size_t i;

	buf[0] = '\0';
	if (add_frames_of(buf, len, stack, FRAME_OWN) ||
	    add_frames_of(buf, len, stack, FRAME_LIBRARY))
		return buf;
	json_array_foreach (stack, i, frame) {
		const char *text = json_string_value(frame);
		bool is_python = text && strstr(text, " in ");

		if (text && (!innermost || (is_python && !strstr(innermost, " in "))))
			innermost = text;
	}
	if (innermost) {
		f = read_frame(innermost);
		add_frame(buf, len, &f, NULL);
	}
	return buf;
}

char *phrase_doc_comm(const json_t *at, char *buf, size_t len)
{
	const char *name = cw_json_str(at, "comm_name", "");

	if (*name)
		(void)snprintf(buf, len, "%s", name);
	else
		(void)snprintf(buf, len, "communicator %s", cw_json_str(at, "comm", "?"));
	return buf;
}

char *phrase_doc_rank(const json_t *who, char *buf, size_t len)
{
	json_int_t rank = cw_json_int(who, "rank", -1);

	if (rank >= 0)
		(void)snprintf(buf, len, "rank %" JSON_INTEGER_FORMAT, rank);
	else
		(void)snprintf(buf, len, "a process without rank number");
	return buf;
}

bool phrase_is_many(const char *rank_set)
{
	return strpbrk(rank_set, ",-");
}

static bool is_class(const json_t *incident, const char *verdict_class)
{
	return strcmp(cw_json_str(incident, "class", ""), verdict_class) == 0;
}

char *phrase_doc_seq(const json_t *where, char *buf, size_t len)
{
	uint64_t seq = 0, after = 0;
	bool is_between = cw_json_read_u64(json_object_get(where, "after_seq"), &after);

	(void)cw_json_read_u64(json_object_get(where, "coll_seq"), &seq); /* stays 0 on failure */
	*buf = '\0';
	if (is_between && after)
		cw_text_append(buf, len,
			       ", a collective after #%" PRIu64 ", #%" PRIu64 " at the latest",
			       after, seq);
	else if (is_between)
		cw_text_append(buf, len, ", a collective up to #%" PRIu64, seq);
	else if (seq)
		cw_text_append(buf, len, ", collective #%" PRIu64, seq);
	return buf;
}

bool phrase_doc_is_unseen(const json_t *incident)
{
	return strcmp(cw_json_str(incident, "closed_as", ""), "unseen") == 0;
}

const char *phrase_doc_flag(const json_t *incident)
{
	const json_t *times = json_object_get(incident, "times");
	const json_t *victims = json_object_get(incident, "victims");

	if (json_is_string(json_object_get(times, "resolved")))
		return "RESOLVED";
	if (phrase_doc_is_unseen(incident))
		return "UNSEEN";
	if (is_class(incident, "mismatch") && cw_json_int(victims, "count", 1) == 0)
		return "MISMATCH";
	/*
	 * NOTICE tells the reader that the job may continue by itself. A recording only shows one
	 * moment, so its incident is a HANG.
	 */
	return strcmp(cw_json_str(incident, "severity", ""), "notice") == 0 &&
			       strcmp(cw_json_str(incident, "leader", ""), CW_LEADER_ANALYZE) != 0
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

char *cw_doc_class(const json_t *incident, char *buf, size_t len)
{
	const char *detail = cw_json_str(incident, "detail", "");

	buf[0] = '\0';
	add_words(buf, len, cw_json_str(incident, "class", "?"));
	if (*detail) {
		cw_text_append(buf, len, ": ");
		add_words(buf, len, detail);
	}
	return buf;
}

const char *cw_doc_job(const json_t *doc, const char *fallback)
{
	const char *label = cw_json_str(doc, "job", "");

	return *label ? cw_job_env_shown(label) : fallback;
}

char *cw_doc_user(const json_t *doc, char *buf, size_t len)
{
	json_int_t uid = cw_json_int(doc, "uid", -1);
	const char *name = cw_json_str(doc, "user", "");

	buf[0] = '\0';
	if (*name)
		cw_text_append(buf, len, "%s", name);
	if (uid >= 0)
		cw_text_append(buf, len,
			       *name ? " (uid %" JSON_INTEGER_FORMAT ")"
				     : "uid %" JSON_INTEGER_FORMAT,
			       uid);
	return buf;
}

char *phrase_doc_summary(const json_t *incident, char *buf, size_t len)
{
	double lasted_s = json_number_value(json_object_get(incident, "lasted_s"));
	bool is_over =
		json_is_string(json_object_get(json_object_get(incident, "times"), "resolved"));
	char span[64];

	buf[0] = '\0';
	if (strcmp(cw_json_str(incident, "closed_as", ""), "job_ended") == 0)
		cw_text_append(buf, len, "as the job ended: ");
	else if (is_over && lasted_s > 0 && lasted_s < MAX_LASTED_S)
		cw_text_append(buf, len, "after %s: ",
			       cw_format_duration((int64_t)(lasted_s * 1e9), span, sizeof(span)));
	cw_text_append(buf, len, "%s", cw_json_str(incident, "summary", ""));
	return buf;
}

const char *phrase_doc_absence(const json_t *incident)
{
	if (is_class(incident, "process_dead"))
		return "ended before it was done";
	if (is_class(incident, "device_stalled"))
		return "enqueued it, but its device has not come to it";
	return is_class(incident, "p2p_unmatched") ? "did not post the counterpart"
						   : "did not enter";
}

const char *phrase_doc_no_stacks(const json_t *incident, const json_t *evidence)
{
	if (is_class(incident, "process_dead"))
		return "no stacks: it had ended";
	if (is_class(incident, "node_unreachable"))
		return "no stacks: its node does not answer";
	return json_array_size(evidence) ? "no stacks: the process was gone"
					 : "no stacks in this bundle";
}

/*
 * Names the rank or event that is awaited. The last rank of a chain may wait in a call that every
 * rank has entered.
 */
static void add_awaited(const json_t *incident, const json_t *wait, char *buf, size_t len)
{
	json_int_t rank = cw_json_int(wait, "waits_for", -1);

	if (rank >= 0)
		cw_text_append(buf, len, " for rank %" JSON_INTEGER_FORMAT, rank);
	else if (is_class(incident, "mismatch"))
		cw_text_append(buf, len, ", where the calls differ");
	else if (is_class(incident, "in_collective"))
		cw_text_append(buf, len, ", which all its members entered");
	else if (is_class(incident, "p2p_unmatched"))
		cw_text_append(buf, len, ", whose counterpart has another size");
	else
		cw_text_append(buf, len, " for a rank that is not visible");
}

char *phrase_doc_wait(const json_t *incident, const json_t *wait, char *buf, size_t len)
{
	/*
	 * add_awaited() names the awaited rank by its number in the job, not in the communicator.
	 */
	bool has_peer = cw_json_int(wait, "waits_for", -1) < 0;
	char text[256];

	say_op(json_object_get(wait, "op"), has_peer, text, sizeof(text));
	(void)snprintf(buf, len, "rank %" JSON_INTEGER_FORMAT " waits in %s",
		       cw_json_int(wait, "rank", -1), text);
	cw_text_append(buf, len, " on %s", phrase_doc_comm(wait, text, sizeof(text)));
	add_awaited(incident, wait, buf, len);
	return buf;
}

size_t doc_waits_omitted(size_t n, size_t i)
{
	return n > WAITS_FIRST + WAITS_LAST + 1 && i == WAITS_FIRST ? n - WAITS_FIRST - WAITS_LAST
								    : 0;
}

/* True if we can mention "node-a" and "its node has stopped reporting" once for both ranks. */
static bool is_alike(const json_t *a, const json_t *b)
{
	return strcmp(cw_json_str(a, "host", ""), cw_json_str(b, "host", "")) == 0 &&
	       strcmp(cw_json_str(a, "reason", ""), cw_json_str(b, "reason", "")) == 0;
}

size_t doc_culprits_alike(const json_t *culprits, size_t from, const json_t *evidence)
{
	const json_t *first = json_array_get(culprits, from);
	size_t n = 1;

	if (cw_incident_doc_evidence_of(first, evidence))
		return 1;
	for (; n < MAX_ALIKE && from + n < json_array_size(culprits); n++) {
		const json_t *next = json_array_get(culprits, from + n);

		if (!is_alike(first, next) || cw_incident_doc_evidence_of(next, evidence))
			break;
	}
	return n;
}

char *phrase_doc_ranks(const json_t *culprits, size_t from, size_t n, char *buf, size_t len)
{
	int32_t labels[MAX_ALIKE];
	size_t i;

	for (i = 0; i < n && i < MAX_ALIKE; i++) {
		json_int_t rank = cw_json_int(json_array_get(culprits, from + i), "rank", -1);

		labels[i] = rank >= 0 && rank <= INT32_MAX ? (int32_t)rank : -1;
	}
	(void)snprintf(buf, len, "ranks ");
	(void)cw_rankset_format(labels, i, buf + strlen(buf), len - strlen(buf));
	return buf;
}

char *cw_doc_where(const json_t *who, bool with_pid, char *buf, size_t len)
{
	const char *host = cw_json_str(who, "host", "");
	json_int_t pid = with_pid ? cw_json_int(who, "pid", 0) : 0;

	buf[0] = '\0';
	if (*host)
		cw_text_append(buf, len, " on %.100s", host);
	if (pid > 0)
		cw_text_append(buf, len, ", pid %" JSON_INTEGER_FORMAT, pid);
	return buf;
}

char *cw_doc_pod(const json_t *who, char *buf, size_t len)
{
	const char *pod = cw_json_str(who, "pod", ""), *ns = cw_json_str(who, "pod_namespace", "");
	const char *container = cw_json_str(who, "container", "");
	json_int_t pid = cw_json_int(who, "own_pid", 0);

	buf[0] = '\0';
	if (!*pod)
		return buf;
	cw_text_append(buf, len, ", pod %s%s%s", ns, *ns ? "/" : "", pod);
	if (*container)
		cw_text_append(buf, len, ", container %s", container);
	if (pid > 0)
		cw_text_append(buf, len, ", pid %" JSON_INTEGER_FORMAT " there", pid);
	return buf;
}

bool doc_is_culprit(const json_t *incident, const json_t *evidence)
{
	const json_t *culprits = json_object_get(incident, "culprits"), *culprit;
	size_t i;

	json_array_foreach (culprits, i, culprit)
		if (cw_json_int(culprit, "pid", -1) == cw_json_int(evidence, "pid", -2) &&
		    strcmp(cw_json_str(culprit, "host", ""), cw_json_str(evidence, "host", "")) ==
			    0)
			return true;
	return false;
}
