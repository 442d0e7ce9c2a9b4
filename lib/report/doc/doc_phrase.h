/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of a collwatch.incident/1 document are called in a sentence. The text report and
 * the page say it in the same words; each makes it harmless for its medium. Documents may be
 * hostile; nothing here fails, what does not fit is cut.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* "HANG", "MISMATCH" of one that holds nobody up, "RESOLVED", "UNSEEN". */
const char *phrase_doc_flag(const json_t *incident);
/* Nobody had it open any more, and when it ended is not known. */
bool phrase_doc_is_unseen(const json_t *incident);

/* "outside NCCL" of "outside_nccl": a name that documents have for programs. Returns buf. */
char *cw_doc_words(const char *name, char *buf, size_t len);

/* "never entered: outside NCCL", for people what class and detail are for programs. Returns buf. */
char *cw_doc_class(const json_t *incident, char *buf, size_t len);

/* The document's job as people know it, without the rule that named it; fallback where it has none.
 */
const char *cw_doc_job(const json_t *doc, const char *fallback);

#define CW_DOC_USER_BYTES 320

/* The user of the document's job: "alice (uid 1000)", "uid 1000"; "" in one that does not say.
 * Returns buf. */
char *cw_doc_user(const json_t *doc, char *buf, size_t len);

/* The summary; of an incident that is over, behind "after 17 s: ". Returns buf. */
char *phrase_doc_summary(const json_t *incident, char *buf, size_t len);

/* "all_reduce bf16 x 1048576 sum"; the number of the call is said by the caller. Returns buf. */
char *phrase_doc_op(const json_t *op, char *buf, size_t len);

/*
 * "issued in Comm.call (comm.py:12), called by step (train.py:41)": the innermost frames of the
 * op's call stack that are the user's own, else of a library, else the innermost of all; "" where
 * none is known. Returns buf.
 */
char *phrase_doc_issued(const json_t *op, char *buf, size_t len);

/* "tp", or "communicator 0x…" of something that has comm_name and comm. Returns buf. */
char *phrase_doc_comm(const json_t *at, char *buf, size_t len);

/* "rank 3", or "a process without rank number". Returns buf. */
char *phrase_doc_rank(const json_t *who, char *buf, size_t len);

#define CW_DOC_WHERE_BYTES 160
/* " on node-a, pid 812"; recordings leave host or pid out. Returns buf. */
char *cw_doc_where(const json_t *who, bool with_pid, char *buf, size_t len);

/* Room for all that Kubernetes allows. */
#define CW_DOC_POD_BYTES 480
/* ", pod ml/train-3, container trainer, pid 17 there"; "" of a process in none. Returns buf. */
char *cw_doc_pod(const json_t *who, char *buf, size_t len);

/*
 * ", collective #42" of where, or what is known of a call that is not recorded any more: ", a
 * collective after #128, #192 at the latest"; empty for a call without number. Returns buf.
 */
char *phrase_doc_seq(const json_t *where, char *buf, size_t len);

/* More than one rank is in the set. */
bool phrase_is_many(const char *rank_set);

/* What a side of the call in question did that has no op: it did not come, or it had ended. */
const char *phrase_doc_absence(const json_t *incident);

/* Why there are no stacks of a culprit. */
const char *phrase_doc_no_stacks(const json_t *incident, const json_t *evidence);

/* "rank 0 waits in all_reduce bf16 x 64 sum on tp for rank 3", one entry of chain or cycle. */
char *phrase_doc_wait(const json_t *incident, const json_t *wait, char *buf, size_t len);

/* How many of n waits are left out in favour of the i-th, which begins them; 0 = it is shown. */
size_t doc_waits_left_out(size_t n, size_t i);

/* How many culprits from this one on are of one host, for one reason, without stacks; >= 1. */
size_t doc_culprits_alike(const json_t *culprits, size_t from, const json_t *evidence);

/* "ranks 8-15": of n culprits. Returns buf. */
char *phrase_doc_ranks(const json_t *culprits, size_t from, size_t n, char *buf, size_t len);

/* The evidence was taken of one of the incident's culprits. */
bool doc_is_culprit(const json_t *incident, const json_t *evidence);
