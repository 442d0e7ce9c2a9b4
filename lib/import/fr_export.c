/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requirements of PyTorch's analyser (torch/distributed/flight_recorder/components, PyTorch 2.5
 * to 2.10), and how we meet each:
 *
 *  - The analyser compares record_id across ranks and drops entries below the largest first one. So
 *    each dump numbers its entries from 0, and we omit old entries that some members no longer
 *    have.
 *  - The analyser identifies a group by its name and the set of its ranks. We use the
 *    communicator's id as the name.
 *  - The analyser takes positions in a group as indices into the sorted ranks. We renumber peers
 *    accordingly.
 *  - Sends and receives of one group launch are entries with the same p2p_seq_id. After them we
 *    write an entry "nccl:coalesced" with their state. Without it the analyser pairs them wrongly.
 *  - The analyser compares all versions with the first one, so every dump has the same version.
 */
#include "import/fr_export.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "import/fr_dump.h"
#include "import/fr_export_doc.h"

/* The maximum number of peers per rank that we track separately. The record has room for 256. */
#define MAX_PAIRS 1024u
#define FILE_PREFIX "nccl_trace_rank_"

/* ---- communicators ---- */

static int compare_places(const void *a, const void *b)
{
	const struct fr_out_place *pa = a, *pb = b;

	return (pa->label > pb->label) - (pa->label < pb->label);
}

/*
 * Returns the rank's number. CW_FR_NONE = the rank has no number, or it lies or is damaged and no
 * reader would accept its number.
 */
static int32_t number_of(const struct cw_snap_rank *rank)
{
	return rank->rank >= 0 && (uint32_t)rank->rank < CW_FR_MAX_RANKS ? rank->rank : CW_FR_NONE;
}

/*
 * Returns the next rank number of the job that no member has; -1 = none left. Members that no node
 * reported get these numbers.
 */
static int32_t next_missing(const struct cw_snapshot *snap, const bool *is_seen, uint32_t *at)
{
	while (*at < snap->ranks_expected && is_seen[*at])
		(*at)++;
	return *at < snap->ranks_expected ? (int32_t)(*at)++ : -1;
}

static int name_members(const struct fr_out *x, struct fr_out_comm *c)
{
	const struct cw_snapshot *snap = x->snap;
	bool is_world = c->snap->nranks == snap->ranks_expected;
	_cleanup_(freep) bool *is_seen = calloc((size_t)c->snap->nranks + 1, sizeof(*is_seen));
	uint32_t missing = 0;

	if (!is_seen)
		return -ENOMEM;
	for (uint32_t m = 0; m < c->snap->nranks; m++) {
		uint32_t rank = c->snap->members[m].rank;

		c->sorted[m].comm_rank = m;
		c->sorted[m].label = rank < snap->n_ranks ? number_of(&snap->ranks[rank]) : -1;
		if (c->sorted[m].label >= 0 && (uint32_t)c->sorted[m].label < c->snap->nranks)
			is_seen[c->sorted[m].label] = true;
	}
	for (uint32_t m = 0; m < c->snap->nranks; m++) {
		if (c->sorted[m].label >= 0)
			continue;
		c->sorted[m].label = is_world ? next_missing(snap, is_seen, &missing) : -1;
		if (c->sorted[m].label < 0)
			return -ENODATA;
	}
	return 0;
}

static bool is_counted(const struct cw_op *op)
{
	return cw_op_is_collective(op->kind) && op->coll_seq &&
	       !(op->flags & (CW_OPF_DROPPED | CW_OPF_CAPTURED | CW_OPF_QUEUED));
}

static bool is_p2p(const struct cw_op *op)
{
	return cw_op_is_p2p(op->kind) && op->peer >= 0 &&
	       !(op->flags & (CW_OPF_DROPPED | CW_OPF_CAPTURED | CW_OPF_QUEUED));
}

/* Returns the number of the member's oldest collective in the snapshot; 0 = none. */
static uint64_t first_seq_of(const struct cw_snap_member *m)
{
	for (uint32_t i = 0; i < m->n_window; i++)
		if (is_counted(&m->window[i]))
			return m->window[i].coll_seq;
	if (m->pending && is_counted(m->pending))
		return m->pending->coll_seq;
	return m->last && is_counted(m->last) ? m->last->coll_seq : 0;
}

/* ---- sends and receives ---- */

static struct fr_out_pair *find_pair(const struct fr_out_pairs *pairs, uint32_t peer)
{
	for (uint32_t i = 0; i < pairs->n; i++)
		if (pairs->list[i].peer == peer)
			return &pairs->list[i];
	return NULL;
}

static int note_pair(struct fr_out *x, struct fr_out_pairs *pairs, const struct cw_op *op)
{
	struct fr_out_pair *pair = find_pair(pairs, (uint32_t)op->peer);
	uint64_t *first;

	if (!pair && pairs->n == MAX_PAIRS)
		return 0;
	if (!pair && pairs->n == pairs->room) {
		uint32_t room = pairs->room ? pairs->room * 2 : 4;
		struct fr_out_pair *list = cw_arena_new_array(&x->arena, struct fr_out_pair, room);

		if (!list)
			return -ENOMEM;
		if (pairs->n)
			memcpy(list, pairs->list, pairs->n * sizeof(*list));
		pairs->list = list;
		pairs->room = room;
	}
	if (!pair) {
		pair = &pairs->list[pairs->n++];
		*pair = (struct fr_out_pair){ .peer = (uint32_t)op->peer };
	}
	first = op->kind == CW_OP_SEND ? &pair->first_send : &pair->first_recv;
	if (!*first)
		*first = op->p2p_seq;
	return 0;
}

static int note_pairs(struct fr_out *x, struct fr_out_comm *c)
{
	c->pairs = cw_arena_new_array(&x->arena, struct fr_out_pairs, c->snap->nranks);
	if (!c->pairs)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->snap->nranks; i++) {
		const struct cw_snap_member *m = &c->snap->members[i];

		for (uint32_t k = 0; k < m->n_window; k++)
			if (is_p2p(&m->window[k]) && note_pair(x, &c->pairs[i], &m->window[k]) < 0)
				return -ENOMEM;
	}
	return 0;
}

/*
 * Returns the number of sends (or receives) that the member has ever posted for the peer, as far as
 * we know.
 */
static uint64_t posted(const struct cw_snap_member *m, uint32_t peer, bool sends)
{
	for (uint32_t i = 0; i < m->n_p2p; i++)
		if (m->p2p[i].peer == peer)
			return sends ? m->p2p[i].sends : m->p2p[i].recvs;
	return 0;
}

/*
 * True if the other side still has the counterpart of this call. We omit calls without a
 * counterpart. Sends and receives have no number that is equal on both ranks, so readers pair them
 * by counting.
 */
static bool has_counterpart_at_hand(const struct fr_out_comm *c, uint32_t me,
				    const struct cw_op *op)
{
	bool is_send = op->kind == CW_OP_SEND;
	const struct fr_out_pair *pair = find_pair(&c->pairs[op->peer], me);
	uint64_t first = pair ? (is_send ? pair->first_recv : pair->first_send) : 0;

	if (!first)
		first = posted(&c->snap->members[op->peer], me, !is_send) + 1;
	return op->p2p_seq >= first;
}

static int make_comm(struct fr_out *x, const struct cw_snap_comm *snap, struct fr_out_comm *c)
{
	int r;

	c->snap = snap;
	(void)snprintf(c->name, sizeof(c->name), "0x%016" PRIx64 "%s%.0" PRIu32, snap->id,
		       snap->instance ? "." : "", snap->instance);
	c->sorted = cw_arena_new_array(&x->arena, struct fr_out_place, snap->nranks);
	c->place_of = cw_arena_new_array(&x->arena, uint32_t, snap->nranks);
	if (!c->sorted || !c->place_of)
		return -ENOMEM;
	r = name_members(x, c);
	if (r == -ENODATA)
		c->sorted = NULL;
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	qsort(c->sorted, snap->nranks, sizeof(*c->sorted), compare_places);
	for (uint32_t i = 0; i < snap->nranks; i++) {
		uint64_t seq = first_seq_of(&snap->members[c->sorted[i].comm_rank]);

		c->place_of[c->sorted[i].comm_rank] = i;
		if (seq > c->first_seq)
			c->first_seq = seq;
	}
	return note_pairs(x, c);
}

static int collect(struct fr_out *x)
{
	const struct cw_snapshot *snap = x->snap;
	uint32_t *fill;
	int r = 0;

	x->comms = cw_arena_new_array(&x->arena, struct fr_out_comm, snap->n_comms);
	x->start = cw_arena_new_array(&x->arena, uint32_t, (size_t)snap->n_ranks + 2);
	if (!x->comms || !x->start)
		return -ENOMEM;
	for (uint32_t c = 0; c < snap->n_comms && r == 0; c++) {
		r = make_comm(x, &snap->comms[c], &x->comms[c]);
		for (uint32_t m = 0; x->comms[c].sorted && m < snap->comms[c].nranks; m++)
			if (snap->comms[c].members[m].rank < snap->n_ranks)
				x->start[snap->comms[c].members[m].rank + 2]++;
	}
	for (uint32_t i = 2; i < snap->n_ranks + 2; i++)
		x->start[i] += x->start[i - 1];
	x->members =
		cw_arena_new_array(&x->arena, struct fr_out_member, x->start[snap->n_ranks + 1]);
	if (r < 0 || !x->members)
		return r < 0 ? r : -ENOMEM;
	fill = x->start + 1; /* becomes the end of each rank's part, one index further */
	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; x->comms[c].sorted && m < snap->comms[c].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[c].members[m];

			if (member->rank < snap->n_ranks)
				x->members[fill[member->rank]++] =
					(struct fr_out_member){ member, c, m };
		}
	return 0;
}

/* ---- entries of a rank ---- */

static int add(struct fr_out_dump *d, const struct fr_out_entry *e)
{
	if (d->n == d->room) {
		uint32_t room = d->room ? d->room * 2 : 128;
		struct fr_out_entry *v = realloc(d->entries, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		d->entries = v;
		d->room = room;
	}
	d->entries[d->n++] = *e;
	return 0;
}

struct numbers {
	uint64_t p2p_seq, last_coll;
	struct fr_out_entry
		open; /* the entry of an open group launch of sends and receives; op NULL = none */
};

/* Writes the entry that ends a coalesced launch and carries the state of the launch. */
static int close_launch(struct fr_out_dump *d, struct numbers *n)
{
	struct fr_out_entry e = n->open;

	n->open.op = NULL;
	e.ends_group = true;
	return e.op ? add(d, &e) : 0;
}

/* Adds a send or receive. All calls of one group launch share a number. */
static int add_p2p(struct fr_out_dump *d, struct fr_out_entry *e, struct numbers *n)
{
	const struct cw_op *op = e->op;
	bool grouped = (op->flags & CW_OPF_GROUPED) && op->group_id;
	int r = 0;

	if (!has_counterpart_at_hand(&d->x->comms[e->member->comm], e->member->comm_rank, op))
		return 0;
	if (!n->open.op || !grouped || n->open.op->group_id != op->group_id) {
		r = close_launch(d, n);
		n->p2p_seq++;
	}
	e->p2p_seq = n->p2p_seq;
	e->is_coalesced = grouped;
	if (grouped)
		n->open = *e;
	return r < 0 ? r : add(d, e);
}

static int add_op(struct fr_out_dump *d, const struct fr_out_member *m, uint32_t pg_id,
		  const struct cw_op *op, struct numbers *n)
{
	struct fr_out_entry e = {
		.op = op, .member = m, .pg_id = pg_id, .last_coll = n->last_coll
	};
	int r;

	if (op->enter_ns <= 0)
		return 0;
	if (is_p2p(op) && (uint32_t)op->peer < d->x->comms[m->comm].snap->nranks)
		return add_p2p(d, &e, n);
	if (!is_counted(op))
		return 0;
	r = close_launch(d, n);
	n->last_coll = op->coll_seq;
	e.p2p_seq = n->p2p_seq;
	return r == 0 && op->coll_seq >= d->x->comms[m->comm].first_seq ? add(d, &e) : r;
}

static int add_member(struct fr_out_dump *d, const struct fr_out_member *member, uint32_t pg_id)
{
	const struct cw_snap_member *m = member->snap;
	struct numbers n = { 0 };
	int r = 0;

	for (uint32_t i = 0; i < m->n_window && r == 0; i++)
		r = add_op(d, member, pg_id, &m->window[i], &n);
	if (r == 0 && !m->n_window && m->pending)
		r = add_op(d, member, pg_id, m->pending, &n);
	if (r == 0 && !m->n_window && m->last &&
	    (!m->pending || m->last->op_index != m->pending->op_index))
		r = add_op(d, member, pg_id, m->last, &n);
	return r < 0 ? r : close_launch(d, &n);
}

static int compare_entries(const void *a, const void *b)
{
	const struct fr_out_entry *ea = a, *eb = b;

	if (ea->op->enter_ns != eb->op->enter_ns)
		return ea->op->enter_ns < eb->op->enter_ns ? -1 : 1;
	if (ea->pg_id != eb->pg_id)
		return ea->pg_id < eb->pg_id ? -1 : 1;
	if (ea->op->op_index != eb->op->op_index)
		return ea->op->op_index < eb->op->op_index ? -1 : 1;
	return ea->ends_group - eb->ends_group;
}

/* ---- files ---- */

/*
 * Writes the file, and sets its time to the time of its contents. Readers take the file's time as
 * the time of the dump.
 */
static int write_file(int dirfd, const struct fr_out_dump *d, struct cw_err *err)
{
	int64_t wall = d->x->snap->wall_ns;
	struct timespec at = { .tv_sec = wall / 1000000000, .tv_nsec = wall % 1000000000 };
	struct timespec both[2] = { at, at };
	bool has_failed;
	char name[64];
	FILE *out;
	int fd;

	(void)snprintf(name, sizeof(name), FILE_PREFIX "%" PRId32, d->x->snap->ranks[d->rank].rank);
	fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!out) {
		int saved = errno;

		closep(&fd);
		return cw_err_set(err, saved, "cannot create %s: %s", name, strerror(saved));
	}
	fr_out_put_dump(out, d);
	has_failed = fflush(out) != 0 || ferror(out);
	if (wall > 0)
		(void)futimens(fd, both); /* on failure the reader guesses the time */
	has_failed |= fclose(out) != 0;
	return has_failed ? cw_err_set(err, EIO, "cannot write %s: %s", name, strerror(errno)) : 0;
}

static int write_rank(const struct fr_out *x, uint32_t rank, int dirfd, struct cw_err *err)
{
	struct fr_out_dump d = { .x = x, .rank = rank };
	int r = 0;

	for (uint32_t i = x->start[rank]; i < x->start[rank + 1] && r == 0; i++)
		r = add_member(&d, &x->members[i], i - x->start[rank]);
	if (r == 0 && d.n)
		qsort(d.entries, d.n, sizeof(*d.entries), compare_entries);
	r = r < 0 ? cw_err_set(err, -r, "%s", strerror(-r)) : write_file(dirfd, &d, err);
	free(d.entries);
	return r;
}

static int write_all(struct fr_out *x, int dirfd, struct cw_fr_export *ret, struct cw_err *err)
{
	int r = collect(x);

	if (r < 0)
		return cw_err_set(err, -r, "%s", strerror(-r));
	for (uint32_t c = 0; c < x->snap->n_comms; c++)
		ret->n_unnamed += !x->comms[c].sorted;
	for (uint32_t i = 0; i < x->snap->n_ranks && r == 0; i++) {
		if (number_of(&x->snap->ranks[i]) == CW_FR_NONE ||
		    !(x->snap->ranks[i].flags & CW_RANKF_HAS_RECORD)) {
			ret->n_unnumbered++;
			continue;
		}
		r = write_rank(x, i, dirfd, err);
		ret->n_dumps += r == 0;
	}
	return r;
}

int cw_flight_recorder_write(const struct cw_snapshot *snap, const char *dir,
			     struct cw_fr_export *ret, struct cw_err *err)
{
	struct fr_out x = { .snap = snap };
	_cleanup_(closep) int fd = -1;
	int r;

	*ret = (struct cw_fr_export){ 0 };
	if (mkdir(dir, 0750) < 0 && errno != EEXIST)
		return cw_err_set(err, errno, "cannot make %s: %s", dir, strerror(errno));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return cw_err_set(err, errno, "cannot open %s: %s", dir, strerror(errno));
	r = write_all(&x, fd, ret, err);
	cw_arena_fini(&x.arena);
	return r;
}
