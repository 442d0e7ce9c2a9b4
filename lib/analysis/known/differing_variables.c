/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/known/differing_variables.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The variable of a member: unset, not known, or number value - 1 of the variable's values. */
enum { UNSET = 0, OTHER = UINT8_MAX - 1, UNKNOWN = UINT8_MAX };

struct name {
	struct cw_nccl_variable first; /* name, and value of the first member that has it */
	struct cw_nccl_variable values[DIFFERING_VALUES];
	uint32_t n_values;
	uint8_t *of_member; /* per known member */
};

struct search {
	const struct cw_snapshot *snap;
	struct cw_arena *arena;
	uint32_t *ranks; /* the members whose variables are known */
	uint32_t n_ranks;
	struct name names[CW_NCCL_VARIABLES_MAX];
	uint32_t n_names;
};

static const char *text_of(const struct search *s, uint32_t i)
{
	return s->snap->ranks[s->ranks[i]].nccl_variables;
}

static bool is_same(const char *a, size_t a_len, const char *b, size_t b_len)
{
	return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* Lists the members whose variables are known. Returns 0 or -ENOMEM. */
static int find_ranks(struct search *s, const struct cw_snap_comm *c, bool *ret_differ)
{
	s->ranks = cw_arena_new_array(s->arena, uint32_t, c->nranks);
	if (!s->ranks)
		return -ENOMEM;
	*ret_differ = false;
	for (uint32_t m = 0; m < c->nranks; m++) {
		uint32_t rank = c->members[m].rank;

		if (rank >= s->snap->n_ranks || !s->snap->ranks[rank].nccl_variables ||
		    !*s->snap->ranks[rank].nccl_variables)
			continue;
		s->ranks[s->n_ranks++] = rank;
		if (strcmp(text_of(s, s->n_ranks - 1), text_of(s, 0)) != 0)
			*ret_differ = true;
	}
	return 0;
}

/* Returns the name's entry; a new one if necessary. NULL = no room or no memory. */
static struct name *name_of(struct search *s, const struct cw_nccl_variable *v)
{
	struct name *name;

	for (uint32_t i = 0; i < s->n_names; i++)
		if (is_same(s->names[i].first.name, s->names[i].first.name_len, v->name,
			    v->name_len))
			return &s->names[i];
	if (s->n_names == CW_NCCL_VARIABLES_MAX)
		return NULL;
	name = &s->names[s->n_names];
	*name = (struct name){ .first = *v,
			       .of_member = cw_arena_new_array(s->arena, uint8_t, s->n_ranks) };
	if (!name->of_member)
		return NULL;
	for (uint32_t i = 0; i < s->n_ranks; i++)
		name->of_member[i] =
			s->snap->ranks[s->ranks[i]].nccl_variables_omitted ? UNKNOWN : UNSET;
	s->n_names++;
	return name;
}

static uint8_t number_of(struct name *name, const struct cw_nccl_variable *v)
{
	for (uint32_t i = 0; i < name->n_values; i++)
		if (is_same(name->values[i].value, name->values[i].value_len, v->value,
			    v->value_len))
			return (uint8_t)(i + 1);
	if (name->n_values == DIFFERING_VALUES)
		return OTHER;
	name->values[name->n_values++] = *v;
	return (uint8_t)name->n_values;
}

static void read_values(struct search *s)
{
	for (uint32_t i = 0; i < s->n_ranks; i++) {
		const char *at = text_of(s, i);
		struct cw_nccl_variable v;

		for (uint32_t n = 0; n < CW_NCCL_VARIABLES_MAX && cw_nccl_variables_next(&at, &v);
		     n++) {
			struct name *name = name_of(s, &v);

			if (name)
				name->of_member[i] = number_of(name, &v);
		}
	}
}

static int compare_ranks(const void *x, const void *y)
{
	const struct differing_value *a = x, *b = y;

	if (a->n_ranks != b->n_ranks)
		return a->n_ranks > b->n_ranks ? -1 : 1;
	return a->first_label < b->first_label ? -1 : a->first_label > b->first_label;
}

/* Counts the members with each value. Returns the number of values that members have. */
static uint32_t count_values(const struct search *s, const struct name *name,
			     uint32_t counts[DIFFERING_VALUES + 1], uint32_t *ret_others)
{
	uint32_t n = 0;

	memset(counts, 0, (DIFFERING_VALUES + 1) * sizeof(*counts));
	*ret_others = 0;
	for (uint32_t i = 0; i < s->n_ranks; i++) {
		if (name->of_member[i] <= DIFFERING_VALUES)
			counts[name->of_member[i]]++;
		else
			*ret_others += name->of_member[i] == OTHER;
	}
	for (uint32_t k = 0; k <= DIFFERING_VALUES; k++)
		n += counts[k] > 0;
	return n + (*ret_others > 0);
}

/* Returns 1, 0 if the members do not differ in the variable, or -ENOMEM. */
static int fill(const struct search *s, const struct name *name, struct differing_variable *ret)
{
	struct differing_value found[DIFFERING_VALUES + 1] = { { .value = NULL } };
	uint32_t counts[DIFFERING_VALUES + 1], n = 0, n_others;

	if (count_values(s, name, counts, &n_others) < 2)
		return 0;
	for (uint32_t k = 0; k <= DIFFERING_VALUES; k++) {
		struct differing_value *v = &found[n];

		if (!counts[k])
			continue;
		v->ranks = cw_arena_new_array(s->arena, uint32_t, counts[k]);
		if (!v->ranks)
			return -ENOMEM;
		v->value = k ? name->values[k - 1].value : NULL;
		v->len = k ? name->values[k - 1].value_len : 0;
		v->first_label = INT32_MAX;
		for (uint32_t i = 0; i < s->n_ranks; i++) {
			int32_t label = s->snap->ranks[s->ranks[i]].rank;

			if (name->of_member[i] != k)
				continue;
			v->ranks[v->n_ranks++] = s->ranks[i];
			if (label < v->first_label)
				v->first_label = label;
		}
		n++;
	}
	qsort(found, n, sizeof(*found), compare_ranks);
	*ret = (struct differing_variable){
		.name = name->first.name,
		.name_len = name->first.name_len,
		.rule = cw_nccl_variable_rule(name->first.name, name->first.name_len),
		.n_values = n < DIFFERING_VALUES ? n : DIFFERING_VALUES,
		.n_others = n_others,
	};
	memcpy(ret->values, found, ret->n_values * sizeof(*found));
	if (n > DIFFERING_VALUES)
		ret->n_others += found[DIFFERING_VALUES].n_ranks;
	return 1;
}

static unsigned weight_of(const struct differing_variable *v)
{
	return !v->rule ? 0 : v->rule->source ? 2 : 1;
}

static int compare_variables(const void *x, const void *y)
{
	const struct differing_variable *a = x, *b = y;
	size_t n = a->name_len < b->name_len ? a->name_len : b->name_len;
	int r;

	if (weight_of(a) != weight_of(b))
		return weight_of(a) > weight_of(b) ? -1 : 1;
	r = memcmp(a->name, b->name, n);
	return r ? r : a->name_len < b->name_len ? -1 : a->name_len > b->name_len;
}

int differing_variables_find(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *arena,
			     struct differing_variable **ret, uint32_t *ret_n)
{
	struct search *s = cw_arena_new_array(arena, struct search, 1);
	struct differing_variable *list;
	bool differ;
	uint32_t n = 0;
	int r;

	if (!s)
		return -ENOMEM;
	s->snap = snap;
	s->arena = arena;
	r = find_ranks(s, &snap->comms[comm], &differ);
	if (r < 0)
		return r;
	if (differ)
		read_values(s);
	list = cw_arena_new_array(arena, struct differing_variable, s->n_names);
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_names; i++) {
		r = fill(s, &s->names[i], &list[n]);
		if (r < 0)
			return r;
		n += (uint32_t)r;
	}
	qsort(list, n, sizeof(*list), compare_variables);
	*ret = list;
	*ret_n = n;
	return 0;
}
