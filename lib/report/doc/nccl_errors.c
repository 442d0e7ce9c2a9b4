/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/nccl_errors.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "model/rankset.h"
#include "report/doc/doc_phrase.h"
#include "report/json_util.h"

/* One error of one communicator, and the ranks that have it. */
struct error {
	uint32_t comm;
	int32_t result;
	bool is_async;
	const char *text;
	int32_t *ranks; /* the user's numbers of the ranks */
	uint32_t n_ranks;
};

struct errors {
	struct error v[CW_NCCL_ERRORS_MAX];
	uint32_t n;
};

static void errors_fini(struct errors *e)
{
	for (uint32_t i = 0; i < e->n; i++)
		free(e->v[i].ranks);
}

static bool is_error(int32_t result)
{
	return result != CW_NCCL_SUCCESS && result != CW_NCCL_IN_PROGRESS;
}

static bool is_same(const struct error *a, const struct error *b)
{
	return a->comm == b->comm && a->result == b->result && a->is_async == b->is_async &&
	       strcmp(a->text, b->text) == 0;
}

/*
 * Adds the rank to the list of error e. We omit errors beyond the limit. Returns 0, or -1 if out of
 * memory.
 */
static int add(const struct cw_snapshot *snap, struct errors *all, const struct error *e,
	       uint32_t rank)
{
	uint32_t i = 0;
	int32_t label = snap->ranks[rank].rank;

	while (i < all->n && !is_same(&all->v[i], e))
		i++;
	if (i == CW_NCCL_ERRORS_MAX || label < 0)
		return 0;
	if (i == all->n) {
		all->v[i] = *e;
		all->v[i].ranks = calloc(snap->comms[e->comm].nranks, sizeof(int32_t));
		if (!all->v[i].ranks)
			return -1;
		all->n++;
	}
	all->v[i].ranks[all->v[i].n_ranks++] = label;
	return 0;
}

static int collect(const struct cw_snapshot *snap, struct errors *all)
{
	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t i = 0; i < snap->comms[c].nranks; i++) {
			const struct cw_snap_member *m = &snap->comms[c].members[i];
			struct error e = { .comm = c,
					   .is_async = is_error(m->async_error),
					   .text = m->last_error ? m->last_error : "" };

			e.result = e.is_async ? m->async_error : m->last_result;
			if (m->rank < snap->n_ranks && is_error(e.result) &&
			    add(snap, all, &e, m->rank) < 0)
				return -1;
		}
	return 0;
}

static json_t *error_doc(const struct cw_snapshot *snap, const struct error *e)
{
	const struct cw_snap_comm *comm = &snap->comms[e->comm];
	_cleanup_(freep) char *set = cw_rankset_format_alloc(e->ranks, e->n_ranks);
	char name[CW_NCCL_RESULT_NAME_MAX];
	json_t *doc = json_object();
	int bad = set == NULL;

	bad |= json_object_set_new(doc, "ranks", cw_json_text(set));
	bad |= json_object_set_new(doc, "comm", cw_json_hex(comm->id));
	bad |= json_object_set_new(doc, "comm_name", cw_json_text(comm->name));
	bad |= json_object_set_new(doc, "result", json_integer(e->result));
	bad |= json_object_set_new(doc, "name",
				   json_string(cw_nccl_result_name(e->result, name, sizeof(name))));
	bad |= json_object_set_new(doc, "is_async", json_boolean(e->is_async));
	bad |= json_object_set_new(doc, "text", cw_json_text(e->text));
	return cw_json_finish(doc, bad);
}

json_t *cw_nccl_errors_doc(const struct cw_snapshot *snap)
{
	_cleanup_(errors_fini) struct errors all = { 0 };
	json_t *list = json_array();
	int bad = collect(snap, &all);

	for (uint32_t i = 0; i < all.n; i++)
		bad |= json_array_append_new(list, error_doc(snap, &all.v[i]));
	return cw_json_finish(list, bad);
}

static const char *phrase(const json_t *error, char *buf, size_t len)
{
	const char *ranks = cw_json_str(error, "ranks", "?");
	const char *text = cw_json_str(error, "text", "");
	const char *comm = cw_json_str(error, "comm_name", "");

	snprintf(buf, len, "%s %s: %s on comm %s%s%s%s", phrase_is_many(ranks) ? "ranks" : "rank",
		 ranks, cw_json_str(error, "name", "?"),
		 *comm ? comm : cw_json_str(error, "comm", "?"), *text ? ": \"" : "", text,
		 *text ? "\"" : "");
	return buf;
}

json_t *cw_nccl_error_sentences(const json_t *errors)
{
	json_t *list = json_array(), *error;
	char text[1024];
	size_t i;
	int bad = 0;

	json_array_foreach (errors, i, error)
		bad |= json_array_append_new(list, cw_json_text(phrase(error, text, sizeof(text))));
	return cw_json_finish(list, bad);
}
