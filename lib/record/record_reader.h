/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads flight records (record/record_layout.h): hostile input, read with pread(2) into own memory
 * and checked there, never mapped. Knows versions up to CW_RECORD_VERSION and skips what later ones
 * append.
 *
 * Ops are read when asked for; comms, counters and progress words are those of the last refresh, so
 * refresh before looking. What the words say about an op is then at most one refresh old, and never
 * ahead of the truth. Times of records with a TSC clock come out in ns of CLOCK_MONOTONIC.
 *
 * Not thread-safe. Does not block beyond a pread of memory or a file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "model/facts.h"
#include "model/op.h"
#include "model/signature.h"
#include "record/record_layout.h"

struct cw_record;

/* An op as a record has it: on the clock of the rank's host, and with the record's call stacks. */
struct cw_record_op {
	CW_SAME_FACTS(op_facts, CW_OP_FACTS);
	int64_t enter_mono_ns, return_mono_ns; /* the latter 0 without CW_OPF_RETURNED */
};

/*
 * Takes fd (also on failure). require_seals: demand a tmpfs memfd with SHRINK, GROW and
 * FUTURE_WRITE seals, as the daemon must; false for files. -EPERM unsealed or foreign, -EBADMSG not
 * a record or inconsistent, -EFBIG, -ENOTSUP version, -ENOMEM; err says more.
 */
int cw_record_open(int fd, bool require_seals, struct cw_record **ret, struct cw_err *err);
/*
 * The same for a record in memory, whose writer is in this process: borrowed until it is closed. It
 * is read as a file is, and what it says is believed as little.
 */
int cw_record_open_memory(const void *memory, size_t bytes, struct cw_record **ret,
			  struct cw_err *err);
struct cw_record *cw_record_close(struct cw_record *rec);

/* -1 = of a record in memory */
int cw_record_fd(const struct cw_record *rec);

/* Bytes of memory the reader keeps for it: grows with what the record says is in it. */
size_t cw_record_memory(const struct cw_record *rec);

/*
 * Reads header and the identity part of all used comm entries anew. 0, or -EBADMSG/-EIO: the
 * previous contents stay.
 */
int cw_record_refresh(struct cw_record *rec);

/* As of the last refresh; strings are NUL-terminated and printable. */
const struct cw_rec_header *cw_record_header(const struct cw_record *rec);

struct cw_record_comm {
	uint32_t index;           /* entry in the record */
	struct cw_rec_comm entry; /* entry.ops is not filled: use the functions below */
};

/* Comms in use (state != FREE) as of the last refresh; borrowed until the next. */
const struct cw_record_comm *cw_record_comms(const struct cw_record *rec, size_t *ret_n);

/* A comm's progress, joined from the words of all its slots. */
struct cw_record_progress {
	bool known;          /* false: no words, or some op on the comm had no slot */
	uint64_t reached_op; /* op_index; every counted op up to this one was reached */
	uint64_t completed_op;
};

/*
 * The last ops of a comm, oldest first, from its own ring and, when max is larger, the bulk ring;
 * with op.progress filled in from the progress words and p2p/collective numbers as in struct cw_op.
 * Writes at most max ops; *ret_lost = ops of the comm older than the first one returned.
 */
int cw_record_window(struct cw_record *rec, const struct cw_record_comm *comm,
		     struct cw_record_op *ops, size_t max, size_t *ret_n, uint64_t *ret_lost);

/*
 * Counters a digest needs, derived from the comm's last ops and the progress words.
 */
struct cw_record_state {
	/*
	 * completed_known, reached_known: coll_completed and coll_reached are right; false when an
	 * op has no progress words, or the record has lost the ops that would tell.
	 */
	bool has_pending, has_last, reached_known, completed_known;
	uint32_t pending_count;
	struct cw_record_op
		pending; /* oldest op not completed; completion unknown: oldest not returned */
	struct cw_record_op last;
	uint64_t coll_reached, coll_completed;
};
int cw_record_state(struct cw_record *rec, const struct cw_record_comm *comm,
		    struct cw_record_state *ret);

/* What the entry and its state say of the member, but for the hash, which may move meanwhile. */
struct cw_member_facts cw_record_member_facts(const struct cw_record_comm *comm,
					      const struct cw_record_state *state);
struct cw_comm_facts cw_record_comm_facts(const struct cw_record_comm *comm);
/* What was lost for good; lost completions and modules are said elsewhere or do not matter. */
uint64_t cw_record_dropped(const struct cw_rec_header *h);
/* 0 = none is known, or the record says what cannot be. */
int64_t cw_record_job_timeout_ns(const struct cw_rec_header *h);
/* What says so, for people; "" where that is not known or no plain text. Borrowed from h. */
const char *cw_record_job_timeout_source(const struct cw_rec_header *h);
int64_t cw_record_net_retry_ns(const struct cw_rec_header *h);
/* What the device of a CUDA ordinal of the process is; "" = not known. Borrowed from h. */
const char *cw_record_device_model(const struct cw_rec_header *h, int32_t ordinal);
/* What is no name is left out. */
struct cw_pod cw_record_pod(const struct cw_rec_header *h);
/* header's own_io_*, as they are now: between two refreshes they move, too. False: cannot be read.
 */
bool cw_record_own_io(const struct cw_record *rec, uint64_t *ret_begun, uint64_t *ret_done);
/* The host-blocking call in progress outside any known comm; its kind CW_OP_NONE = none. */
struct cw_record_op cw_record_host_call(const struct cw_record *rec);

/*
 * Threads that are inside an NCCL call (record/inside.h), one entry each and at most max: as
 * cw_rec_header.waits, since_ns on CLOCK_MONOTONIC. Not those that make a communicator for which
 * the record has no entry: who they are is not noted. Reads the ops only of communicators on which
 * a call had not returned at the last refresh. Returns how many.
 */
size_t cw_record_inside(const struct cw_record *rec, struct cw_rec_wait *ret, size_t max);

/*
 * Checkpoints of a comm's rolling hash as they are now: of each level of cw_checkpoint_slot() and
 * those above it the two newest, so that ranks which stand a few calls apart and ranks which stand
 * thousands apart have some in common. Each pair is one the agent stored, never half of two. 0 or
 * -errno; -ESTALE: the entry was given to another comm.
 */
#define CW_RECORD_CHECKPOINTS (2 * CW_CHECKPOINT_LEVELS)
int cw_record_checkpoints(const struct cw_record *rec, const struct cw_record_comm *comm,
			  struct cw_checkpoint ret[CW_RECORD_CHECKPOINTS], size_t *ret_n);

/*
 * The rolling hash after each call, or group of calls, that the comm has made since *from, which is
 * one of its own points or {0, CW_HASH_INIT}: the last CW_RECORD_COMMITS, oldest first, up to that
 * of the last refresh. None where the calls that its ring holds do not lead there. 0 or -errno.
 */
#define CW_RECORD_COMMITS 8u
int cw_record_commits(const struct cw_record *rec, const struct cw_record_comm *comm,
		      const struct cw_checkpoint *from, struct cw_checkpoint ret[CW_RECORD_COMMITS],
		      size_t *ret_n);

/* Per-peer counters of a comm; writes at most max; 0 or -errno. */
int cw_record_p2p(struct cw_record *rec, const struct cw_record_comm *comm,
		  struct cw_p2p_peer *peers, size_t max, size_t *ret_n);

/*
 * From where an op with this number in op.stack was issued: a line per frame, innermost first,
 * "model.py:41 in forward" or, outside of Python, "libfoo.so+0x1234"; "…" at the end where there is
 * more. Not longer than CW_RECORD_STACK_BYTES with its NUL, and printable. 0, or -ENOENT and "".
 */
#define CW_RECORD_STACK_BYTES 6144u
int cw_record_stack(const struct cw_record *rec, uint32_t stack, char *buf, size_t len);

/* A time of the record's clock in ns of CLOCK_MONOTONIC of its host. */
int64_t cw_record_time(const struct cw_record *rec, uint64_t t);

/* ---- for those who count; record/record_device.c ---- */

/*
 * Calls fn for the ops of the bulk ring from *cursor on, in its order, and moves it: those that
 * have returned, up to the first that has not. As of the last refresh; values are a stranger's.
 * *ret_lost: ops that were overwritten or never returned. 0 or -errno.
 */
typedef void (*cw_record_op_fn)(const struct cw_rec_op *op, void *user);
int cw_record_each_returned(const struct cw_record *rec, uint64_t *cursor, uint64_t *ret_lost,
			    cw_record_op_fn fn, void *user);

/*
 * The same for those of which all is known: up to the first that is in a group which has not
 * reached its end, and gets its number there.
 */
int cw_record_each_settled(const struct cw_record *rec, uint64_t *cursor, uint64_t *ret_lost,
			   cw_record_op_fn fn, void *user);

/* The first tensor with NaN or infinity that each device was fed; how many. */
size_t cw_record_fed_bad(const struct cw_record *rec, struct cw_rec_summary ret[], size_t max);

/*
 * All summaries of tensors that are there: what each device was fed first of NaN or infinity, then
 * the newest, in no order; the same one may be among both. Writes at most max; how many. Values are
 * a stranger's, but for those that a comparison could not bear: abs_max and abs_min_nonzero are
 * finite and not negative, and no count is larger than the elements.
 */
size_t cw_record_summaries(const struct cw_record *rec, struct cw_rec_summary ret[], size_t max);

/*
 * Why the rank's agent has stopped it, as of now; the summary that showed it, zeroed where it
 * cannot be read. CW_REC_STOP_NONE: it has not.
 */
enum cw_rec_stop cw_record_stopped(const struct cw_record *rec, struct cw_rec_summary *ret);

/*
 * Calls fn for each op that the rings still hold, returned or not, as of the last refresh; one that
 * lies in two rings comes twice. 0 or -errno.
 */
int cw_record_each_kept(const struct cw_record *rec, cw_record_op_fn fn, void *user);

/* "libtorch_cuda.so+0x1234", the code that made the call; -ENOENT and "" where it is not known. */
int cw_record_site(const struct cw_record *rec, const struct cw_rec_op *op, char *buf, size_t len);

/*
 * Calls fn for ops timed on the device whose number is above *cursor, and moves it to the highest
 * seen: one that ends after a later one is left out. begin_ns <= end_ns <= begin_ns + a day.
 */
typedef void (*cw_record_time_fn)(const struct cw_rec_time *t, void *user);
void cw_record_each_time(const struct cw_record *rec, uint64_t *cursor, cw_record_time_fn fn,
			 void *user);
