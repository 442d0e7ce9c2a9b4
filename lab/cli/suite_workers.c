/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/cli/suite_workers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/or_exit/or_exit.h"

#define PIPE_BYTES (1 << 20)

/* ---- outcomes as bytes: both ends are the same program ---- */

struct head {
	int r;
	struct cw_err err;
};

static void put_outcome(FILE *f, const struct outcome *o)
{
	(void)fwrite(o, sizeof(*o), 1, f);
	if (o->culprits)
		(void)fwrite(o->culprits, sizeof(*o->culprits), o->n_culprits, f);
	if (o->healthy_waits)
		(void)fwrite(o->healthy_waits, sizeof(*o->healthy_waits), o->n_healthy_waits, f);
	if (o->ranks)
		(void)fwrite(o->ranks, sizeof(*o->ranks), o->n_ranks, f);
	if (o->also)
		put_outcome(f, o->also);
	if (o->notices)
		put_outcome(f, o->notices);
	if (o->postmortems)
		put_outcome(f, o->postmortems);
}

static int get_outcome(FILE *f, struct outcome *ret);

static int get_next(FILE *f, bool is_there, struct outcome **ret)
{
	if (!is_there)
		return 0;
	*ret = cw_or_exit(calloc(1, sizeof(**ret)));
	return get_outcome(f, *ret);
}

/* The caller calls cw_outcome_fini() on *ret, also after an error. */
static int get_outcome(FILE *f, struct outcome *ret)
{
	struct outcome o;
	int r;

	if (fread(&o, sizeof(o), 1, f) != 1)
		return -EIO;
	*ret = o;
	ret->culprits = NULL;
	ret->healthy_waits = NULL;
	ret->ranks = NULL;
	ret->also = ret->notices = ret->postmortems = NULL;
	if (o.culprits) {
		ret->culprits =
			cw_or_exit(calloc((size_t)o.n_culprits + 1, sizeof(*ret->culprits)));
		if (fread(ret->culprits, sizeof(*ret->culprits), o.n_culprits, f) != o.n_culprits)
			return -EIO;
	}
	if (o.healthy_waits) {
		ret->healthy_waits =
			cw_or_exit(calloc(o.n_healthy_waits, sizeof(*ret->healthy_waits)));
		if (fread(ret->healthy_waits, sizeof(*ret->healthy_waits), o.n_healthy_waits, f) !=
		    o.n_healthy_waits)
			return -EIO;
	}
	if (o.ranks) {
		ret->ranks = cw_or_exit(calloc(o.n_ranks, sizeof(*ret->ranks)));
		if (fread(ret->ranks, sizeof(*ret->ranks), o.n_ranks, f) != o.n_ranks)
			return -EIO;
	}
	r = get_next(f, o.also != NULL, &ret->also);
	if (r == 0)
		r = get_next(f, o.notices != NULL, &ret->notices);
	return r < 0 ? r : get_next(f, o.postmortems != NULL, &ret->postmortems);
}

/* ---- workers ---- */

/* In a new worker: closes all pipes but its own. */
static int become(struct suite_workers *w, unsigned self, int fd)
{
	for (unsigned i = 0; i < self; i++)
		(void)fclose(w->pipes[i]);
	w->self = self;
	w->pipes[self] = fdopen(fd, "w");
	return w->pipes[self] ? 0 : -ENOMEM;
}

/*
 * The worker that runs the nth scenario. Drawn scenarios alternate, and go through classes in
 * turn. If we dealt them out in turn, one worker would get all long ones, and the others would
 * wait for it.
 */
static unsigned worker_of(const struct suite_workers *w, uint64_t nth)
{
	return (unsigned)(nth * UINT64_C(0x9e3779b97f4a7c15) >> 33) % w->n;
}

static int start_one(struct suite_workers *w, unsigned i)
{
	int fds[2], r;

	if (pipe(fds) < 0)
		return -errno;
	/* How far a worker may be ahead of the others; a smaller pipe works, too. */
	(void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES);
	w->pids[i] = fork();
	if (w->pids[i] < 0) {
		r = -errno;
		(void)close(fds[0]);
		(void)close(fds[1]);
		return r;
	}
	if (w->pids[i] == 0) {
		(void)close(fds[0]);
		if (become(w, i, fds[1]) < 0)
			_exit(EXIT_FAILURE);
		return 1;
	}
	(void)close(fds[1]);
	w->pipes[i] = fdopen(fds[0], "r");
	if (w->pipes[i])
		return 0;
	(void)close(fds[0]); /* the worker ends at its next write */
	(void)waitpid(w->pids[i], NULL, 0);
	return -ENOMEM;
}

int suite_workers_start(struct suite_workers *w, unsigned n)
{
	int r;

	*w = (struct suite_workers){ .n = n, .self = n };
	(void)fflush(NULL); /* otherwise each worker writes it once more */
	for (unsigned i = 0; i < n; i++) {
		r = start_one(w, i);
		if (r == 0)
			continue;
		if (r < 0) {
			w->n = w->self = i;
			suite_workers_end(w);
			w->n = 0;
			return r;
		}
		break; /* this is a worker */
	}
	return 0;
}

bool suite_workers_take(struct suite_workers *w)
{
	uint64_t nth = w->next++;

	return !suite_workers_is_one(w) || worker_of(w, nth) == w->self;
}

int suite_workers_put(struct suite_workers *w, int r, const struct cw_err *err,
		      const struct outcome *o)
{
	struct head head = { .r = r, .err = *err };
	FILE *f = w->pipes[w->self];

	(void)fwrite(&head, sizeof(head), 1, f);
	if (r == 0)
		put_outcome(f, o);
	return fflush(f) == 0 ? 0 : -EPIPE;
}

int suite_workers_get(struct suite_workers *w, struct cw_err *err, struct outcome *ret)
{
	FILE *f = w->pipes[worker_of(w, w->next - 1)];
	struct outcome o = { 0 };
	struct head head;
	int r;

	if (fread(&head, sizeof(head), 1, f) != 1)
		return cw_err_set(err, EIO, "a worker has ended: run with --jobs 1 to see why");
	if (head.r < 0) {
		*err = head.err;
		return head.r;
	}
	r = get_outcome(f, &o);
	if (r < 0) {
		cw_outcome_fini(&o);
		return cw_err_set(err, -r, "a worker has ended: run with --jobs 1 to see why");
	}
	*ret = o;
	return 0;
}

void suite_workers_end(struct suite_workers *w)
{
	if (suite_workers_is_one(w))
		_exit(EXIT_SUCCESS);
	for (unsigned i = 0; i < w->n; i++)
		(void)fclose(w->pipes[i]);
	for (unsigned i = 0; i < w->n; i++)
		(void)waitpid(w->pids[i], NULL, 0);
}
