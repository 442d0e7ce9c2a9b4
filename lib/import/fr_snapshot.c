/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges a set of dumps into a snapshot.
 *
 * Groups are the same communicator if they have the same name and the same member ranks. We align
 * members by collective_seq_id, the only number that is comparable between ranks.
 *
 * Point-to-point calls have no such number. If the dumps contain all of these calls, we number them
 * by counting. Otherwise we use a property of each pair of ranks: its sends and receives complete
 * in order and in pairs. So the calls of a pair that have *not* completed correspond one to one. We
 * number these calls and omit the completed ones. If both halves are open, an older open call of
 * either rank, in the order of its own calls, explains why. In dumps of open calls only, a missing
 * half may have completed (cw_snap_comm.lists_open_only).
 *
 * If a rank lists no call on a group while others wait there, the rank is not in that call: its
 * dump would contain the call. pg_status has the number of the rank's last call, but may count
 * point-to-point calls, too. If we cannot rule this out, the number comes from the other members.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/htable.h"
#include "common/or_exit/or_exit.h"
#include "import/flight_recorder.h"
#include "import/fr_member.h"
#include "import/fr_stale.h"
#include "import/fr_time.h"
#include "model/rankset.h"
#include "model/signature.h"
#include "record/group_name.h"
#include "record/record_layout.h"

/*
 * Limits of places. A place is the room for one member of a communicator. It takes memory even if
 * no dump describes the member.
 */
#define PLACES_FREE 65536u
#define PLACES_PER_GROUP 1024u
#define PLACES_MAX (1u << 22)

struct comm_entry {
	uint64_t id;
	struct fr_comm comm;
	/* Number of the group's name, which index_members() assigns. */
	uint32_t name;
	UT_hash_handle hh;
};

struct named_member {
	uint32_t name;
	int32_t rank;
	const struct comm_entry *comm;
};

struct merger {
	struct cw_fr_set *set;
	struct cw_snapshot *snap;
	struct cw_arena arena;
	int32_t *ranks; /* all ranks that some dump mentions, ascending */
	/* For each rank without a dump: its index in the snapshot. */
	uint32_t *silent;
	uint32_t n_ranks;
	struct comm_entry *comms;    /* hash table, in order of appearance */
	struct comm_entry **by_name; /* the same entries, sorted by name */
	uint32_t n_by_name;
	/* Sorted members of all communicators whose members are known. */
	struct named_member *members;
	size_t n_members;
	uint64_t places, places_max;
	uint32_t n_no_members, n_not_member, n_too_many, n_unnamed_ops;
	uint32_t n_earlier, n_before, n_of_old;
	bool by_order, is_time_guessed, are_numbered_together;
	bool has_noted_op, has_noted_backend, has_noted_version, has_noted_newer;
};

/* ---- ranks ---- */

/* Notes that the rank exists. rank must be below CW_FR_MAX_RANKS. */
static void mention(struct merger *m, bool *is_there, int32_t rank)
{
	m->n_ranks += !is_there[rank];
	is_there[rank] = true;
}

static void collect_ranks(struct merger *m)
{
	_cleanup_(freep) bool *is_there = cw_or_exit(calloc(CW_FR_MAX_RANKS, sizeof(*is_there)));
	uint32_t n = 0;

	for (uint32_t s = 0; s < m->set->n_sources; s++) {
		const struct cw_fr_source *src = &m->set->sources[s];

		mention(m, is_there, src->rank);
		for (uint32_t g = 0; g < src->dump.n_groups; g++)
			for (uint32_t i = 0; i < src->dump.groups[g].n_ranks; i++)
				mention(m, is_there, src->dump.groups[g].ranks[i]);
	}
	m->ranks = cw_or_exit(calloc(m->n_ranks + 1u, sizeof(*m->ranks)));
	for (int32_t rank = 0; n < m->n_ranks; rank++)
		if (is_there[rank])
			m->ranks[n++] = rank;
}

/*
 * Returns the index of the rank's dump, which is also the rank's index in the snapshot.
 * CW_SNAP_NONE = the rank has no dump.
 */
static uint32_t rank_index(const struct merger *m, int32_t rank)
{
	uint32_t low = 0, high = m->set->n_sources;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (m->set->sources[mid].rank < rank)
			low = mid + 1;
		else
			high = mid;
	}
	return low < m->set->n_sources && m->set->sources[low].rank == rank ? low : CW_SNAP_NONE;
}

/*
 * Adds the ranks without a dump. We know only their numbers. A rank that holds the interpreter
 * lock, or that stopped its watchdog, writes no dump (pytorch/pytorch#196968). The user should
 * inspect such a rank.
 */
static int add_silent_ranks(struct merger *m, uint32_t node)
{
	uint32_t index = m->set->n_sources;
	int r = 0;

	m->silent = cw_or_exit(cw_arena_new_array(&m->arena, uint32_t, m->n_ranks));
	for (uint32_t i = 0; i < m->n_ranks && r == 0; i++) {
		struct cw_snap_rank rank = { .rank = m->ranks[i], .node = node, .device = -1 };

		if (rank_index(m, m->ranks[i]) == CW_SNAP_NONE)
			r = cw_snapshot_add_rank(m->snap, &rank, &index);
		m->silent[i] = index;
	}
	return r;
}

/* Returns the index in the snapshot of a rank without a dump. */
static uint32_t silent_index(const struct merger *m, int32_t rank)
{
	uint32_t low = 0, high = m->n_ranks;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (m->ranks[mid] < rank)
			low = mid + 1;
		else
			high = mid;
	}
	return m->silent[low];
}

/* Adds one node and all ranks. The node has no name, because dumps do not name the host. */
static int add_ranks(struct merger *m)
{
	uint32_t node, index;
	int r = cw_snapshot_add_node(m->snap, "", &node);

	for (uint32_t s = 0; s < m->set->n_sources && r == 0; s++) {
		const struct cw_fr_dump *dump = &m->set->sources[s].dump;
		struct cw_snap_rank rank = {
			.rank = m->set->sources[s].rank,
			.node = node,
			.device = -1,
			.flags = dump->has_entries ? CW_RANKF_HAS_RECORD : 0,
			/*
			 * Calls that the rank made after its dump count as lost too. If the time of
			 * the dumps is unknown, we also count a lost call. Otherwise the calls of a
			 * healthy job would look as if they had been open for long.
			 */
			.dropped = dump->n_bad_entries + dump->is_early + dump->is_undated,
			.nccl_version = dump->nccl_version,
			/*
			 * 0 would mean that there is no recording. So a recording with an unknown
			 * time gets 1.
			 */
			.sampled_ns = m->snap->now_ns ? m->snap->now_ns : 1,
		};

		r = cw_snapshot_add_rank(m->snap, &rank, &index);
	}
	return r < 0 ? r : add_silent_ranks(m, node);
}

/* ---- communicators ---- */

static uint64_t comm_id(const struct cw_fr_group *g)
{
	uint64_t h = CW_HASH_INIT;

	for (uint32_t i = 0; i < g->whole_name_len; i++)
		h = cw_hash_step(h, (unsigned char)g->whole_name[i]);
	h = cw_hash_step(h, g->n_ranks);
	for (uint32_t i = 0; i < g->n_ranks; i++)
		h = cw_hash_step(h, (uint32_t)g->ranks[i]);
	return h ? h : 1;
}

static int compare_whole_names(const struct cw_fr_group *a, const struct cw_fr_group *b)
{
	if (a->whole_name_len != b->whole_name_len)
		return a->whole_name_len < b->whole_name_len ? -1 : 1;
	return memcmp(a->whole_name, b->whole_name, a->whole_name_len);
}

static int compare_comms(const void *a, const void *b)
{
	const struct comm_entry *const *ea = a, *const *eb = b;

	return compare_whole_names((*ea)->comm.first, (*eb)->comm.first);
}

static int compare_members(const void *a, const void *b)
{
	const struct named_member *ma = a, *mb = b;

	if (ma->name != mb->name)
		return ma->name < mb->name ? -1 : 1;
	if (ma->rank != mb->rank)
		return ma->rank < mb->rank ? -1 : 1;
	return (ma->comm > mb->comm) - (ma->comm < mb->comm);
}

/*
 * Builds an index for find_members(). Without it, searching all communicators for each group would
 * take quadratic time.
 */
static void index_members(struct merger *m)
{
	m->by_name = cw_or_exit(
		cw_arena_new_array(&m->arena, struct comm_entry *, HASH_COUNT(m->comms)));
	m->members = cw_or_exit(cw_arena_new_array(&m->arena, struct named_member, m->places));
	for (struct comm_entry *e = m->comms; e; e = e->hh.next)
		m->by_name[m->n_by_name++] = e;
	if (m->n_by_name > 1)
		qsort(m->by_name, m->n_by_name, sizeof(*m->by_name), compare_comms);
	for (uint32_t i = 0; i < m->n_by_name; i++) {
		struct comm_entry *e = m->by_name[i];

		e->name = i && compare_comms(&m->by_name[i - 1], &e) == 0 ? m->by_name[i - 1]->name
									  : i;
		for (uint32_t k = 0; k < e->comm.n_ranks; k++)
			m->members[m->n_members++] =
				(struct named_member){ e->name, e->comm.ranks[k], e };
	}
	if (m->n_members > 1)
		qsort(m->members, m->n_members, sizeof(*m->members), compare_members);
}

/*
 * Returns the number of sorted members that come before the first member with this name and rank.
 */
static size_t members_before(const struct merger *m, uint32_t name, int32_t rank)
{
	const struct named_member wanted = { .name = name, .rank = rank };
	size_t low = 0, high = m->n_members;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare_members(&m->members[mid], &wanted) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uint32_t place_of(const int32_t *ranks, uint32_t n, int32_t rank)
{
	for (uint32_t i = 0; i < n; i++)
		if (ranks[i] == rank)
			return i;
	return CW_SNAP_NONE;
}

/* Returns the communicator of the group; NULL = its members exceed the limit. */
static struct comm_entry *get_comm(struct merger *m, const struct cw_fr_group *g)
{
	uint64_t id = comm_id(g);
	struct comm_entry *e;

	HASH_FIND(hh, m->comms, &id, sizeof(id), e);
	if (e)
		return e;
	if (m->places + g->n_ranks > m->places_max) {
		m->n_too_many++;
		return NULL;
	}
	e = cw_or_exit(cw_arena_new(&m->arena, struct comm_entry));
	e->id = id;
	e->comm.name = g->name;
	e->comm.first = g;
	e->comm.desc = g->desc;
	e->comm.ranks = g->ranks;
	e->comm.n_ranks = g->n_ranks;
	e->comm.places = cw_or_exit(cw_arena_new_array(&m->arena, struct fr_place, g->n_ranks));
	HASH_ADD(hh, m->comms, id, sizeof(id), e);
	(void)cw_or_exit(cw_htable_added(e) ? e : NULL);
	m->places += g->n_ranks;
	return e;
}

static void borrow_ranks(struct cw_fr_group *g, const int32_t *ranks, uint32_t n)
{
	g->ranks = (int32_t *)ranks; /* we never write to the ranks */
	g->n_ranks = n;
	g->has_borrowed_ranks = true;
}

/*
 * Removes the member lists that groups borrowed. The merger owns these lists and is about to free
 * them.
 */
static void return_ranks(struct cw_fr_set *set)
{
	for (uint32_t s = 0; s < set->n_sources; s++) {
		for (uint32_t i = 0; i < set->sources[s].dump.n_groups; i++) {
			struct cw_fr_group *g = &set->sources[s].dump.groups[i];

			if (!g->has_borrowed_ranks)
				continue;
			g->ranks = NULL;
			g->n_ranks = 0;
			g->has_borrowed_ranks = false;
		}
	}
}

static bool is_default_group(const char *name, const char *desc)
{
	return strcmp(name, "0") == 0 || strcmp(desc, "default_pg") == 0;
}

/*
 * Finds the members of a group if the rank's dump does not list them. The default group has all
 * ranks. For another group we use the dumps of other ranks. Exactly one group of that name in them
 * must contain this rank.
 */
static bool find_members(const struct merger *m, int32_t rank, struct cw_fr_group *g)
{
	const struct comm_entry named = { .comm.first = g }, *wanted = &named, **found, *e;
	size_t first, end;

	if (is_default_group(g->name, g->desc)) {
		borrow_ranks(g, m->ranks, m->n_ranks);
		return true;
	}
	found = m->n_by_name
			? bsearch(&wanted, m->by_name, m->n_by_name, sizeof(wanted), compare_comms)
			: NULL;
	if (!found)
		return false;
	first = members_before(m, (*found)->name, rank);
	end = members_before(m, (*found)->name, rank + 1);
	/*
	 * A list may contain a rank twice. But if the rank is in two communicators, we cannot tell
	 * which one is meant.
	 */
	if (first == end || m->members[first].comm != m->members[end - 1].comm)
		return false;
	e = m->members[first].comm;
	borrow_ranks(g, e->comm.ranks, e->comm.n_ranks);
	return true;
}

/*
 * True if call a was made before call b. If their times are equal or unknown, the order of
 * recording decides.
 */
static bool was_made_before(const struct cw_fr_op *a, const struct cw_fr_op *b)
{
	if (a->created_ns && b->created_ns && a->created_ns != b->created_ns)
		return a->created_ns < b->created_ns;
	return a->order < b->order;
}

/* Returns the group of the rank's oldest call that has not completed. */
static const struct cw_fr_group *group_in_front(const struct cw_fr_dump *dump)
{
	const struct cw_fr_op *front = NULL;

	for (uint32_t i = 0; i < dump->n_ops; i++)
		if (dump->ops[i].state != CW_FR_COMPLETED &&
		    (!front || was_made_before(&dump->ops[i], front)))
			front = &dump->ops[i];
	return front ? &dump->groups[front->group] : NULL;
}

static const struct cw_fr_op *find_oldest_open(const struct cw_fr_dump *dump)
{
	const struct cw_fr_op *oldest = NULL;

	for (uint32_t i = 0; i < dump->n_ops; i++)
		if (dump->ops[i].state != CW_FR_COMPLETED &&
		    (!oldest || dump->ops[i].order < oldest->order))
			oldest = &dump->ops[i];
	return oldest;
}

static void place_group(struct merger *m, const struct cw_fr_source *src, struct cw_fr_group *g)
{
	uint32_t place = place_of(g->ranks, g->n_ranks, src->rank);
	struct comm_entry *e;

	if (place == CW_SNAP_NONE) {
		m->n_not_member++;
		return;
	}
	e = get_comm(m, g);
	if (!e)
		return;
	e->comm.places[place] = (struct fr_place){
		.dump = &src->dump,
		.group = g,
		.is_behind = m->by_order && !src->dump.is_timed && g != src->front,
	};
}

/*
 * Marks the members that have not used the group. PyTorch lists a group after its first use, under
 * the same name on all ranks. So a rank whose dump does not list the group has made no call on it.
 */
static void place_unused(const struct merger *m, struct comm_entry *e)
{
	for (uint32_t i = 0; i < e->comm.n_ranks; i++) {
		uint32_t s = rank_index(m, e->comm.ranks[i]);

		const struct cw_fr_dump *dump = s == CW_SNAP_NONE ? NULL : &m->set->sources[s].dump;

		if (!e->comm.places[i].dump && dump && dump->has_config && !dump->n_bad_entries)
			e->comm.places[i].dump = dump;
	}
}

static bool was_made_anew(const struct fr_place *place)
{
	return place->group && place->group->older_id != CW_FR_NONE;
}

/*
 * Omits members of an older group. A group that is created anew numbers its calls from the start
 * again, so we must not compare the calls of the old and the new group. If some dump mentions both
 * groups, a dump that mentions only one may mean either. The default group mostly has the same id
 * on all ranks. For this group, a dump with the new id means the new group.
 */
static void leave_out_old(struct merger *m, struct comm_entry *e)
{
	bool is_default = is_default_group(e->comm.name, e->comm.desc);
	int64_t newest_id = CW_FR_NONE, older_id = CW_FR_NONE;

	for (uint32_t i = 0; i < e->comm.n_ranks; i++) {
		const struct cw_fr_group *g = e->comm.places[i].group;

		if (!was_made_anew(&e->comm.places[i]))
			continue;
		newest_id = g->id > newest_id ? g->id : newest_id;
		older_id = g->older_id > older_id ? g->older_id : older_id;
	}
	if (newest_id == CW_FR_NONE)
		return;
	for (uint32_t i = 0; i < e->comm.n_ranks; i++) {
		struct fr_place *place = &e->comm.places[i];

		if (!place->group || !place->group->n_ops)
			continue;
		if (was_made_anew(place) ? !is_default || place->group->id > older_id
					 : is_default && place->group->id == newest_id)
			continue;
		*place = (struct fr_place){ 0 };
		m->n_of_old++;
	}
}

static void collect_comms(struct merger *m)
{
	m->places_max = PLACES_FREE;
	for (uint32_t s = 0; s < m->set->n_sources; s++) {
		struct cw_fr_source *src = &m->set->sources[s];

		src->front = group_in_front(&src->dump);
		src->dump.oldest_open = find_oldest_open(&src->dump);
	}
	for (uint32_t s = 0; s < m->set->n_sources; s++)
		m->places_max += PLACES_PER_GROUP * (uint64_t)m->set->sources[s].dump.n_groups;
	if (m->places_max > PLACES_MAX)
		m->places_max = PLACES_MAX;
	/*
	 * We take groups with a list of members first. Groups without a list find their members in
	 * these lists.
	 */
	for (int listed = 1; listed >= 0; listed--) {
		if (!listed)
			index_members(m);
		for (uint32_t s = 0; s < m->set->n_sources; s++) {
			struct cw_fr_source *src = &m->set->sources[s];

			for (uint32_t g = 0; g < src->dump.n_groups; g++) {
				struct cw_fr_group *group = &src->dump.groups[g];
				bool is_listed = group->n_ranks > 0;

				if (listed ? !is_listed : is_listed)
					continue;
				if (!is_listed && !find_members(m, src->rank, group))
					m->n_no_members++;
				else
					place_group(m, src, group);
			}
		}
	}
}

static int add_comm(struct merger *m, struct comm_entry *e)
{
	char label[2 * 64 + 4];
	struct cw_snap_comm comm = { .id = e->id, .nranks = e->comm.n_ranks, .name = label };
	uint32_t index;
	int r;

	fr_comm_prepare(&e->comm, &m->arena);
	(void)cw_group_name(e->comm.desc, e->comm.name, label, sizeof(label));
	comm.lists_open_only = !e->comm.has_completed && !e->comm.is_p2p_whole;
	comm.uneven_seq = e->comm.uneven_seq;
	comm.uneven_member = e->comm.uneven_member;
	r = cw_snapshot_add_comm(m->snap, &comm, &index);
	m->n_unnamed_ops += e->comm.n_unnamed_ops;
	for (uint32_t i = 0; i < e->comm.n_ranks && r == 0; i++) {
		struct cw_snap_member member;
		uint32_t rank = rank_index(m, e->comm.ranks[i]);

		if (rank == CW_SNAP_NONE) {
			member = (struct cw_snap_member){
				.rank = silent_index(m, e->comm.ranks[i]),
				.state = CW_COMM_READY,
			};
		} else {
			fr_member_make(&e->comm, i, &m->arena, &member);
			member.rank = rank;
		}
		r = cw_snapshot_set_member(m->snap, index, i, &member);
	}
	m->snap->open_calls += e->comm.n_unconfirmed;
	m->n_earlier += e->comm.n_earlier;
	m->n_before += e->comm.n_before;
	return r;
}

/* ---- gaps in the data ---- */

__attribute__((format(printf, 2, 3))) static int note(struct merger *m, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return cw_snapshot_add_note(m->snap, text);
}

static int note_missing(struct merger *m)
{
	_cleanup_(freep) int32_t *missing = cw_or_exit(calloc(m->n_ranks + 1, sizeof(*missing)));
	char list[160];
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_ranks; i++)
		if (rank_index(m, m->ranks[i]) == CW_SNAP_NONE)
			missing[n++] = m->ranks[i];
	if (!n)
		return 0;
	return note(m, "no usable dump of rank%s %s: what %s did is not visible", n == 1 ? "" : "s",
		    cw_rankset_format(missing, n, list, sizeof(list)), n == 1 ? "it" : "they");
}

static int note_early(struct merger *m)
{
	_cleanup_(freep) int32_t *early =
		cw_or_exit(calloc(m->set->n_sources + 1u, sizeof(*early)));
	char list[160];
	uint32_t n = 0;

	for (uint32_t s = 0; s < m->set->n_sources; s++)
		if (m->set->sources[s].dump.is_early)
			early[n++] = m->set->sources[s].rank;
	if (!n)
		return 0;
	return note(
		m,
		"the dump%s of rank%s %s %s more than a minute older than that of the last rank "
		"with an open call: what %s did since is not visible",
		n == 1 ? "" : "s", n == 1 ? "" : "s",
		cw_rankset_format(early, n, list, sizeof(list)), n == 1 ? "is" : "are",
		n == 1 ? "it" : "they");
}

static int note_dumps(struct merger *m)
{
	const struct cw_fr_dump *first = &m->set->sources[0].dump;
	uint64_t bad = 0;
	int r = 0;

	for (uint32_t s = 0; s < m->set->n_sources; s++) {
		const struct cw_fr_dump *d = &m->set->sources[s].dump;

		bad += d->n_bad_entries;
		if (d->n_unknown_ops && !m->has_noted_op && r == 0) {
			m->has_noted_op = true;
			r = note(m, "calls named \"%s\" are unknown: they are not compared",
				 d->unknown_op);
		}
		if (d->n_unknown_backends && !m->has_noted_backend && r == 0) {
			m->has_noted_backend = true;
			r = note(m, "backend \"%s\" is unknown: read like nccl",
				 d->unknown_backend);
		}
		if (d->minor != first->minor && !m->has_noted_version && r == 0) {
			m->has_noted_version = true;
			r = note(m, "dumps of different versions: rank %d has %u.%u, rank %d %u.%u",
				 m->set->sources[0].rank, first->major, first->minor,
				 m->set->sources[s].rank, d->major, d->minor);
		}
		if (d->minor > CW_FR_NEWEST_MINOR && !m->has_noted_newer && r == 0) {
			m->has_noted_newer = true;
			r = note(m, "dump version %u.%u is newer than 2.%u, the newest known here",
				 d->major, d->minor, CW_FR_NEWEST_MINOR);
		}
		if (!d->has_entries && r == 0)
			r = note(m, "the dump of rank %d has no calls", m->set->sources[s].rank);
	}
	if (bad && r == 0)
		r = note(m, "%llu entr%s could not be read", (unsigned long long)bad,
			 bad == 1 ? "y" : "ies");
	return r;
}

/*
 * Adds a note if the recorders show no open call. Users collect dumps if they believe that a job
 * hangs. Without an open call the job need not be healthy: it may hang outside of the recorders'
 * view.
 */
static int note_silence(struct merger *m)
{
	const struct cw_fr_set *set = m->set;
	int64_t newest_ns = 0, silent_ns;

	for (uint32_t s = 0; s < set->n_sources; s++) {
		const struct cw_fr_dump *d = &set->sources[s].dump;

		/* An entry that we cannot read may be an open call. */
		if (d->n_bad_entries)
			return 0;
		for (uint32_t i = 0; i < d->n_ops; i++)
			if (d->ops[i].state != CW_FR_COMPLETED)
				return 0;
		if (fr_common_time(d, d->newest_ns) > newest_ns)
			newest_ns = fr_common_time(d, d->newest_ns);
	}
	silent_ns = m->snap->now_ns - newest_ns;
	if (!newest_ns || silent_ns < m->snap->thresholds.stall_min_ns)
		return 0;
	return note(m,
		    "all calls had completed %lld s before the dumps were written: if the job "
		    "hangs, the recorder does not see the place (a replayed CUDA graph, another "
		    "backend, the program itself)",
		    (long long)(silent_ns / CW_NS_PER_S));
}

static int add_notes(struct merger *m)
{
	int r = note(m, "from Flight Recorder dumps: no current stacks, no liveness, no reduction "
			"operators and roots, no calls of other backends (gloo)");

	for (uint32_t i = 0; i < m->set->n_notes && r == 0; i++)
		r = cw_snapshot_add_note(m->snap, m->set->notes[i]);
	if (r == 0)
		r = note_missing(m);
	if (r == 0)
		r = note_early(m);
	if (r == 0)
		r = note_dumps(m);
	if (r == 0)
		r = note_silence(m);
	if (r == 0 && m->are_numbered_together)
		r = note(m,
			 "the recorder has one number for the calls of all groups, so collwatch "
			 "counts the calls of each group; calls of dumps without the first calls "
			 "cannot be compared, and count as unread");
	if (r == 0 && m->by_order)
		r = note(m, "the order of a rank's calls is assumed to be the order in which its "
			    "device reaches them");
	if (r == 0 && m->is_time_guessed)
		r = note(m, "the time of the dumps is not known: the oldest call is assumed to "
			    "have timed out");
	if (r == 0 && m->n_no_members)
		r = note(m, "%u group%s without known members omitted", m->n_no_members,
			 m->n_no_members == 1 ? "" : "s");
	if (r == 0 && m->n_not_member)
		r = note(m,
			 m->n_not_member == 1 ? "%u group does not list the rank that uses it"
					      : "%u groups do not list the rank that uses them",
			 m->n_not_member);
	if (r == 0 && m->n_too_many)
		r = note(m, "%u group%s beyond a limit", m->n_too_many,
			 m->n_too_many == 1 ? " is" : "s are");
	if (r == 0 && m->n_earlier)
		r = note(m,
			 "dumps of different moments: the current call of %u member%s of groups is "
			 "unknown, because others completed later calls that need all members",
			 m->n_earlier, m->n_earlier == 1 ? "" : "s");
	if (r == 0 && m->n_of_old)
		r = note(m,
			 "groups were created anew: the calls of %u member%s may belong to the old "
			 "or to the new group",
			 m->n_of_old, m->n_of_old == 1 ? "" : "s");
	if (r == 0 && m->n_before)
		r = note(m,
			 "dumps of different moments: %u member%s of groups %s dumped before "
			 "others made the call that blocks them, and may have made the call since",
			 m->n_before, m->n_before == 1 ? "" : "s",
			 m->n_before == 1 ? "was" : "were");
	if (r == 0 && m->n_unnamed_ops)
		r = note(m, "%u call%s that no rank names: shown as all_reduce", m->n_unnamed_ops,
			 m->n_unnamed_ops == 1 ? "" : "s");
	return r;
}

/* ---- the whole merge ---- */

static int compare_sources(const void *a, const void *b)
{
	const struct cw_fr_source *sa = a, *sb = b;

	if (sa->rank != sb->rank)
		return sa->rank > sb->rank ? 1 : -1;
	/*
	 * Of two dumps of one rank the newer one counts. If the times of their calls are equal, the
	 * times of the files decide.
	 */
	if (sa->dump.newest_ns != sb->dump.newest_ns)
		return sa->dump.newest_ns < sb->dump.newest_ns ? 1 : -1;
	return (sa->file_ns < sb->file_ns) - (sa->file_ns > sb->file_ns);
}

static int compare_named(const void *a, const void *b)
{
	const struct cw_fr_source *sa = a, *sb = b;

	return (sa->named_rank > sb->named_rank) - (sa->named_rank < sb->named_rank);
}

/*
 * Chooses between the two numbers of a file name. Users who choose file names may put another
 * number after the rank: "rank_3_attempt_1.json". Several names then end with the same number, and
 * the numbers after "rank" distinguish them.
 */
static void settle_names(struct cw_fr_set *set)
{
	bool has_double = false;

	qsort(set->sources, set->n_sources, sizeof(*set->sources), compare_sources);
	for (uint32_t i = 1; i < set->n_sources; i++)
		has_double = has_double || set->sources[i].rank == set->sources[i - 1].rank;
	if (!has_double)
		return;
	qsort(set->sources, set->n_sources, sizeof(*set->sources), compare_named);
	for (uint32_t i = 0; i < set->n_sources; i++)
		if (set->sources[i].named_rank == CW_FR_NONE ||
		    (i && set->sources[i].named_rank == set->sources[i - 1].named_rank))
			return;
	for (uint32_t i = 0; i < set->n_sources; i++)
		set->sources[i].rank = set->sources[i].named_rank;
}

static int drop_doubles(struct merger *m)
{
	struct cw_fr_set *set = m->set;
	uint32_t n = 0;
	int r = 0;

	settle_names(set);
	qsort(set->sources, set->n_sources, sizeof(*set->sources), compare_sources);
	for (uint32_t i = 0; i < set->n_sources; i++) {
		if (n && set->sources[n - 1].rank == set->sources[i].rank) {
			if (r == 0)
				r = note(m, "more than one dump of rank %d: the newest is used",
					 set->sources[i].rank);
			cw_fr_dump_fini(&set->sources[i].dump);
			continue;
		}
		set->sources[n++] = set->sources[i];
	}
	set->n_sources = n;
	return r;
}

static void mark_open_stacks(struct merger *m, struct cw_fr_dump *dump)
{
	struct cw_fr_stacks *stacks = &dump->stacks;

	stacks->numbers = cw_or_exit(cw_arena_new_array(&m->arena, uint32_t, stacks->n));
	stacks->is_open = cw_or_exit(cw_arena_new_array(&m->arena, bool, stacks->n));
	for (uint32_t i = 0; i < dump->n_ops; i++)
		if (dump->ops[i].stack && dump->ops[i].state != CW_FR_COMPLETED)
			stacks->is_open[dump->ops[i].stack - 1] = true;
}

/*
 * Adds the stacks to the snapshot. It may have room for fewer stacks than the dumps contain, so
 * stacks of open calls come first.
 */
static void number_stacks(struct merger *m)
{
	for (uint32_t s = 0; s < m->set->n_sources; s++)
		mark_open_stacks(m, &m->set->sources[s].dump);
	for (int is_open = 1; is_open >= 0; is_open--)
		for (uint32_t s = 0; s < m->set->n_sources; s++) {
			struct cw_fr_stacks *stacks = &m->set->sources[s].dump.stacks;

			for (uint32_t i = 0; i < stacks->n; i++)
				if (stacks->is_open[i] == is_open)
					(void)cw_or_exit_result(cw_snapshot_add_stack(
						m->snap, stacks->texts[i], &stacks->numbers[i]));
		}
}

/*
 * True if pg_status shows an open call on the group, but newer entries of other groups displaced
 * the call from the buffer.
 */
static bool has_unlisted_open(const struct cw_fr_dump *dump, const struct cw_fr_group *g)
{
	if (!g->has_status || g->last_completed >= g->last_enqueued)
		return false;
	for (uint32_t i = 0; i < g->n_ops; i++) {
		const struct cw_fr_op *op = &dump->ops[g->first_op + i];

		if (op->coll_seq >= (uint64_t)g->last_enqueued ||
		    op->p2p_seq >= (uint64_t)g->last_enqueued)
			return false; /* the dump lists the call, with its state */
	}
	return true;
}

/*
 * Counts all open calls, including calls that no member will show. The job of a dump with an open
 * call is not healthy, even if the member, name or group of the call is unknown.
 */
static uint32_t count_open(const struct cw_fr_set *set)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < set->n_sources; s++) {
		const struct cw_fr_dump *dump = &set->sources[s].dump;

		for (uint32_t i = 0; i < dump->n_ops; i++)
			n += dump->ops[i].state != CW_FR_COMPLETED;
		n += dump->n_open_unlisted;
		for (uint32_t g = 0; g < dump->n_groups; g++)
			n += has_unlisted_open(dump, &dump->groups[g]);
	}
	return n;
}

static uint64_t count_listed(const struct cw_fr_set *set)
{
	uint64_t n = 0;

	for (uint32_t s = 0; s < set->n_sources; s++)
		n += set->sources[s].dump.n_ops + set->sources[s].dump.counted_calls;
	return n;
}

/*
 * Finds out whether the ranks record times: either all do or none does. A rank that has started no
 * call may show no time, so we examine all dumps.
 */
static void note_timing(struct cw_fr_set *set)
{
	bool is_timed = false;

	for (uint32_t s = 0; s < set->n_sources; s++)
		is_timed = is_timed || set->sources[s].dump.is_timed;
	for (uint32_t s = 0; s < set->n_sources; s++)
		set->sources[s].dump.is_timed = is_timed;
}

static void forget_ops(struct cw_fr_dump *dump)
{
	dump->n_bad_entries += dump->n_ops;
	dump->n_ops = 0;
	for (uint32_t g = 0; g < dump->n_groups; g++)
		dump->groups[g].n_ops = 0;
}

/* If one recorder numbers the calls of all groups together, all recorders do. */
static void settle_numbers(struct merger *m)
{
	struct cw_fr_set *set = m->set;

	for (uint32_t s = 0; s < set->n_sources; s++)
		m->are_numbered_together =
			m->are_numbered_together || set->sources[s].dump.is_numbered_together;
	for (uint32_t s = 0; m->are_numbered_together && s < set->n_sources; s++) {
		struct cw_fr_dump *dump = &set->sources[s].dump;

		if (!dump->is_renumbered && dump->n_ops)
			forget_ops(dump);
	}
}

static int merge(struct merger *m)
{
	int r = drop_doubles(m);

	if (r < 0)
		return r;
	fr_drop_stale(m->set);
	collect_ranks(m);
	settle_numbers(m);
	note_timing(m->set);
	m->is_time_guessed = fr_find_now(m->set, m->snap);
	m->snap->open_calls = count_open(m->set);
	m->snap->listed_calls = count_listed(m->set);
	r = add_ranks(m);
	if (r < 0)
		return r;
	number_stacks(m);
	collect_comms(m);
	for (struct comm_entry *e = m->comms; e; e = e->hh.next)
		place_unused(m, e);
	for (struct comm_entry *e = m->comms; e; e = e->hh.next)
		leave_out_old(m, e);
	for (struct comm_entry *e = m->comms; e && r == 0; e = e->hh.next)
		r = add_comm(m, e);
	if (r == 0)
		r = cw_snapshot_set_job(m->snap, "Flight Recorder dumps", "RANK");
	m->snap->ranks_expected = m->n_ranks;
	return r < 0 ? r : add_notes(m);
}

int cw_fr_snapshot(struct cw_fr_set *set, bool by_order, struct cw_snapshot **ret)
{
	struct merger m = { .set = set, .by_order = by_order };
	int r;

	if (!set->n_sources)
		return -ENODATA;
	m.snap = cw_or_exit(cw_snapshot_new());
	m.snap->thresholds = cw_thresholds_default();
	r = cw_or_exit_result(merge(&m));
	return_ranks(set);
	HASH_CLEAR(hh, m.comms);
	cw_arena_fini(&m.arena);
	free(m.ranks);
	if (r < 0) {
		(void)cw_snapshot_free(m.snap);
		return r;
	}
	*ret = m.snap;
	return 0;
}
