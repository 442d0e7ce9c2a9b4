/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/nccl_errors.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "model/rankset.h"
#include "report/doc/doc_phrase.h"
#include "report/doc/incident_facts.h"
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

static int fill(const struct cw_snapshot *snap, const struct error *e, struct cw_arena *arena,
		struct cw_incident_nccl_error *ret)
{
	const struct cw_snap_comm *comm = &snap->comms[e->comm];
	_cleanup_(freep) char *set = cw_rankset_format_alloc(e->ranks, e->n_ranks);
	char name[CW_NCCL_RESULT_NAME_MAX];

	*ret = (struct cw_incident_nccl_error){
		.ranks = cw_arena_strdup(arena, set),
		.comm = comm->id,
		.comm_name = comm->name,
		.result = e->result,
		.name = cw_arena_strdup(arena, cw_nccl_result_name(e->result, name, sizeof(name))),
		.is_async = e->is_async,
		.text = e->text,
	};
	return ret->ranks && ret->name ? 0 : -1;
}

int cw_nccl_errors_collect(const struct cw_snapshot *snap, struct cw_arena *arena,
			   struct cw_incident_facts *to)
{
	_cleanup_(errors_fini) struct errors all = { 0 };
	int bad = collect(snap, &all);

	to->nccl_errors = cw_arena_new_array(arena, struct cw_incident_nccl_error, all.n + 1);
	if (!to->nccl_errors)
		return -1;
	for (uint32_t i = 0; i < all.n; i++)
		bad |= fill(snap, &all.v[i], arena, &to->nccl_errors[to->n_nccl_errors++]);
	return bad;
}

static const char *phrase(const struct cw_incident_nccl_error *error, char *buf, size_t len)
{
	const char *ranks = error->ranks ? error->ranks : "?";
	const char *text = cw_fact_text(error->text), *comm = cw_fact_text(error->comm_name);
	char id[24];

	(void)snprintf(id, sizeof(id), "0x%016" PRIx64, error->comm);
	(void)snprintf(buf, len, "%s %s: %s on comm %s%s%s%s",
		       phrase_is_many(ranks) ? "ranks" : "rank", ranks,
		       error->name ? error->name : "?", *comm ? comm : id, *text ? ": \"" : "",
		       text, *text ? "\"" : "");
	return buf;
}

json_t *cw_nccl_error_sentences(const struct cw_incident_facts *incident)
{
	json_t *list = json_array();
	char text[1024];
	int bad = 0;

	for (uint32_t i = 0; i < incident->n_nccl_errors; i++)
		bad |= json_array_append_new(
			list, cw_json_text(phrase(&incident->nccl_errors[i], text, sizeof(text))));
	return cw_json_finish(list, bad);
}
