/* SPDX-License-Identifier: Apache-2.0 */
#include "import/numerics_files.h"

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
#include "leader/route.h"
#include "model/op.h"
#include "record/record_process.h"
#include "record/record_reader.h"

#define MAX_FILES CW_ROUTE_MAX_RANKS
#define SITE_BYTES 256

struct loader {
	struct cw_numerics_input *input;
	struct cw_numerics_look *looks;
	struct cw_numerics_comm *comms;
	uint32_t *instances; /* per comm: tells those of one id apart */
	struct cw_numerics_rank *ranks;
	uint32_t n_looks, room_looks, n_comms, room_comms;
};

/* The summaries of a file, by the op they belong to. */
struct file {
	struct loader *l;
	struct cw_record *record;
	uint32_t rank;
	struct cw_rec_summary summaries[CW_REC_SUMMARIES];
	struct cw_numerics_look looks[CW_REC_SUMMARIES];
	size_t n;
	int r; /* of what a callback met */
};

static void file_fini(struct file *f)
{
	f->record = cw_record_close(f->record);
}

static int grow(void **array, uint32_t *room, uint32_t wanted, size_t size)
{
	uint32_t more = *room ? *room : 64;
	void *grown;

	while (more < wanted)
		more *= 2;
	if (more == *room)
		return 0;
	grown = realloc(*array, (size_t)more * size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*room = more;
	return 0;
}

/* ---- communicators: joined by id and instance ---- */

static int find_comm(struct loader *l, const struct cw_rec_comm *e, uint32_t *ret)
{
	uint32_t i = 0, room;
	int r;

	while (i < l->n_comms && (l->comms[i].id != e->comm_id || l->instances[i] != e->instance))
		i++;
	*ret = i;
	if (i < l->n_comms) {
		l->comms[i].is_uncounted |= !!(e->flags & CW_REC_COMM_UNCOUNTED);
		return 0;
	}
	room = l->room_comms;
	r = grow((void **)&l->instances, &room, i + 1, sizeof(*l->instances));
	if (r == 0)
		r = grow((void **)&l->comms, &l->room_comms, i + 1, sizeof(*l->comms));
	if (r < 0)
		return r;
	l->instances[i] = e->instance;
	l->comms[i] = (struct cw_numerics_comm){
		.id = e->comm_id,
		.name = cw_arena_strdup(&l->input->arena, e->name),
		.nranks = e->nranks,
		.is_uncounted = e->flags & CW_REC_COMM_UNCOUNTED,
	};
	l->n_comms++;
	return l->comms[i].name ? 0 : -ENOMEM;
}

static const struct cw_rec_comm *comm_of(const struct cw_record *rec,
					 const struct cw_rec_summary *s)
{
	const struct cw_record_comm *comms;
	size_t n;

	comms = cw_record_comms(rec, &n);
	for (size_t i = 0; i < n; i++)
		if (comms[i].index == s->comm && comms[i].entry.generation == s->comm_generation)
			return &comms[i].entry;
	return NULL;
}

/* ---- one file ---- */

static int compare_summaries(const void *a, const void *b)
{
	const struct cw_rec_summary *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->comm_generation != y->comm_generation)
		return x->comm_generation < y->comm_generation ? -1 : 1;
	if (x->op_index != y->op_index)
		return x->op_index < y->op_index ? -1 : 1;
	return (x->publish > y->publish) - (x->publish < y->publish);
}

/* The first of each device lies in the ring, too, for a while. */
static void drop_doubles(struct file *f)
{
	size_t n = 0;

	qsort(f->summaries, f->n, sizeof(*f->summaries), compare_summaries);
	for (size_t i = 0; i < f->n; i++)
		if (n == 0 || f->summaries[n - 1].publish != f->summaries[i].publish)
			f->summaries[n++] = f->summaries[i];
	f->n = n;
}

static int64_t wall_of(const struct cw_record *rec, uint64_t at)
{
	const struct cw_rec_header *h = cw_record_header(rec);
	int64_t since, wall;

	if (!at ||
	    __builtin_sub_overflow(cw_record_time(rec, at), cw_record_time(rec, h->created_ns),
				   &since) ||
	    h->created_wall_ns > INT64_MAX ||
	    __builtin_add_overflow((int64_t)h->created_wall_ns, since, &wall))
		return 0;
	return wall > 0 ? wall : 0;
}

/* Where it was called from: the innermost frame of its stack, else the code that made the call. */
static const char *site_of(struct file *f, const struct cw_rec_op *op)
{
	char stack[CW_RECORD_STACK_BYTES], site[SITE_BYTES];

	if (op->stack_id && cw_record_stack(f->record, op->stack_id, stack, sizeof(stack)) == 0) {
		stack[strcspn(stack, "\n")] = '\0';
		return cw_arena_strdup(&f->l->input->arena, stack);
	}
	if (cw_record_site(f->record, op, site, sizeof(site)) == 0)
		return cw_arena_strdup(&f->l->input->arena, site);
	return NULL;
}

static void on_op(const struct cw_rec_op *op, void *user)
{
	struct file *f = user;
	size_t low = 0, high = f->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct cw_rec_summary *s = &f->summaries[middle];

		if (s->comm < op->comm || (s->comm == op->comm && s->op_index < op->op_index))
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < f->n && f->summaries[low].comm == op->comm &&
	       f->summaries[low].op_index == op->op_index;
	     low++) {
		const struct cw_rec_summary *s = &f->summaries[low];
		struct cw_numerics_look *look = &f->looks[low];

		if ((uint16_t)s->comm_generation != op->comm_generation || s->kind != op->kind ||
		    s->seq != op->seq)
			continue;
		look->redop = op->redop;
		look->root_or_peer = op->root_or_peer;
		look->at_ns = wall_of(f->record, op->enter_ns);
		if (!look->site)
			look->site = site_of(f, op);
	}
}

static uint32_t stride_of(const struct cw_rec_summary *s)
{
	unsigned log2_plus_1 = s->stride_log2_plus_1;

	return log2_plus_1 && log2_plus_1 <= 32 ? UINT32_C(1) << (log2_plus_1 - 1) : 0;
}

/* The upper half of a single. */
static float share_of(uint16_t bits)
{
	uint32_t whole = (uint32_t)bits << 16;
	float share;

	memcpy(&share, &whole, sizeof(share));
	return share >= 0 && share <= 1 ? share : 0;
}

static int make_look(struct file *f, size_t i)
{
	const struct cw_rec_summary *s = &f->summaries[i];
	const struct cw_rec_comm *e = comm_of(f->record, s);
	uint32_t comm = CW_NUMERICS_NONE;
	int r = e ? find_comm(f->l, e, &comm) : 0;

	f->looks[i] = (struct cw_numerics_look){
		.rank = f->rank,
		.comm = comm,
		.order = (uint32_t)s->publish,
		.root_or_peer = -1,
		.seq = s->seq,
		.step = s->step_plus_1 ? (int64_t)s->step_plus_1 - 1 : -1,
		.elements = s->elements,
		.offered = s->offered,
		.nans = s->nans,
		.infs = s->infs,
		.zeros = s->zeros,
		.abs_max = s->abs_max,
		.abs_min = s->abs_min_nonzero,
		.mean = s->mean,
		.l2 = s->l2,
		.checksum = s->checksum,
		.stride = stride_of(s),
		.at_limit = share_of(s->at_limit),
		.denormal = share_of(s->denormal),
		.kind = s->kind,
		.dtype = s->dtype,
		.redop = CW_REDOP_NONE,
		.is_output = s->is_output != 0,
	};
	return r;
}

static int keep(struct file *f, uint64_t newest)
{
	struct loader *l = f->l;
	uint64_t oldest = newest;
	int r;

	r = grow((void **)&l->looks, &l->room_looks, l->n_looks + (uint32_t)f->n,
		 sizeof(*l->looks));
	if (r < 0)
		return r;
	for (size_t i = 0; i < f->n; i++) {
		if (f->summaries[i].publish < oldest)
			oldest = f->summaries[i].publish;
		/* Of a communicator that the record has forgotten. */
		if (f->looks[i].comm != CW_NUMERICS_NONE)
			l->looks[l->n_looks++] = f->looks[i];
	}
	/* Numbers are given out one by one, but one that was probed for in vain is skipped. */
	l->ranks[f->rank].is_whole = oldest == 1 && newest <= f->n;
	return 0;
}

static int read_file(struct file *f, const char *path)
{
	struct cw_numerics_source *to = &f->l->input->sources[f->rank];
	const struct cw_rec_header *h = cw_record_header(f->record);
	uint64_t newest = 0;
	int r = 0;

	f->n = cw_record_summaries(f->record, f->summaries, CW_REC_SUMMARIES);
	drop_doubles(f);
	for (size_t i = 0; i < f->n && r == 0; i++) {
		r = make_look(f, i);
		if (f->summaries[i].publish > newest)
			newest = f->summaries[i].publish;
	}
	if (r == 0)
		r = cw_record_each_kept(f->record, on_op, f);
	f->l->ranks[f->rank].rank = h->rank_label;
	*to = (struct cw_numerics_source){
		.path = path,
		.rank = h->rank_label,
		.pid = (int32_t)h->pid,
		.world_size = h->world_size_label,
		.has_summaries = h->has & CW_REC_HAS_SUMMARIES,
		.n_ops = h->ring_ticket,
		.n_looks = newest,
		.n_kept = f->n,
		.n_dropped = h->drops[CW_REC_DROP_SUMMARIES],
	};
	return r < 0 ? r : keep(f, newest);
}

/* Takes fd. */
static int load(struct loader *l, uint32_t rank, const char *path, int fd, struct cw_err *err)
{
	_cleanup_(file_fini) struct file f = { .l = l, .rank = rank };
	struct cw_err why = { "" };
	int r;

	r = cw_record_open(fd, false, &f.record, &why);
	if (r == 0)
		r = read_file(&f, path);
	if (r < 0)
		return cw_err_set(err, -r, "%s: %s", path, why.text[0] ? why.text : strerror(-r));
	return 0;
}

/* ---- where records are ---- */

struct found {
	const char *path;
	int fd; /* -1 = taken */
};

struct finder {
	struct cw_arena *arena;
	struct found *v;
	uint32_t n, room;
	const char *job; /* the one that processes are looked for of */
	int64_t uid;     /* whose, -1 = not known yet */
	int64_t other;   /* another one's who has a job of that name, -1 = nobody */
};

static int find(struct finder *f, const char *path, int fd)
{
	int r = f->n < MAX_FILES ? grow((void **)&f->v, &f->room, f->n + 1, sizeof(*f->v)) : -E2BIG;

	if (r == 0 && !path)
		r = -ENOMEM;
	if (r < 0) {
		(void)close(fd);
		return r;
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

static int find_process(struct finder *f, pid_t pid, int fd)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "process %d", (int)pid);
	return find(f, cw_arena_strdup(f->arena, text), fd);
}

static bool is_of_job(int fd, const char *job)
{
	char label[CW_JOB_LABEL_BYTES];
	const struct cw_record_comm *comms;
	struct cw_record *rec;
	size_t n;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	bool is_it;

	if (own < 0 || cw_record_open(own, false, &rec, NULL) < 0)
		return false;
	comms = cw_record_comms(rec, &n);
	is_it = cw_job_label(cw_record_header(rec), comms, n, label) &&
		(strcmp(label, job) == 0 || strcmp(cw_job_env_shown(label), job) == 0);
	(void)cw_record_close(rec);
	return is_it;
}

static int on_process(pid_t pid, int fd, void *user)
{
	struct finder *f = user;
	struct stat st;

	/* The owner of the file made it, whoever has it open. */
	if (!is_of_job(fd, f->job) || fstat(fd, &st) < 0) {
		(void)close(fd);
		return 0;
	}
	if (f->uid < 0)
		f->uid = st.st_uid;
	if (f->uid == st.st_uid)
		return find_process(f, pid, fd);
	f->other = st.st_uid;
	(void)close(fd);
	return 0;
}

static int find_all_of_job(struct finder *f, const char *job, struct cw_err *err)
{
	uint32_t before = f->n;
	bool is_any = f->uid < 0;
	int r;

	f->job = job;
	f->other = -1;
	r = cw_record_process_each(on_process, f);
	if (r == 0 && is_any && f->other >= 0)
		return cw_err_set(err, ENOTUNIQ,
				  "%s: users %u and %u have a job of that name: --uid says whose",
				  job, (unsigned)f->uid, (unsigned)f->other);
	if (r == 0 && f->n == before)
		return cw_err_set(
			err, ENOENT,
			"%s: no such file, and no process of a job of that name that this "
			"user may look at",
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

/* ---- the whole ---- */

static int refuse_doubles(const struct loader *l, uint32_t n, struct cw_err *err)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < i && l->ranks[i].rank >= 0; k++)
			if (l->ranks[k].rank == l->ranks[i].rank)
				return cw_err_set(err, EEXIST, "%s and %s are both of rank %d",
						  l->input->sources[k].path,
						  l->input->sources[i].path, l->ranks[i].rank);
	return 0;
}

/* Into the arena, where the rest is. */
static int adopt(struct loader *l, uint32_t n)
{
	struct cw_numerics_input *in = l->input;

	in->job = (struct cw_numerics_job){
		.looks = cw_arena_memdup(&in->arena, l->looks, l->n_looks, sizeof(*l->looks)),
		.n_looks = l->n_looks,
		.comms = cw_arena_memdup(&in->arena, l->comms, l->n_comms, sizeof(*l->comms)),
		.n_comms = l->n_comms,
		.ranks = l->ranks,
		.n_ranks = n,
	};
	return (in->job.looks || !l->n_looks) && (in->job.comms || !l->n_comms) ? 0 : -ENOMEM;
}

static int load_all(struct loader *l, struct finder *f, const struct cw_import_watch *watch,
		    struct cw_err *err)
{
	struct cw_numerics_input *in = l->input;
	int r = 0;

	l->ranks = cw_arena_new_array(&in->arena, struct cw_numerics_rank, f->n);
	in->sources = cw_arena_new_array(&in->arena, struct cw_numerics_source, f->n);
	if (!l->ranks || !in->sources)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n && r == 0; i++) {
		int fd = f->v[i].fd;

		f->v[i].fd = -1;
		r = load(l, i, f->v[i].path, fd, err);
		cw_import_tell(watch, i + 1, f->n);
	}
	if (r == 0)
		r = refuse_doubles(l, f->n, err);
	return r < 0 ? r : adopt(l, f->n);
}

int cw_numerics_files_read(char *const *what, uint32_t n, int64_t uid,
			   const struct cw_import_watch *watch, struct cw_numerics_input *ret,
			   struct cw_err *err)
{
	struct cw_numerics_input input = { .arena = { 0 } };
	_cleanup_(finder_fini) struct finder f = { .arena = &input.arena, .uid = uid };
	struct loader l = { .input = &input };
	int r = 0;

	err->text[0] = '\0';
	if (n == 0 || n > MAX_FILES)
		return cw_err_set(err, n ? E2BIG : EINVAL, "%u records", n);
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = find_what(&f, what[i], err);
	if (r == 0)
		r = load_all(&l, &f, watch, err);
	free(l.looks);
	free(l.comms);
	free(l.instances);
	if (r < 0) {
		cw_arena_fini(&input.arena);
		return err->text[0] ? r : cw_err_set(err, -r, "%s", strerror(-r));
	}
	*ret = input;
	return 0;
}

void cw_numerics_input_fini(struct cw_numerics_input *input)
{
	cw_arena_fini(&input->arena);
	*input = (struct cw_numerics_input){ .sources = NULL };
}
