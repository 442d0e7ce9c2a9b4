/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a pickle: fetches each instruction with its argument, and runs it. One table,
 * pickle_opcodes, describes all instructions.
 */
#include "import/pickle/pickle.h"

#include <errno.h>
#include <string.h>

#include "import/pickle/pickle_machine.h"

/* Returns a number of so many bytes, the least significant byte first; 0 after an error. */
static uint64_t read_number(struct machine *m, unsigned bytes)
{
	uint64_t v = 0;

	if (m->size - m->at < bytes) {
		pickle_fail(m, ENODATA, "cut short");
		return 0;
	}
	for (unsigned i = bytes; i-- > 0;)
		v = v << 8 | m->data[m->at + i];
	m->at += bytes;
	return v;
}

static void read_argument(struct machine *m, enum argument argument, struct argument_value *ret)
{
	static const uint8_t bytes[] = {
		[ARG_NONE] = 0,   [ARG_1] = 1,      [ARG_2] = 2,      [ARG_4] = 4,      [ARG_8] = 8,
		[ARG_DOUBLE] = 8, [ARG_TEXT_1] = 1, [ARG_TEXT_4] = 4, [ARG_TEXT_8] = 8,
	};

	ret->number = read_number(m, bytes[argument]);
	if (argument == ARG_DOUBLE)
		ret->number = __builtin_bswap64(ret->number);
	if (argument < ARG_TEXT_1)
		return;
	if (ret->number > m->size - m->at) {
		pickle_fail(m, ENODATA, "cut short");
		return;
	}
	ret->text = (const char *)m->data + m->at;
	ret->len = (size_t)ret->number;
	m->at += ret->len;
}

static void step(struct machine *m)
{
	struct argument_value arg = { 0 };
	const struct opcode *op;

	m->op_at = m->at;
	m->op_name = "end";
	if (m->at == m->size) {
		pickle_fail(m, ENODATA, "cut short");
		return;
	}
	op = &pickle_opcodes[m->data[m->at++]];
	if (!op->run) {
		m->r = cw_err_set(m->err, EBADMSG, "offset %zu: no opcode 0x%02x", m->op_at,
				  m->data[m->op_at]);
		return;
	}
	m->op_name = op->name;
	read_argument(m, op->argument, &arg);
	if (m->r == 0)
		op->run(m, &arg);
}

int cw_pickle_read(const void *data, size_t size, struct cw_arena *arena,
		   const struct cw_value **ret, struct cw_err *err)
{
	struct machine m = { .data = data, .size = size, .arena = arena, .err = err };

	while (m.r == 0 && !m.is_done)
		step(&m);
	if (m.r == 0)
		*ret = m.stack[m.n_stack - 1];
	return m.r;
}
