/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wording/also.h"

#include <errno.h>
#include <stdio.h>

#include "analysis/known/differing_variables.h"
#include "analysis/known/known_hangs.h"
#include "analysis/wording/arg.h"

/* A sentence per variable. Further variables only count, so that an alert stays readable. */
#define MOST_VARIABLES 8u

/* Returns a text that is a part of another one. */
static struct cw_arg arg_part(const struct diagnosis *diag, const char *text, size_t len)
{
	char part[CW_NCCL_VARIABLES_BYTES];

	(void)snprintf(part, sizeof(part), "%.*s", (int)len, text);
	return arg_text(diag, part);
}

static void say_value(struct diagnosis *diag, const struct differing_value *v, bool is_first,
		      struct cw_clause *clause)
{
	struct cw_arg ranks = arg_ranks(diag, v->ranks, v->n_ranks);

	if (!v->value && is_first)
		cw_say(clause, unset_on, ranks);
	else if (!v->value)
		cw_say(clause, comma_unset_on, ranks);
	else if (is_first)
		cw_say(clause, value_on, arg_part(diag, v->value, v->len), ranks);
	else
		cw_say(clause, comma_value_on, arg_part(diag, v->value, v->len), ranks);
}

static void say_variable(struct diagnosis *diag, const struct differing_variable *v,
			 struct cw_clause *clause)
{
	struct cw_clause values = clause_of(diag);

	for (uint32_t i = 0; i < v->n_values; i++)
		say_value(diag, &v->values[i], i == 0, &values);
	if (v->n_others)
		cw_say(&values, others_have_more, arg_count(v->n_others));
	cw_say(clause, variable_differs, arg_part(diag, v->name, v->name_len), arg_clause(&values));
	if (v->rule && v->rule->source)
		cw_say(clause, known_to_hang);
	else if (v->rule)
		cw_say(clause, must_be_equal);
}

/* Returns the version of the first visible member. All members have a version of the row. */
static uint32_t version_of(const struct diagnosis *diag)
{
	const struct cw_snap_comm *c = &diag->s->snap->comms[diag->v->comm];

	for (uint32_t m = 0; m < c->nranks; m++)
		if (c->members[m].rank < diag->s->snap->n_ranks)
			return diag->s->snap->ranks[c->members[m].rank].nccl_version;
	return 0;
}

static void say_known_hangs(struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;

	for (size_t i = 0; i < cw_n_known_hang_rows; i++) {
		const struct cw_known_hang_row *row = &cw_known_hang_rows[i];
		struct cw_clause *clause = &v->also_said[v->n_also];

		if (!known_hang_fits(row, diag->s->snap, v))
			continue;
		v->known_hangs[v->n_known_hangs++] =
			(struct cw_known_hang){ row->name, row->fixed_in };
		*clause = clause_of(diag);
		cw_say(clause, fits_known_hang, arg_text(diag, row->name),
		       (struct cw_arg){ .kind = CW_ARG_VERSION, .version = version_of(diag) },
		       arg_text(diag, row->fixed_in));
		v->n_also++;
	}
}

static int say_variables(struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;
	struct differing_variable *found;
	uint32_t n;
	int r = differing_variables_find(diag->s->snap, v->comm, diag->arena, &found, &n);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n && i < MOST_VARIABLES; i++) {
		v->also_said[v->n_also] = clause_of(diag);
		say_variable(diag, &found[i], &v->also_said[v->n_also++]);
	}
	if (n > MOST_VARIABLES) {
		v->also_said[v->n_also] = clause_of(diag);
		cw_say(&v->also_said[v->n_also++], more_variables_differ,
		       arg_count(n - MOST_VARIABLES));
	}
	return 0;
}

int also_list(struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;

	if (v->comm == CW_SNAP_NONE)
		return 0;
	v->also_said = cw_arena_new_array(diag->arena, struct cw_clause,
					  cw_n_known_hang_rows + MOST_VARIABLES + 1);
	v->known_hangs =
		cw_arena_new_array(diag->arena, struct cw_known_hang, cw_n_known_hang_rows);
	if (!v->also_said || !v->known_hangs)
		return -ENOMEM;
	say_known_hangs(diag);
	return say_variables(diag);
}
