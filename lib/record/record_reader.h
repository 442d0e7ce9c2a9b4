/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads flight records (record/record_layout.h). A record is hostile input: we copy it with
 * pread(2) into our own memory, check the copy, and never map it. The reader knows versions up to
 * CW_RECORD_VERSION and skips anything that later versions append.
 *
 * Functions that return ops read them at the call. Comms, counters and progress words are those of
 * the last refresh, so call cw_record_refresh() first. An op's progress is therefore at most one
 * refresh old, and never ahead of the truth. Times of records with a TSC clock come out in ns of
 * CLOCK_MONOTONIC.
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

/* An op of a record: times on the clock of the rank's host, stacks by the record's own numbers. */
struct cw_record_op {
	CW_SAME_FACTS(op_facts, CW_OP_FACTS);
	int64_t enter_mono_ns, return_mono_ns; /* the latter 0 without CW_OPF_RETURNED */
};

/*
 * Takes fd (also on failure). require_seals: demand a tmpfs memfd with SHRINK, GROW and
 * FUTURE_WRITE seals, as the daemon must; false for files. -EPERM unsealed or foreign, -EBADMSG not
 * a record or inconsistent, -EFBIG, -ENOTSUP version, -ENOMEM; err has the details.
 */
int cw_record_open(int fd, bool require_seals, struct cw_record **ret, struct cw_err *err);
/*
 * The same for a record in this process's own memory, which the reader borrows until it is closed.
 * We read it like a file and trust it as little.
 */
int cw_record_open_memory(const void *memory, size_t bytes, struct cw_record **ret,
			  struct cw_err *err);
struct cw_record *cw_record_close(struct cw_record *rec);

/* -1 = the record is in memory */
int cw_record_fd(const struct cw_record *rec);

/* Bytes of memory that the reader uses for the record; grows with the record's contents. */
size_t cw_record_memory(const struct cw_record *rec);

/*
 * Reads the header and the identity part of all used comm entries again. 0, or -EBADMSG/-EIO: the
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
	uint64_t reached_op; /* op_index; the stream has reached every counted op up to this one */
	uint64_t completed_op;
};

/*
 * The last ops of a comm, oldest first, from its own ring and, when max is larger, from the bulk
 * ring. Each op has op.progress from the progress words, and p2p/collective numbers as in struct
 * cw_op. Writes at most max ops; *ret_lost = ops of the comm older than the first one returned.
 */
int cw_record_window(struct cw_record *rec, const struct cw_record_comm *comm,
		     struct cw_record_op *ops, size_t max, size_t *ret_n, uint64_t *ret_lost);

/* Counters for a digest, derived from the comm's last ops and the progress words. */
struct cw_record_state {
	/*
	 * completed_known, reached_known: coll_completed and coll_reached are right. False if an op
	 * has no progress words, or the record has lost the ops that we need.
	 */
	bool has_pending, has_last, reached_known, completed_known;
	uint32_t pending_count;
	/*
	 * Oldest op not completed; completion unknown: oldest not returned. Kind CW_OP_NONE: a
	 * collective that both rings have lost. Its number and progress are right, and its call
	 * began no later than enter_mono_ns.
	 */
	struct cw_record_op pending;
	struct cw_record_op last;
	uint64_t coll_reached, coll_completed;
};
int cw_record_state(struct cw_record *rec, const struct cw_record_comm *comm,
		    struct cw_record_state *ret);

/*
 * The member's facts from the entry and its state, except for the hash, which may move meanwhile.
 */
struct cw_member_facts cw_record_member_facts(const struct cw_record_comm *comm,
					      const struct cw_record_state *state);
struct cw_comm_facts cw_record_comm_facts(const struct cw_record_comm *comm);
/*
 * Counts facts that are lost for good. Lost completions show elsewhere, and lost modules do
 * not matter.
 */
uint64_t cw_record_dropped(const struct cw_rec_header *h);
/* 0 = none known, or the record holds an impossible value. */
int64_t cw_record_job_timeout_ns(const struct cw_rec_header *h);
/* Where the timeout comes from, for people; "" if not known or not plain text. Borrowed from h. */
const char *cw_record_job_timeout_source(const struct cw_rec_header *h);
int64_t cw_record_net_retry_ns(const struct cw_rec_header *h);
/* Model of the device with this CUDA ordinal of the process; "" = not known. Borrowed from h. */
const char *cw_record_device_model(const struct cw_rec_header *h, int32_t ordinal);
/* Omits each text that is not a valid name. */
struct cw_pod cw_record_pod(const struct cw_rec_header *h);
/* The header's own_io_* now: they also move between two refreshes. False: read error. */
bool cw_record_own_io(const struct cw_record *rec, uint64_t *ret_begun, uint64_t *ret_done);
/* The host-blocking call in progress outside any known comm; its kind CW_OP_NONE = none. */
struct cw_record_op cw_record_host_call(const struct cw_record *rec);

/*
 * Threads that are inside an NCCL call (record/inside.h), one entry each and at most max. Entries
 * are as in cw_rec_header.waits, with since_ns on CLOCK_MONOTONIC. A thread that makes a
 * communicator without an entry in the record is missing, because the agent does not note its
 * tid. Reads the ops only of communicators with an unreturned call at the last refresh. Returns
 * how many.
 */
size_t cw_record_inside(const struct cw_record *rec, struct cw_rec_wait *ret, size_t max);

/*
 * Checkpoints of a comm's rolling hash, as of now. Of each level of cw_checkpoint_slot() together
 * with the levels above it, we return the two newest. Ranks that stand a few calls apart and ranks
 * that stand thousands apart thus have some in common. Each pair is one that the agent stored,
 * never half of two. 0 or -errno; -ESTALE: another comm has the entry now.
 */
#define CW_RECORD_CHECKPOINTS (2 * CW_CHECKPOINT_LEVELS)
int cw_record_checkpoints(const struct cw_record *rec, const struct cw_record_comm *comm,
			  struct cw_checkpoint ret[CW_RECORD_CHECKPOINTS], size_t *ret_n);

/*
 * The rolling hash after each call, or group of calls, of the comm since *from, up to the last
 * refresh. *from is one of the comm's own points or {0, CW_HASH_INIT}. Returns the last
 * CW_RECORD_COMMITS, oldest first. Returns none if the calls in the comm's ring do not lead from
 * *from to the entry's hash. 0 or -errno.
 */
#define CW_RECORD_COMMITS 8u
int cw_record_commits(const struct cw_record *rec, const struct cw_record_comm *comm,
		      const struct cw_checkpoint *from, struct cw_checkpoint ret[CW_RECORD_COMMITS],
		      size_t *ret_n);

/* Per-peer counters of a comm; writes at most max; 0 or -errno. */
int cw_record_p2p(struct cw_record *rec, const struct cw_record_comm *comm,
		  struct cw_p2p_peer *peers, size_t max, size_t *ret_n);

/*
 * The call stack with this number (op.stack): a line per frame, innermost first, "model.py:41 in
 * forward" or, outside of Python, "libfoo.so+0x1234". A "…" at the end means further frames. Not
 * longer than CW_RECORD_STACK_BYTES with its NUL, and printable. 0, or -ENOENT and "".
 */
#define CW_RECORD_STACK_BYTES 6144u
int cw_record_stack(const struct cw_record *rec, uint32_t stack, char *buf, size_t len);

/* Converts a time of the record's clock to ns of CLOCK_MONOTONIC of its host. */
int64_t cw_record_time(const struct cw_record *rec, uint64_t t);

/* ---- for statistics; record/record_device.c ---- */

/*
 * Calls fn for the returned ops of the bulk ring, in its order from *cursor on, and advances
 * *cursor. Stops at the first op that has not returned. As of the last refresh; the values are
 * untrusted. *ret_lost: ops that were overwritten or never returned. 0 or -errno.
 */
typedef void (*cw_record_op_fn)(const struct cw_rec_op *op, void *user);
int cw_record_each_returned(const struct cw_record *rec, uint64_t *cursor, uint64_t *ret_lost,
			    cw_record_op_fn fn, void *user);

/*
 * The same for ops whose fields are final. An op in an open group has no number before the group's
 * end, so this stops at the first such op.
 */
int cw_record_each_settled(const struct cw_record *rec, uint64_t *cursor, uint64_t *ret_lost,
			   cw_record_op_fn fn, void *user);

/* The first input with NaN or infinity of each device. Returns how many. */
size_t cw_record_nonfinite_inputs(const struct cw_record *rec, struct cw_rec_summary ret[],
				  size_t max);

/*
 * All summaries in the record: each device's first input with NaN or infinity, then the newest, in
 * no order. One summary may appear twice. Writes at most max and returns how many. Values are
 * untrusted, but safe to compare: abs_max and abs_min_nonzero are finite and not negative, and no
 * count is larger than the elements.
 */
size_t cw_record_summaries(const struct cw_record *rec, struct cw_rec_summary ret[], size_t max);

/*
 * Why the rank's agent has stopped it, as of now, and the summary that made it stop, zeroed if we
 * cannot read it. CW_REC_STOP_NONE: the rank is not stopped.
 */
enum cw_rec_stop cw_record_stopped(const struct cw_record *rec, struct cw_rec_summary *ret);

/*
 * Calls fn for each op that the rings still hold, returned or not, as of the last refresh. An op in
 * two rings appears twice. 0 or -errno.
 */
int cw_record_each_kept(const struct cw_record *rec, cw_record_op_fn fn, void *user);

/* The code that made the call, "libtorch_cuda.so+0x1234"; -ENOENT and "" if not known. */
int cw_record_site(const struct cw_record *rec, const struct cw_rec_op *op, char *buf, size_t len);

/*
 * Calls fn for ops timed on the device whose number is above *cursor, and moves *cursor to the
 * highest seen. This omits an op that ends after a later one. begin_ns <= end_ns <= begin_ns +
 * a day.
 */
typedef void (*cw_record_time_fn)(const struct cw_rec_time *t, void *user);
void cw_record_each_time(const struct cw_record *rec, uint64_t *cursor, cw_record_time_fn fn,
			 void *user);
