/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call becomes a row on a communicator whose only member is the rank. Operator, module and phase
 * form the call site. collwatch.torch has already combined the tensors on one side of a call into
 * one set of statistics.
 */
#include "numerics/read/tensor_baseline.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/op.h"
#include "numerics/collect/baseline_file.h"
#include "numerics/read/tensor_file.h"

#define OPERATORS_MAX 1048576u
#define NUMBERS 9u /* numbers per call: the operator, and four per side */

/* An operator. The file declares each one once. */
struct operator
{
	uint64_t n_in, n_out;
	uint16_t site;
	uint8_t dtype;
};

struct maker {
	const char *dir;
	struct cw_baseline_writer *writer;
	struct operator* operators;
	uint32_t n_operators, seq;
	uint64_t counters[CW_BASELINE_COUNTERS];
	struct cw_tensor_baseline_said said;
	char path[PATH_MAX];
};

static uint8_t dtype_of(const char *name)
{
	static const struct {
		const char *name;
		uint8_t dtype;
	} of[] = {
		{ "float32", CW_DTYPE_FP32 },         { "bfloat16", CW_DTYPE_BF16 },
		{ "float16", CW_DTYPE_FP16 },         { "float64", CW_DTYPE_FP64 },
		{ "complex64", CW_DTYPE_FP32 },       { "complex128", CW_DTYPE_FP64 },
		{ "complex32", CW_DTYPE_FP16 },       { "float8_e4m3fn", CW_DTYPE_FP8_E4M3 },
		{ "float8_e5m2", CW_DTYPE_FP8_E5M2 }, { "int64", CW_DTYPE_INT64 },
		{ "int32", CW_DTYPE_INT32 },          { "int8", CW_DTYPE_INT8 },
		{ "uint8", CW_DTYPE_UINT8 },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (strcmp(of[i].name, name) == 0)
			return of[i].dtype;
	return CW_DTYPE_NONE;
}

/* Appends the list ["ones_like", …] to the text as "ones_like …". */
static void add_denied(char *text, size_t len, const char *prefix, const json_t *list)
{
	size_t used = strlen(text), i;
	json_t *each;

	json_array_foreach (list, i, each) {
		const char *name = json_string_value(each);
		int n = snprintf(text + used, len - used, "%s%s%s", used ? " " : "", prefix,
				 name ? name : "");

		if (n < 0 || (size_t)n >= len - used) {
			text[used] = '\0';
			break;
		}
		used += (size_t)n;
	}
}

/*
 * Writes the names of modules and operators that were not sampled. Modules come first because there
 * are few, and operators fill the remaining room.
 */
static int write_denied(struct maker *m, const json_t *head)
{
	char text[CW_BASELINE_DENIED_BYTES + 1] = "";

	add_denied(text, sizeof(text), "module:", json_object_get(head, "denied_modules"));
	add_denied(text, sizeof(text), "", json_object_get(head, "denied"));
	return cw_baseline_writer_denied(m->writer, text);
}

static int on_head(struct maker *m, const json_t *line)
{
	int64_t rank = cw_tensor_line_number(line, "rank", -1);
	int64_t world = cw_tensor_line_number(line, "world_size", -1);
	struct cw_baseline_head head = {
		.part = CW_BASELINE_OPERATORS,
		.world_size = world > 0 && world <= INT32_MAX ? (int32_t)world : -1,
		.pid = (uint32_t)cw_tensor_line_count(line, "pid"),
	};
	struct cw_baseline_comm comm = { .nranks = 1, .name = "operators" };
	int r;

	/* A program without ranks counts as rank 0. */
	if (rank < 0 && world <= 1)
		rank = 0;
	if (rank < 0 || rank > INT32_MAX)
		return -ENODATA;
	head.rank = m->said.rank = (int32_t)rank;
	if (snprintf(m->path, sizeof(m->path), "%s/rank-%d.operators" CW_BASELINE_SUFFIX, m->dir,
		     head.rank) >= (int)sizeof(m->path))
		return -ENAMETOOLONG;
	r = cw_baseline_writer_new(m->path, &head, &m->writer);
	if (r == 0)
		r = cw_baseline_writer_comm(m->writer, &comm);
	if (r >= 0)
		r = write_denied(m, line);
	return r < 0 ? r : 0;
}

static int on_operator(struct maker *m, const json_t *line)
{
	const char *class = cw_tensor_line_text(line, "class");
	char site[CW_BASELINE_SITE_BYTES + 1];
	uint32_t n = m->n_operators;
	int number;

	if (cw_tensor_line_number(line, "operator", -1) != n)
		return -EBADMSG;
	if (n == OPERATORS_MAX)
		return -E2BIG;
	if (!(n & (n - 1))) {
		struct operator* grown =
			realloc(m->operators, (n ? 2 * (size_t)n : 1) * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		m->operators = grown;
	}
	(void)snprintf(site, sizeof(site), "%s%s%s%s: %s, %s", cw_tensor_line_text(line, "module"),
		       class[0] ? " (" : "", class, class[0] ? ")" : "",
		       cw_tensor_line_text(line, "op"), cw_tensor_line_text(line, "phase"));
	number = cw_baseline_writer_site(m->writer, site);
	if (number < 0)
		return number;
	m->operators[m->n_operators++] =
		(struct operator){ .n_in = cw_tensor_line_count(line, "inputs"),
				   .n_out = cw_tensor_line_count(line, "outputs"),
				   .site = (uint16_t)number,
				   .dtype = dtype_of(cw_tensor_line_text(line, "dtype")) };
	return 0;
}

/*
 * Sets the statistics of one side of a call. The first number of the file is how many tensors have
 * a NaN or infinity. If it is below 0, no tensor was sampled. The other statistics follow it.
 */
static void set_side(struct maker *m, struct cw_baseline_row *row, enum cw_baseline_side side,
		     const json_t *call)
{
	size_t at = side == CW_BASELINE_IN ? 1 : 5;
	json_int_t bad = json_integer_value(json_array_get(call, at));

	if (bad < 0)
		return;
	m->counters[CW_BASELINE_N_TENSORS]++;
	row->unit |= side == CW_BASELINE_IN ? CW_BASELINE_HAS_IN : CW_BASELINE_HAS_OUT;
	row->nonfinite[side] =
		bad < CW_BASELINE_NONFINITE_MAX ? (uint8_t)bad : CW_BASELINE_NONFINITE_MAX;
	for (enum cw_baseline_value v = 0; v < CW_BASELINE_VALUES; v++) {
		const json_t *number = json_array_get(call, at + 1 + v);

		cw_baseline_row_set_value(row, side, v,
					  json_is_number(number) ? json_number_value(number) : NAN);
	}
}

static int add_call(struct maker *m, const json_t *call, uint32_t step_plus_1)
{
	json_int_t number = json_integer_value(json_array_get(call, 0));
	const struct operator* o;
	struct cw_baseline_row row;

	if (json_array_size(call) != NUMBERS || number < 0 || number >= m->n_operators)
		return -EBADMSG;
	o = &m->operators[number];
	if (o->n_out > CW_BASELINE_COUNT_MAX)
		return -EBADMSG;
	row = (struct cw_baseline_row){
		.unit = CW_BASELINE_UNIT_ROW,
		.kind = CW_BASELINE_KIND_OPERATOR,
		.dtype = o->dtype,
		.redop = CW_REDOP_NONE,
		.seq = ++m->seq,
		.step_plus_1 = step_plus_1,
		.site = o->site,
		.root_or_peer = o->n_in < INT32_MAX ? (int32_t)o->n_in : INT32_MAX,
	};
	cw_baseline_row_set_count(&row, o->n_out);
	set_side(m, &row, CW_BASELINE_IN, call);
	set_side(m, &row, CW_BASELINE_OUT, call);
	m->said.n_calls++;
	if (cw_baseline_writer_row(m->writer, &row) < 0)
		m->counters[CW_BASELINE_N_REFUSED]++;
	return 0;
}

static int on_calls(struct maker *m, const json_t *line)
{
	int64_t step = cw_tensor_line_number(line, "step", -1);
	uint64_t lost = cw_tensor_line_count(line, "lost");
	const json_t *calls = json_object_get(line, "calls");
	uint32_t step_plus_1 = step >= 0 && step < UINT32_MAX ? (uint32_t)step + 1 : 0;
	int r = 0;

	/* Lost calls take numbers too, like collectives that a record has overwritten. */
	if (m->seq + lost + json_array_size(calls) >= UINT32_MAX)
		return -E2BIG;
	m->seq += (uint32_t)lost;
	m->said.n_lost += lost;
	for (size_t i = 0; i < json_array_size(calls) && r == 0; i++)
		r = add_call(m, json_array_get(calls, i), step_plus_1);
	return r;
}

static int on_line(const char *kind, json_t *line, void *user)
{
	struct maker *m = user;

	if (strcmp(kind, "head") == 0)
		return on_head(m, line);
	if (strcmp(kind, "operator") == 0)
		return on_operator(m, line);
	if (strcmp(kind, "calls") == 0)
		return on_calls(m, line);
	if (strcmp(kind, "end") == 0)
		m->said.n_unread = cw_tensor_line_count(line, "unread");
	return 0;
}

int cw_tensor_baseline_make(const char *path, const char *dir, struct cw_tensor_baseline_said *ret,
			    struct cw_err *err)
{
	struct maker m = { .dir = dir };
	int r = cw_tensor_file_each(path, on_line, &m, err), end;
	bool is_mine = m.writer != NULL;

	m.counters[CW_BASELINE_N_LOST_OPS] = m.said.n_lost;
	m.counters[CW_BASELINE_N_NOT_COLLECTED] = m.said.n_unread;
	end = cw_baseline_writer_free(m.writer, m.counters);
	free(m.operators);
	if (r == 0 && end < 0)
		r = cw_err_set(err, -end, "%s: %s", m.path, strerror(-end));
	if (r == 0 && m.said.n_calls == 0)
		r = cw_err_set(err, ENODATA,
			       "%s: no calls of operators: collwatch.torch writes them with "
			       "ops=True and calls=True",
			       path);
	if (r < 0 && is_mine)
		(void)unlink(m.path);
	if (r == 0)
		*ret = m.said;
	return r;
}
