/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/proxies/proxy_score.h"

#include "analysis/verdict.h"

static bool is_of_connections(const struct cw_verdict *v)
{
	return v->link.is_set || v->detail == CW_DETAIL_GPU_NOT_CONSUMING ||
	       v->detail == CW_DETAIL_GPU_NOT_PRODUCING || v->detail == CW_DETAIL_NOT_IN_PROXY;
}

static bool names_link(const struct cw_verdict *v, const struct proxy_truth *t)
{
	for (uint32_t i = 0; v->link.is_set && i < t->n_links; i++)
		if (v->link.sender == t->links[i].from && v->link.receiver == t->links[i].to &&
		    v->link.channel == t->links[i].channel)
			return true;
	return false;
}

static bool is_node_of_fault(const struct cw_snapshot *snap, uint32_t rank,
			     const struct proxy_truth *t)
{
	uint32_t node = snap->ranks[rank].node;

	for (uint32_t i = 0; i < t->n_links; i++)
		if (snap->ranks[t->links[i].from].node == node ||
		    snap->ranks[t->links[i].to].node == node)
			return true;
	return !t->n_links && snap->ranks[t->rank].node == node;
}

static bool names_nodes(const struct cw_snapshot *snap, const struct cw_verdict *v,
			const struct proxy_truth *t)
{
	for (uint32_t i = 0; i < v->n_culprits; i++)
		if (!is_node_of_fault(snap, v->culprits[i].rank, t))
			return false;
	return v->n_culprits > 0;
}

static bool names_rank(const struct cw_verdict *v, uint32_t rank)
{
	for (uint32_t i = 0; i < v->n_culprits; i++)
		if (v->culprits[i].rank == rank)
			return true;
	return false;
}

/* True if the verdict names the fault that we drew. */
static bool is_right(const struct cw_snapshot *snap, const struct cw_verdict *v,
		     const struct proxy_truth *t)
{
	switch (t->fault) {
	case PROXY_FAULT_STALL:
	case PROXY_FAULT_ONE_WAY:
	case PROXY_FAULT_CUT:
	case PROXY_FAULT_SLOW:
	case PROXY_FAULT_LATE:
		return names_link(v, t);
	case PROXY_FAULT_NONE:
	case PROXY_FAULT_STOPPED:
	case PROXY_FAULT_ABSENT:
	case PROXY_FAULT_MISMATCH:
		return !is_of_connections(v);
	default:
		return names_rank(v, t->rank) && names_nodes(snap, v, t) && !v->link.is_set;
	}
}

/* True if the verdict is certain of a wrong culprit. */
static bool is_wrongly_certain(const struct cw_snapshot *snap, const struct cw_verdict *v,
			       const struct proxy_truth *t)
{
	return v->confidence == CW_CONFIDENCE_CERTAIN && v->n_culprits && !is_right(snap, v, t) &&
	       (is_of_connections(v) || t->fault < PROXY_FAULT_NONE);
}

static int score_late(struct proxy_score *s, const struct proxy_case *c, uint64_t seed)
{
	enum proxy_fault f = c->truth.fault;
	struct cw_verdict_list list;
	const struct cw_verdict *v = &list.v[0];
	int r = cw_verdict_compute_all(c->late, &list);

	if (r < 0)
		return r;
	s->of[f].n++;
	s->of[f].right += is_right(c->late, v, &c->truth);
	s->of[f].node += names_nodes(c->late, v, &c->truth);
	s->of[f].alone += is_right(c->late, v, &c->truth) && v->n_culprits == 1;
	s->of[f].certain += is_of_connections(v) && v->confidence == CW_CONFIDENCE_CERTAIN;
	for (uint32_t i = 0; i < list.n; i++)
		s->of[f].wrong_certain += is_wrongly_certain(c->late, &list.v[i], &c->truth);
	if (!is_right(c->late, v, &c->truth) && !s->first_wrong[f])
		s->first_wrong[f] = seed;
	cw_verdict_list_fini(&list);
	return 0;
}

/* True if a connection of the communicator has not stood for 2 s yet. */
static bool has_just_moved(const struct cw_snapshot *snap, uint32_t comm)
{
	const struct cw_snap_comm *c = &snap->comms[comm];

	for (uint32_t m = 0; m < c->nranks; m++)
		for (uint32_t i = 0; i < c->members[m].n_connections; i++)
			if (snap->ranks[c->members[m].rank].sampled_ns -
				    c->members[m].connections[i].moved_ns <
			    INT64_C(2000000000))
				return true;
	return false;
}

static int score_early(struct proxy_score *s, const struct proxy_case *c)
{
	struct cw_verdict_list list;
	int r = cw_verdict_compute_all(c->early, &list);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < list.n; i++)
		s->of[c->truth.fault].early_certain +=
			is_of_connections(&list.v[i]) && has_just_moved(c->early, list.v[i].comm) &&
			list.v[i].confidence == CW_CONFIDENCE_CERTAIN;
	cw_verdict_list_fini(&list);
	return 0;
}

int proxy_score_add(struct proxy_score *s, uint64_t seed, enum proxy_fault fault)
{
	struct proxy_case c;
	int r = proxy_case_draw(seed, fault, &c);

	if (r < 0)
		return r;
	r = score_late(s, &c, seed);
	if (r == 0 && c.early)
		r = score_early(s, &c);
	proxy_case_fini(&c);
	return r;
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 100.0;
}

bool proxy_score_print(const struct proxy_score *s, FILE *out)
{
	uint64_t n_links = 0, links = 0, n_gpus = 0, gpus = 0, alone = 0, n_nodes = 0, nodes = 0;
	uint64_t wrong = 0, accused = 0, n_other = 0, other = 0, n_hangs = 0, of_hangs = 0;
	bool ok;

	(void)fprintf(out, "%-22s %7s %8s %8s %8s %6s %6s %s\n", "fault", "draws", "right", "node",
		      "certain", "wrong", "early", "first wrong seed");
	for (unsigned f = 0; f < PROXY_FAULT__MAX; f++) {
		uint32_t n = s->of[f].n;

		if (!n)
			continue;
		(void)fprintf(out, "%-22s %7u %7.2f%% %7.2f%% %7.2f%% %6u %6u", proxy_fault_name(f),
			      n, percent(s->of[f].right, n), percent(s->of[f].node, n),
			      percent(s->of[f].certain, n), s->of[f].wrong_certain,
			      s->of[f].early_certain);
		if (s->first_wrong[f])
			(void)fprintf(out, " %llu", (unsigned long long)s->first_wrong[f]);
		(void)fputc('\n', out);
		wrong += s->of[f].wrong_certain + s->of[f].early_certain;
		if (f <= PROXY_FAULT_LATE) {
			n_links += n;
			links += s->of[f].right;
		} else if (f <= PROXY_FAULT_GPU_STOPS) {
			n_gpus += n;
			gpus += s->of[f].right;
			alone += s->of[f].alone;
		} else if (f == PROXY_FAULT_NONE) {
			accused += n - s->of[f].right;
		} else if (f != PROXY_FAULT_POOL) {
			n_other += n;
			other += s->of[f].right;
		}
		if (f < PROXY_FAULT_NONE) {
			n_nodes += n;
			nodes += s->of[f].node;
		}
		if (f < PROXY_FAULT_NONE && f != PROXY_FAULT_SLOW) {
			n_hangs += n;
			of_hangs += s->of[f].node;
		}
	}
	(void)fprintf(
		out,
		"right connection %.2f %%, right GPU %.2f %% (alone %.2f %%), right node %.2f %% "
		"(of hangs %.2f %%)\n",
		percent(links, n_links), percent(gpus, n_gpus), percent(alone, n_gpus),
		percent(nodes, n_nodes), percent(of_hangs, n_hangs));
	(void)fprintf(out,
		      "wrongly certain %llu, healthy accused %llu, other causes overruled %llu of "
		      "%llu\n",
		      (unsigned long long)wrong, (unsigned long long)accused,
		      (unsigned long long)(n_other - other), (unsigned long long)n_other);
	ok = percent(links, n_links) >= 95 && percent(gpus, n_gpus) >= 95 &&
	     percent(of_hangs, n_hangs) >= 99 && !wrong && !accused && other == n_other;
	return ok;
}
