/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a pickle: fetches each instruction with its argument, and runs it. One table,
 * pickle_opcodes, describes all instructions.
 */
#include "import/pickle/pickle.h"

#include <errno.h>
#include <string.h>

#include "import/pickle/pickle_machine.h"

static int read_number(struct machine *m, unsigned bytes, uint64_t *ret)
{
	uint64_t v = 0;

	if (m->size - m->at < bytes)
		return pickle_fail(m, ENODATA, "cut short");
	for (unsigned i = bytes; i-- > 0;)
		v = v << 8 | m->data[m->at + i];
	m->at += bytes;
	*ret = v;
	return 0;
}

static int read_text(struct machine *m, unsigned length_bytes, struct argument_value *ret)
{
	uint64_t len = 0;
	int r = read_number(m, length_bytes, &len);

	if (r < 0)
		return r;
	if (len > m->size - m->at)
		return pickle_fail(m, ENODATA, "cut short");
	ret->text = (const char *)m->data + m->at;
	ret->len = (size_t)len;
	m->at += ret->len;
	return 0;
}

static int read_argument(struct machine *m, enum argument argument, struct argument_value *ret)
{
	int r;

	switch (argument) {
	case ARG_NONE:
		return 0;
	case ARG_1:
		return read_number(m, 1, &ret->number);
	case ARG_2:
		return read_number(m, 2, &ret->number);
	case ARG_4:
		return read_number(m, 4, &ret->number);
	case ARG_8:
		return read_number(m, 8, &ret->number);
	case ARG_DOUBLE:
		r = read_number(m, 8, &ret->number);
		ret->number = __builtin_bswap64(ret->number);
		return r;
	case ARG_TEXT_1:
		return read_text(m, 1, ret);
	case ARG_TEXT_4:
		return read_text(m, 4, ret);
	case ARG_TEXT_8:
		return read_text(m, 8, ret);
	}
	return -EBADMSG;
}

static int step(struct machine *m)
{
	struct argument_value arg = { 0 };
	const struct opcode *op;
	int r;

	m->op_at = m->at;
	m->op_name = "end";
	if (m->at == m->size)
		return pickle_fail(m, ENODATA, "cut short");
	op = &pickle_opcodes[m->data[m->at++]];
	if (!op->run)
		return cw_err_set(m->err, EBADMSG, "offset %zu: no opcode 0x%02x", m->op_at,
				  m->data[m->op_at]);
	m->op_name = op->name;
	r = read_argument(m, op->argument, &arg);
	return r < 0 ? r : op->run(m, &arg);
}

int cw_pickle_read(const void *data, size_t size, struct cw_arena *arena,
		   const struct cw_value **ret, struct cw_err *err)
{
	struct machine m = { .data = data, .size = size, .arena = arena, .err = err };
	int r = 0;

	while (r == 0 && !m.is_done)
		r = step(&m);
	if (r < 0)
		return r;
	*ret = m.stack[m.n_stack - 1];
	return 0;
}
