/* SPDX-License-Identifier: Apache-2.0 */
#include "report/nonfinite_inputs.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/parse.h"
#include "report/json_util.h"

/*
 * Collects the ranks in order of time. At equal times the lower rank comes first, as in
 * the snapshot.
 */
static uint32_t collect(const struct cw_snapshot *snap,
			const struct cw_snap_rank *v[static CW_NONFINITE_INPUTS_MAX])
{
	uint32_t n = 0, at;

	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		const struct cw_snap_rank *rank = &snap->ranks[i];

		if (!rank->nonfinite_input)
			continue;
		for (at = n; at > 0 && v[at - 1]->nonfinite_input_ns > rank->nonfinite_input_ns;
		     at--)
			if (at < CW_NONFINITE_INPUTS_MAX)
				v[at] = v[at - 1];
		if (at < CW_NONFINITE_INPUTS_MAX)
			v[at] = rank;
		n += n < CW_NONFINITE_INPUTS_MAX;
	}
	return n;
}

static struct cw_incident_nonfinite_input one(const struct cw_snapshot *snap,
					      const struct cw_snap_rank *rank)
{
	int64_t age_ns, at_ns = 0;

	/* The times are not bounded, because a user may have edited the snapshot by hand. */
	if (snap->wall_ns &&
	    !__builtin_sub_overflow(snap->now_ns, rank->nonfinite_input_ns, &age_ns) &&
	    __builtin_sub_overflow(snap->wall_ns, cw_bounded_ns(age_ns), &at_ns))
		at_ns = 0;
	return (struct cw_incident_nonfinite_input){
		.rank = rank->rank,
		.host = snap->nodes[rank->node].name,
		.pid = rank->pid,
		.text = rank->nonfinite_input,
		.noticed_wall_ns = at_ns,
	};
}

int cw_nonfinite_inputs_collect(const struct cw_snapshot *snap, struct cw_arena *arena,
				struct cw_incident_facts *to)
{
	const struct cw_snap_rank *v[CW_NONFINITE_INPUTS_MAX];
	uint32_t n = collect(snap, v);

	to->nonfinite_inputs = cw_arena_new_array(arena, struct cw_incident_nonfinite_input, n + 1);
	if (!to->nonfinite_inputs)
		return -1;
	for (uint32_t i = 0; i < n; i++)
		to->nonfinite_inputs[to->n_nonfinite_inputs++] = one(snap, v[i]);
	return 0;
}

static json_t *sentence(const struct cw_incident_nonfinite_input *input, int64_t confirmed_ns)
{
	const char *what = input->text ? input->text : "?";
	int64_t at = input->noticed_wall_ns;
	char text[512], span[64] = "";

	if (!at || !confirmed_ns)
		return cw_json_text(what);
	(void)cw_format_duration(at < confirmed_ns ? confirmed_ns - at : at - confirmed_ns, span,
				 sizeof(span));
	snprintf(text, sizeof(text), "%s, %s %s the incident was confirmed", what, span,
		 at < confirmed_ns ? "before" : "after");
	return cw_json_text(text);
}

json_t *cw_nonfinite_inputs_sentences(const struct cw_incident_facts *incident)
{
	int64_t confirmed_ns = incident->times ? incident->times->confirmed_wall_ns : 0;
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < incident->n_nonfinite_inputs; i++)
		bad |= json_array_append_new(
			list, sentence(&incident->nonfinite_inputs[i], confirmed_ns));
	return cw_json_finish(list, bad);
}
