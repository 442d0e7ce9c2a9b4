/* SPDX-License-Identifier: Apache-2.0 */
#include "import/record_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "record/record_reader.h"

#define MAX_RECORDS 65536u
/* A communicator costs memory for every member it says it has. */
#define PLACES_FREE 65536u
#define PLACES_PER_MEMBER 1024u
/* Agents beat several times a second: records that end this far apart do not show one instant. */
#define APART_NS (10 * CW_NS_PER_S)

struct loader {
	struct cw_snapshot *snap;
	uint64_t places, places_max;
	uint32_t n_too_large, n_doubles;
	int64_t earliest_end_ns; /* wall */
	int32_t earliest_rank;
	struct cw_err *err;
};

static void close_record(struct cw_record **rec)
{
	(void)cw_record_close(*rec);
}

static void free_snapshot(struct cw_snapshot **snap)
{
	(void)cw_snapshot_free(*snap);
}

/* ---- time ---- */

/* The record's monotonic time as wall time; 0 stays "unknown". */
static int64_t to_wall(const struct cw_rec_header *h, int64_t at_ns)
{
	int64_t offset, wall;

	if (!at_ns ||
	    __builtin_sub_overflow((int64_t)h->created_wall_ns, (int64_t)h->created_ns, &offset))
		return 0;
	return __builtin_add_overflow(at_ns, offset, &wall) || wall < 0 ? 0 : wall;
}

static struct cw_op at_wall(const struct cw_rec_header *h, const struct cw_record_op *op)
{
	return (struct cw_op){ .op_facts = op->op_facts,
			       .enter_ns = to_wall(h, op->enter_mono_ns),
			       .return_ns = to_wall(h, op->return_mono_ns) };
}

/* ---- members ---- */

static void copy_checkpoints(const struct cw_record *rec, const struct cw_record_comm *comm,
			     struct cw_snap_member *m)
{
	struct cw_checkpoint found[CW_RECORD_CHECKPOINTS];
	size_t n;

	if (cw_record_checkpoints(rec, comm, found, &n) < 0)
		return;
	for (size_t i = 0; i < n && i < CW_SNAP_CHECKPOINTS; i++)
		m->checkpoints[i] = found[i];
}

static uint32_t copy_p2p(struct cw_record *rec, const struct cw_record_comm *comm,
			 struct cw_p2p_peer *to, struct cw_snap_member *m)
{
	size_t n = 0;

	if (comm->entry.p2p_block && cw_record_p2p(rec, comm, to, CW_REC_P2P_PEERS, &n) < 0) {
		m->known &= ~(uint32_t)CW_KNOWN_P2P;
		return 0;
	}
	return (uint32_t)n;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int find_or_add_comm(struct loader *l, const struct cw_record_comm *from, uint32_t *ret)
{
	const struct cw_rec_comm *e = &from->entry;
	struct cw_snap_comm comm = {
		.comm_facts = cw_record_comm_facts(from),
		.id = e->comm_id,
		.nranks = e->nranks,
		.name = e->name[0] ? e->name : NULL,
	};

	*ret = cw_snapshot_find_comm(l->snap, e->comm_id, e->instance);
	if (*ret != CW_SNAP_NONE)
		return 0;
	if (l->places + e->nranks > l->places_max) {
		l->n_too_large++;
		return 0;
	}
	l->places += e->nranks;
	return cw_snapshot_add_comm(l->snap, &comm, ret);
}

/* From the record's numbers of call stacks to the snapshot's. */
static int number_stacks(struct loader *l, const struct cw_record *rec, struct cw_op *ops, size_t n)
{
	char text[CW_RECORD_STACK_BYTES];
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		bool is_known =
			ops[i].stack && cw_record_stack(rec, ops[i].stack, text, sizeof(text)) == 0;

		ops[i].stack = 0;
		if (is_known)
			r = cw_snapshot_add_stack(l->snap, text, &ops[i].stack);
	}
	return r;
}

static int add_member(struct loader *l, struct cw_record *rec, const struct cw_record_comm *comm,
		      uint32_t rank)
{
	const struct cw_rec_header *h = cw_record_header(rec);
	const struct cw_rec_comm *e = &comm->entry;
	struct cw_record_op read[CW_RECORD_FILES_WINDOW];
	struct cw_op window[CW_RECORD_FILES_WINDOW], pending, last;
	struct cw_p2p_peer p2p[CW_REC_P2P_PEERS];
	struct cw_snap_member m = { .window = window, .p2p = p2p };
	struct cw_record_state state;
	uint32_t index;
	size_t n = 0;
	int r;

	l->places_max += PLACES_PER_MEMBER;
	if (e->comm_rank < 0 || e->nranks == 0 || (uint32_t)e->comm_rank >= e->nranks ||
	    cw_record_state(rec, comm, &state) < 0 ||
	    cw_record_window(rec, comm, read, CW_RECORD_FILES_WINDOW, &n, &m.window_lost) < 0)
		return 0;
	r = find_or_add_comm(l, comm, &index);
	if (r < 0 || index == CW_SNAP_NONE)
		return r;
	m.rank = rank;
	m.member_facts = cw_record_member_facts(comm, &state);
	m.last_error = e->last_error[0] ? e->last_error : NULL;
	copy_checkpoints(rec, comm, &m);
	m.n_p2p = copy_p2p(rec, comm, p2p, &m);
	m.n_window = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		window[i] = at_wall(h, &read[i]);
		m.progress_ns =
			later(m.progress_ns, later(window[i].enter_ns, window[i].return_ns));
	}
	pending = at_wall(h, &state.pending);
	last = at_wall(h, &state.last);
	r = number_stacks(l, rec, window, n);
	if (r == 0)
		r = number_stacks(l, rec, &pending, 1);
	if (r == 0)
		r = number_stacks(l, rec, &last, 1);
	if (r < 0)
		return r;
	m.pending = state.has_pending ? &pending : NULL;
	m.last = state.has_last ? &last : NULL;
	r = cw_snapshot_set_member(l->snap, index, (uint32_t)e->comm_rank, &m);
	l->n_doubles += r == -EINVAL;
	return r == -EINVAL ? 0 : r;
}

/* ---- ranks ---- */

/* The number people know: the label, else the place in the largest communicator. */
static int32_t label_of(struct cw_record *rec)
{
	const struct cw_record_comm *comms;
	int32_t label = cw_record_header(rec)->rank_label;
	uint32_t largest = 0;
	size_t n;

	if (label >= 0)
		return label;
	comms = cw_record_comms(rec, &n);
	for (size_t i = 0; i < n; i++) {
		if (comms[i].entry.nranks > largest && comms[i].entry.comm_rank >= 0) {
			largest = comms[i].entry.nranks;
			label = comms[i].entry.comm_rank;
		}
	}
	return label;
}

/* When it was last known to run: the agent's last beat, or the newest call. */
static int64_t end_of(struct cw_record *rec)
{
	const struct cw_rec_header *h = cw_record_header(rec);
	const struct cw_record_comm *comms;
	int64_t end_ns = to_wall(h, (int64_t)h->beat_ns);
	size_t n;

	comms = cw_record_comms(rec, &n);
	for (size_t i = 0; i < n; i++) {
		struct cw_record_state state;
		struct cw_op last;

		if (cw_record_state(rec, &comms[i], &state) < 0 || !state.has_last)
			continue;
		last = at_wall(h, &state.last);
		end_ns = later(end_ns, later(last.enter_ns, last.return_ns));
	}
	return end_ns;
}

static int set_identity(struct loader *l, const struct cw_rec_header *h)
{
	if (h->world_size_label > 0 && (uint32_t)h->world_size_label > l->snap->ranks_expected)
		l->snap->ranks_expected = (uint32_t)h->world_size_label;
	if (l->snap->job)
		return 0;
	return cw_snapshot_set_job(l->snap, h->job_label,
				   h->rank_label >= 0 ? h->rank_label_source : "comm rank");
}

static void note_end(struct loader *l, const struct cw_snap_rank *rank)
{
	if (!rank->sampled_ns)
		return;
	if (!l->earliest_end_ns || rank->sampled_ns < l->earliest_end_ns) {
		l->earliest_end_ns = rank->sampled_ns;
		l->earliest_rank = rank->rank;
	}
	l->snap->now_ns = later(l->snap->now_ns, rank->sampled_ns);
}

static int add_rank(struct loader *l, struct cw_record *rec, uint32_t node)
{
	const struct cw_rec_header *h = cw_record_header(rec);
	struct cw_snap_rank rank = {
		.rank = label_of(rec),
		.node = node,
		.pid = (int32_t)h->pid,
		.device = -1,
		.start_ticks = h->process_start_ticks,
		.flags = CW_RANKF_HAS_RECORD,
		.sampled_ns = end_of(rec),
		.nccl_version = h->nccl_version,
		.env_hash = h->env_hash,
		.dropped = cw_record_dropped(h),
	};
	const struct cw_record_comm *comms;
	struct cw_record_op call;
	uint32_t index;
	size_t n;
	int r;

	call = cw_record_host_call(rec);
	if (call.kind != CW_OP_NONE) {
		rank.host_call = at_wall(h, &call);
		rank.host_call_comm_id = h->host_call_comm_id;
	}
	note_end(l, &rank);
	r = set_identity(l, h);
	if (r == 0)
		r = cw_snapshot_add_rank(l->snap, &rank, &index);
	comms = cw_record_comms(rec, &n);
	for (size_t i = 0; i < n && r == 0; i++)
		r = add_member(l, rec, &comms[i], index);
	return r;
}

static int add_file(struct loader *l, const char *path, uint32_t node)
{
	_cleanup_(close_record) struct cw_record *rec = NULL;
	struct cw_err why = { "" };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;

	if (fd < 0)
		return cw_err_set(l->err, errno, "%s: %s", path, strerror(errno));
	r = cw_record_open(fd, false, &rec, &why);
	if (r < 0)
		return cw_err_set(l->err, -r, "%s: %s", path,
				  why.text[0] ? why.text : strerror(-r));
	r = add_rank(l, rec, node);
	return r < 0 ? cw_err_set(l->err, -r, "%s: %s", path, strerror(-r)) : 0;
}

/* ---- the whole ---- */

__attribute__((format(printf, 2, 3))) static int note(struct loader *l, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return cw_snapshot_add_note(l->snap, text);
}

static int add_notes(struct loader *l)
{
	int r = note(l, "from flight records in files: no stacks, and how processes ended is not "
			"known");

	if (r == 0 && l->earliest_end_ns && l->snap->now_ns - l->earliest_end_ns > APART_NS)
		r = note(l, "the record of rank %d ends %lld s before the last one",
			 l->earliest_rank,
			 (long long)((l->snap->now_ns - l->earliest_end_ns) / CW_NS_PER_S));
	if (r == 0 && l->n_doubles)
		r = note(l, "%u records claim a communicator's rank that another one has",
			 l->n_doubles);
	if (r == 0 && l->n_too_large)
		r = note(l, "%u communicators are beyond a limit: left out", l->n_too_large);
	return r;
}

int cw_record_files_read(char *const *paths, uint32_t n, struct cw_snapshot **ret,
			 struct cw_err *err)
{
	_cleanup_(free_snapshot) struct cw_snapshot *snap = cw_snapshot_new();
	struct loader l = { .snap = snap, .places_max = PLACES_FREE, .err = err };
	uint32_t node;
	int r;

	if (n > MAX_RECORDS)
		return cw_err_set(err, E2BIG, "%u records", n);
	if (!snap || cw_snapshot_add_node(snap, "records", &node) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	snap->thresholds = cw_thresholds_default();
	for (uint32_t i = 0; i < n; i++) {
		r = add_file(&l, paths[i], node);
		if (r < 0)
			return r;
	}
	snap->wall_ns = snap->now_ns;
	for (uint32_t c = 0; c < snap->n_comms; c++)
		if (snap->comms[c].nranks > snap->ranks_expected)
			snap->ranks_expected = snap->comms[c].nranks;
	r = add_notes(&l);
	if (r < 0)
		return cw_err_set(err, -r, "%s", strerror(-r));
	*ret = steal_ptr(&snap);
	return 0;
}
