/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/read/numerics_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/job_env.h"
#include "common/parse.h"
#include "identity/job_label.h"
#include "leader/job_digests.h"
#include "numerics/read/tensor_samples.h"
#include "record/record_process.h"
#include "record/record_reader.h"

#define MAX_FILES CW_JOB_DIGESTS_MAX_RANKS

struct found {
	const char *path;
	int fd; /* -1 = already used */
	/* The following fields are set only for records of a job: */
	dev_t dev;
	ino_t file;
	int64_t own_pid; /* the pid that the rank itself sees */
	uint64_t start_ticks;
	bool lives;
};

struct loader {
	struct cw_numerics_input *input;
	struct cw_tensor_samples samples;
};

/* ---- one file ---- */

static int read_record(struct loader *l, uint32_t rank, const struct found *from,
		       struct cw_record *record)
{
	const struct cw_rec_header *h = cw_record_header(record);
	struct cw_tensor_samples_count n;
	int r = cw_tensor_samples_add(&l->samples, record, &n);

	if (r < 0)
		return r;
	l->input->sources[rank] = (struct cw_numerics_source){
		.path = from->path,
		.rank = h->rank_label,
		.pid = (int32_t)h->pid,
		.world_size = h->world_size_label,
		.has_summaries = h->has & CW_REC_HAS_SUMMARIES,
		.n_ops = h->ring_ticket,
		.n_samples = n.newest,
		.n_kept = n.kept,
		.n_dropped = h->drops[CW_REC_DROP_SUMMARIES],
		.created_wall_ns =
			h->created_wall_ns <= INT64_MAX ? (int64_t)h->created_wall_ns : 0,
		.lives = from->lives,
	};
	return 0;
}

/* Adds a record to the job. Takes ownership of from->fd. */
static int load(struct loader *l, uint32_t rank, struct found *from, struct cw_err *err)
{
	struct cw_record *record;
	struct cw_err why = { "" };
	int fd = from->fd, r;

	from->fd = -1;
	r = cw_record_open(fd, false, &record, &why);
	if (r == 0) {
		r = read_record(l, rank, from, record);
		(void)cw_record_close(record); /* always NULL */
	}
	if (r < 0)
		return cw_err_set(err, -r, "%s: %s", from->path,
				  why.text[0] ? why.text : strerror(-r));
	return 0;
}

/* ---- search for records ---- */

struct finder {
	struct cw_arena *arena;
	struct found *v; /* array of MAX_FILES */
	uint32_t n;
	const char *job;                /* the job whose processes we look for */
	char label[CW_JOB_LABEL_BYTES]; /* full name of the job; empty = not known yet */
	char other_label[CW_JOB_LABEL_BYTES];
	int64_t uid;   /* user of the job; -1 = not known yet */
	int64_t other; /* another user with a job of that name; -1 = none */
	bool is_living;
};

static int find(struct finder *f, const char *path, int fd)
{
	if (!path || f->n == MAX_FILES) {
		(void)close(fd);
		return path ? -E2BIG : -ENOMEM;
	}
	f->v[f->n++] = (struct found){ .path = path, .fd = fd };
	return 0;
}

static void finder_fini(struct finder *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->v[i].fd >= 0)
			(void)close(f->v[i].fd);
	free(f->v);
}

static const char *name_of(const struct finder *f, int64_t pid)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "process %lld", (long long)pid);
	return cw_arena_strdup(f->arena, text);
}

static int find_process(struct finder *f, pid_t pid, int fd)
{
	f->is_living = true;
	return find(f, name_of(f, pid), fd);
}

/*
 * True if the record belongs to the job. Fills label[CW_JOB_LABEL_BYTES] with the record's job, and
 * ret with the identity of its rank.
 */
static bool is_of_job(int fd, const char *job, char *label, struct found *ret)
{
	const struct cw_record_comm *comms;
	struct cw_record *rec;
	size_t n;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	bool is_it;

	if (own < 0 || cw_record_open(own, false, &rec, NULL) < 0)
		return false;
	comms = cw_record_comms(rec, &n);
	is_it = cw_job_label(cw_record_header(rec), comms, n, label) &&
		cw_job_env_is_named(label, job);
	ret->own_pid = (int64_t)cw_record_header(rec)->pid;
	ret->start_ticks = cw_record_header(rec)->process_start_ticks;
	(void)cw_record_close(rec);
	return is_it;
}

/*
 * Sets the name of the found rank by its own process, even if another process has the record open.
 * If the rank's process is gone, uses its old pid.
 */
static int name_found(const struct finder *f, struct found *found, pid_t pid)
{
	found->lives = cw_record_process_is(pid, found->own_pid, found->start_ticks);
	if (!found->path || found->lives)
		found->path = name_of(f, found->lives ? pid : found->own_pid);
	return found->path ? 0 : -ENOMEM;
}

/* Adds the record of a rank of the job. Takes ownership of fd. */
static int find_of_job(struct finder *f, pid_t pid, int fd, const struct stat *st,
		       const struct found *rank)
{
	int r = find_process(f, pid, fd);
	struct found *found;

	if (r < 0)
		return r;
	found = &f->v[f->n - 1];
	found->path = NULL;
	found->dev = st->st_dev;
	found->file = st->st_ino;
	found->own_pid = rank->own_pid;
	found->start_ticks = rank->start_ticks;
	return name_found(f, found, pid);
}

/*
 * Adds the record if it belongs to the job. Takes ownership of fd. Any process may have the record
 * open, so we take the owner of the file as the user.
 */
static int take_if_of_job(struct finder *f, pid_t pid, int fd, const struct stat *st)
{
	char label[CW_JOB_LABEL_BYTES] = "";
	struct found rank;
	bool is_ours = false;

	if (is_of_job(fd, f->job, label, &rank)) {
		if (f->uid < 0)
			f->uid = st->st_uid;
		if (f->uid == st->st_uid && !*f->label)
			memcpy(f->label, label, sizeof(label));
		is_ours = f->uid == st->st_uid && strcmp(f->label, label) == 0;
		if (f->uid != st->st_uid)
			f->other = st->st_uid;
		else if (!is_ours)
			memcpy(f->other_label, label, sizeof(label));
	}
	if (is_ours)
		return find_of_job(f, pid, fd, st, &rank);
	(void)close(fd);
	return 0;
}

static int on_process(pid_t pid, int fd, void *user)
{
	struct finder *f = user;
	struct stat st;

	if (fstat(fd, &st) < 0) {
		(void)close(fd);
		return 0;
	}
	for (uint32_t i = 0; i < f->n; i++) {
		if (f->v[i].file != st.st_ino || f->v[i].dev != st.st_dev)
			continue;
		(void)close(fd);
		return f->v[i].lives ? 0 : name_found(f, &f->v[i], pid);
	}
	return take_if_of_job(f, pid, fd, &st);
}

static int find_all_of_job(struct finder *f, const char *job, struct cw_err *err)
{
	uint32_t before = f->n;
	bool is_any = f->uid < 0;
	int r;

	f->job = job;
	f->other = -1;
	*f->label = *f->other_label = '\0';
	r = cw_record_process_each(on_process, f);
	if (r == 0 && is_any && f->other >= 0)
		return cw_err_set(err, ENOTUNIQ,
				  "%s: users %u and %u have a job of that name: --uid says whose",
				  job, (unsigned)f->uid, (unsigned)f->other);
	if (r == 0 && *f->other_label)
		return cw_err_set(err, ENOTUNIQ,
				  "%s: the name is ambiguous (%s or %s): give the complete name",
				  job, f->label, f->other_label);
	if (r == 0 && f->n == before)
		return cw_err_set(err, ENOENT,
				  "%s: no such file, and no process of a job of that name that "
				  "this user may read",
				  job);
	return r;
}

static int find_what(struct finder *f, const char *what, struct cw_err *err)
{
	int fd = open(what, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint64_t pid;

	if (fd >= 0)
		return find(f, what, fd);
	if (errno != ENOENT || strchr(what, '/'))
		return cw_err_set(err, errno, "%s: %s", what, strerror(errno));
	if (cw_parse_u64(what, 1, INT32_MAX, &pid) == 0) {
		fd = cw_record_process_open((pid_t)pid, err);
		if (fd >= 0)
			return find_process(f, (pid_t)pid, fd);
		if (fd != -ENOENT)
			return fd;
	}
	return find_all_of_job(f, what, err);
}

/* ---- the whole job ---- */

static int refuse_doubles(const struct loader *l, uint32_t n, struct cw_err *err)
{
	const struct cw_numerics_rank *ranks = l->samples.ranks;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < i && ranks[i].rank >= 0; k++)
			if (ranks[k].rank == ranks[i].rank)
				return cw_err_set(err, EEXIST, "%s and %s are both of rank %d",
						  l->input->sources[k].path,
						  l->input->sources[i].path, ranks[i].rank);
	return 0;
}

static int load_all(struct loader *l, struct finder *f, bool is_one_job,
		    const struct cw_import_watch *watch, struct cw_err *err)
{
	struct cw_numerics_input *in = l->input;
	int r = 0;

	in->sources = cw_arena_new_array(&in->arena, struct cw_numerics_source, f->n);
	if (!in->sources)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n && r == 0; i++) {
		r = load(l, i, &f->v[i], err);
		cw_import_watch_note(watch, i + 1, f->n);
	}
	if (r == 0 && !is_one_job)
		r = refuse_doubles(l, f->n, err);
	return r;
}

int cw_numerics_files_read(char *const *what, uint32_t n, int64_t uid,
			   const struct cw_import_watch *watch, struct cw_numerics_input *ret,
			   struct cw_err *err)
{
	struct cw_numerics_input input = { .uid = -1 };
	_cleanup_(finder_fini) struct finder f = { .arena = &input.arena, .uid = uid };
	struct loader l = { .input = &input };
	int r = 0;

	err->text[0] = '\0';
	if (n == 0 || n > MAX_FILES)
		return cw_err_set(err, n ? E2BIG : EINVAL, "%u records", n);
	f.v = calloc(MAX_FILES, sizeof(*f.v)); /* untouched pages take no memory */
	if (!f.v)
		return cw_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = find_what(&f, what[i], err);
	if (r == 0)
		r = load_all(&l, &f, n == 1 && f.job, watch, err);
	if (r < 0) {
		cw_tensor_samples_fini(&l.samples);
		cw_arena_fini(&input.arena);
		return err->text[0] ? r : cw_err_set(err, -r, "%s", strerror(-r));
	}
	input.is_living = f.is_living;
	input.uid = f.job ? f.uid : -1;
	input.label = f.job ? cw_arena_strdup(&input.arena, f.label) : NULL;
	input.samples = l.samples;
	input.job = cw_tensor_samples_job(&input.samples);
	*ret = input;
	return 0;
}

void cw_numerics_input_fini(struct cw_numerics_input *input)
{
	cw_tensor_samples_fini(&input->samples);
	cw_arena_fini(&input->arena);
	*input = (struct cw_numerics_input){ .sources = NULL };
}
