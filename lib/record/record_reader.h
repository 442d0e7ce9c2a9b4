/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads flight records (record/record_layout.h). A record is hostile input: we copy it with
 * pread(2) into our own memory, check the copy, and never map it. The reader knows versions up to
 * CW_RECORD_VERSION and skips anything that later versions append.
 *
 * Call cw_record_refresh() first. Comms, counters and progress words are then those of the last
 * refresh, but ops are read when a function returns them. An op's progress is therefore at most one
 * refresh old, and never ahead of the truth. If a record has a TSC clock, we convert its times to
 * ns of CLOCK_MONOTONIC.
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

/*
 * An op of a record. Times are those of the rank's host. A stack is the number of an entry in the
 * record.
 */
struct cw_record_op {
	CW_SAME_FACTS(op_facts, CW_OP_FACTS);
	int64_t enter_mono_ns, return_mono_ns; /* return_mono_ns is 0 without CW_OPF_RETURNED */
};

/*
 * Opens a record. Takes fd, also on failure. With require_seals the fd must be a tmpfs memfd with
 * SHRINK, GROW and FUTURE_WRITE seals. The daemon must set require_seals; for files it is false.
 * Returns -EPERM (unsealed or foreign), -EBADMSG (not a record, or inconsistent), -EFBIG, -ENOTSUP
 * (version) or -ENOMEM. err has the details.
 */
int cw_record_open(int fd, bool require_seals, struct cw_record **ret, struct cw_err *err);
/*
 * Like cw_record_open(), but for a record in this process's own memory, which the reader borrows
 * until cw_record_close(). We trust this memory as little as a file.
 */
int cw_record_open_memory(const void *memory, size_t bytes, struct cw_record **ret,
			  struct cw_err *err);
struct cw_record *cw_record_close(struct cw_record *rec);

/* Returns the record's descriptor, borrowed from rec; -1 if the record is in memory. */
int cw_record_fd(const struct cw_record *rec);

/*
 * Returns the bytes of memory that the reader uses for the record. They grow with the record's
 * contents.
 */
size_t cw_record_memory(const struct cw_record *rec);

/*
 * Reads the header and the identity part of all used comm entries again. Returns 0, -EBADMSG or
 * -EIO. After an error the previous contents stay.
 */
int cw_record_refresh(struct cw_record *rec);

/* Returns the header as of the last refresh. Its strings are NUL-terminated and printable. */
const struct cw_rec_header *cw_record_header(const struct cw_record *rec);

struct cw_record_comm {
	uint32_t index;           /* entry in the record */
	struct cw_rec_comm entry; /* entry.ops is not filled; call cw_record_window() */
};

/*
 * Returns the comms in use (state != FREE) as of the last refresh. The result is borrowed until the
 * next refresh.
 */
const struct cw_record_comm *cw_record_comms(const struct cw_record *rec, size_t *ret_n);

/* The progress of a comm, joined from the words of all its slots. */
struct cw_record_progress {
	bool known;          /* false = there are no words, or some op on the comm had no slot */
	uint64_t reached_op; /* op_index; the stream has reached all counted ops up to this one */
	uint64_t completed_op;
};

/*
 * Returns the last ops of a comm, at most max, oldest first. They come from the comm's own ring
 * and, if max is larger, from the bulk ring. op.progress comes from the progress words. p2p and
 * collective numbers are as in struct cw_op. *ret_lost is the number of older ops of the comm.
 */
int cw_record_window(struct cw_record *rec, const struct cw_record_comm *comm,
		     struct cw_record_op *ops, size_t max, size_t *ret_n, uint64_t *ret_lost);

/* Counters for a digest, derived from the comm's last ops and the progress words. */
struct cw_record_state {
	/*
	 * completed_known and reached_known say that coll_completed and coll_reached are right.
	 * They are false if an op has no progress words, or if the record has lost needed ops.
	 */
	bool has_pending, has_last, reached_known, completed_known;
	uint32_t pending_count;
	/*
	 * The oldest op that has not completed. If completion is unknown, the oldest op that has
	 * not returned. Kind CW_OP_NONE means a collective that both rings have lost. Its number
	 * and progress are right, and its call began at or before enter_mono_ns.
	 */
	struct cw_record_op pending;
	struct cw_record_op last;
	uint64_t coll_reached, coll_completed;
};
int cw_record_state(struct cw_record *rec, const struct cw_record_comm *comm,
		    struct cw_record_state *ret);

/*
 * Returns the member's facts from the entry and its state, without the hash. The hash may change
 * before the caller uses it.
 */
struct cw_member_facts cw_record_member_facts(const struct cw_record_comm *comm,
					      const struct cw_record_state *state);
struct cw_comm_facts cw_record_comm_facts(const struct cw_record_comm *comm);
/*
 * Counts the facts that the record has lost for good. We omit lost completions, which reports show
 * elsewhere. We also omit lost modules, which do not matter.
 */
uint64_t cw_record_dropped(const struct cw_rec_header *h);
/*
 * Returns the time after which the job's own watchdog ends the job, in ns. Returns 0 if no timeout
 * is known, or if the record holds an impossible value.
 */
int64_t cw_record_job_timeout_ns(const struct cw_rec_header *h);
/*
 * Returns the source of the job's timeout, as text for people. Returns "" if the source is not
 * known or not plain text. Borrowed from h.
 */
const char *cw_record_job_timeout_source(const struct cw_rec_header *h);
int64_t cw_record_net_retry_ns(const struct cw_rec_header *h);
/*
 * Returns the model of the device with this CUDA ordinal of the process; "" = not known. Borrowed
 * from h.
 */
const char *cw_record_device_model(const struct cw_rec_header *h, int32_t ordinal);
/*
 * Reads the NCCL_* variables of the process. Returns 0 or -errno. The text is "" if the record has
 * none, or one that no agent writes.
 */
int cw_record_nccl_variables(const struct cw_record *rec, struct cw_rec_variables *ret);
/* Returns the rank's pod. A text that is not a valid name becomes "". */
struct cw_pod cw_record_pod(const struct cw_rec_header *h);
/*
 * Reads the current values of own_io_* in the header, which change even between two refreshes.
 * Returns false on a read error.
 */
bool cw_record_own_io(const struct cw_record *rec, uint64_t *ret_begun, uint64_t *ret_done);
/*
 * Returns the call in progress that blocks the host outside any known comm. Its kind is CW_OP_NONE
 * if there is no such call.
 */
struct cw_record_op cw_record_host_call(const struct cw_record *rec);

/*
 * Finds the threads that are inside an NCCL call (record/inside.h). Writes one entry per thread, at
 * most max, in the form of cw_rec_header.waits; since_ns is on CLOCK_MONOTONIC. A thread is missing
 * while it creates a communicator without an entry in the record: the agent does not note its tid.
 * We read ops only of communicators that had an unreturned call at the last refresh. Returns the
 * number of entries.
 */
size_t cw_record_inside(const struct cw_record *rec, struct cw_rec_wait *ret, size_t max);

/*
 * Returns the current checkpoints of a comm's rolling hash. A checkpoint belongs to a level
 * (cw_checkpoint_slot()). For each level we return the two newest checkpoints of this level and the
 * levels above. Two ranks therefore have some checkpoints in common, even if they are thousands of
 * calls apart. Number and hash of a checkpoint always belong together. Returns 0 or -errno;
 * -ESTALE if another comm has the entry now.
 */
#define CW_RECORD_CHECKPOINTS (2 * CW_CHECKPOINT_LEVELS)
int cw_record_checkpoints(const struct cw_record *rec, const struct cw_record_comm *comm,
			  struct cw_checkpoint ret[CW_RECORD_CHECKPOINTS], size_t *ret_n);

/*
 * Computes the rolling hash after each call, or group of calls, of the comm from *from up to the
 * last refresh. *from is an earlier point of the same comm, or {0, CW_HASH_INIT}. Returns the last
 * CW_RECORD_COMMITS hashes, oldest first. Returns no hashes if the calls in the comm's ring do not
 * lead from *from to the entry's hash. Result: 0 or -errno.
 */
#define CW_RECORD_COMMITS 8u
int cw_record_commits(const struct cw_record *rec, const struct cw_record_comm *comm,
		      const struct cw_checkpoint *from, struct cw_checkpoint ret[CW_RECORD_COMMITS],
		      size_t *ret_n);

/*
 * A network connection with an open op, and the progress of the op at its head. The counts say how
 * many of the op's steps were posted, ready, handed and done, in this order. On a receiver `ready`
 * means received from the network, and `handed` means given to the GPU.
 */
struct cw_record_connection {
	/* Index of the comm entry, -1 = unknown. If pid is set, an entry of that process. */
	int comm;
	uint32_t pid; /* the process that issued the op, 0 = this one; see cw_rec_connection */
	int32_t rank, peer; /* ranks in the communicator */
	uint8_t channel;
	bool is_send, is_p2p;
	bool is_detailed;  /* false: `bytes` is unknown, and on a sender also `ready` */
	uint64_t op_index; /* 0 = unknown; if pid is set, only its low 32 bits */
	uint32_t replay;   /* number of the replay, as in cw_rec_connection */
	uint32_t open_ops; /* ops on the connection that have not ended, 255 = or more */
	uint32_t steps, posted, ready, handed, done;
	int64_t newest_mono_ns; /* time of the last change of a count */
	uint64_t bytes;
};

struct cw_record_connections_omitted {
	uint32_t torn;       /* slots that changed during each try to read them */
	uint32_t impossible; /* slots that no agent writes */
	uint64_t lost;       /* parts of ops without a free slot in the agent, since its start */
};

/*
 * Reads all connections, at most max. A record has at most 2 * CW_REC_CONNECTIONS of them. Returns
 * 0 or -errno; on success sets both results.
 */
int cw_record_connections(const struct cw_record *rec, struct cw_record_connection *ret, size_t max,
			  size_t *ret_n, struct cw_record_connections_omitted *ret_omitted);

/* Reads the counters of a comm for each peer, at most max. Returns 0 or -errno. */
int cw_record_p2p(struct cw_record *rec, const struct cw_record_comm *comm,
		  struct cw_p2p_peer *peers, size_t max, size_t *ret_n);

/*
 * Writes the call stack with this number (op.stack) as a line per frame, innermost first. A line is
 * "model.py:41 in forward" or, outside of Python, "libfoo.so+0x1234". A "…" at the end means
 * further frames. The text is printable and, with its NUL, fits CW_RECORD_STACK_BYTES. Returns 0,
 * or -ENOENT and "".
 */
#define CW_RECORD_STACK_BYTES 6144u
int cw_record_stack(const struct cw_record *rec, uint32_t stack, char *buf, size_t len);

/* Converts a time of the record's clock to ns of CLOCK_MONOTONIC on the rank's host. */
int64_t cw_record_time(const struct cw_record *rec, uint64_t t);

/* ---- for statistics; record/record_device.c ---- */

/*
 * Calls fn for the returned ops of the bulk ring, in the ring's order from *cursor on, and advances
 * *cursor. The walk stops at the first op that has not returned, and at the last refresh. The
 * values are untrusted. *ret_lost is the number of ops that were overwritten or never returned.
 * Returns 0 or -errno.
 */
typedef void (*cw_record_op_fn)(const struct cw_rec_op *op, void *user);
int cw_record_each_returned(const struct cw_record *rec, uint64_t *cursor, uint64_t *ret_lost,
			    cw_record_op_fn fn, void *user);

/*
 * Like cw_record_each_returned(), but only for ops whose fields are final. An op in an open group
 * has no number before the group's end, so the walk stops at such an op.
 */
int cw_record_each_settled(const struct cw_record *rec, uint64_t *cursor, uint64_t *ret_lost,
			   cw_record_op_fn fn, void *user);

/*
 * Returns the first input with NaN or infinity of each device, at most max. The result is the
 * number of inputs.
 */
size_t cw_record_nonfinite_inputs(const struct cw_record *rec, struct cw_rec_summary ret[],
				  size_t max);

/*
 * Reads all summaries in the record: each device's first input with NaN or infinity, then the
 * newest summaries in no order. One summary may appear twice. Writes at most max and returns their
 * number. The values are untrusted, but safe to compare. abs_max and abs_min_nonzero are finite and
 * not negative, and no count is larger than the elements.
 */
size_t cw_record_summaries(const struct cw_record *rec, struct cw_rec_summary ret[], size_t max);

/*
 * Returns the reason why the rank's agent has stopped the rank, as of now. CW_REC_STOP_NONE if the
 * rank is not stopped. *ret is the summary that made the agent stop the rank, or zeros if we cannot
 * read it.
 */
enum cw_rec_stop cw_record_stopped(const struct cw_record *rec, struct cw_rec_summary *ret);

/*
 * Calls fn for each op that the rings still hold, returned or not, up to the last refresh. If an op
 * is in two rings, fn sees it twice. Returns 0 or -errno.
 */
int cw_record_each_kept(const struct cw_record *rec, cw_record_op_fn fn, void *user);

/*
 * Writes the code that made the call, such as "libtorch_cuda.so+0x1234". Returns -ENOENT and "" if
 * the code is not known.
 */
int cw_record_site(const struct cw_record *rec, const struct cw_rec_op *op, char *buf, size_t len);

/*
 * Calls fn for each timed op whose number is above *cursor, and advances *cursor to the highest
 * number seen. We omit an op that ends after an op with a higher number. begin_ns <= end_ns <=
 * begin_ns + a day.
 */
typedef void (*cw_record_time_fn)(const struct cw_rec_time *t, void *user);
void cw_record_each_time(const struct cw_record *rec, uint64_t *cursor, cw_record_time_fn fn,
			 void *user);
