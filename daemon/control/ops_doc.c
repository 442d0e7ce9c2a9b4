/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/ops_doc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "identity/job_label.h"

/*
 * Maximum number of rows of all jobs together; we omit further ones. Each new row is compared with
 * all rows before it. With 2,048 processes of 64 rows each, this would take minutes.
 */
#define MAX_JOINED 4096u
/*
 * Maximum number of tensors that we list. One tensor is enough for an alarm, and hundreds would not
 * show more.
 */
#define MAX_TENSORS 64u

struct joined {
	char job[CW_JOB_LABEL_BYTES];
	uid_t uid;
	uint32_t processes; /* number of processes whose rows are summed up in `row` */
	struct cw_op_row row;
};

struct collector {
	const struct cw_caller *caller;
	const struct cw_job_id *job; /* NULL = all jobs */
	struct joined *rows;
	size_t n, omitted;
	uint64_t lost;
	bool is_out_of_memory;
	json_t *tensors;
	int64_t now_ns;
};

static bool is_same(const struct joined *j, const char *label, uid_t uid,
		    const struct cw_op_row *row)
{
	return j->row.comm_id == row->comm_id && j->row.kind == row->kind &&
	       j->row.size_class == row->size_class && j->uid == uid && !strcmp(j->job, label);
}

static struct joined *find(struct collector *c, const char *label, uid_t uid,
			   const struct cw_op_row *row)
{
	struct joined *j;

	for (size_t i = 0; i < c->n; i++)
		if (is_same(&c->rows[i], label, uid, row))
			return &c->rows[i];
	if (c->n == MAX_JOINED)
		return NULL;
	j = &c->rows[c->n++];
	j->uid = uid;
	j->row = *row;
	j->row.sums = (struct cw_op_sums){ 0 };
	(void)snprintf(j->job, sizeof(j->job), "%s", label);
	return j;
}

static void add(struct cw_op_sums *to, const struct cw_op_sums *from)
{
	to->ops += from->ops;
	to->bytes += from->bytes;
	to->call_ns += from->call_ns;
	cw_durations_join(&to->calls, &from->calls);
	to->timed += from->timed;
	to->timed_bytes += from->timed_bytes;
	to->device_ns += from->device_ns;
	if (from->device_max_ns > to->device_max_ns)
		to->device_max_ns = from->device_max_ns;
}

static void on_process(const struct cw_node_process *p, const char *label,
		       const struct cw_op_stats *ops,
		       const struct cw_nonfinite_input *nonfinite_input, void *user)
{
	struct collector *c = user;

	if (c->job ? p->uid != c->job->uid || strcmp(label, c->job->label) != 0
		   : !cw_caller_may_see(c->caller, p->uid))
		return;
	c->lost += ops->lost;
	for (size_t i = 0; i < ops->n_rows; i++) {
		struct joined *j = find(c, label, p->uid, &ops->rows[i]);

		if (!j) {
			c->omitted++;
			continue;
		}
		j->processes++;
		add(&j->row.sums, &ops->rows[i].sums);
	}
}

static int by_job_and_bytes(const void *a, const void *b)
{
	const struct joined *x = a, *y = b;
	int r = strcmp(x->job, y->job);

	if (r)
		return r;
	if (x->uid != y->uid)
		return x->uid < y->uid ? -1 : 1;
	return x->row.sums.bytes < y->row.sums.bytes   ? 1
	       : x->row.sums.bytes > y->row.sums.bytes ? -1
						       : 0;
}

/*
 * Returns a factor for the size of an op. nccl-tests divides this size by the time. It is a
 * multiple of the bytes of one rank.
 */
static unsigned parts(const struct cw_op_row *row)
{
	switch (row->kind) {
	case CW_OP_ALL_GATHER:
	case CW_OP_REDUCE_SCATTER:
	case CW_OP_ALL_TO_ALL:
	case CW_OP_GATHER:
	case CW_OP_SCATTER:
		return row->nranks;
	default:
		return 1;
	}
}

/*
 * Returns the factor from algbw to busbw that nccl-tests uses (doc/PERFORMANCE.md; gather.cu and
 * scatter.cu).
 */
static double bus_factor(const struct cw_op_row *row)
{
	double n = row->nranks ? row->nranks : 1;

	switch (row->kind) {
	case CW_OP_ALL_REDUCE:
		return 2 * (n - 1) / n;
	case CW_OP_ALL_GATHER:
	case CW_OP_REDUCE_SCATTER:
	case CW_OP_ALL_TO_ALL:
	case CW_OP_GATHER:
	case CW_OP_SCATTER:
		return (n - 1) / n;
	default:
		return 1;
	}
}

static json_t *mean_us(uint64_t ns, uint64_t n)
{
	return n ? json_real((double)ns / (double)n / 1000.0) : json_null();
}

static double quantile_us(const struct cw_durations *d, unsigned percent)
{
	return (double)cw_durations_quantile_ns(d, percent) / 1000.0;
}

/* Returns the quantiles of the calls' durations: 50 %, 90 %, 99 %, and the longest. */
static json_t *calls_doc(const struct cw_durations *d)
{
	if (!d->n)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f, s:f}", "p50", quantile_us(d, 50), "p90",
			 quantile_us(d, 90), "p99", quantile_us(d, 99), "max",
			 (double)d->max_ns / 1000.0, "jitter",
			 quantile_us(d, 90) - quantile_us(d, 10));
}

static json_t *row_doc(const struct joined *j)
{
	const struct cw_op_sums *s = &j->row.sums;
	double algbw = 0;
	char comm[24] = "";

	if (j->row.comm_id)
		(void)snprintf(comm, sizeof(comm), "0x%" PRIx64, j->row.comm_id);
	if (s->device_ns) /* bytes per ns equal GB per s */
		algbw = (double)s->timed_bytes * parts(&j->row) / (double)s->device_ns;
	return json_pack(
		"{s:s, s:I, s:s, s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:o}",
		"job", j->job, "uid", (json_int_t)j->uid, "kind",
		j->row.comm_id ? cw_op_kind_name(j->row.kind) : "others", "comm", comm, "comm_name",
		j->row.comm_name, "nranks", (json_int_t)j->row.nranks, "size",
		j->row.comm_id ? cw_op_stats_size_name(j->row.size_class) : "any", "processes",
		(json_int_t)j->processes, "ops", (json_int_t)s->ops, "bytes", (json_int_t)s->bytes,
		"call_us", mean_us(s->call_ns, s->ops), "calls_us", calls_doc(&s->calls), "timed",
		(json_int_t)s->timed, "device_us", mean_us(s->device_ns, s->timed), "device_max_us",
		mean_us(s->device_max_ns, s->timed ? 1 : 0), "algbw_gbs",
		s->device_ns ? json_real(algbw) : json_null(), "busbw_gbs",
		s->device_ns && j->row.comm_id ? json_real(algbw * bus_factor(&j->row))
					       : json_null());
}

static json_t *make_doc(const struct cw_node *node, const char *node_name,
			const struct cw_caller *caller, const struct cw_job_id *job)
{
	struct collector c = { .caller = caller, .job = job };
	json_t *rows = json_array();

	c.rows = calloc(MAX_JOINED, sizeof(*c.rows));
	if (!c.rows || !rows) {
		free(c.rows);
		json_decref(rows);
		return NULL;
	}
	if (node)
		cw_node_each_ops(node, on_process, &c);
	qsort(c.rows, c.n, sizeof(*c.rows), by_job_and_bytes);
	for (size_t i = 0; i < c.n; i++) {
		if (i >= CW_OPS_DOC_ROWS)
			c.omitted++;
		else if (json_array_append_new(rows, row_doc(&c.rows[i])) < 0)
			c.omitted++;
	}
	free(c.rows);
	return json_pack("{s:s, s:s, s:o, s:I, s:I}", "schema", "collwatch.ops/1", "node",
			 node_name, "rows", rows, "omitted", (json_int_t)c.omitted, "lost",
			 (json_int_t)c.lost);
}

json_t *cw_ops_doc(const struct cw_node *node, const char *node_name,
		   const struct cw_caller *caller)
{
	return make_doc(node, node_name, caller, NULL);
}

json_t *cw_ops_doc_of_job(const struct cw_node *node, const char *node_name,
			  const struct cw_job_id *job)
{
	return make_doc(node, node_name, NULL, job);
}

static void on_tensor(const struct cw_node_process *p, const char *label,
		      const struct cw_op_stats *ops,
		      const struct cw_nonfinite_input *nonfinite_input, void *user)
{
	const struct cw_rec_summary *n = &nonfinite_input->tensor_stats;
	struct collector *c = user;
	char what[256], comm[24];

	if (!nonfinite_input->seen_ns || !cw_caller_may_see(c->caller, p->uid) ||
	    json_array_size(c->tensors) >= MAX_TENSORS)
		return;
	cw_nonfinite_input_format(nonfinite_input, p->rank, what, sizeof(what));
	(void)snprintf(comm, sizeof(comm), "0x%" PRIx64, nonfinite_input->comm_id);
	(void)json_array_append_new(
		c->tensors,
		json_pack("{s:s, s:I, s:I, s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:f}",
			  "job", label, "uid", (json_int_t)p->uid, "pid", (json_int_t)p->pid,
			  "rank", (int)p->rank, "kind", cw_op_kind_name(n->kind), "dtype",
			  cw_dtype_name(n->dtype), "comm", comm, "summary", what, "seq",
			  (json_int_t)n->seq, "op_index", (json_int_t)n->op_index, "nans",
			  (json_int_t)n->nans, "infs", (json_int_t)n->infs, "elements",
			  (json_int_t)n->elements, "ago_s",
			  (double)(cw_age_ns(c->now_ns, nonfinite_input->seen_ns) / CW_NS_PER_MS) /
				  1000.0));
}

json_t *cw_ops_doc_tensors(const struct cw_node *node, int64_t now_ns,
			   const struct cw_caller *caller)
{
	struct collector c = { .caller = caller, .tensors = json_array(), .now_ns = now_ns };

	if (node && c.tensors)
		cw_node_each_ops(node, on_tensor, &c);
	return c.tensors;
}

static void on_finding(const struct cw_job_id *job, const struct cw_extension_kind *kind,
		       const struct cw_extension_finding *finding, void *user)
{
	struct collector *c = user;

	if (!cw_caller_may_see(c->caller, job->uid) || json_array_size(c->tensors) >= MAX_TENSORS)
		return;
	(void)json_array_append_new(
		c->tensors,
		json_pack(
			"{s:s, s:I, s:s, s:s, s:f}", "job", job->label, "uid", (json_int_t)job->uid,
			"what", kind->name, "summary", finding->text, "ago_s",
			(double)(cw_age_ns(c->now_ns, finding->seen_ns) / CW_NS_PER_MS) / 1000.0));
}

json_t *cw_ops_doc_tensor_stats(const struct cw_node *node, int64_t now_ns,
				const struct cw_caller *caller)
{
	struct collector c = { .caller = caller, .tensors = json_array(), .now_ns = now_ns };

	if (node && c.tensors)
		cw_job_tensor_stats_each_finding(cw_node_tensor_stats(node), on_finding, &c);
	return c.tensors;
}
