/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wording for the facts of an incident. The text report, the HTML page and Slack use the same
 * words, and each escapes them for its medium. Documents may be hostile. No function here fails.
 * Text beyond the buffer is cut.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/incident_list.h"

/*
 * Returns "HANG", "RESOLVED" or "UNSEEN", "MISMATCH" for an incident without victims, or "FAILED"
 * for a post-mortem without an alert.
 */
const char *phrase_doc_flag(const struct cw_incident_facts *incident);
/* True if no leader tracks the incident any more and we do not know when it ended. */
bool phrase_doc_is_unseen(const struct cw_incident_facts *incident);
/* True if we know when the incident ended. */
bool phrase_doc_is_resolved(const struct cw_incident_facts *incident);

/* Turns an enumerator's name into words: "outside_nccl" into "outside NCCL". Returns buf. */
char *cw_doc_words(const char *name, char *buf, size_t len);

/*
 * Writes the names of class and detail in words: "never entered: outside NCCL". detail may be NULL
 * or empty. Returns buf.
 */
char *cw_doc_class(const char *verdict_class, const char *detail, char *buf, size_t len);

/*
 * Returns the user's name for a job, without the prefix of the naming rule. Returns fallback if the
 * label is NULL or empty. cw_doc_job() takes the label from a document's "job".
 */
const char *cw_phrase_job(const char *label, const char *fallback);
const char *cw_doc_job(const json_t *doc, const char *fallback);

#define CW_DOC_USER_BYTES 320

/*
 * Writes a job's user: "alice (uid 1000)" or "uid 1000"; "" if no user is known. uid: -1 = unknown.
 * Returns buf.
 */
char *cw_doc_user(int64_t uid, const char *name, char *buf, size_t len);

/*
 * Writes the summary. The summary of a finished incident begins with "after 17 s: ". Returns buf.
 */
char *phrase_doc_summary(const struct cw_incident_facts *incident, char *buf, size_t len);

#define CW_DOC_LAST_CALL_BYTES 320
/* Writes one of a rank's last calls: "all_reduce #31 on tp". call: NULL = "?". Returns buf. */
char *cw_doc_last_call(const struct cw_incident_last_call *call, char *buf, size_t len);

/*
 * Return the verb between a process and the text of its end, "was " or "", and that text: the
 * cause, or else how the process ended.
 */
const char *cw_doc_end_verb(const struct cw_incident_end *end);
const char *cw_doc_end_text(const struct cw_incident_end *end);

/* Writes an op without the number of the call: "all_reduce bf16 x 1048576 sum". Returns buf. */
char *phrase_doc_op(const struct cw_incident_call *op, char *buf, size_t len);

/*
 * Writes the innermost frames of the op's call stack: "issued in Comm.call (comm.py:12), called by
 * step (train.py:41)". We prefer the user's own code to libraries, and libraries to all other
 * frames. Writes "" if the op is NULL or has no call stack. Returns buf.
 */
char *phrase_doc_issued(const struct cw_incident_call *op, char *buf, size_t len);

/* Writes "tp" or "communicator 0x…". Returns buf. */
char *phrase_doc_comm(uint64_t id, const char *name, char *buf, size_t len);

/* Writes "rank 3", or "a process without a rank number". Returns buf. */
char *phrase_doc_rank(int32_t rank, char *buf, size_t len);

#define CW_DOC_WHERE_BYTES 160
/* Writes " on node-a, pid 812". In a recording, host or pid may be missing. Returns buf. */
char *cw_doc_where(const struct cw_incident_process *who, bool with_pid, char *buf, size_t len);

/* Enough bytes for the longest names that Kubernetes allows. */
#define CW_DOC_PLACE_BYTES 480
/*
 * Writes the facts about the process that its row in model/incident_list.h shows: ", pod
 * ml/train-3, container trainer, pid 17 there". A container's facts follow a pod only. Returns buf.
 */
char *cw_doc_place(const struct cw_incident_process *who, char *buf, size_t len);

/* Returns the facts that identify the culprit's process. */
struct cw_incident_process cw_phrase_process_of(const struct cw_incident_culprit *culprit);

/*
 * Writes ", collective #42" for the call in `where`. If the record no longer contains the call, we
 * give its bounds: ", a collective after #128, #192 at the latest". Writes "" for a call without a
 * number. Returns buf.
 */
char *phrase_doc_seq(const struct cw_incident_where *where, char *buf, size_t len);

/* True if the set contains more than one rank. */
bool phrase_is_many(const char *rank_set);

/*
 * Describes the ranks that are in no call: they never entered it, or they ended before it. Static
 * text.
 */
const char *phrase_doc_absence(const struct cw_incident_facts *incident);

/* Explains why a culprit has no stacks. */
const char *phrase_doc_no_stacks(const struct cw_incident_facts *incident, const json_t *evidence);

/*
 * Writes an element of the incident's chain or cycle: "rank 0 waits in all_reduce bf16 x 64 sum on
 * tp for rank 3". Returns buf.
 */
char *phrase_doc_wait(const struct cw_incident_facts *incident, const struct cw_incident_wait *wait,
		      char *buf, size_t len);

/*
 * A long chain of waits is shortened. Returns the number of waits that we omit at index i of a
 * chain of n waits. 0: we show wait i.
 */
size_t doc_waits_omitted(size_t n, size_t i);

/* Returns the element of `evidence` with the culprit's host and pid. Borrowed; NULL = none. */
const json_t *doc_evidence_of(const struct cw_incident_culprit *culprit, const json_t *evidence);

/*
 * Returns how many consecutive culprits, starting at index `from`, share host and reason and have
 * no stacks. The result is >= 1.
 */
size_t doc_culprits_alike(const struct cw_incident_facts *incident, size_t from,
			  const json_t *evidence);

/* Writes "ranks 8-15" for n culprits that start at index `from`. Returns buf. */
char *phrase_doc_ranks(const struct cw_incident_facts *incident, size_t from, size_t n, char *buf,
		       size_t len);

/* True if the evidence describes one of the incident's culprits. */
bool doc_is_culprit(const struct cw_incident_facts *incident, const json_t *evidence);
