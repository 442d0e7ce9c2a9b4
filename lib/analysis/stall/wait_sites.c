/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/stall/wait_sites.h"

#include <stddef.h>

#include "model/signature.h"

static bool is_same(const struct wait_site *a, const struct wait_site *b)
{
	return a->comm_id == b->comm_id && a->lines == b->lines && a->kind == b->kind;
}

struct wait_site wait_site_of(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	struct wait_site site = { 0 };
	const char *stack;

	if (v->comm < snap->n_comms)
		site.comm_id = snap->comms[v->comm].id;
	for (uint32_t i = 0; i < v->n_sides; i++) {
		if (!v->sides[i].has_op)
			continue;
		site.kind = v->sides[i].op.kind;
		stack = cw_snapshot_stack(snap, &v->sides[i].op);
		if (!stack)
			break;
		site.lines = CW_HASH_INIT;
		for (; *stack; stack++)
			site.lines = cw_hash_step(site.lines, (uint8_t)*stack);
		break;
	}
	return site;
}

const struct wait_site *wait_sites_find(const struct wait_sites *s, const struct wait_site *like)
{
	for (uint32_t i = 0; i < WAIT_SITES_MAX; i++)
		if (s->v[i].met_ns && is_same(&s->v[i], like))
			return &s->v[i];
	return NULL;
}

/*
 * Returns the site that equals `like`. If there is none, makes one in a free slot, or in the slot
 * of the site with the oldest wait.
 */
static struct wait_site *meet(struct wait_sites *s, const struct wait_site *like, int64_t now_ns)
{
	struct wait_site *best = &s->v[0];

	for (uint32_t i = 0; i < WAIT_SITES_MAX; i++) {
		if (s->v[i].met_ns && is_same(&s->v[i], like)) {
			s->v[i].met_ns = now_ns;
			return &s->v[i];
		}
		if (s->v[i].met_ns < best->met_ns)
			best = &s->v[i];
	}
	*best = (struct wait_site){
		.comm_id = like->comm_id, .lines = like->lines, .kind = like->kind, .met_ns = now_ns
	};
	return best;
}

void wait_sites_learn(struct wait_sites *s, const struct wait_site *like, int64_t ns,
		      int64_t now_ns)
{
	struct wait_site *site = meet(s, like, now_ns);

	if (ns > WAIT_SITES_LONGEST_NS)
		ns = WAIT_SITES_LONGEST_NS;
	if (ns > site->longest_ns)
		site->longest_ns = ns;
}

void wait_sites_note(struct wait_sites *s, const struct wait_site *like, int64_t now_ns)
{
	meet(s, like, now_ns)->notices++;
}

void wait_sites_idle(struct wait_sites *s, const struct wait_site *like, int64_t now_ns)
{
	meet(s, like, now_ns)->idle++;
}

bool wait_sites_should_propose(const struct wait_sites *s, const struct wait_site *site)
{
	return site && site->idle >= WAIT_SITES_IDLE_MIN && !s->has_proposed;
}
