/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/facts_builder.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "model/cause.h"
#include "model/rankset.h"
#include "model/verdict_types.h"
#include "report/doc/said_doc.h"
#include "say/english.h"

void *cw_facts_make(struct cw_facts_builder *b, size_t n, size_t size)
{
	void *made = cw_arena_array(b->arena, n ? n : 1, size);

	b->bad |= made ? 0 : -1;
	return made;
}

const char *cw_facts_text(struct cw_facts_builder *b, const char *text)
{
	const char *copy = cw_arena_strdup(b->arena, text);

	b->bad |= copy || !text ? 0 : -1;
	return copy;
}

const char *cw_facts_set(struct cw_facts_builder *b, const int32_t *labels, uint32_t n)
{
	_cleanup_(freep) char *text = cw_rankset_format_alloc(labels, n);

	b->bad |= text ? 0 : -1;
	return cw_facts_text(b, text);
}

struct cw_named cw_facts_named(unsigned number, const char *(*name_of)(unsigned number))
{
	return (struct cw_named){ (int)number, name_of(number) };
}

struct cw_incident_sentence cw_facts_sentence(struct cw_facts_builder *b,
					      const struct cw_clause *clause, size_t len)
{
	char text[CW_SAID_TEXT_MAX];

	(void)cw_say_text(clause, text, len < sizeof(text) ? len : sizeof(text));
	return (struct cw_incident_sentence){ cw_facts_text(b, text), *clause };
}

struct cw_incident_sentence cw_facts_plain(struct cw_facts_builder *b, const char *text)
{
	struct cw_clause clause = { .arena = b->arena };
	const char *copy = cw_facts_text(b, text);

	cw_say(&clause, text, (struct cw_arg){ .kind = CW_ARG_TEXT, .text = copy ? copy : "" });
	b->bad |= clause.is_incomplete;
	return (struct cw_incident_sentence){ copy, clause };
}

void cw_facts_culprit(const struct cw_snapshot *snap, uint32_t index,
		      struct cw_incident_culprit *to)
{
	const struct cw_snap_rank *rank;

	*to = (struct cw_incident_culprit){ .rank = -1, .host = "" };
	if (index >= snap->n_ranks)
		return;
	rank = &snap->ranks[index];
	to->rank = rank->rank;
	if (rank->node < snap->n_nodes && snap->nodes[rank->node].name)
		to->host = snap->nodes[rank->node].name;
	CW_INCIDENT_PLACE_FACTS(CW_FACTS_COPY)
	CW_INCIDENT_POD_FACTS(CW_FACTS_COPY)
	/* The advice depends on the facts below. */
	if (rank->liveness == CW_LIVE_ALIVE)
		to->host_wait = cw_facts_named(rank->host_wait, cw_host_wait_name);
	if (cw_liveness_is_dead(rank->liveness))
		to->end_by = cw_facts_named(rank->end_by, cw_end_by_name);
	if (rank->liveness == CW_LIVE_KILLED)
		to->term_signal = rank->term_signal;
	to->cause_kind = cw_facts_named(rank->cause_kind, cw_cause_kind_name);
	to->cause_by = cw_facts_named(rank->cause_by, cw_end_by_name);
}
