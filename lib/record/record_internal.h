/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the record reader, shared by its files and nobody else:
 *
 *	record_open.c	is it a record; header, comm entries and progress words of the last refresh
 *	record_ops.c	copying op slots that their writer may be overwriting; windows
 *	record_bulk.c	index over the bulk ring: which ops of a comm came before its own ring
 *	record_commits.c	the rolling hash after each of the last calls
 *	record_inside.c	threads that are inside a call
 *	record_replay.c	launches of CUDA graphs: which ops they stand for, how far they are
 *	record_state.c	what is pending, how far collectives have come
 *	record_stack.c	call stacks as text
 */
#pragma once

#include "record/record_reader.h"

/* Bytes of a comm entry in front of its ops. */
#define CW_RECORD_IDENTITY_BYTES offsetof(struct cw_rec_comm, ops)

struct cw_record_section {
	uint64_t offset;
	uint32_t entry_bytes; /* stride; >= the size known here */
	uint32_t count;       /* 0 = not there */
};

/* A progress slot, as of the last refresh, in full op_index values. */
struct cw_record_slot {
	uint32_t comm_plus_1; /* 0 = free */
	uint32_t comm_generation;
	uint64_t reached, completed;
};

/* The runs of ops in CUDA graphs, and how many may still be looked at before the next refresh. */
struct cw_record_templates {
	uint32_t looks_left;
	uint32_t count;
	struct cw_rec_template runs[];
};

/* As for rereads: enough for any job, a fraction of a millisecond. */
#define CW_RECORD_TEMPLATE_LOOKS 65536u

/* One op of the bulk ring, as much as is needed to decide whether to read it. */
struct cw_record_bulk_op {
	uint64_t ticket_plus_1; /* 0 = slot not seen */
	uint64_t prev_plus_1;   /* ticket of the comm's op before it, 0 = none known */
	uint64_t op_index, seq;
	uint64_t count;       /* of a graph launch: its collectives */
	int32_t root_or_peer; /* of a graph launch: its replay entry */
	uint16_t flags, progress_slot, generation;
	uint8_t kind;
};

struct cw_record {
	int fd;
	const void *memory; /* instead; NULL = the file */
	size_t memory_bytes;
	struct cw_rec_header header;
	struct cw_record_section sections[CW_REC_SECTION__MAX];

	/* Entries as they lie in the record, the last stable copy of each; then those in use. */
	unsigned char *identities;
	struct cw_record_comm *comms;
	size_t n_identities, n_comms, n_comms_allocated;

	struct cw_record_slot *slots; /* count of the progress section, or NULL */
	uint32_t n_slots;

	/* As of the last refresh, or NULL; entries that did not hold still are free. */
	struct cw_rec_replay *replays;
	uint32_t n_replays;
	struct cw_record_templates *templates;

	/* Index over the bulk ring, made when first needed. */
	struct cw_record_bulk_op *bulk;
	uint64_t *bulk_last_plus_1; /* per comm entry: ticket of its newest op */
	uint64_t bulk_next;         /* ticket to look at next */
	uint32_t rereads_left;      /* until the next refresh; see record_bulk.c */
};

/* Reads exactly len bytes. 0, -EIO when there are fewer, or -errno. */
int cw_record_pread(const struct cw_record *rec, void *buf, size_t len, uint64_t offset);

/*
 * Copies n entries of a table from `first` on, of each the `size` bytes that are known, many with
 * one read. 0 or -errno.
 */
int cw_record_read_table(const struct cw_record *rec, const struct cw_record_section *s,
			 uint32_t first, uint32_t n, size_t size, void *ret);

/*
 * Copies an entry whose first word is 0 while it is being written. False: it is, or could not be
 * read.
 */
bool cw_record_read_published(const struct cw_record *rec, uint64_t offset, void *copy, size_t len);

/* Ends the text and leaves nothing in it that would not stay on a line. */
void cw_record_make_line(char *text, size_t size);

/* A hostile rank's unfinished ops must not cost the daemon more than some 0.5 ms a sample. */
#define CW_RECORD_REREADS 512u

#define CW_RECORD_CHUNK 64u

/*
 * Copies n <= CW_RECORD_CHUNK slots of a ring that has ring_count slots, starting with slot first.
 * A slot that is empty, was being written, or does not belong where it lies comes back with publish
 * 0.
 */
int cw_record_read_slots(const struct cw_record *rec, uint64_t ring_offset, uint32_t stride,
			 uint32_t ring_count, uint32_t first, uint32_t n, struct cw_rec_op *ret);

bool cw_record_op_is_of(const struct cw_record_comm *comm, const struct cw_rec_op *op);

/* The comm's own ring: at most CW_REC_COMM_OPS ops by ascending op_index, without duplicates. */
int cw_record_read_comm_ring(const struct cw_record *rec, const struct cw_record_comm *comm,
			     struct cw_rec_op *ops, size_t *ret_n);

/* What the progress words say about an op, whether or not its call has returned. */
enum cw_progress cw_record_progress_of(const struct cw_record *rec,
				       const struct cw_record_comm *comm, uint16_t slot,
				       uint16_t flags, uint64_t op_index);

void cw_record_convert(const struct cw_record *rec, const struct cw_record_comm *comm,
		       const struct cw_rec_op *from, struct cw_record_op *to);

/* The op with this ticket of the bulk ring; false = overwritten or unreadable. */
bool cw_record_bulk_read(const struct cw_record *rec, uint64_t ticket, struct cw_rec_op *ret);

typedef bool (*cw_record_bulk_fn)(void *user, uint64_t ticket, const struct cw_record_bulk_op *op);

/*
 * Calls fn for the comm's ops with an op_index below before, newest first, until it returns false.
 * Flags of ops that were not settled when last seen are read anew; the walk ends early when too
 * many had to be. 0 or -errno.
 */
int cw_record_bulk_walk(struct cw_record *rec, const struct cw_record_comm *comm, uint64_t before,
			cw_record_bulk_fn fn, void *user);

/* How far a launch of a CUDA graph has come: all counts are of this communicator. */
struct cw_record_replay {
	const struct cw_rec_replay *entry; /* NULL: what is in the graph is not known */
	bool is_known;                     /* the counts below */
	uint64_t reached_ops, completed_ops;
	uint64_t reached_colls, completed_colls;
};

/* Reads the table of replays. 0 or -errno. */
int cw_record_read_replays(struct cw_record *rec, uint32_t has);

void cw_record_replay_of(const struct cw_record *rec, const struct cw_record_comm *comm,
			 int32_t ref, enum cw_progress launch, struct cw_record_replay *ret);

/*
 * The ops that a launch stands for, from the first-th on, at most max: as converted from the launch
 * and with their own signature, coll_seq and progress. Returns how many.
 */
size_t cw_record_replay_expand(const struct cw_record *rec, const struct cw_record_comm *comm,
			       const struct cw_rec_op *launch, uint64_t first,
			       struct cw_record_op *ops, size_t max);

/* How many those are; at least 1. */
uint64_t cw_record_replay_count(const struct cw_record *rec, const struct cw_record_comm *comm,
				const struct cw_rec_op *launch);
