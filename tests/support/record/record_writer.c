/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/record/record_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/op.h"
#include "model/signature.h"

#define MUST(ok)                                                                                   \
	do {                                                                                       \
		if (!(ok)) {                                                                       \
			perror("record_writer: " #ok);                                             \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static const struct {
	uint32_t type, entry_bytes, count;
} layout[] = {
	{ CW_REC_SECTION_COMMS, sizeof(struct cw_rec_comm), CW_REC_COMMS },
	{ CW_REC_SECTION_RING, sizeof(struct cw_rec_op), CW_REC_RING_OPS },
	{ CW_REC_SECTION_P2P, sizeof(struct cw_rec_p2p_block), CW_REC_P2P_BLOCKS },
	{ CW_REC_SECTION_PROGRESS_INFO, sizeof(struct cw_rec_progress_info),
	  CW_REC_PROGRESS_SLOTS },
	{ CW_REC_SECTION_PROGRESS, sizeof(struct cw_rec_progress), CW_REC_PROGRESS_SLOTS },
	{ CW_REC_SECTION_REPLAYS, sizeof(struct cw_rec_replay), CW_REC_REPLAYS },
	{ CW_REC_SECTION_TEMPLATES, sizeof(struct cw_rec_template), CW_REC_TEMPLATES },
	{ CW_REC_SECTION_SUMMARIES, sizeof(struct cw_rec_summary), CW_REC_SUMMARIES },
	{ CW_REC_SECTION_TIMES, sizeof(struct cw_rec_time), CW_REC_TIMES },
	{ CW_REC_SECTION_MODULES, sizeof(struct cw_rec_module), CW_REC_MODULES },
	{ CW_REC_SECTION_STACKS, sizeof(struct cw_rec_stack), CW_REC_STACKS },
	{ CW_REC_SECTION_FRAMES, sizeof(struct cw_rec_frame), CW_REC_FRAMES },
	{ CW_REC_SECTION_CONNECTIONS, sizeof(struct cw_rec_connection), CW_REC_CONNECTIONS },
	{ CW_REC_SECTION_VARIABLES, sizeof(struct cw_rec_variables), 1 },
};
#define N_SECTIONS (sizeof(layout) / sizeof(layout[0]))

static uint64_t page_up(uint64_t v)
{
	return (v + 4095) & ~UINT64_C(4095);
}

static uint64_t plan(uint64_t offsets[N_SECTIONS])
{
	uint64_t at = sizeof(struct cw_rec_header);

	for (size_t i = 0; i < N_SECTIONS; i++) {
		offsets[i] = at;
		at = page_up(at + (uint64_t)layout[i].entry_bytes * layout[i].count);
	}
	return at + 4096; /* room for the test's own entries */
}

static void fill_header(struct cw_test_record *rec, const uint64_t offsets[N_SECTIONS])
{
	struct cw_rec_header *h = rec->header;

	*h = (struct cw_rec_header){
		.magic = CW_RECORD_MAGIC,
		.version = CW_RECORD_VERSION,
		.header_bytes = sizeof(*h),
		.total_bytes = rec->bytes,
		.state = 1,
		.has = CW_REC_HAS_PROGRESS,
		.pid = (uint32_t)getpid(),
		.clock = CW_REC_CLOCK_MONOTONIC,
		.process_start_ticks = 1000,
		.created_ns = 1,
		.rank_label = 0,
		.world_size_label = 1,
		.local_rank_label = 0,
		.nccl_version = 22809,
		.step_mark = -1,
		.job_label = "test:job",
		.rank_label_source = "RANK",
	};
	for (size_t i = 0; i < N_SECTIONS; i++)
		h->sections[i] = (struct cw_rec_section){
			.type = layout[i].type,
			.entry_bytes = layout[i].entry_bytes,
			.count = layout[i].count,
			.offset = offsets[i],
		};
}

struct cw_test_record *cw_test_record_new(void)
{
	struct cw_test_record *rec = calloc(1, sizeof(*rec));
	uint64_t offsets[N_SECTIONS];
	char *map;

	MUST(rec);
	rec->bytes = plan(offsets);
	rec->fd = memfd_create(CW_RECORD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	MUST(rec->fd >= 0);
	MUST(ftruncate(rec->fd, (off_t)rec->bytes) == 0);
	map = mmap(NULL, rec->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rec->fd, 0);
	MUST(map != MAP_FAILED);
	MUST(fcntl(rec->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) == 0);
	rec->header = (struct cw_rec_header *)map;
	rec->comms = (struct cw_rec_comm *)(map + offsets[0]);
	rec->ring = (struct cw_rec_op *)(map + offsets[1]);
	rec->p2p = (struct cw_rec_p2p_block *)(map + offsets[2]);
	rec->progress_info = (struct cw_rec_progress_info *)(map + offsets[3]);
	rec->progress = (struct cw_rec_progress *)(map + offsets[4]);
	rec->replays = (struct cw_rec_replay *)(map + offsets[5]);
	rec->templates = (struct cw_rec_template *)(map + offsets[6]);
	rec->summaries = (struct cw_rec_summary *)(map + offsets[7]);
	rec->times = (struct cw_rec_time *)(map + offsets[8]);
	rec->modules = (struct cw_rec_module *)(map + offsets[9]);
	rec->stacks = (struct cw_rec_stack *)(map + offsets[10]);
	rec->frames = (struct cw_rec_frame *)(map + offsets[11]);
	rec->connections = (struct cw_rec_connection *)(map + offsets[12]);
	rec->variables = (struct cw_rec_variables *)(map + offsets[13]);
	rec->now_ns = 1000000000;
	fill_header(rec, offsets);
	return rec;
}

struct cw_test_record *cw_test_record_free(struct cw_test_record *rec)
{
	if (!rec)
		return NULL;
	(void)munmap(rec->header, rec->bytes);
	(void)close(rec->fd);
	free(rec);
	return NULL;
}

int cw_test_record_dup(const struct cw_test_record *rec)
{
	int fd = fcntl(rec->fd, F_DUPFD_CLOEXEC, 0);

	MUST(fd >= 0);
	return fd;
}

int cw_test_record_comm(struct cw_test_record *rec, uint64_t comm_id, uint32_t nranks,
			int32_t comm_rank)
{
	int index = (int)rec->header->comms_used;
	struct cw_rec_comm *c = &rec->comms[index];

	MUST(index < CW_REC_COMMS);
	*c = (struct cw_rec_comm){
		.seqlock = 2,
		.comm_id = comm_id,
		.generation = 1,
		.state = CW_COMM_READY,
		.nranks = nranks,
		.comm_rank = comm_rank,
		.hash = CW_HASH_INIT,
		.created_ns = (uint64_t)rec->now_ns,
		.ready_ns = (uint64_t)rec->now_ns,
	};
	rec->header->comms_used++;
	return index;
}

void cw_test_record_reuse_comm(struct cw_test_record *rec, int comm, uint64_t comm_id)
{
	struct cw_rec_comm old = rec->comms[comm];

	rec->comms[comm] = (struct cw_rec_comm){
		.seqlock = old.seqlock + 2,
		.comm_id = comm_id,
		.generation = old.generation + 1,
		.state = CW_COMM_READY,
		.nranks = old.nranks,
		.comm_rank = old.comm_rank,
		.hash = CW_HASH_INIT,
	};
}

uint16_t cw_test_record_slot(struct cw_test_record *rec, int comm, uint64_t stream)
{
	const struct cw_rec_comm *c = &rec->comms[comm];
	uint32_t i = rec->slots_used++;

	MUST(i < CW_REC_PROGRESS_SLOTS);
	rec->progress_info[i] = (struct cw_rec_progress_info){
		.comm_plus_1 = (uint32_t)comm + 1,
		.comm_generation = c->generation,
		.stream = stream,
		.base = c->op_index,
	};
	cw_test_record_set_slot(rec, (uint16_t)i, c->op_index, c->op_index);
	return (uint16_t)i;
}

void cw_test_record_set_slot(struct cw_test_record *rec, uint16_t slot, uint64_t reached,
			     uint64_t completed)
{
	rec->progress[slot].reached = (uint32_t)reached;
	rec->progress[slot].completed = (uint32_t)completed;
}

static void put(struct cw_rec_op *ring, uint32_t count, uint64_t *ticket, struct cw_rec_op *op)
{
	op->publish = *ticket + 1;
	ring[*ticket % count] = *op;
	(*ticket)++;
}

uint64_t cw_test_record_enter(struct cw_test_record *rec, int comm, const struct cw_rec_op *op)
{
	struct cw_rec_comm *c = &rec->comms[comm];
	bool counted = cw_op_is_collective(op->kind) && !(op->flags & CW_OPF_NO_COUNT);
	struct cw_rec_op o = *op;

	o.op_index = ++c->op_index;
	o.comm = (uint16_t)comm;
	o.comm_generation = (uint16_t)c->generation;
	o.enter_ns = (uint64_t)rec->now_ns;
	if (counted)
		o.seq = ++c->coll_entered;
	c->last_enter_ns = o.enter_ns;
	put(c->ops, CW_REC_COMM_OPS, &c->ring_ticket, &o);
	put(rec->ring, CW_REC_RING_OPS, &rec->header->ring_ticket, &o);
	rec->header->ops_total++;
	return o.op_index;
}

static bool finish(struct cw_rec_op *op, int64_t now_ns, int result)
{
	bool failed = result != 0 && result != 7; /* ncclInProgress */

	op->return_ns = (uint64_t)now_ns;
	op->result = (int16_t)result;
	op->flags = (uint16_t)((op->flags | CW_OPF_RETURNED) & ~CW_OPF_QUEUED);
	return cw_op_is_collective(op->kind) && op->seq && !failed;
}

void cw_test_record_return(struct cw_test_record *rec, int comm, uint64_t op_index, int result)
{
	struct cw_rec_comm *c = &rec->comms[comm];
	uint64_t committed_seq = 0;

	for (uint32_t i = 0; i < CW_REC_COMM_OPS; i++)
		if (c->ops[i].publish && c->ops[i].op_index == op_index)
			(void)finish(&c->ops[i], rec->now_ns, result);
	for (uint32_t i = 0; i < CW_REC_RING_OPS; i++) {
		struct cw_rec_op *op = &rec->ring[i];

		if (op->publish && op->comm == comm && op->op_index == op_index &&
		    op->comm_generation == (uint16_t)c->generation &&
		    finish(op, rec->now_ns, result)) {
			committed_seq = op->seq;
			c->hash = cw_hash_commit(c->hash, cw_signature(op->kind, op->dtype,
								       op->redop, op->root_or_peer,
								       op->count, op->bytes));
		}
	}
	if (committed_seq > c->coll_returned)
		c->coll_returned = committed_seq;
	c->op_returned++;
	c->last_return_ns = (uint64_t)rec->now_ns;
}

static uint16_t first_slot(struct cw_test_record *rec, int comm)
{
	for (uint32_t i = 0; i < rec->slots_used; i++)
		if (rec->progress_info[i].comm_plus_1 == (uint32_t)comm + 1 &&
		    rec->progress_info[i].comm_generation == rec->comms[comm].generation)
			return (uint16_t)i;
	return cw_test_record_slot(rec, comm, 0x5000 + (uint64_t)comm);
}

static struct cw_rec_op op_of(struct cw_test_record *rec, int comm, unsigned kind, uint64_t count)
{
	uint16_t slot = first_slot(rec, comm);

	return (struct cw_rec_op){
		.kind = (uint8_t)kind,
		.dtype = CW_DTYPE_FP32,
		.redop = CW_REDOP_NONE,
		.root_or_peer = CW_PEER_NONE,
		.count = count,
		.bytes = count * 4,
		.stream = rec->progress_info[slot].stream,
		.tid = (uint32_t)getpid(),
		.progress_slot = slot,
		.module = CW_REC_NO_SLOT,
	};
}

uint64_t cw_test_record_collective(struct cw_test_record *rec, int comm, unsigned kind,
				   uint64_t count)
{
	struct cw_rec_op op = op_of(rec, comm, kind, count);

	if (cw_op_has_redop(kind))
		op.redop = CW_REDOP_SUM;
	if (cw_op_has_root(kind))
		op.root_or_peer = 0;
	return cw_test_record_enter(rec, comm, &op);
}

static struct cw_rec_p2p_peer *peer_of(struct cw_test_record *rec, int comm, int32_t peer)
{
	struct cw_rec_comm *c = &rec->comms[comm];
	struct cw_rec_p2p_peer *peers;

	if (!c->p2p_block) {
		MUST(comm < CW_REC_P2P_BLOCKS);
		c->p2p_block = (uint32_t)comm + 1;
		rec->p2p[comm] = (struct cw_rec_p2p_block){
			.comm_plus_1 = (uint32_t)comm + 1,
			.comm_generation = c->generation,
		};
	}
	peers = rec->p2p[c->p2p_block - 1].peers;
	for (uint32_t i = 0; i < CW_REC_P2P_PEERS; i++) {
		if (!peers[i].peer_plus_1)
			peers[i].peer_plus_1 = (uint32_t)peer + 1;
		if (peers[i].peer_plus_1 == (uint32_t)peer + 1)
			return &peers[i];
	}
	MUST(!"more peers than a block has");
	return NULL;
}

uint64_t cw_test_record_p2p(struct cw_test_record *rec, int comm, unsigned kind, int32_t peer,
			    uint64_t count)
{
	struct cw_rec_op op = op_of(rec, comm, kind, count);
	struct cw_rec_p2p_peer *p = peer_of(rec, comm, peer);
	unsigned direction = kind == CW_OP_RECV;

	op.root_or_peer = peer;
	op.seq = ++p->count[direction];
	p->hash[direction] = cw_hash_step(p->hash[direction], op.bytes);
	rec->comms[comm].p2p_total[direction]++;
	return cw_test_record_enter(rec, comm, &op);
}

void cw_test_record_progress(struct cw_test_record *rec, int comm, uint64_t reached,
			     uint64_t completed)
{
	cw_test_record_set_slot(rec, first_slot(rec, comm), reached, completed);
}

void cw_test_record_graph(struct cw_test_record *rec, int comm, const struct cw_rec_template *runs,
			  unsigned n)
{
	struct cw_rec_replay *entry = &rec->replays[0];

	*entry = (struct cw_rec_replay){
		.generation = 1,
		.comm_plus_1 = (uint32_t)comm + 1,
		.comm_generation = rec->comms[comm].generation,
		.first_plus_1 = 1,
		.progress_slot = CW_REC_PROGRESS_SLOTS - 1,
	};
	for (unsigned i = 0; i < n; i++) {
		rec->templates[i] = runs[i];
		rec->templates[i].next_plus_1 = i + 1 < n ? i + 2 : 0;
		entry->ops += runs[i].repeat;
		if (cw_op_is_collective(runs[i].kind))
			entry->colls += runs[i].repeat;
	}
	rec->progress_info[entry->progress_slot] = (struct cw_rec_progress_info){
		.comm_plus_1 = ((uint32_t)comm + 1) | CW_REC_SLOT_OF_GRAPH,
		.comm_generation = rec->comms[comm].generation,
	};
	rec->header->has |= CW_REC_HAS_REPLAYS;
}

uint64_t cw_test_record_launch(struct cw_test_record *rec, int comm)
{
	struct cw_rec_comm *c = &rec->comms[comm];
	struct cw_rec_op op = { .kind = CW_OP_GRAPH_LAUNCH,
				.dtype = CW_DTYPE_NONE,
				.redop = CW_REDOP_NONE,
				.progress_slot = first_slot(rec, comm),
				.root_or_peer = cw_rec_replay_ref(0, 1),
				.seq = c->coll_entered + 1,
				.count = rec->replays[0].colls,
				.replay = (uint32_t)++rec->replays[0].launches };

	c->coll_entered += op.count;
	c->coll_returned = c->coll_entered;
	return cw_test_record_enter(rec, comm, &op);
}
