/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of reading a dump:
 *
 *  1. the groups, because entries refer to them by name;
 *  2. the entries: each becomes an op of its group;
 *  3. pg_status, whose ids need a group. Entries connect some ids to groups. For the other ids we
 *     compare the order of creation;
 *  4. sorting the ops by group. Within a group they stay in the order of recording.
 */
#include "import/fr_dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/json/json_whole.h"
#include "common/or_exit/or_exit.h"
#include "import/pickle/pickle.h"
#include "model/op.h"

#define MAX_GROUPS 65536u
/* The maximum number of entries. PyTorch's default is 2,000. */
#define MAX_ENTRIES (1u << 17)
#define MAX_NAME 64
/*
 * The maximum length of a group's name. Names are numbers, or hashes of 20 to 40 letters. A pickle
 * can repeat a long name with two bytes, so long names would cost much memory.
 */
#define MAX_WHOLE_NAME 1024u
/* The maximum number of groups that occur in entries but not in pg_config. */
#define MAX_UNLISTED 256u
/*
 * The maximum number of extents (sizes of a tensor's dimensions) that we read. An extent takes two
 * bytes of a file, and we read each list up to three times. In a small file, several entries may
 * share one list, so EXTENTS_FREE are always allowed.
 */
#define EXTENTS_PER_BYTE 2u
#define EXTENTS_FREE 65536u
/* The maximum number of members of all groups together: 16 MiB. A snapshot has room for fewer. */
#define MAX_MEMBERS (1u << 22)
/* The maximum memory of a parsed JSON dump. A dump of 126 MiB with stacks took 1.5 GiB. */
#define MAX_JSON_MEMORY ((size_t)3 << 29)

struct reader {
	struct cw_fr_dump *dump;
	const struct cw_value *root;
	struct cw_fr_group **by_name; /* groups of pg_config, sorted by name */
	uint32_t n_config;            /* number of groups from pg_config; these groups come first */
	/* Groups outside of pg_config, sorted by name. */
	struct cw_fr_group *unlisted[MAX_UNLISTED];
	uint32_t n_unlisted;
	uint32_t n_members; /* number of members of all groups */
	bool is_json;
	struct cw_err *err;
};

/* ---- groups ---- */

static int compare_text(const struct cw_value *a, const struct cw_value *b)
{
	uint32_t n = a->len < b->len ? a->len : b->len;
	int c = memcmp(a->text, b->text, n);

	return c ? c : (a->len > b->len) - (a->len < b->len);
}

static int compare_groups(const void *a, const void *b)
{
	const struct cw_fr_group *const *ga = a, *const *gb = b;

	return compare_text((*ga)->key, (*gb)->key);
}

static const char *copy_name(struct cw_fr_dump *dump, const struct cw_value *value)
{
	char text[MAX_NAME];

	return cw_or_exit(
		cw_arena_strdup(&dump->arena, cw_value_copy_text(value, text, sizeof(text))));
}

/*
 * Reads the names of a group. The whole name, and a short copy of it, come from the group's key.
 * The description comes from desc.
 */
static void take_names(struct cw_fr_dump *dump, struct cw_fr_group *g, const struct cw_value *desc)
{
	char *whole = cw_or_exit(cw_arena_new_array(&dump->arena, char, (size_t)g->key->len + 1));

	memcpy(whole, g->key->text, g->key->len);
	g->whole_name = whole;
	g->whole_name_len = g->key->len;
	g->name = copy_name(dump, g->key);
	g->desc = copy_name(dump, desc);
}

/*
 * Reads the members of a group: a text "[0, 1, 2]", or a list of integers. Any other value counts
 * as not recorded.
 */
static int read_ranks(struct reader *r, const struct cw_value *value, struct cw_fr_group *g)
{
	struct cw_fr_dump *dump = r->dump;
	uint32_t most =
		value && value->type == CW_VALUE_STR ? value->len / 2 + 1 : cw_value_count(value);
	int64_t rank = -1;

	if (!most || most > CW_FR_MAX_RANKS)
		return 0;
	/* A pickle of a few kilobytes can contain one list a thousand times. */
	if (most > MAX_MEMBERS - r->n_members)
		return cw_err_set(r->err, E2BIG, "groups with too many members together");
	r->n_members += most;
	g->ranks = cw_or_exit(cw_arena_new_array(&dump->arena, int32_t, most));
	if (value->type != CW_VALUE_STR) {
		for (uint32_t i = 0; i < value->n; i++) {
			if (!cw_value_int(value->items[i], &rank) || rank < 0 ||
			    rank >= CW_FR_MAX_RANKS) {
				g->n_ranks = 0;
				return 0;
			}
			g->ranks[g->n_ranks++] = (int32_t)rank;
		}
		return 0;
	}
	for (uint32_t i = 0; i <= value->len; i++) {
		char c = i < value->len ? value->text[i] : ']';

		if (c >= '0' && c <= '9') {
			rank = (rank < 0 ? 0 : rank * 10) + (c - '0');
			if (rank < CW_FR_MAX_RANKS)
				continue;
		} else if (rank < 0) {
			continue;
		}
		if (rank >= CW_FR_MAX_RANKS) {
			g->n_ranks = 0;
			return 0;
		}
		g->ranks[g->n_ranks++] = (int32_t)rank;
		rank = -1;
	}
	return 0;
}

static void note_group(struct reader *r, const struct cw_value *key, const struct cw_value *info)
{
	if (key->type != CW_VALUE_STR)
		return;
	if (key->len > MAX_WHOLE_NAME) {
		r->dump->n_bad_entries++;
		return;
	}
	r->dump->groups[r->dump->n_groups++] = (struct cw_fr_group){ .key = key,
								     .info = info,
								     .id = CW_FR_NONE,
								     .older_id = CW_FR_NONE,
								     .has_config = true };
}

/*
 * Compares two groups for sorting by name. Groups with the same name stay in the order of the file.
 */
static int compare_places(const void *a, const void *b)
{
	const struct cw_fr_group *const *ga = a, *const *gb = b;
	int c = compare_groups(a, b);

	return c ? c : (*ga > *gb) - (*ga < *gb);
}

static void sort_groups(struct reader *r)
{
	r->n_config = r->dump->n_groups;
	for (uint32_t i = 0; i < r->n_config; i++)
		r->by_name[i] = &r->dump->groups[i];
	if (r->n_config > 1)
		qsort(r->by_name, r->n_config, sizeof(*r->by_name), compare_places);
}

/* If several groups have the same name, keeps only the last one, as Python does. */
static void drop_repeated_groups(struct reader *r)
{
	struct cw_fr_dump *dump = r->dump;
	uint32_t n = 0;

	for (uint32_t i = 0; i + 1 < r->n_config; i++)
		if (compare_text(r->by_name[i]->key, r->by_name[i + 1]->key) == 0)
			r->by_name[i]->info = NULL;
	for (uint32_t i = 0; i < dump->n_groups; i++)
		if (dump->groups[i].info)
			dump->groups[n++] = dump->groups[i];
	dump->n_groups = n;
	sort_groups(r);
}

static int read_groups(struct reader *r)
{
	const struct cw_value *config = cw_value_get(r->root, "pg_config");
	uint32_t n = config && config->type == CW_VALUE_DICT ? config->n / 2 : 0;
	const struct cw_value *entries = cw_value_get(r->root, "entries");
	/* Some groups occur only in entries, so we make room for one group per entry. */
	uint64_t most = (uint64_t)n + cw_value_count(entries);
	int e = 0;

	if (n > MAX_GROUPS)
		return cw_err_set(r->err, E2BIG, "%u process groups", n);
	r->dump->has_config = config && config->type == CW_VALUE_DICT;
	if (most > n + MAX_GROUPS)
		most = n + MAX_GROUPS;
	r->dump->groups = cw_or_exit(cw_arena_new_array(&r->dump->arena, struct cw_fr_group, most));
	for (uint32_t i = 0; i < n; i++)
		note_group(r, config->items[2 * i], config->items[2 * i + 1]);
	r->by_name = cw_or_exit(
		cw_arena_new_array(&r->dump->arena, struct cw_fr_group *, r->dump->n_groups));
	sort_groups(r);
	drop_repeated_groups(r);
	for (uint32_t i = 0; i < r->dump->n_groups && e == 0; i++) {
		struct cw_fr_group *g = &r->dump->groups[i];

		take_names(r->dump, g, cw_value_get(g->info, "desc"));
		e = read_ranks(r, cw_value_get(g->info, "ranks"), g);
	}
	return e;
}

/*
 * Finds the key among the groups outside of pg_config. Returns its index, or the index at which to
 * insert it.
 */
static uint32_t find_unlisted(const struct reader *r, const struct cw_value *key,
			      bool *ret_is_there)
{
	uint32_t low = 0, high = r->n_unlisted;

	*ret_is_there = false;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int c = compare_text(r->unlisted[mid]->key, key);

		if (c == 0) {
			*ret_is_there = true;
			return mid;
		}
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * Returns the group of an entry; NULL on failure. The entry's process_group is a pair (name,
 * description). Before version 2.1 it is the name alone.
 */
static struct cw_fr_group *find_group(struct reader *r, const struct cw_value *entry)
{
	const struct cw_value *pg = cw_value_get(entry, "process_group"), *desc = NULL;
	struct cw_fr_dump *dump = r->dump;
	struct cw_fr_group wanted, *w = &wanted, **found, *g;
	bool is_there;
	uint32_t at;

	if (cw_value_count(pg)) {
		desc = pg->n > 1 ? pg->items[1] : NULL;
		pg = pg->items[0];
	}
	if (!pg || pg->type != CW_VALUE_STR || pg->len > MAX_WHOLE_NAME)
		return NULL;
	wanted.key = pg;
	found = r->n_config ? bsearch(&w, r->by_name, r->n_config, sizeof(w), compare_groups)
			    : NULL;
	if (found)
		return *found;
	at = find_unlisted(r, pg, &is_there);
	if (is_there)
		return r->unlisted[at];
	if (r->n_unlisted == MAX_UNLISTED)
		return NULL;
	g = &dump->groups[dump->n_groups];
	*g = (struct cw_fr_group){ .key = pg, .id = CW_FR_NONE, .older_id = CW_FR_NONE };
	take_names(dump, g, desc);
	dump->n_groups++;
	memmove(&r->unlisted[at + 1], &r->unlisted[at], (r->n_unlisted - at) * sizeof(g));
	r->unlisted[at] = g;
	r->n_unlisted++;
	return g;
}

/* ---- pg_status ---- */

static void take_status(struct cw_fr_group *g, const struct cw_value *status)
{
	g->has_status =
		cw_value_int(cw_value_get(status, "last_enqueued_collective"), &g->last_enqueued) &&
		cw_value_int(cw_value_get(status, "last_completed_collective"), &g->last_completed);
}

static int compare_created(const void *a, const void *b)
{
	const struct cw_fr_group *const *ga = a, *const *gb = b;
	long na = strtol((*ga)->name, NULL, 10), nb = strtol((*gb)->name, NULL, 10);

	return (na > nb) - (na < nb);
}

static int compare_ids(const void *a, const void *b)
{
	const int64_t *ia = a, *ib = b;

	return (*ia > *ib) - (*ia < *ib);
}

static bool is_number(const char *text)
{
	return *text && strlen(text) < 10 && strspn(text, "0123456789") == strlen(text);
}

/*
 * Assigns ids to groups whose id no entry shows. PyTorch numbers groups in the order of creation,
 * so names (decimal unless the user chose one) and ids both grow. If there are as many names as ids
 * and no entry contradicts, the i-th name belongs to the i-th id. The first group, of all ranks,
 * has no status until its first call.
 */
static void guess_ids(struct reader *r, int64_t *ids, uint32_t n)
{
	struct cw_fr_dump *dump = r->dump;
	struct cw_fr_group **groups = r->by_name;

	if (!n || r->n_config != dump->n_groups)
		return;
	for (uint32_t i = 0; i < r->n_config; i++)
		if (!is_number(groups[i]->name))
			return;
	qsort(groups, r->n_config, sizeof(*groups), compare_created);
	qsort(ids, n, sizeof(*ids), compare_ids);
	if (r->n_config == n + 1 && strcmp(groups[0]->name, "0") == 0 && ids[0] > 0)
		groups++;
	else if (r->n_config != n)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (groups[i]->id != CW_FR_NONE && groups[i]->id != ids[i])
			return;
	for (uint32_t i = 0; i < n; i++)
		groups[i]->id = ids[i];
}

/*
 * Counts the open calls on groups without any entry. The buffer may have lost the entries of these
 * groups.
 */
static void count_open_unlisted(struct cw_fr_dump *dump, const struct cw_value *status)
{
	_cleanup_(freep) int64_t *known =
		cw_or_exit(calloc(2 * (size_t)dump->n_groups + 1, sizeof(*known)));
	size_t n = 0;

	for (uint32_t g = 0; g < dump->n_groups; g++) {
		known[n++] = dump->groups[g].id;
		known[n++] = dump->groups[g].older_id;
	}
	qsort(known, n, sizeof(*known), compare_ids);
	for (uint32_t i = 0; i < status->n / 2; i++) {
		struct cw_fr_group g = { .has_status = false };
		int64_t id;

		if (!cw_value_int(status->items[2 * i], &id) ||
		    bsearch(&id, known, n, sizeof(*known), compare_ids))
			continue;
		take_status(&g, status->items[2 * i + 1]);
		dump->n_open_unlisted += g.has_status && g.last_completed < g.last_enqueued;
	}
}

/*
 * Marks the groups that the rank has not used. PyTorch has a status of each group from its first
 * call on. If all statuses belong to known groups, the other groups have made no call.
 */
static void note_unused(struct cw_fr_dump *dump, uint32_t n_status)
{
	uint32_t n_known = 0;

	for (uint32_t g = 0; g < dump->n_groups; g++)
		n_known += dump->groups[g].has_status;
	for (uint32_t g = 0; n_known == n_status && g < dump->n_groups; g++)
		if (!dump->groups[g].has_status) {
			dump->groups[g].has_status = true;
			dump->groups[g].last_enqueued = dump->groups[g].last_completed = -1;
		}
}

struct status_row {
	int64_t id;
	const struct cw_value *status;
};

/*
 * Compares two status rows for sorting by id. Rows with the same id stay in the order of the file,
 * because the last one counts.
 */
static int compare_rows(const void *a, const void *b)
{
	const struct status_row *ra = a, *rb = b;

	return (ra->id > rb->id) - (ra->id < rb->id);
}

static void take_statuses(struct cw_fr_dump *dump, const struct status_row *rows, uint32_t n)
{
	for (uint32_t g = 0; n && g < dump->n_groups; g++) {
		struct status_row wanted = { .id = dump->groups[g].id };
		const struct status_row *row;

		if (wanted.id == CW_FR_NONE)
			continue;
		row = bsearch(&wanted, rows, n, sizeof(*rows), compare_rows);
		if (row)
			take_status(&dump->groups[g], row->status);
	}
}

/* Sorts the rows and keeps the last row of each id. Returns the number of rows kept. */
static uint32_t sort_rows(struct status_row *rows, uint32_t n)
{
	uint32_t kept = 0;

	/*
	 * glibc's qsort() is stable unless memory runs out. PyTorch writes no file with an id
	 * twice, so a wrong order would only concern strange files.
	 */
	if (n > 1)
		qsort(rows, n, sizeof(*rows), compare_rows);
	for (uint32_t i = 0; i < n; i++)
		if (i + 1 == n || rows[i].id != rows[i + 1].id)
			rows[kept++] = rows[i];
	return kept;
}

static void count_calls(struct cw_fr_dump *dump, const struct status_row *rows, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct cw_fr_group g = { .has_status = false };

		take_status(&g, rows[i].status);
		if (g.has_status && g.last_enqueued > 0)
			dump->counted_calls += (uint64_t)g.last_enqueued;
	}
}

static int read_status(struct reader *r)
{
	const struct cw_value *status = cw_value_get(r->root, "pg_status");
	struct cw_fr_dump *dump = r->dump;
	uint32_t n = 0, most = status && status->type == CW_VALUE_DICT ? status->n / 2 : 0;
	_cleanup_(freep) int64_t *ids = cw_or_exit(calloc(most + 1, sizeof(*ids)));
	_cleanup_(freep) struct status_row *rows = cw_or_exit(calloc(most + 1, sizeof(*rows)));

	if (most > MAX_GROUPS)
		return cw_err_set(r->err, E2BIG, "%u process groups", most);
	for (uint32_t i = 0; i < most; i++) {
		if (!cw_value_int(status->items[2 * i], &ids[n]))
			continue;
		rows[n] = (struct status_row){ ids[n], status->items[2 * i + 1] };
		n++;
	}
	count_calls(dump, rows, n);
	guess_ids(r, ids, n);
	take_statuses(dump, rows, sort_rows(rows, n));
	if (!status || status->type != CW_VALUE_DICT)
		return 0;
	note_unused(dump, most);
	count_open_unlisted(dump, status);
	return 0;
}

/*
 * True if the dump has an empty list of entries, which JSON omits. A dump of active calls has an
 * empty list if its rank waits nowhere. A dump that was requested without entries looks the same,
 * but its rank may have an open call. The numbers in pg_status show which of the two it is.
 */
static bool has_empty_list(const struct reader *r)
{
	const struct cw_value *status = cw_value_get(r->root, "pg_status");

	if (!r->is_json || r->dump->has_entries || !status || status->type != CW_VALUE_DICT)
		return false;
	for (uint32_t i = 0; i < status->n / 2; i++) {
		struct cw_fr_group g = { .has_status = false };

		take_status(&g, status->items[2 * i + 1]);
		if (!g.has_status || g.last_enqueued != g.last_completed)
			return false;
	}
	return true;
}

/* ---- the whole dump ---- */

static void note_time(struct cw_fr_dump *dump, int64_t t_ns)
{
	if (t_ns > dump->newest_ns)
		dump->newest_ns = t_ns;
}

/*
 * Takes the pg_id of an entry. A higher id than in earlier entries means that the program created
 * the group anew under the same name. Returns false for a lower id after a higher one, which is
 * inconsistent.
 */
static bool take_id(struct cw_fr_group *g, const struct cw_value *entry, uint32_t order)
{
	int64_t id;

	if (!cw_value_int(cw_value_get(entry, "pg_id"), &id) || id < 0 || id == g->id)
		return true;
	if (id < g->id)
		return false;
	if (g->id != CW_FR_NONE) {
		g->older_id = g->id;
		g->since = order;
		g->has_p2p = false;
		g->highest_coll = 0;
	}
	g->id = id;
	return true;
}

/*
 * True if one counter, starting at 0, numbers all calls of all groups and kinds. PyTorch's recorder
 * does not number calls in this way, but torchcomms does (hooks/fr/FlightRecorder.cpp). Two signs
 * show it: a collective has number 0, or the numbers of all groups form one sequence.
 */
static bool is_numbered_together(const struct cw_fr_dump *dump)
{
	bool is_one_sequence = dump->n_ops > 2, has_several_groups = false;

	for (uint32_t i = 0; i < dump->n_ops; i++) {
		const struct cw_fr_op *op = &dump->ops[i], *before = i ? op - 1 : op;

		if (op->p2p_seq || op->flags & (CW_FR_P2P | CW_FR_GROUP_END))
			return false;
		if (!op->coll_seq && !cw_op_is_p2p(op->kind))
			return true;
		has_several_groups = has_several_groups || op->group != before->group;
		is_one_sequence = is_one_sequence && (!i || op->coll_seq == before->coll_seq + 1);
	}
	return is_one_sequence && has_several_groups;
}

/* Renumbers the calls of each group as PyTorch does. */
static void number_by_group(struct cw_fr_dump *dump)
{
	for (uint32_t g = 0; g < dump->n_groups; g++)
		dump->groups[g].highest_coll = dump->groups[g].n_p2p = 0;
	for (uint32_t i = 0; i < dump->n_ops; i++) {
		struct cw_fr_op *op = &dump->ops[i];
		struct cw_fr_group *g = &dump->groups[op->group];

		if (cw_op_is_p2p(op->kind)) {
			op->flags |= CW_FR_P2P;
			op->p2p_seq = ++g->n_p2p;
			g->has_p2p = true;
		} else {
			g->highest_coll++;
		}
		op->coll_seq = g->highest_coll;
	}
}

/* Removes the calls on groups that were destroyed. These calls are over, even if they look open. */
static void drop_past(struct cw_fr_dump *dump)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < dump->n_ops; i++)
		if (dump->ops[i].order >= dump->groups[dump->ops[i].group].since)
			dump->ops[n++] = dump->ops[i];
	dump->n_ops = n;
}

static int read_entries(struct reader *r)
{
	const struct cw_value *entries = cw_value_get(r->root, "entries");
	struct cw_fr_dump *dump = r->dump;
	uint32_t n = cw_value_count(entries);

	if (n > MAX_ENTRIES)
		return cw_err_set(r->err, E2BIG, "%u entries", n);
	dump->has_entries = entries && entries->type == CW_VALUE_LIST;
	dump->ops = cw_or_exit(cw_arena_new_array(&dump->arena, struct cw_fr_op, n));
	for (uint32_t i = 0; i < n; i++) {
		struct cw_fr_op *op = &dump->ops[dump->n_ops];
		struct cw_fr_group *g = find_group(r, entries->items[i]);
		int64_t id;

		if (!g || !cw_fr_entry_read(dump, entries->items[i], op) ||
		    !take_id(g, entries->items[i], i)) {
			dump->n_bad_entries++;
			continue;
		}
		if (i == 0 && cw_value_int(cw_value_get(entries->items[0], "record_id"), &id))
			dump->is_cut = id > 0;
		dump->has_completed = dump->has_completed || op->state == CW_FR_COMPLETED;
		op->group = (uint32_t)(g - dump->groups);
		op->order = i;
		op->stack = fr_frames_read(&dump->stacks, cw_value_get(entries->items[i], "frames"),
					   &dump->arena);
		g->has_p2p = g->has_p2p || op->flags & CW_FR_P2P || op->p2p_seq;
		if (op->coll_seq > g->highest_coll)
			g->highest_coll = op->coll_seq;
		note_time(dump, op->created_ns);
		note_time(dump, op->completed_ns);
		dump->n_ops++;
	}
	drop_past(dump);
	dump->is_numbered_together = is_numbered_together(dump);
	dump->is_renumbered = dump->is_numbered_together && !dump->is_cut;
	if (dump->is_renumbered)
		number_by_group(dump);
	return 0;
}

/* Reads the version of the dump, such as "2.9". In PyTorch's JSON it may be text. */
static int read_version(struct reader *r)
{
	char text[16], *end;

	(void)cw_value_copy_text(cw_value_get(r->root, "version"), text, sizeof(text));
	r->dump->major = (uint32_t)strtoul(text, &end, 10);
	if (*end == '.')
		r->dump->minor = (uint32_t)strtoul(end + 1, &end, 10);
	if (!*text || *end)
		return cw_err_set(r->err, EBADMSG, "not a Flight Recorder dump: no version");
	if (r->dump->major != 2)
		return cw_err_set(r->err, ENOTSUP, "dump version %s: only 2.x is known", text);
	if (r->dump->minor < CW_FR_OLDEST_MINOR)
		return cw_err_set(r->err, ENOTSUP, "dump version %s: older than 2.%u", text,
				  CW_FR_OLDEST_MINOR);
	return 0;
}

/* Reads the version of NCCL. "2.27.3" becomes 22703. */
static void read_nccl_version(struct reader *r)
{
	const struct cw_value *v = cw_value_get(r->root, "nccl_version");
	unsigned part[3] = { 0 };
	char text[32];

	if (!v)
		v = cw_value_get(r->root, "comm_lib_version");
	(void)cw_value_copy_text(v, text, sizeof(text));
	if (sscanf(text, "%3u.%3u.%3u", &part[0], &part[1], &part[2]) == 3 && part[1] < 100 &&
	    part[2] < 100)
		r->dump->nccl_version = part[0] * 10000 + part[1] * 100 + part[2];
}

static void read_rank(struct reader *r)
{
	static const char *const keys[] = { "rank", "global_rank" };
	int64_t rank;

	r->dump->rank = CW_FR_NONE;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (cw_value_int(cw_value_get(r->root, keys[i]), &rank) && rank >= 0 &&
		    rank < CW_FR_MAX_RANKS)
			r->dump->rank = (int32_t)rank;
}

/* Sorts the ops by group, with a stable counting sort. */
static void sort_ops(struct cw_fr_dump *dump)
{
	struct cw_fr_op *sorted =
		cw_or_exit(cw_arena_new_array(&dump->arena, struct cw_fr_op, dump->n_ops));
	uint32_t at = 0;

	for (uint32_t i = 0; i < dump->n_ops; i++)
		dump->groups[dump->ops[i].group].n_ops++;
	for (uint32_t g = 0; g < dump->n_groups; g++) {
		dump->groups[g].first_op = at;
		at += dump->groups[g].n_ops;
		dump->groups[g].n_ops = 0;
	}
	for (uint32_t i = 0; i < dump->n_ops; i++) {
		struct cw_fr_group *g = &dump->groups[dump->ops[i].group];

		sorted[g->first_op + g->n_ops++] = dump->ops[i];
	}
	dump->ops = sorted;
}

static int interpret(struct reader *r)
{
	int e = read_version(r);

	if (e < 0)
		return e;
	read_nccl_version(r);
	read_rank(r);
	e = read_groups(r);
	if (e == 0)
		e = read_entries(r);
	if (e == 0)
		e = read_status(r);
	if (e < 0)
		return e;
	r->dump->has_entries = r->dump->has_entries || has_empty_list(r);
	cw_fr_settle_coalesced(r->dump);
	sort_ops(r->dump);
	for (uint32_t g = 0; g < r->dump->n_groups; g++)
		r->dump->groups[g].key = r->dump->groups[g].info = NULL;
	return 0;
}

/*
 * Estimates the memory that the dump takes: the parsed document, the parser's values and ours. The
 * parts are an object with its table, a member, and an item. We count these characters in texts,
 * too, because we do not recognise strings. The result is too high rather than too low.
 */
static size_t json_memory(const uint8_t *data, size_t size)
{
	size_t cost = 0;

	for (size_t i = 0; i < size; i++) {
		switch (data[i]) {
		case '{':
			cost += 320;
			break;
		case ',':
		case ':':
		case '[':
			cost += 128;
			break;
		}
	}
	return cost;
}

static int read_json(struct reader *r, const void *data, size_t size, struct cw_arena *values)
{
	struct cw_value *root;
	json_error_t error;
	json_t *doc;
	int e;

	if (json_memory(data, size) > MAX_JSON_MEMORY)
		return cw_err_set(r->err, E2BIG, "JSON: would take too much memory");
	doc = cw_json_parse(data, size, 0, &error);
	if (!doc && errno == ENOMEM)
		(void)cw_or_exit(NULL);
	if (!doc)
		return cw_err_set(r->err,
				  json_error_code(&error) == json_error_premature_end_of_input
					  ? ENODATA
					  : EBADMSG,
				  "JSON, line %d: %s", error.line, error.text);
	e = cw_value_from_json(doc, values, &root);
	if (e == -E2BIG)
		e = cw_err_set(r->err, E2BIG, "JSON: nested too deeply");
	if (e == 0) {
		r->root = root;
		r->is_json = true;
		e = interpret(r);
	}
	json_decref(doc);
	return e;
}

/*
 * True if the beginning of the data looks like JSON. A pickle of protocol 0 is text too, but ends
 * with the character of its STOP instruction.
 */
static bool is_text(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size && i < 512; i++)
		if (data[i] < ' ' && !strchr("\t\r\n\f\033", data[i]))
			return false;
	return size > 0 && data[size - 1] != '.';
}

int cw_fr_dump_read(const void *data, size_t size, struct cw_fr_dump *ret, struct cw_err *err)
{
	struct cw_fr_dump dump = { 0 };
	struct reader r = { .dump = &dump, .err = err };
	struct cw_arena values = { 0 };
	const uint8_t *first = data;
	size_t blank = 0;
	int e;

	*ret = (struct cw_fr_dump){ 0 };
	dump.max_extents = EXTENTS_FREE + EXTENTS_PER_BYTE * (uint64_t)size;
	while (blank < size && strchr(" \t\r\n", first[blank]) && first[blank])
		blank++;
	if (blank == size) {
		e = cw_err_set(err, ENODATA, "empty");
	} else if (first[blank] == '{') {
		e = read_json(&r, data, size, &values);
	} else {
		e = cw_pickle_read(data, size, &values, &r.root, err);
		if (e == 0)
			e = interpret(&r);
		else if (is_text(data, size))
			e = cw_err_set(err, EBADMSG, "it is text, neither a pickle nor JSON");
	}
	cw_arena_fini(&values);
	fr_frames_read_all(&dump.stacks);
	if (e < 0) {
		cw_arena_fini(&dump.arena);
		return e;
	}
	*ret = dump;
	return 0;
}

void cw_fr_dump_fini(struct cw_fr_dump *dump)
{
	cw_arena_fini(&dump->arena);
	*dump = (struct cw_fr_dump){ 0 };
}
