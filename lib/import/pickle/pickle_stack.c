/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's stack, and its memory limit. */
#include <errno.h>
#include <string.h>

#include "common/or_exit/or_exit.h"
#include "import/pickle/pickle_machine.h"

int pickle_fail(const struct machine *m, int errno_value, const char *what)
{
	return cw_err_set(m->err, errno_value, "offset %zu: %s: %s", m->op_at, m->op_name, what);
}

static int check_memory(const struct machine *m)
{
	return m->spent > CW_PICKLE_MAX_MEMORY ? pickle_fail(m, E2BIG, "takes too much memory") : 0;
}

int pickle_grow(struct machine *m, struct cw_value ***array, size_t *room, size_t wanted)
{
	size_t n = *room ? *room : 64;
	struct cw_value **bigger;

	while (n < wanted)
		n *= 2;
	m->spent += n * sizeof(*bigger);
	if (check_memory(m) < 0)
		return -E2BIG;
	bigger = cw_or_exit(cw_arena_new_array(m->arena, struct cw_value *, n));
	if (*room)
		memcpy(bigger, *array, *room * sizeof(*bigger));
	*array = bigger;
	*room = n;
	return 0;
}

int pickle_push(struct machine *m, struct cw_value *v)
{
	int r;

	if (m->n_stack == m->stack_room) {
		r = pickle_grow(m, &m->stack, &m->stack_room, m->n_stack + 1);
		if (r < 0)
			return r;
	}
	m->stack[m->n_stack++] = v;
	return 0;
}

int pickle_push_new(struct machine *m, enum cw_value_type type, struct cw_value **ret)
{
	struct cw_value *v;
	int r;

	m->spent += sizeof(*v);
	r = check_memory(m);
	if (r < 0)
		return r;
	v = cw_or_exit(cw_arena_new(m->arena, struct cw_value));
	v->type = (uint8_t)type;
	r = pickle_push(m, v);
	if (r == 0 && ret)
		*ret = v;
	return r;
}

/* Returns the number of values above the newest mark. */
size_t pickle_height(const struct machine *m)
{
	return m->n_stack - (m->n_marks ? m->marks[m->n_marks - 1] : 0);
}

int pickle_need(const struct machine *m, size_t n)
{
	return pickle_height(m) < n ? pickle_fail(m, EBADMSG, "finds too little on the stack") : 0;
}

static int append(struct machine *m, struct cw_value *to, struct cw_value *item)
{
	int r = cw_value_append(m->arena, to, item, &m->spent);

	if (r == -ELOOP)
		return pickle_fail(m, EBADMSG,
				   "a container is changed after it was put into another one");
	if (r == -E2BIG)
		return pickle_fail(m, E2BIG, "nested too deeply, or too many items");
	return r < 0 ? r : check_memory(m);
}

/* Moves the values at stack index `from` and above into `to`. */
int pickle_take_above(struct machine *m, size_t from, struct cw_value *to)
{
	int r;

	for (size_t i = from; i < m->n_stack; i++) {
		r = append(m, to, m->stack[i]);
		if (r < 0)
			return r;
	}
	m->n_stack = from;
	return 0;
}
