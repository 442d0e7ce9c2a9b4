/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the record reader; no other file includes it.
 *
 *	record_open.c	opens a record; header, comm entries and progress words
 *	record_ops.c	copies op slots that their writer may be overwriting; windows
 *	record_bulk.c	index over the bulk ring: a comm's ops from before its own ring
 *	record_commits.c	the rolling hash after each of the last calls
 *	record_connections.c	network connections and their steps
 *	record_inside.c	threads that are inside a call
 *	record_replay.c	launches of CUDA graphs: their ops and their progress
 *	record_state.c	pending ops, progress of collectives
 *	record_stack.c	call stacks as text
 */
#pragma once

#include "record/record_reader.h"

/* Bytes of a comm entry in front of its ops. */
#define CW_RECORD_IDENTITY_BYTES offsetof(struct cw_rec_comm, ops)

struct cw_record_section {
	uint64_t offset;
	uint32_t entry_bytes; /* stride; not smaller than the size that we know */
	uint32_t count;       /* 0 = the record has no such section */
};

/* A progress slot as of the last refresh. All counts are full op_index values. */
struct cw_record_slot {
	uint32_t comm_plus_1; /* 0 = free */
	uint32_t comm_generation;
	uint64_t base; /* op_index before the first op of the slot */
	uint64_t reached, completed;
};

/*
 * The runs of equal ops in CUDA graphs. looks_left is the number of runs that we may still visit
 * before the next refresh.
 */
struct cw_record_templates {
	uint32_t looks_left;
	uint32_t count;
	struct cw_rec_template runs[];
};

/*
 * Limits the runs that we visit between two refreshes, as CW_RECORD_REREADS limits the ops that we
 * read again. 65536 are enough for any job and cost a fraction of a millisecond.
 */
#define CW_RECORD_TEMPLATE_LOOKS 65536u

/*
 * One op in the index of the bulk ring. It has only the fields that decide whether we read the op
 * itself.
 */
struct cw_record_bulk_op {
	uint64_t ticket_plus_1; /* 0 = we have not read this slot */
	uint64_t prev_plus_1;   /* ticket + 1 of the comm's previous op, 0 = none known */
	uint64_t op_index, seq;
	uint64_t count;       /* number of collectives, if the op is a graph launch */
	int32_t root_or_peer; /* replay entry, if the op is a graph launch */
	uint16_t flags, progress_slot, generation;
	uint8_t kind;
};

struct cw_record {
	int fd;
	const void *memory; /* the record, if it lies in this process; NULL = read fd */
	size_t memory_bytes;
	struct cw_rec_header header;
	struct cw_record_section sections[CW_REC_SECTION__MAX];

	/*
	 * `identities` has the last stable copy of each entry, in the layout of the record. `comms`
	 * has the entries in use.
	 */
	unsigned char *identities;
	struct cw_record_comm *comms;
	size_t n_identities, n_comms, n_comms_allocated;

	struct cw_record_slot *slots; /* one per entry of the progress section, or NULL */
	uint32_t n_slots;

	/*
	 * The tables of CUDA graphs as of the last refresh, or NULL. We count an entry as free if
	 * it changed during our read.
	 */
	struct cw_rec_replay *replays;
	uint32_t n_replays;
	struct cw_record_templates *templates;

	/* Index over the bulk ring; the first walk creates it. */
	struct cw_record_bulk_op *bulk;
	uint64_t *bulk_last_plus_1; /* ticket + 1 of the newest op of each comm entry */
	uint64_t bulk_next;         /* the next ticket to read */
	uint32_t rereads_left;      /* budget until the next refresh; see record_bulk.c */
};

/* Reads exactly len bytes. Returns 0, -EIO if the record is shorter, or -errno. */
int cw_record_pread(const struct cw_record *rec, void *buf, size_t len, uint64_t offset);

/*
 * Copies the first `size` bytes of n table entries, beginning with entry `first`. One read fetches
 * many entries. Returns 0 or -errno.
 */
int cw_record_read_table(const struct cw_record *rec, const struct cw_record_section *s,
			 uint32_t first, uint32_t n, size_t size, void *ret);

/*
 * Copies an entry whose first word is 0 while the writer changes the entry. Returns false on a read
 * error, or if the writer is changing the entry now.
 */
bool cw_record_read_published(const struct cw_record *rec, uint64_t offset, void *copy, size_t len);

/*
 * Terminates the text with NUL and replaces every character that does not belong in a single line.
 */
void cw_record_make_line(char *text, size_t size);

/*
 * At most this many ops are read again between two refreshes. A hostile rank's unfinished ops must
 * not cost the daemon more than about 0.5 ms per sample.
 */
#define CW_RECORD_REREADS 512u

#define CW_RECORD_CHUNK 64u

/*
 * Copies n <= CW_RECORD_CHUNK slots from slot `first` on, out of a ring with ring_count slots. We
 * set publish to 0 in a copy that is unusable: the slot is empty, the writer was changing it, or it
 * holds a ticket of another slot.
 */
int cw_record_read_slots(const struct cw_record *rec, uint64_t ring_offset, uint32_t stride,
			 uint32_t ring_count, uint32_t first, uint32_t n, struct cw_rec_op *ret);

bool cw_record_op_is_of(const struct cw_record_comm *comm, const struct cw_rec_op *op);

/*
 * Reads the comm's own ring: at most CW_REC_COMM_OPS ops by ascending op_index, without duplicates.
 */
int cw_record_read_comm_ring(const struct cw_record *rec, const struct cw_record_comm *comm,
			     struct cw_rec_op *ops, size_t *ret_n);

/*
 * Returns the progress of an op according to the progress words alone. The op's call may or may not
 * have returned.
 */
enum cw_progress cw_record_progress_of(const struct cw_record *rec,
				       const struct cw_record_comm *comm, uint16_t slot,
				       uint16_t flags, uint64_t op_index);

void cw_record_convert(const struct cw_record *rec, const struct cw_record_comm *comm,
		       const struct cw_rec_op *from, struct cw_record_op *to);

/*
 * Reads the op with this ticket from the bulk ring. Returns false if the op is overwritten or
 * unreadable.
 */
bool cw_record_bulk_read(const struct cw_record *rec, uint64_t ticket, struct cw_rec_op *ret);

typedef bool (*cw_record_bulk_fn)(void *user, uint64_t ticket, const struct cw_record_bulk_op *op);

/*
 * Calls fn for the comm's ops whose op_index is below `before`, newest first, until fn returns
 * false. The walk reads the flags of an op again if they were not final at the last read. After too
 * many such reads the walk ends early. Returns 0 or -errno.
 */
int cw_record_bulk_walk(struct cw_record *rec, const struct cw_record_comm *comm, uint64_t before,
			cw_record_bulk_fn fn, void *user);

/* Progress of one launch of a CUDA graph. All counts concern one communicator. */
struct cw_record_replay {
	const struct cw_rec_replay *entry; /* NULL = we do not know the graph's ops */
	bool is_known;                     /* true if we know the counts below */
	uint64_t reached_ops, completed_ops;
	uint64_t reached_colls, completed_colls;
};

/* Reads the table of CUDA graphs (cw_rec_replay). Returns 0 or -errno. */
int cw_record_read_replays(struct cw_record *rec, uint32_t has);

void cw_record_replay_of(const struct cw_record *rec, const struct cw_record_comm *comm,
			 int32_t ref, enum cw_progress launch, struct cw_record_replay *ret);

/*
 * Expands a graph launch into its ops. Writes at most max ops, beginning with op number `first`.
 * Each op is a converted copy of the launch, but has its own signature, coll_seq and progress.
 * Returns the number of ops written.
 */
size_t cw_record_replay_expand(const struct cw_record *rec, const struct cw_record_comm *comm,
			       const struct cw_rec_op *launch, uint64_t first,
			       struct cw_record_op *ops, size_t max);

/* Returns the number of ops in the graph launch; at least 1. */
uint64_t cw_record_replay_count(const struct cw_record *rec, const struct cw_record_comm *comm,
				const struct cw_rec_op *launch);
