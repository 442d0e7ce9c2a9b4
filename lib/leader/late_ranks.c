/* SPDX-License-Identifier: Apache-2.0 */
#include "leader/late_ranks.h"

#include <stdio.h>
#include <string.h>

#include "model/verdict_types.h"

/* A rank counts as late after this many samples in a row found it late. */
#define CONFIRMED_SAMPLES 2u

bool cw_late_rank_is_confirmed(const struct cw_late_rank *late)
{
	return late->is_noticed || late->n_found >= CONFIRMED_SAMPLES;
}

bool late_ranks_is_due(const struct cw_late_ranks *l, int64_t now_ns, uint64_t calls)
{
	/* If the number of calls has decreased, communicators are gone. */
	return (calls < l->calls || calls - l->calls >= LATE_RANKS_CALLS_MIN) &&
	       now_ns - l->asked_ns >= LATE_RANKS_EVERY_NS;
}

static const char *host_of(const struct cw_snapshot *snap, uint32_t rank)
{
	uint32_t node = snap->ranks[rank].node;

	return node < snap->n_nodes && snap->nodes[node].name ? snap->nodes[node].name : "";
}

static bool is_same(const struct cw_late_rank *late, const struct cw_snapshot *snap, uint32_t rank)
{
	return late->rank == snap->ranks[rank].rank && late->pid == snap->ranks[rank].pid &&
	       !strncmp(late->host, host_of(snap, rank), sizeof(late->host) - 1);
}

static struct cw_late_rank *find(struct cw_late_ranks *l, const struct cw_snapshot *snap,
				 uint32_t rank)
{
	struct cw_late_rank *late;

	for (uint32_t i = 0; i < l->n; i++)
		if (is_same(&l->v[i], snap, rank))
			return &l->v[i];
	if (l->n == CW_SLOW_MAX)
		return NULL;
	late = &l->v[l->n++];
	*late = (struct cw_late_rank){
		.rank = snap->ranks[rank].rank,
		.pid = snap->ranks[rank].pid,
		.since_ns = snap->now_ns,
		.since_wall_ns = snap->wall_ns,
	};
	(void)snprintf(late->host, sizeof(late->host), "%s", host_of(snap, rank));
	return late;
}

static bool is_in(const struct cw_slow_list *list, const struct cw_snapshot *snap,
		  const struct cw_late_rank *late)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (is_same(late, snap, list->v[i].rank))
			return true;
	return false;
}

uint32_t late_ranks_add_sample(struct cw_late_ranks *l, const struct cw_snapshot *snap,
			       const struct cw_slow_list *list, struct cw_late_rank *ret_over)
{
	uint32_t left = 0, n_over = 0;

	for (uint32_t i = 0; i < l->n; i++) {
		struct cw_late_rank *late = &l->v[i];

		if (!is_in(list, snap, late)) {
			late->n_found = 0;
			late->n_missed++;
		}
		/*
		 * A rank that only one sample found late leaves the list at the first sample that
		 * finds it in time.
		 */
		if (late->n_missed < (late->is_noticed ? CONFIRMED_SAMPLES : 1))
			l->v[left++] = *late;
		else if (late->is_noticed)
			ret_over[n_over++] = *late;
	}
	l->n = left;
	for (uint32_t i = 0; i < list->n; i++) {
		struct cw_late_rank *late = find(l, snap, list->v[i].rank);
		const struct cw_snap_comm *c = &snap->comms[list->v[i].comm];

		if (!late)
			continue;
		late->said = list->v[i];
		late->comm = c->id;
		(void)snprintf(late->comm_name, sizeof(late->comm_name), "%s",
			       c->name ? c->name : "");
		late->n_found++;
		late->n_missed = 0;
	}
	return n_over;
}

const struct cw_late_rank *late_ranks_next_notice(struct cw_late_ranks *l, int64_t now_ns)
{
	const struct cw_late_rank *worst = NULL;

	if (l->noticed_ns && now_ns - l->noticed_ns < LATE_RANKS_NOTICE_EVERY_NS)
		return NULL;
	for (uint32_t i = 0; i < l->n; i++) {
		struct cw_late_rank *late = &l->v[i];

		/* If a clock error may explain the lateness, only the status shows it. */
		if (late->is_noticed || !cw_late_rank_is_confirmed(late) ||
		    late->said.confidence < CW_CONFIDENCE_LIKELY)
			continue;
		late->is_noticed = true;
		if (!worst || late->said.percent > worst->said.percent)
			worst = late;
	}
	if (worst)
		l->noticed_ns = now_ns;
	return worst;
}

void cw_late_rank_format(const struct cw_late_rank *late, char *buf, size_t len)
{
	const struct cw_slow *s = &late->said;
	char whole[32];

	(void)snprintf(
		buf, len,
		"rank %d (%s, pid %d) is late: %.0f ms on average in %u %% of the collectives on "
		"%s since %.5s UTC; the others wait for it %u %% of the time (%s)",
		late->rank, late->host, late->pid, (double)s->late_ns / 1e6,
		s->n_ops ? 100 * s->n_late / s->n_ops : 0,
		*late->comm_name ? late->comm_name : "a communicator",
		cw_wall_format(late->since_wall_ns, whole) + strlen("2026-11-21T"), s->percent,
		cw_confidence_name(s->confidence));
}

void late_ranks_format(const struct cw_late_ranks *l, const struct cw_late_rank *late, char *buf,
		       size_t len)
{
	uint32_t n_others = 0;
	size_t n;

	for (uint32_t i = 0; i < l->n; i++)
		n_others += &l->v[i] != late && cw_late_rank_is_confirmed(&l->v[i]);
	cw_late_rank_format(late, buf, len);
	n = strlen(buf);
	if (n_others)
		(void)snprintf(buf + n, len - n, "; %u other rank%s late, too", n_others,
			       n_others == 1 ? " is" : "s are");
}
