/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We read the files in three passes, and open one file at a time. The first pass finds the latest
 * end of a record, which all ages refer to. The second pass makes each file a rank of one digest.
 * The leader's code then makes the snapshot from this digest. The third pass reads the windows of
 * all communicators.
 */
#include "import/record_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/or_exit/or_exit.h"
#include "digest/digest.h"
#include "digest/window.h"
#include "leader/job_digests.h"
#include "leader/snapshot_build.h"
#include "proto/ages.h"

/* The name of the only node. Records do not name the host. */
#define NODE ""
/* The label of a job that no record names. */
#define NAMELESS "records"
#define MAX_RECORDS CW_JOB_DIGESTS_MAX_RANKS
/*
 * The number of ranks that are always allowed, because even a single record of a large job is
 * useful.
 */
#define PLACES_FREE 65536u
/*
 * Agents update their records several times a second. If two records end further apart than this,
 * they show different times.
 */
#define APART_NS (10 * CW_NS_PER_S)

struct loader {
	char *const *paths;
	uint32_t n;
	const struct cw_import_watch *watch;
	uint32_t n_opened; /* number of files opened in all passes */
	struct cw_err *err;

	int64_t now_ns; /* wall time */
	int64_t earliest_end_ns;
	uint32_t earliest; /* index of the earliest record */
	char label[CW_JOB_LABEL_BYTES];

	struct cw_digest *digests; /* n digests, with one rank each */
	struct cw_msg_rank *ranks; /* the ranks of all digests */
	struct cw_snapshot *snap;
};

/* An open record file. */
struct file {
	struct cw_record *record;
	struct cw_sampler sampler;
	struct cw_nonfinite_input nonfinite_input;
	int64_t ahead_ns; /* wall time minus the time of the record's clock */
	int64_t end_ns;   /* wall time at which the record ends; 0 = unknown */
};

static void file_fini(struct file *f)
{
	f->record = cw_record_close(f->record);
	cw_sampler_fini(&f->sampler);
}

/* ---- one file ---- */

static void date(struct file *f)
{
	const struct cw_rec_header *h = cw_record_header(f->record);
	int64_t mono_ns = cw_record_time(f->record, h->created_ns);
	int64_t end_ns = cw_bounded_ns(f->sampler.sampled_ns);

	if (h->created_wall_ns < INT64_MAX)
		f->ahead_ns = cw_bounded_ns((int64_t)h->created_wall_ns) - cw_bounded_ns(mono_ns);
	f->ahead_ns = cw_bounded_ns(f->ahead_ns);
	if (end_ns && end_ns + f->ahead_ns > 0)
		f->end_ns = end_ns + f->ahead_ns;
}

static int file_open(struct loader *l, uint32_t i, struct file *ret)
{
	const char *path = l->paths[i];
	struct cw_err why = { "" };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;

	*ret = (struct file){ 0 };
	cw_sampler_init(&ret->sampler);
	if (fd < 0)
		return cw_err_set(l->err, errno, "%s: %s", path, strerror(errno));
	r = cw_record_open(fd, false, &ret->record, &why);
	if (r < 0)
		return cw_err_set(l->err, -r, "%s: %s", path,
				  why.text[0] ? why.text : strerror(-r));
	/* Other errors only mean that the sampler lacks the parts that we could not read. */
	(void)cw_or_exit_result(cw_sampler_read_past(&ret->sampler, ret->record));
	date(ret);
	(void)cw_nonfinite_input_find(&ret->nonfinite_input, ret->record, ret->sampler.sampled_ns);
	return 0;
}

/*
 * Returns the facts about the rank of a file. A record shows neither the state of the process nor
 * how it ended, so these stay unknown.
 */
static struct cw_digest_rank file_rank(const struct loader *l, const struct file *f)
{
	const struct cw_rec_header *h = cw_record_header(f->record);

	return (struct cw_digest_rank){
		.record = f->record,
		.sampler = &f->sampler,
		.nonfinite_input = &f->nonfinite_input,
		.now_ns = cw_bounded_ns(l->now_ns) - f->ahead_ns,
		.pid = (int32_t)h->pid,
		.start_ticks = h->process_start_ticks,
	};
}

/* ---- the passes ---- */

#define N_PASSES 3u

static int each_file(struct loader *l, int (*fn)(struct loader *l, uint32_t i, struct file *f))
{
	int r = 0;

	for (uint32_t i = 0; i < l->n && r == 0; i++) {
		_cleanup_(file_fini) struct file f = { 0 };

		r = file_open(l, i, &f);
		if (r < 0)
			return r;
		r = fn(l, i, &f);
		if (r < 0)
			(void)cw_err_set(l->err, -r, "%s: %s", l->paths[i], strerror(-r));
		l->n_opened++;
		cw_import_watch_note(l->watch, l->n_opened / N_PASSES, l->n);
	}
	return r;
}

static int note_end(struct loader *l, uint32_t i, struct file *f)
{
	const struct cw_record_comm *comms;
	size_t n;

	comms = cw_record_comms(f->record, &n);
	if (!l->label[0])
		/* a record may have no label */
		(void)cw_job_label(cw_record_header(f->record), comms, n, l->label);
	if (!f->end_ns)
		return 0;
	if (!l->earliest_end_ns || f->end_ns < l->earliest_end_ns) {
		l->earliest_end_ns = f->end_ns;
		l->earliest = i;
	}
	if (f->end_ns > l->now_ns)
		l->now_ns = f->end_ns;
	return 0;
}

static int make_digest(struct loader *l, uint32_t i, struct file *f)
{
	struct cw_digest_rank rank = file_rank(l, f);
	struct cw_job_id job = { .uid = 0 };
	struct cw_digest_source source = {
		.node = NODE, .job = &job, .ranks = &rank, .n_ranks = 1
	};
	int r = cw_digest_make(&source, &l->digests[i]);

	if (r < 0)
		return r;
	l->ranks[i] = l->digests[i].msg.ranks[0];
	return 0;
}

static bool is_first_of(const struct cw_record_comm *comms, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (comms[k].entry.comm_id == comms[i].entry.comm_id)
			return false;
	return true;
}

static int set_window(struct loader *l, uint32_t rank, const struct cw_msg_window_reply *reply,
		      const struct cw_msg_window *w)
{
	_cleanup_(freep) struct cw_op *ops = cw_or_exit(calloc(w->n_ops + 1, sizeof(*ops)));
	uint32_t comm = cw_snapshot_find_comm(l->snap, w->comm_id, w->instance);
	int r = 0;

	if (comm == CW_SNAP_NONE || w->comm_rank < 0 ||
	    (uint32_t)w->comm_rank >= l->snap->comms[comm].nranks ||
	    l->snap->comms[comm].members[w->comm_rank].rank != rank)
		return 0; /* omitted, or its rank belongs to another record */
	for (uint32_t i = 0; i < w->n_ops && r == 0; i++) {
		uint32_t stack = w->ops[i].stack;

		ops[i] = cw_ages_to_op(&w->ops[i], l->now_ns);
		ops[i].stack = 0;
		if (stack && stack <= reply->n_stacks)
			r = cw_snapshot_add_stack(l->snap, reply->stacks[stack - 1], &ops[i].stack);
	}
	return r < 0 ? r
		     : cw_snapshot_set_window(l->snap, comm, (uint32_t)w->comm_rank, ops, w->n_ops,
					      w->lost, l->now_ns);
}

static int add_windows(struct loader *l, uint32_t i, struct file *f)
{
	struct cw_digest_rank rank = file_rank(l, f);
	const struct cw_record_comm *comms;
	size_t n;
	int r = 0;

	comms = cw_record_comms(f->record, &n);
	for (size_t k = 0; k < n && r == 0; k++) {
		uint64_t id = comms[k].entry.comm_id;
		struct cw_msg_window_request request = { .comm_ids = &id,
							 .n_comm_ids = 1,
							 .max_ops = CW_RECORD_FILES_WINDOW };
		_cleanup_(cw_window_fini) struct cw_msg_window_reply reply = { 0 };

		if (!is_first_of(comms, k))
			continue;
		r = cw_window_collect(&rank, 1, &request, &reply);
		for (uint32_t w = 0; w < reply.n_windows && r == 0; w++)
			r = set_window(l, i, &reply, &reply.windows[w]);
	}
	return r;
}

/* ---- the whole snapshot ---- */

static int64_t now_of(void *user)
{
	return ((const struct loader *)user)->now_ns;
}

static const char *policy_of(const struct loader *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->digests[i].msg.policy[0])
			return l->digests[i].msg.policy;
	return "";
}

/* Builds the snapshot. We act like a leader whose only node has just sent its digest. */
static int build_snapshot(struct loader *l)
{
	const struct cw_clock clock = { .monotonic_ns = now_of, .wall_ns = now_of, .user = l };
	_cleanup_(freep) struct cw_rank_ref *refs = cw_or_exit(calloc(l->n, sizeof(*refs)));
	_cleanup_(cw_job_digests_fini) struct cw_job_digests digests = { 0 };
	struct cw_job_id job = { 0 };
	struct cw_message msg = { .type = CW_MSG_DIGEST };
	struct cw_message *put = &msg;
	struct cw_build build = {
		.digests = &digests,
		.refs = refs,
		.n_refs = l->n,
		.thresholds = cw_thresholds_default(),
		.now_ns = l->now_ns,
		.wall_ns = l->now_ns,
		.places_free = PLACES_FREE,
	};
	bool is_urgent;
	int r;

	for (uint32_t i = 0; i < l->n; i++)
		refs[i].rank = i;
	r = cw_job_id_make(0, l->label[0] ? l->label : NAMELESS, &job);
	if (r < 0)
		return r;
	msg.digest = (struct cw_msg_digest){ .job_hash = cw_job_id_hash(&job),
					     .job_key = job.key,
					     .label = job.label,
					     .node = NODE,
					     .policy = policy_of(l),
					     .ranks = l->ranks,
					     .n_ranks = l->n };
	r = cw_job_digests_init(&digests, &msg.digest);
	if (r == 0)
		r = cw_job_digests_put(&digests, NODE, &put, &clock, &is_urgent);
	if (r == 0)
		r = cw_snapshot_build(&build, &l->snap);
	/* No node reports, so no node omitted a rank. Each record ends at its own time. */
	if (r == 0)
		l->snap->nodes[0].last_digest_ns = 0;
	return r;
}

__attribute__((format(printf, 2, 3))) static int note(struct loader *l, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return cw_snapshot_add_note(l->snap, text);
}

static int add_notes(struct loader *l)
{
	int r = note(
		l,
		"from flight records in files: no stacks, and the ends of processes are not known");

	if (r == 0 && l->earliest_end_ns && l->now_ns - l->earliest_end_ns > APART_NS)
		r = note(l, "the record of rank %d ends %lld s before the last one",
			 l->snap->ranks[l->earliest].rank,
			 (long long)((l->now_ns - l->earliest_end_ns) / CW_NS_PER_S));
	return r;
}

static int load(struct loader *l)
{
	int r = each_file(l, note_end);

	l->digests = cw_or_exit(calloc(l->n, sizeof(*l->digests)));
	l->ranks = cw_or_exit(calloc(l->n, sizeof(*l->ranks)));
	if (r == 0)
		r = each_file(l, make_digest);
	if (r == 0)
		r = build_snapshot(l);
	if (r == 0)
		r = each_file(l, add_windows);
	return r < 0 ? r : add_notes(l);
}

int cw_record_files_read(char *const *paths, uint32_t n, const struct cw_import_watch *watch,
			 struct cw_snapshot **ret, struct cw_err *err)
{
	struct loader l = { .paths = paths, .n = n, .watch = watch, .err = err };
	int r;

	err->text[0] = '\0';
	if (n == 0 || n > MAX_RECORDS)
		return cw_err_set(err, n ? E2BIG : EINVAL, "%u records", n);
	r = cw_or_exit_result(load(&l));
	for (uint32_t i = 0; i < n; i++)
		cw_digest_fini(&l.digests[i]);
	free(l.digests);
	free(l.ranks);
	if (r < 0) {
		(void)cw_snapshot_free(l.snap);
		return err->text[0] ? r : cw_err_set(err, -r, "%s", strerror(-r));
	}
	*ret = l.snap;
	return 0;
}
