/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's stack, and its memory limit. */
#include <errno.h>
#include <string.h>

#include "common/or_exit/or_exit.h"
#include "import/pickle/pickle_machine.h"

void pickle_fail(struct machine *m, int errno_value, const char *what)
{
	if (m->r == 0)
		m->r = cw_err_set(m->err, errno_value, "offset %zu: %s: %s", m->op_at, m->op_name,
				  what);
}

static void spend(struct machine *m, size_t bytes)
{
	m->spent += bytes;
	if (m->spent > CW_PICKLE_MAX_MEMORY)
		pickle_fail(m, E2BIG, "takes too much memory");
}

void pickle_grow(struct machine *m, struct cw_value ***array, size_t *room, size_t wanted)
{
	size_t n = *room ? *room : 64;
	struct cw_value **bigger;

	while (n < wanted)
		n *= 2;
	spend(m, n * sizeof(*bigger));
	if (m->r < 0)
		return;
	bigger = cw_or_exit(cw_arena_new_array(m->arena, struct cw_value *, n));
	if (*room)
		memcpy(bigger, *array, *room * sizeof(*bigger));
	*array = bigger;
	*room = n;
}

void pickle_push(struct machine *m, struct cw_value *v)
{
	if (m->n_stack == m->stack_room)
		pickle_grow(m, &m->stack, &m->stack_room, m->n_stack + 1);
	if (m->r == 0)
		m->stack[m->n_stack++] = v;
}

struct cw_value *pickle_new(struct machine *m, enum cw_value_type type)
{
	struct cw_value *v = cw_or_exit(cw_arena_new(m->arena, struct cw_value));

	spend(m, sizeof(*v));
	v->type = (uint8_t)type;
	return v;
}

struct cw_value *pickle_push_new(struct machine *m, enum cw_value_type type)
{
	struct cw_value *v = pickle_new(m, type);

	pickle_push(m, v);
	return v;
}

size_t pickle_height(const struct machine *m)
{
	return m->n_stack - (m->n_marks ? m->marks[m->n_marks - 1] : 0);
}

bool pickle_need(struct machine *m, size_t n)
{
	if (pickle_height(m) < n)
		pickle_fail(m, EBADMSG, "finds too little on the stack");
	return m->r == 0;
}

void pickle_take_above(struct machine *m, size_t from, struct cw_value *to)
{
	for (size_t i = from; i < m->n_stack && m->r == 0; i++) {
		int r = cw_value_append(m->arena, to, m->stack[i], &m->spent);

		if (r == -ELOOP)
			pickle_fail(m, EBADMSG,
				    "a container is changed after it was put into another one");
		if (r == -E2BIG)
			pickle_fail(m, E2BIG, "nested too deeply, or too many items");
		spend(m, 0);
	}
	m->n_stack = from;
}
