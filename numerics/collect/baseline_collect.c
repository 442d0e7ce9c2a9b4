/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/collect/baseline_collect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/htable.h"
#include "model/op.h"
#include "numerics/collect/summary_taking.h"

/* Limit on the ops that wait for summaries. It equals the capacity of the record's ring. */
#define PENDING CW_REC_RING_OPS
#define CHAINS 4096u
/* We wait this long for a summary. A later one was never made, or was lost. */
#define WAIT_NS (2000 * CW_NS_PER_MS)
/*
 * We wait this long if the rank waits for us. Then a summary is never lost: it arrives when the
 * device gets there.
 */
#define WAIT_KEPT_NS (60000 * CW_NS_PER_MS)
/* Limit on the summaries whose op has not settled yet. */
#define LOOSE 1024u
/*
 * We choose the pause so that each poll finds a third of the ring's 120 summaries. The next
 * summaries may come faster.
 */
#define WANTED_SUMMARIES (CW_REC_SUMMARY_RING / 3)
#define WANTED_OPS (CW_REC_RING_OPS / 8)
#define PAUSE_MIN_NS (CW_NS_PER_MS / 4)
#define PAUSE_MAX_NS (50 * CW_NS_PER_MS)
#define NONE UINT32_MAX

struct pending {
	struct cw_baseline_row row;
	uint64_t op_index;
	int64_t since_ns;
	/* comm: index of the communicator's entry; next: next op in the same chain */
	uint32_t comm, next;
	uint16_t generation;
	bool expects[CW_BASELINE_SIDES], has[CW_BASELINE_SIDES];
};

/* A communicator of the record, and its number in the file. */
struct comm {
	uint32_t generation;
	int number; /* -1 = not in the file */
	uint32_t nranks;
	int32_t comm_rank;
	bool has_name;
};

/* A call site, keyed by the record's identifier. */
struct site {
	UT_hash_handle hh;
	uint64_t key;
	uint16_t number;
};

struct cw_baseline_collector {
	struct cw_record *record;
	char *dir;
	struct cw_baseline_writer *writer;
	struct cw_summary_taken *taken; /* NULL = the rank does not wait */
	int error;
	int64_t now_ns, pause_ns;
	uint64_t op_cursor, newest[CW_REC_SUMMARY_RING];
	struct pending *pending; /* [head, tail), modulo PENDING */
	uint32_t head, tail, chains[CHAINS];
	struct cw_rec_summary loose[LOOSE];
	uint32_t n_loose, n_new_ops, n_new_summaries;
	struct comm comms[CW_REC_COMMS];
	struct site *sites;
	struct cw_baseline_collected said;
};

static uint64_t *counter(struct cw_baseline_collector *c, enum cw_baseline_counter n)
{
	return &c->said.counters[n];
}

int cw_baseline_collector_new(struct cw_record *record, const char *dir,
			      struct cw_baseline_collector **ret)
{
	struct cw_baseline_collector *c = calloc(1, sizeof(*c));

	if (c) {
		c->pending = calloc(PENDING, sizeof(*c->pending));
		c->dir = strdup(dir);
	}
	if (!c || !c->pending || !c->dir) {
		if (c) {
			free(c->pending);
			free(c->dir);
		}
		free(c);
		cw_record_close(record);
		return -ENOMEM;
	}
	c->record = record;
	c->pause_ns = PAUSE_MIN_NS;
	for (uint32_t i = 0; i < CW_REC_COMMS; i++)
		c->comms[i].number = -1;
	for (uint32_t i = 0; i < CHAINS; i++)
		c->chains[i] = NONE;
	*ret = c;
	return 0;
}

int cw_baseline_collector_keep_all(struct cw_baseline_collector *c, const char *dir)
{
	return cw_summary_taking_start(dir, cw_record_header(c->record), &c->taken);
}

static bool is_waited_for(const struct cw_baseline_collector *c)
{
	return c->taken && cw_record_header(c->record)->has & CW_REC_HAS_READER;
}

/* ---- the file ---- */

/*
 * Returns the number that the launcher gave the rank. Without one, returns its rank in the largest
 * communicator.
 */
static int32_t rank_of(const struct cw_record *rec)
{
	const struct cw_record_comm *comms;
	int32_t rank = cw_record_header(rec)->rank_label;
	uint32_t most = 0;
	size_t n;

	comms = cw_record_comms(rec, &n);
	for (size_t i = 0; i < n && cw_record_header(rec)->rank_label < 0; i++)
		if (comms[i].entry.nranks > most) {
			most = comms[i].entry.nranks;
			rank = comms[i].entry.comm_rank;
		}
	return rank;
}

static void open_file(struct cw_baseline_collector *c)
{
	const struct cw_rec_header *h = cw_record_header(c->record);
	struct cw_baseline_head head = { .rank = rank_of(c->record),
					 .world_size = h->world_size_label,
					 .pid = h->pid,
					 .created_wall_ns = h->created_wall_ns };
	char path[PATH_MAX];

	if (c->writer || c->error)
		return;
	c->said.rank = head.rank;
	if (head.world_size < -1)
		head.world_size = -1;
	if (head.rank < 0)
		c->error = -ENODATA;
	else if (snprintf(path, sizeof(path), "%s/rank-%d" CW_BASELINE_SUFFIX, c->dir, head.rank) >=
		 (int)sizeof(path))
		c->error = -ENAMETOOLONG;
	else
		c->error = cw_baseline_writer_new(path, &head, &c->writer);
}

static void write_row(struct cw_baseline_collector *c, const struct cw_baseline_row *row)
{
	if (cw_baseline_writer_row(c->writer, row) < 0) {
		++*counter(c, CW_BASELINE_N_REFUSED);
		return;
	}
	c->said.n_ops++;
	*counter(c, CW_BASELINE_N_TENSORS) += cw_baseline_row_has(row, CW_BASELINE_IN) +
					      cw_baseline_row_has(row, CW_BASELINE_OUT);
}

/* ---- ops ---- */

static const struct cw_rec_comm *entry_of(const struct cw_record *rec, const struct cw_rec_op *op)
{
	const struct cw_record_comm *comms;
	size_t n;

	comms = cw_record_comms(rec, &n);
	for (size_t i = 0; i < n; i++)
		if (comms[i].index == op->comm &&
		    (uint16_t)comms[i].entry.generation == op->comm_generation)
			return &comms[i].entry;
	return NULL;
}

/*
 * True if the process has another member of the same communicator, because of ncclCommInitAll()
 * or threads.
 */
static bool has_another(const struct cw_record *rec, const struct cw_rec_comm *entry)
{
	const struct cw_record_comm *comms;
	size_t n;

	comms = cw_record_comms(rec, &n);
	for (size_t i = 0; i < n; i++)
		if (comms[i].entry.comm_id == entry->comm_id && comms[i].entry.comm_rank >= 0 &&
		    comms[i].entry.comm_rank != entry->comm_rank)
			return true;
	return false;
}

static struct cw_baseline_comm say_comm(const struct cw_rec_comm *entry)
{
	struct cw_baseline_comm to = {
		.id = entry->comm_id,
		.nranks = entry->nranks,
		.comm_rank = entry->comm_rank < 0 ? -1 : entry->comm_rank,
	};

	memcpy(to.name, entry->name, sizeof(to.name));
	return to;
}

/* Updates the names of communicators. The program may set a name after the first use. */
static void name_comms(struct cw_baseline_collector *c)
{
	const struct cw_record_comm *comms;
	size_t n;

	comms = cw_record_comms(c->record, &n);
	for (size_t i = 0; i < n; i++) {
		struct comm *comm;
		struct cw_baseline_comm to;

		if (comms[i].index >= CW_REC_COMMS)
			continue; /* only a newer version has this index */
		comm = &c->comms[comms[i].index];
		if (comm->number < 0 || comm->has_name || !comms[i].entry.name[0] ||
		    comm->generation != comms[i].entry.generation)
			continue;
		to = say_comm(&comms[i].entry);
		cw_baseline_writer_comm_name(c->writer, comm->number, &to);
		comm->has_name = true;
	}
}

/*
 * Returns the communicator of an op. NULL: the record has overwritten it, or the file has too many
 * communicators.
 */
static const struct comm *comm_of(struct cw_baseline_collector *c, const struct cw_rec_op *op)
{
	struct cw_baseline_comm to;
	const struct cw_rec_comm *entry;
	struct comm *comm;

	if (op->comm >= CW_REC_COMMS)
		return NULL;
	comm = &c->comms[op->comm];
	if (comm->number >= 0 && (uint16_t)comm->generation == op->comm_generation)
		return comm;
	entry = entry_of(c->record, op);
	if (!entry)
		return NULL;
	to = say_comm(entry);
	if (to.nranks > c->said.nranks)
		c->said.nranks = to.nranks;
	c->said.has_several = c->said.has_several || has_another(c->record, entry);
	*comm = (struct comm){ .generation = entry->generation,
			       .number = cw_baseline_writer_comm(c->writer, &to),
			       .nranks = to.nranks,
			       .comm_rank = to.comm_rank,
			       .has_name = to.name[0] != '\0' };
	return comm->number >= 0 ? comm : NULL;
}

static bool is_python(const char *frame)
{
	return strstr(frame, " in ");
}

/*
 * Writes the innermost Python lines of the call's stack, as many as a site may have. Without Python
 * lines, writes the native code that made the call. We omit native code between lines, because its
 * library is unknown at first.
 */
static bool site_text(const struct cw_record *rec, const struct cw_rec_op *op, char *text,
		      size_t len)
{
	char stack[CW_RECORD_STACK_BYTES], *frame, *rest = stack;
	size_t used = 0;

	if (!op->stack_id || cw_record_stack(rec, op->stack_id, stack, sizeof(stack)) < 0)
		stack[0] = '\0';
	while ((frame = strsep(&rest, "\n"))) {
		int n = 0;

		if (is_python(frame))
			n = snprintf(text + used, len - used, "%s%s", used ? " < " : "", frame);
		if (n < 0 || (size_t)n >= len - used) {
			text[used] = '\0';
			break;
		}
		used += (size_t)n;
	}
	return used > 0 || cw_record_site(rec, op, text, len) == 0;
}

static uint16_t site_of(struct cw_baseline_collector *c, const struct cw_rec_op *op)
{
	uint64_t key = op->stack_id
			       ? op->stack_id
			       : UINT64_C(1) << 63 | (uint64_t)op->module << 32 | op->call_offset;
	char text[CW_BASELINE_SITE_BYTES + 1];
	struct site *site;
	int number;

	HASH_FIND(hh, c->sites, &key, sizeof(key), site);
	if (site)
		return site->number;
	/*
	 * We do not remember the failure. The site may become known later, and another attempt
	 * costs little.
	 */
	if (!site_text(c->record, op, text, sizeof(text)))
		return 0;
	number = cw_baseline_writer_site(c->writer, text);
	if (number < 0)
		return 0;
	site = calloc(1, sizeof(*site));
	if (!site)
		return (uint16_t)number;
	site->key = key;
	site->number = (uint16_t)number;
	HASH_ADD(hh, c->sites, key, sizeof(site->key), site);
	if (!cw_htable_added(site))
		free(site);
	return (uint16_t)number;
}

/*
 * True if a summary of the op's input will come. The agent samples a group's inputs at the launch
 * of the group, so these ops do not refer to their summaries.
 */
static bool expects_input(const struct cw_rec_op *op, int32_t comm_rank)
{
	if (!(op->flags & CW_OPF_GROUPED) || op->result != 0)
		return op->summary_id != 0;
	switch (op->kind) {
	case CW_OP_BROADCAST:
	case CW_OP_SCATTER:
		return op->root_or_peer == comm_rank;
	case CW_OP_RECV:
		return false;
	default:
		return true;
	}
}

/*
 * True if a summary of the op's output will come, which only successful calls have
 * (docs/design/summaries.md). agent/cuda/tensor.c decides which ranks have an output.
 */
static bool expects_output(const struct cw_rec_op *op, int32_t comm_rank)
{
	if (op->result != 0)
		return false;
	switch (op->kind) {
	case CW_OP_REDUCE:
	case CW_OP_GATHER:
		return op->root_or_peer == comm_rank;
	case CW_OP_SEND:
	case CW_OP_PUT_SIGNAL:
		return false;
	default:
		return true;
	}
}

/* ---- ops that wait for summaries ---- */

static uint32_t *chain_of(struct cw_baseline_collector *c, uint32_t comm, uint64_t op_index)
{
	return &c->chains[(op_index * 31 + comm) % CHAINS];
}

static bool is_over(const struct cw_baseline_collector *c, const struct pending *p)
{
	bool is_complete = true;

	for (enum cw_baseline_side s = 0; s < CW_BASELINE_SIDES; s++)
		is_complete = is_complete && (p->has[s] || !p->expects[s]);
	return is_complete || c->now_ns - p->since_ns > (is_waited_for(c) ? WAIT_KEPT_NS : WAIT_NS);
}

static void flush_one(struct cw_baseline_collector *c)
{
	struct pending *p = &c->pending[c->head % PENDING];
	uint32_t *at = chain_of(c, p->comm, p->op_index);

	while (*at != c->head % PENDING)
		at = &c->pending[*at].next;
	*at = p->next;
	c->head++;
	write_row(c, &p->row);
}

static void on_op(const struct cw_rec_op *op, void *user)
{
	bool has_summaries = cw_record_header(((struct cw_baseline_collector *)user)->record)->has &
			     CW_REC_HAS_SUMMARIES;
	struct cw_baseline_collector *c = user;
	const struct comm *comm;
	struct pending *p;
	uint32_t *chain;

	c->n_new_ops++;
	if (op->kind >= CW_OP_COMM_INIT && op->kind != CW_OP_GRAPH_LAUNCH)
		return;
	if (op->flags & CW_OPF_DROPPED)
		return;
	if (op->kind == CW_OP_GRAPH_LAUNCH || op->seq == 0 || (op->flags & CW_OPF_CAPTURED)) {
		++*counter(c, CW_BASELINE_N_UNSEEN);
		return;
	}
	open_file(c);
	if (c->error)
		return;
	comm = comm_of(c, op);
	if (!comm || op->seq >= UINT32_MAX || op->count > CW_BASELINE_COUNT_MAX) {
		++*counter(c, CW_BASELINE_N_REFUSED);
		return;
	}
	if (c->tail - c->head == PENDING)
		flush_one(c);
	p = &c->pending[c->tail % PENDING];
	chain = chain_of(c, op->comm, op->op_index);
	*p = (struct pending){
		.row = { .unit = CW_BASELINE_UNIT_ROW,
			 .kind = op->kind,
			 .dtype = op->dtype,
			 .redop = op->redop,
			 .seq = (uint32_t)op->seq,
			 .comm = (uint16_t)comm->number,
			 .site = site_of(c, op),
			 .root_or_peer = op->root_or_peer < 0 ? -1 : op->root_or_peer },
		.op_index = op->op_index,
		.since_ns = c->now_ns,
		.comm = op->comm,
		.generation = op->comm_generation,
		.next = *chain,
		.expects = { has_summaries && expects_input(op, comm->comm_rank),
			     has_summaries && expects_output(op, comm->comm_rank) },
	};
	cw_baseline_row_set_count(&p->row, op->count);
	*chain = c->tail++ % PENDING;
}

static void put_summary(struct cw_baseline_collector *c, struct pending *p,
			const struct cw_rec_summary *s)
{
	enum cw_baseline_side side = s->is_output ? CW_BASELINE_OUT : CW_BASELINE_IN;
	uint64_t bad = s->nans + s->infs;
	struct cw_baseline_row *row = &p->row;

	p->has[side] = true;
	row->step_plus_1 = s->step_plus_1;
	if (s->elements != s->offered || s->stride_log2_plus_1 > 1) {
		++*counter(c, CW_BASELINE_N_PARTIAL);
		return;
	}
	row->unit |= side == CW_BASELINE_IN ? CW_BASELINE_HAS_IN : CW_BASELINE_HAS_OUT;
	row->nonfinite[side] =
		bad < CW_BASELINE_NONFINITE_MAX ? (uint8_t)bad : CW_BASELINE_NONFINITE_MAX;
	cw_baseline_row_set_value(row, side, CW_BASELINE_ABSMAX, s->abs_max);
	cw_baseline_row_set_value(row, side, CW_BASELINE_MEAN, s->mean);
	cw_baseline_row_set_value(row, side, CW_BASELINE_L2, s->l2);
}

/* Adds the summary to its op. Returns false if the op has not settled yet, or is gone. */
static bool match(struct cw_baseline_collector *c, const struct cw_rec_summary *s)
{
	uint32_t at = *chain_of(c, s->comm, s->op_index);

	for (; at != NONE; at = c->pending[at].next) {
		struct pending *p = &c->pending[at];

		if (p->op_index == s->op_index && p->comm == s->comm &&
		    p->generation == (uint16_t)s->comm_generation && p->row.kind == s->kind &&
		    !p->has[s->is_output ? CW_BASELINE_OUT : CW_BASELINE_IN]) {
			put_summary(c, p, s);
			return true;
		}
	}
	return false;
}

/* ---- reading ---- */

/*
 * True if we have not seen the summary yet. The numbers of a slot of the ring rise in steps of 120,
 * so a larger step means lost summaries. The count of lost summaries may be too high. A launch that
 * had not ended may have kept the slot, so that some numbers never had a summary.
 */
static bool is_new(struct cw_baseline_collector *c, const struct cw_rec_summary *s)
{
	uint64_t *newest = &c->newest[s->publish % CW_REC_SUMMARY_RING];
	uint64_t before = *newest;

	if (s->publish <= before)
		return false;
	*newest = s->publish;
	if (is_waited_for(c)) /* the agent counts the summaries that it drops */
		return true;
	*counter(c, CW_BASELINE_N_LOST_TENSORS) +=
		before ? (s->publish - before) / CW_REC_SUMMARY_RING - 1
		       : (s->publish - 1) / CW_REC_SUMMARY_RING;
	return true;
}

/* Stores a summary whose op has not settled. If the table is full, we drop the oldest one. */
static void keep_loose(struct cw_baseline_collector *c, const struct cw_rec_summary *s)
{
	if (c->n_loose == LOOSE) {
		memmove(c->loose, c->loose + 1, (LOOSE - 1) * sizeof(*c->loose));
		c->n_loose--;
		++*counter(c, CW_BASELINE_N_LOST_TENSORS);
	}
	c->loose[c->n_loose++] = *s;
}

static void match_loose(struct cw_baseline_collector *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_loose; i++)
		if (!match(c, &c->loose[i]))
			c->loose[n++] = c->loose[i];
	c->n_loose = n;
}

static void read_summaries(struct cw_baseline_collector *c)
{
	struct cw_rec_summary all[CW_REC_SUMMARIES];
	size_t n = cw_record_summaries(c->record, all, CW_REC_SUMMARIES);

	for (size_t i = 0; i < n; i++) {
		if (!is_new(c, &all[i]))
			continue;
		c->n_new_summaries++;
		if (!match(c, &all[i]))
			keep_loose(c, &all[i]);
	}
	if (c->taken)
		cw_summary_taking_update(c->taken, c->newest);
}

static void set_pause(struct cw_baseline_collector *c)
{
	int64_t by_ops = c->pause_ns * WANTED_OPS / (c->n_new_ops + 1);
	int64_t by_summaries = c->pause_ns * WANTED_SUMMARIES / (c->n_new_summaries + 1);
	int64_t pause = by_ops < by_summaries ? by_ops : by_summaries;

	/*
	 * The pause grows at most twofold. A program may resume at full speed, and a long pause
	 * would lose summaries.
	 */
	if (pause > 2 * c->pause_ns)
		pause = 2 * c->pause_ns;
	c->pause_ns = pause < PAUSE_MIN_NS   ? PAUSE_MIN_NS
		      : pause > PAUSE_MAX_NS ? PAUSE_MAX_NS
					     : pause;
}

int cw_baseline_collector_poll(struct cw_baseline_collector *c, int64_t now_ns)
{
	uint64_t lost = 0;
	int r;

	if (c->error)
		return c->error;
	c->now_ns = now_ns;
	c->n_new_ops = c->n_new_summaries = 0;
	r = cw_record_refresh(c->record);
	if (r < 0)
		return 0; /* the agent is writing, or the file is short, so nothing is new */
	read_summaries(c);
	r = cw_record_each_settled(c->record, &c->op_cursor, &lost, on_op, c);
	*counter(c, CW_BASELINE_N_LOST_OPS) += lost;
	match_loose(c);
	while (c->head != c->tail && is_over(c, &c->pending[c->head % PENDING]))
		flush_one(c);
	if (c->writer)
		name_comms(c);
	set_pause(c);
	r = r < 0 ? r : c->error;
	if (r < 0) {
		cw_summary_taking_end(c->taken);
		c->taken = NULL;
	}
	return r;
}

int64_t cw_baseline_collector_pause_ns(const struct cw_baseline_collector *c)
{
	return c->pause_ns;
}

int cw_baseline_collector_free(struct cw_baseline_collector *c, struct cw_baseline_collected *ret)
{
	const struct cw_rec_header *h;
	struct site *site, *next;
	int r;

	if (!c)
		return 0;
	h = cw_record_header(c->record);
	while (c->head != c->tail)
		flush_one(c);
	*counter(c, CW_BASELINE_N_LOST_TENSORS) += c->n_loose;
	*counter(c, CW_BASELINE_N_NOT_COLLECTED) = h->drops[CW_REC_DROP_SUMMARIES];
	c->said.has_summaries = h->has & CW_REC_HAS_SUMMARIES;
	c->said.waited = is_waited_for(c);
	c->said.pid = h->pid;
	r = cw_baseline_writer_free(c->writer, c->said.counters);
	if (c->error)
		r = c->error;
	if (ret)
		*ret = c->said;
	HASH_ITER (hh, c->sites, site, next) {
		HASH_DELETE(hh, c->sites, site);
		free(site);
	}
	cw_summary_taking_end(c->taken);
	cw_record_close(c->record);
	free(c->pending);
	free(c->dir);
	free(c);
	return r;
}

int cw_baseline_collect_file(const char *path, const char *dir, struct cw_baseline_collected *ret,
			     struct cw_err *err)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct cw_baseline_collector *c;
	struct cw_record *record;
	int r, end;

	if (fd < 0)
		return cw_err_set(err, errno, "%s", strerror(errno));
	r = cw_record_open(steal_fd(&fd), false, &record, err);
	if (r < 0)
		return r;
	r = cw_baseline_collector_new(record, dir, &c);
	if (r < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	r = cw_baseline_collector_poll(c, 0);
	end = cw_baseline_collector_free(c, ret);
	r = r < 0 ? r : end;
	if (r == -EEXIST)
		return cw_err_set(err, EEXIST, "there is a baseline of rank %d already", ret->rank);
	return r < 0 ? cw_err_set(err, -r, "%s", strerror(-r)) : 0;
}
