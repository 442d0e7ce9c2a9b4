/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/html_drawing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "model/rankset.h"

/* We search the snapshot for at most this many culprits of the document. */
#define MAX_CULPRITS 4096u
/*
 * Bytes for a list of ranks in a drawing. CUT_BYTES of them are for the ",…" of a list that we cut.
 */
#define LIST_BYTES 27
#define CUT_BYTES 4

static bool is_process(const struct cw_snapshot *snap, uint32_t rank,
		       const struct cw_incident_culprit *culprit)
{
	const struct cw_snap_rank *r = &snap->ranks[rank];
	const char *node = r->node < snap->n_nodes ? snap->nodes[r->node].name : NULL;

	return r->rank == culprit->rank && r->pid == culprit->pid &&
	       strcmp(node ? node : "", culprit->host ? culprit->host : "") == 0;
}

static uint32_t find_culprits(const struct cw_incident_facts *incident,
			      const struct cw_snapshot *snap, uint32_t *ranks)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < incident->n_culprits && i < MAX_CULPRITS; i++)
		for (uint32_t r = 0; r < snap->n_ranks; r++) {
			if (!is_process(snap, r, &incident->culprits[i]))
				continue;
			ranks[n++] = r;
			break;
		}
	return n;
}

/*
 * Returns the time of the job's last progress. The document states it; otherwise we use the start
 * of the oldest wait.
 */
static int64_t find_since(const struct drawing *d)
{
	int64_t wall = d->incident->times ? d->incident->times->last_progress_wall_ns : 0;
	int64_t since = 0, offset, at;

	if (wall > 0 && d->snap->wall_ns &&
	    !__builtin_sub_overflow(d->snap->wall_ns, wall, &offset) && offset > 0 &&
	    !__builtin_sub_overflow(d->snap->now_ns, offset, &at) && at > 0)
		return at;
	for (uint32_t i = 0; i < d->sets.graph.n_gates; i++) {
		int64_t gate = d->sets.graph.gates[i].since_ns;

		if (gate > 0 && gate < d->snap->now_ns && (!since || gate < since))
			since = gate;
	}
	/* the division prevents an overflow later, even with a hostile snapshot's time */
	return since ? since : d->snap->now_ns / 2;
}

int drawing_init(const struct cw_incident_facts *incident, const struct cw_snapshot *snap,
		 struct drawing *ret)
{
	_cleanup_(freep) uint32_t *culprits = calloc(MAX_CULPRITS, sizeof(*culprits));
	int r;

	*ret = (struct drawing){ .incident = incident, .snap = snap };
	if (!culprits)
		return -ENOMEM;
	r = rank_sets_make(snap, culprits, find_culprits(incident, snap, culprits), &ret->sets);
	if (r == 0)
		ret->since_ns = find_since(ret);
	return r;
}

void drawing_fini(struct drawing *d)
{
	rank_sets_fini(&d->sets);
}

char *drawing_set_name(const struct drawing *d, const struct rank_set *set, char *buf, size_t len)
{
	_cleanup_(freep) int32_t *labels = calloc(set->n_ranks, sizeof(*labels));
	_cleanup_(freep) char *list = NULL;
	int n;

	if (labels)
		for (uint32_t i = 0; i < set->n_ranks; i++)
			labels[i] = d->snap->ranks[set->ranks[i]].rank;
	list = labels ? cw_rankset_format_alloc(labels, set->n_ranks) : NULL;
	/*
	 * If memory runs out, or no rank has a number, we cannot list the ranks. Then we state how
	 * many processes there are.
	 */
	if (!list || !*list) {
		(void)snprintf(buf, len, "%" PRIu32 " process%s without rank number", set->n_ranks,
			       set->n_ranks == 1 ? "" : "es");
	} else if (set->n_ranks == 1) {
		(void)snprintf(buf, len, "rank %s", list);
	} else if (strlen(list) <= LIST_BYTES) {
		(void)snprintf(buf, len, "ranks %s", list);
	} else {
		n = LIST_BYTES - CUT_BYTES;
		while (n > 0 && list[n] != ',')
			n--;
		(void)snprintf(buf, len, "%" PRIu32 " ranks: %.*s,…", set->n_ranks, n, list);
	}
	return buf;
}

const struct cw_incident_culprit *drawing_culprit(const struct drawing *d,
						  const struct rank_set *set)
{
	for (uint32_t i = 0; set->is_culprit && i < d->incident->n_culprits; i++)
		if (is_process(d->snap, set->ranks[0], &d->incident->culprits[i]))
			return &d->incident->culprits[i];
	return NULL;
}
