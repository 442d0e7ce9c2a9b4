/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/snapshot_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "report/doc/snapshot_pieces.h"

/* These flags equal those of report/bundle.c, but without line breaks. */
#define PIECE_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(17))

enum stage { STAGE_HEAD, STAGE_RANKS, STAGE_COMMS, STAGE_MEMBERS, STAGE_COMPLETE };

struct cw_snapshot_text {
	char *bytes;
	size_t len, capacity;
	bool is_bad; /* out of memory: the writer stops */
	bool *is_in; /* per comm: whether to write it; NULL = all */
	enum stage stage;
	uint32_t rank, comm, member; /* position of the next piece */
	/* the current list already has an element, so the next one needs a comma */
	bool has_element;
	uint64_t left;
};

static bool is_in(const struct cw_snapshot_text *t, uint32_t comm)
{
	return !t->is_in || t->is_in[comm];
}

static bool is_member(const struct cw_snap_comm *comm, uint32_t m)
{
	return comm->members[m].rank != CW_SNAP_NONE;
}

static uint64_t count_pieces(const struct cw_snapshot_text *t, const struct cw_snapshot *snap)
{
	uint64_t n = snap->n_ranks;

	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; is_in(t, c) && m < snap->comms[c].nranks; m++)
			n += is_member(&snap->comms[c], m);
	return n;
}

struct cw_snapshot_text *cw_snapshot_text_new(const struct cw_snapshot *snap, const bool *in)
{
	struct cw_snapshot_text *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	if (in) {
		t->is_in = calloc((size_t)snap->n_comms + 1, sizeof(*t->is_in));
		if (!t->is_in)
			return cw_snapshot_text_free(t);
		memcpy(t->is_in, in, snap->n_comms * sizeof(*in));
	}
	t->left = count_pieces(t, snap);
	return t;
}

struct cw_snapshot_text *cw_snapshot_text_free(struct cw_snapshot_text *t)
{
	if (!t)
		return NULL;
	free(t->bytes);
	free(t->is_in);
	free(t);
	return NULL;
}

uint64_t cw_snapshot_text_left(const struct cw_snapshot_text *t)
{
	return t->left;
}

/* ---- pieces ---- */

static int add(const char *bytes, size_t len, void *user)
{
	struct cw_snapshot_text *t = user;
	size_t capacity = t->capacity ? t->capacity : 4096;
	char *grown;

	if (t->is_bad) /* jansson goes on after a callback fails */
		return -1;
	while (capacity - t->len < len)
		capacity *= 2;
	if (capacity > t->capacity) {
		grown = realloc(t->bytes, capacity);
		if (!grown) {
			t->is_bad = true;
			return -1;
		}
		t->bytes = grown;
		t->capacity = capacity;
	}
	memcpy(t->bytes + t->len, bytes, len);
	t->len += len;
	return 0;
}

static void add_text(struct cw_snapshot_text *t, const char *text)
{
	(void)add(text, strlen(text), t); /* add() records a failure itself */
}

/* Appends a value to the text. Takes ownership of the reference. */
static void add_json(struct cw_snapshot_text *t, json_t *json, size_t flags)
{
	if (!json || json_dump_callback(json, add, t, PIECE_FLAGS | flags) < 0)
		t->is_bad = true;
	json_decref(json);
}

/* Writes an object and begins a list as its last member; both stay open. */
static void open_list(struct cw_snapshot_text *t, json_t *object, const char *key)
{
	bool is_empty = object && json_object_size(object) == 0;

	add_text(t, "{");
	add_json(t, object, JSON_EMBED);
	add_text(t, is_empty ? "\"" : ",\"");
	add_text(t, key);
	add_text(t, "\":[");
	t->has_element = false;
}

static void begin_element(struct cw_snapshot_text *t)
{
	add_text(t, t->has_element ? ",\n" : "\n");
	t->has_element = true;
}

static void add_head(struct cw_snapshot_text *t, const struct cw_snapshot *snap)
{
	size_t kept = 0;

	for (uint32_t c = 0; c < snap->n_comms; c++)
		kept += is_in(t, c);
	open_list(t, cw_snapshot_doc_head(snap, kept), "ranks");
	t->stage = STAGE_RANKS;
}

/* Writes the next rank. False if no rank is left. */
static bool add_rank(struct cw_snapshot_text *t, const struct cw_snapshot *snap)
{
	if (t->rank < snap->n_ranks) {
		begin_element(t);
		add_json(t, cw_snapshot_doc_rank(&snap->ranks[t->rank++]), 0);
		return true;
	}
	add_text(t, "],\n\"comms\":[");
	t->has_element = false;
	t->stage = STAGE_COMMS;
	return false;
}

static void open_comm(struct cw_snapshot_text *t, const struct cw_snapshot *snap)
{
	while (t->comm < snap->n_comms && !is_in(t, t->comm))
		t->comm++;
	if (t->comm == snap->n_comms) {
		add_text(t, "]}\n");
		t->stage = STAGE_COMPLETE;
		return;
	}
	begin_element(t);
	open_list(t, cw_snapshot_doc_comm(&snap->comms[t->comm]), "members");
	t->member = 0;
	t->stage = STAGE_MEMBERS;
}

/* Writes the next member of the current comm. False if no member is left. */
static bool add_member(struct cw_snapshot_text *t, const struct cw_snapshot *snap)
{
	const struct cw_snap_comm *comm = &snap->comms[t->comm];

	while (t->member < comm->nranks && !is_member(comm, t->member))
		t->member++;
	if (t->member < comm->nranks) {
		begin_element(t);
		add_json(t, cw_snapshot_doc_member(&comm->members[t->member], t->member), 0);
		t->member++;
		return true;
	}
	add_text(t, "]}");
	t->has_element = true; /* the list of communicators now contains this one */
	t->comm++;
	t->stage = STAGE_COMMS;
	return false;
}

int cw_snapshot_text_step(struct cw_snapshot_text *t, const struct cw_snapshot *snap,
			  uint64_t max_pieces)
{
	while (t->stage != STAGE_COMPLETE && !t->is_bad) {
		bool was_piece = false;

		if (max_pieces == 0 && t->left > 0)
			return 0;
		if (t->stage == STAGE_HEAD)
			add_head(t, snap);
		else if (t->stage == STAGE_RANKS)
			was_piece = add_rank(t, snap);
		else if (t->stage == STAGE_COMMS)
			open_comm(t, snap);
		else
			was_piece = add_member(t, snap);
		max_pieces -= was_piece;
		t->left -= was_piece;
	}
	return t->is_bad ? -ENOMEM : 1;
}

json_t *cw_snapshot_text_take(struct cw_snapshot_text *t)
{
	return t->stage == STAGE_COMPLETE ? json_stringn_nocheck(t->bytes, t->len) : NULL;
}
