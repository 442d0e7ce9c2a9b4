/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes flight records as an agent does, for tests of every reader. The arrays are the memory of
 * the record itself. So a test builds a valid record and may then corrupt any part of it. Aborts
 * the test if memory runs out. One thread.
 *
 *	struct cw_test_record *rec = cw_test_record_new();
 *	int c = cw_test_record_comm(rec, 0x1234, 8, 3);
 *	uint64_t op = cw_test_record_collective(rec, c, CW_OP_ALL_REDUCE, 1024);
 *	cw_test_record_return(rec, c, op, 0);
 *	cw_test_record_progress(rec, c, op, op);
 *	cw_record_open(cw_test_record_dup(rec), true, &reader, &err);
 */
#pragma once

#include <stdint.h>

#include "record/record_layout.h"

struct cw_test_record {
	int fd; /* the memfd; it is sealed, so the test must not write through it */
	size_t bytes;
	struct cw_rec_header *header;
	struct cw_rec_comm *comms;
	struct cw_rec_op *ring;
	struct cw_rec_p2p_block *p2p;
	struct cw_rec_progress_info *progress_info;
	struct cw_rec_progress *progress;
	struct cw_rec_replay *replays;
	struct cw_rec_template *templates;
	struct cw_rec_summary *summaries; /* read when header->has says so */
	struct cw_rec_time *times;
	struct cw_rec_module *modules;
	struct cw_rec_stack *stacks; /* read when header->has says so */
	struct cw_rec_frame *frames;
	struct cw_rec_connection *connections;
	struct cw_rec_variables *variables;
	int64_t now_ns; /* time of the next event; the test sets and advances it */
	uint32_t slots_used;
};

/* Makes a valid, sealed record without communicators; rank_label 0 of 1, job_label "test:job". */
struct cw_test_record *cw_test_record_new(void);
/* Accepts NULL and returns NULL. */
struct cw_test_record *cw_test_record_free(struct cw_test_record *rec);
/* Returns a new descriptor of the record, for cw_record_open() or for a message. */
int cw_test_record_dup(const struct cw_test_record *rec);

/* Adds a READY communicator and returns its index. */
int cw_test_record_comm(struct cw_test_record *rec, uint64_t comm_id, uint32_t nranks,
			int32_t comm_rank);
/* Reuses the entry for another communicator, as an agent without free entries does. */
void cw_test_record_reuse_comm(struct cw_test_record *rec, int comm, uint64_t comm_id);

/*
 * Adds a progress slot of the communicator for that stream, and returns its number. Ops have it in
 * progress_slot.
 */
uint16_t cw_test_record_slot(struct cw_test_record *rec, int comm, uint64_t stream);
/* Sets the values that the GPU wrote into the slot, as full op_index values. */
void cw_test_record_set_slot(struct cw_test_record *rec, uint16_t slot, uint64_t reached,
			     uint64_t completed);

/*
 * Enters *op on the communicator and returns its op_index. The caller sets kind, dtype, count,
 * flags, progress_slot …; we set the rest. Counted collectives get the next coll_seq.
 */
uint64_t cw_test_record_enter(struct cw_test_record *rec, int comm, const struct cw_rec_op *op);
/* Lets the call return: sets RETURNED, clears QUEUED and counts the op. */
void cw_test_record_return(struct cw_test_record *rec, int comm, uint64_t op_index, int result);

/*
 * Adds a graph with n runs of ops on the communicator, in entry 0 of the replay table, and its
 * slot. The test enters launches of it with cw_test_record_launch(), on the communicator's first
 * slot.
 */
void cw_test_record_graph(struct cw_test_record *rec, int comm, const struct cw_rec_template *runs,
			  unsigned n);
uint64_t cw_test_record_launch(struct cw_test_record *rec, int comm);

/*
 * Enter an fp32 op of count elements on the communicator's first slot, which they make if
 * necessary. The op has not returned. cw_test_record_progress() sets the progress of that slot.
 */
uint64_t cw_test_record_collective(struct cw_test_record *rec, int comm, unsigned kind,
				   uint64_t count);
uint64_t cw_test_record_p2p(struct cw_test_record *rec, int comm, unsigned kind, int32_t peer,
			    uint64_t count);
void cw_test_record_progress(struct cw_test_record *rec, int comm, uint64_t reached,
			     uint64_t completed);
