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

static json_t *one(const struct cw_snapshot *snap, const struct cw_snap_rank *rank)
{
	int64_t age_ns, at_ns = 0;
	json_t *doc = json_object();
	int bad = 0;

	/* The times are not bounded, because a user may have edited the snapshot by hand. */
	if (snap->wall_ns &&
	    !__builtin_sub_overflow(snap->now_ns, rank->nonfinite_input_ns, &age_ns) &&
	    __builtin_sub_overflow(snap->wall_ns, cw_bounded_ns(age_ns), &at_ns))
		at_ns = 0;
	bad |= json_object_set_new(doc, "rank", json_integer(rank->rank));
	bad |= json_object_set_new(doc, "host", cw_json_text(snap->nodes[rank->node].name));
	bad |= json_object_set_new(doc, "pid", json_integer(rank->pid));
	bad |= json_object_set_new(doc, "text", cw_json_text(rank->nonfinite_input));
	bad |= json_object_set_new(doc, "noticed", cw_json_wall(at_ns));
	return cw_json_finish(doc, bad);
}

json_t *cw_nonfinite_inputs_doc(const struct cw_snapshot *snap)
{
	const struct cw_snap_rank *v[CW_NONFINITE_INPUTS_MAX];
	uint32_t n = collect(snap, v);
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < n; i++)
		bad |= json_array_append_new(list, one(snap, v[i]));
	return cw_json_finish(list, bad);
}

static json_t *sentence(const json_t *nonfinite_input, int64_t confirmed_ns)
{
	const char *noticed = cw_json_str(nonfinite_input, "noticed", "");
	int64_t at = *noticed ? cw_wall_parse(noticed) : -1;
	char text[512], span[64] = "";

	if (at < 0 || confirmed_ns < 0)
		return cw_json_text(cw_json_str(nonfinite_input, "text", "?"));
	(void)cw_format_duration(at < confirmed_ns ? confirmed_ns - at : at - confirmed_ns, span,
				 sizeof(span));
	snprintf(text, sizeof(text), "%s, %s %s the trouble was confirmed",
		 cw_json_str(nonfinite_input, "text", "?"), span,
		 at < confirmed_ns ? "before" : "after");
	return cw_json_text(text);
}

json_t *cw_nonfinite_inputs_sentences(const json_t *incident)
{
	const char *confirmed = cw_json_str(json_object_get(incident, "times"), "confirmed", "");
	int64_t confirmed_ns = *confirmed ? cw_wall_parse(confirmed) : -1;
	json_t *list = json_array(), *nonfinite_input;
	size_t i;
	int bad = 0;

	json_array_foreach (json_object_get(incident, "nonfinite_inputs"), i, nonfinite_input)
		bad |= json_array_append_new(list, sentence(nonfinite_input, confirmed_ns));
	return cw_json_finish(list, bad);
}
