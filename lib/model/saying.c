/* SPDX-License-Identifier: Apache-2.0 */
#include "model/saying.h"

#include <string.h>

static const char *const names[CW_SAYING__MAX] = {
#define NAME(name, arguments, english) [CW_SAYING_##name] = #name,
	CW_SAYINGS(NAME)
#undef NAME
};

static const char *const arguments_of[CW_SAYING__MAX] = {
#define ARGUMENTS(name, arguments, english) [CW_SAYING_##name] = (arguments),
	CW_SAYINGS(ARGUMENTS)
#undef ARGUMENTS
};

const char *cw_saying_name(enum cw_saying saying)
{
	return names[saying];
}

const char *cw_saying_args(enum cw_saying saying)
{
	return arguments_of[saying];
}

int cw_saying_from_name(const char *name)
{
	for (int i = 0; name && i < CW_SAYING__MAX; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

bool cw_arg_fits(char row, unsigned kind)
{
	if (row == 'W')
		return kind == CW_ARG_RANKS || kind == CW_ARG_PROCESS;
	return (unsigned char)row == kind;
}

#define ROOM 8u /* We allocate room for sayings in multiples of this number. */

static uint32_t rounded_up(uint32_t n)
{
	return (n + ROOM - 1) / ROOM * ROOM;
}

/*
 * Makes room for `more` sayings. A list that grows moves, and the arena keeps the shorter copies
 * until it is emptied. That memory is small, because most lists never grow.
 */
static bool make_room(struct cw_clause *clause, uint32_t more)
{
	struct cw_said *said;

	if (clause->n + more <= rounded_up(clause->n))
		return true;
	said = cw_arena_new_array(clause->arena, struct cw_said, rounded_up(clause->n + more));
	if (!said) {
		clause->is_incomplete = true;
		return false;
	}
	if (clause->n)
		memcpy(said, clause->said, clause->n * sizeof(*said));
	clause->said = said;
	return true;
}

void cw_clause_add(struct cw_clause *clause, enum cw_saying saying, const struct cw_arg *args,
		   uint32_t n)
{
	struct cw_arg *copy = NULL;

	if (n) {
		copy = cw_arena_memdup(clause->arena, args, n, sizeof(*args));
		if (!copy) {
			clause->is_incomplete = true;
			return;
		}
	}
	if (make_room(clause, 1))
		clause->said[clause->n++] =
			(struct cw_said){ .saying = saying, .n_args = n, .args = copy };
}

void cw_clause_append(struct cw_clause *clause, const struct cw_clause *more)
{
	clause->is_incomplete = clause->is_incomplete || more->is_incomplete;
	if (!more->n || !make_room(clause, more->n))
		return;
	memcpy(clause->said + clause->n, more->said, more->n * sizeof(*more->said));
	clause->n += more->n;
}

static bool is_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same_ranks(const struct cw_arg *a, const struct cw_arg *b)
{
	if (a->ranks.n != b->ranks.n || a->ranks.is_rest != b->ranks.is_rest ||
	    !a->ranks.labels != !b->ranks.labels)
		return false;
	return !a->ranks.n || !a->ranks.labels ||
	       memcmp(a->ranks.labels, b->ranks.labels, a->ranks.n * sizeof(*a->ranks.labels)) == 0;
}

static bool is_same_hosts(const struct cw_arg *a, const struct cw_arg *b)
{
	bool is_same = a->hosts.n == b->hosts.n;

	for (uint32_t i = 0; is_same && i < a->hosts.n; i++)
		is_same = is_same_text(a->hosts.names[i], b->hosts.names[i]);
	return is_same;
}

static bool is_same_arg(const struct cw_arg *a, const struct cw_arg *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case CW_ARG_RANKS:
		return is_same_ranks(a, b);
	case CW_ARG_PROCESS:
		return a->process.label == b->process.label && a->process.pid == b->process.pid &&
		       is_same_text(a->process.host, b->process.host);
	case CW_ARG_COMM:
		return a->comm.id == b->comm.id && is_same_text(a->comm.name, b->comm.name);
	case CW_ARG_CALL:
		return a->call.kind == b->call.kind && a->call.seq == b->call.seq &&
		       a->call.peer == b->call.peer && a->call.is_unknown == b->call.is_unknown &&
		       a->call.is_comm_rank == b->call.is_comm_rank;
	case CW_ARG_OP:
		return memcmp(&a->op, &b->op, sizeof(a->op)) == 0;
	case CW_ARG_ERROR:
		return a->error.result == b->error.result &&
		       is_same_text(a->error.text, b->error.text);
	case CW_ARG_DURATION:
		return a->duration.ns == b->duration.ns &&
		       a->duration.is_unknown == b->duration.is_unknown &&
		       a->duration.is_less == b->duration.is_less;
	case CW_ARG_COUNT:
		return a->count == b->count;
	case CW_ARG_VERSION:
		return a->version == b->version;
	case CW_ARG_HOSTS:
		return is_same_hosts(a, b);
	case CW_ARG_HOST:
	case CW_ARG_TEXT:
		return is_same_text(a->text, b->text);
	case CW_ARG_CLAUSE:
		return cw_clause_is_same(a->clause, b->clause);
	default:
		return a->number == b->number;
	}
}

bool cw_clause_is_same(const struct cw_clause *a, const struct cw_clause *b)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++) {
		const struct cw_said *x = &a->said[i], *y = &b->said[i];

		if (x->saying != y->saying || x->n_args != y->n_args)
			return false;
		for (uint32_t k = 0; k < x->n_args; k++)
			if (!is_same_arg(&x->args[k], &y->args[k]))
				return false;
	}
	return true;
}
