/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendezvous of a communicator's ranks. The creator of a unique id starts a root thread that
 * listens at the address in the id. Every rank opens its own listener and sends its address to the
 * root. It gets the whole list after all ranks have done so. Then each pair of ranks makes one
 * connection for collectives. If a rank never calls, the others wait without end.
 *
 * A split works in the same way. Its root is the parent's rank 0, inside its own call.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lab/sim/nccl_sim.h"

/* The beginning of a unique id; the rest is zero. */
struct id_layout {
	uint64_t magic;
	struct sockaddr_in addr;
};

_Static_assert(sizeof(struct id_layout) == 24, "the address is at offset 8");

#define RANKS_MAX 4096

/* The callers of one rendezvous, by rank. */
struct roster {
	int n;
	int *fds;
	struct sim_hello *members;
};

static int roster_init(struct roster *r, int n)
{
	r->n = n;
	r->fds = malloc((size_t)n * sizeof(*r->fds));
	r->members = calloc((size_t)n, sizeof(*r->members));
	if (!r->fds || !r->members)
		return -ENOMEM;
	for (int i = 0; i < n; i++)
		r->fds[i] = -1;
	return 0;
}

static void roster_fini(struct roster *r)
{
	for (int i = 0; r->fds && i < r->n; i++) {
		if (r->fds[i] >= 0)
			close(r->fds[i]);
	}
	free(r->fds);
	free(r->members);
}

/* Adds a caller. Returns -EPROTO if it contradicts the others. */
static int roster_add(struct roster *r, int fd, const struct sim_hello *h)
{
	if (h->nranks != r->n || h->rank < 0 || h->rank >= r->n || r->fds[h->rank] >= 0) {
		close(fd);
		return -EPROTO;
	}
	r->fds[h->rank] = fd;
	r->members[h->rank] = *h;
	return 0;
}

static void roster_reply(const struct roster *r, int error, int abort_fd)
{
	int32_t status = error;

	/* We ignore callers that have gone meanwhile, because we cannot help them. */
	for (int i = 0; i < r->n; i++) {
		if (r->fds[i] < 0)
			continue;
		if (sim_send_all(r->fds[i], &status, sizeof(status), abort_fd) == 0 && !error)
			(void)sim_send_all(r->fds[i], r->members,
					   (size_t)r->n * sizeof(*r->members), abort_fd);
	}
}

/*
 * Active root threads of this process. After its init, a rank waits until its root has closed its
 * descriptors, and then joins the thread. Without the wait, the numbers of the program's next
 * descriptors would depend on the scheduler. Without the join, the program might close this library
 * while the thread still runs its code.
 */
struct root {
	struct sim_listener *listener;
	pthread_t thread;
	bool is_done;
	struct root *next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned answering;
	struct root *all; /* root threads that are not joined yet */
} roots = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL };

/* In a forked child: forgets the roots, because the child has no thread of its parent. */
static void forget_roots(void)
{
	pthread_mutex_init(&roots.lock, NULL);
	pthread_cond_init(&roots.changed, NULL);
	roots.answering = 0;
	roots.all = NULL; /* this leaks a few bytes, because the threads are gone */
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, forget_roots); /* fails only for lack of memory */
}

static void begin_answering(void)
{
	pthread_mutex_lock(&roots.lock);
	roots.answering++;
	pthread_mutex_unlock(&roots.lock);
}

static void end_answering(struct root *root)
{
	pthread_mutex_lock(&roots.lock);
	roots.answering--;
	root->is_done = true;
	pthread_cond_broadcast(&roots.changed);
	pthread_mutex_unlock(&roots.lock);
}

/* Removes finished roots from the list. Lock held. */
static struct root *take_done(void)
{
	struct root *done = NULL;

	for (struct root **at = &roots.all; *at;) {
		struct root *root = *at;

		if (!root->is_done) {
			at = &root->next;
			continue;
		}
		*at = root->next;
		root->next = done;
		done = root;
	}
	return done;
}

static void join_done(bool is_awaited)
{
	struct root *done, *next;

	pthread_mutex_lock(&roots.lock);
	while (is_awaited && roots.answering > 0)
		pthread_cond_wait(&roots.changed, &roots.lock);
	done = take_done();
	pthread_mutex_unlock(&roots.lock);
	for (; done; done = next) {
		next = done->next;
		pthread_join(done->thread, NULL);
		free(done);
	}
}

static void wait_for_roots(void)
{
	join_done(true);
}

__attribute__((destructor)) static void before_the_code_goes(void)
{
	join_done(false);
}

static void *root_main(void *arg)
{
	struct root *root = arg;
	struct sim_listener *l = root->listener;
	struct roster r = { 0 };
	struct sim_hello h;
	int result = 0;

	for (int got = 0; result == 0 && (got == 0 || got < r.n); got++) {
		int fd = sim_listener_take(l, SIM_HELLO_INIT, 0, NULL, 0, &h);

		if (fd < 0) {
			result = fd;
			break;
		}
		if (got == 0)
			result = h.nranks > 0 && h.nranks <= RANKS_MAX ? roster_init(&r, h.nranks)
								       : -EPROTO;
		if (result == 0)
			result = roster_add(&r, fd, &h);
		else
			close(fd);
	}
	begin_answering();
	if (r.fds)
		roster_reply(&r, result, -1);
	roster_fini(&r);
	sim_listener_close(l);
	free(l);
	end_answering(root);
	return NULL;
}

static int start_root(struct sim_listener *l)
{
	struct root *root = calloc(1, sizeof(*root));
	sigset_t all, old;
	int r;

	if (!root)
		return -ENOMEM;
	root->listener = l;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pthread_mutex_lock(&roots.lock);
	r = pthread_create(&root->thread, NULL, root_main, root);
	if (r == 0) {
		pthread_setname_np(root->thread, "NCCL BootstrapR");
		root->next = roots.all;
		roots.all = root;
	} else {
		free(root);
	}
	pthread_mutex_unlock(&roots.lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -r;
}

NCCL_API(ncclResult_t, GetUniqueId, ncclUniqueId *id)
{
	struct id_layout layout = { 0 };
	struct sim_listener *l;

	if (!id)
		return sim_fail(ncclInvalidArgument, "GetUniqueId: id is NULL");
	if (getrandom(&layout.magic, sizeof(layout.magic), 0) != sizeof(layout.magic))
		return sim_fail(ncclSystemError, "no random numbers");
	l = malloc(sizeof(*l));
	if (!l || sim_listener_open(l, layout.magic, -1) < 0) {
		free(l);
		return sim_fail(ncclSystemError, "the bootstrap root cannot listen");
	}
	layout.addr = l->addr;
	if (start_root(l) < 0) {
		sim_listener_close(l);
		free(l);
		return sim_fail(ncclSystemError, "the bootstrap root cannot start");
	}
	memset(id, 0, sizeof(*id));
	memcpy(id, &layout, sizeof(layout));
	return ncclSuccess;
}

static ncclResult_t net_error(ncclComm_t comm, int r, const char *what)
{
	if (r == -ECANCELED)
		return sim_fail(ncclInternalError, "%s: rank %d was aborted", what, comm->rank);
	return sim_fail(r == -ECONNRESET || r == -ECONNREFUSED ? ncclRemoteError : ncclSystemError,
			"%s: rank %d: %s", what, comm->rank, strerror(-r));
}

/* Sends our address to the root and waits for the complete list. */
static int roster_join(const struct sockaddr_in *addr, const struct sim_hello *hello, int abort_fd,
		       struct sim_hello *members)
{
	int32_t status;
	int fd, r;

	fd = sim_connect(addr, hello, abort_fd);
	if (fd < 0)
		return fd;
	r = sim_recv_all(fd, &status, sizeof(status), abort_fd);
	if (r == 0)
		r = status;
	if (r == 0)
		r = sim_recv_all(fd, members, (size_t)hello->nranks * sizeof(*members), abort_fd);
	close(fd);
	return r;
}

/* Makes one connection for collectives with every peer. Of two ranks, the lower one listens. */
static int connect_mesh(ncclComm_t comm)
{
	struct sim_hello hello = { .key = comm->listener.key,
				   .type = SIM_HELLO_MESH,
				   .rank = comm->rank };
	bool *wanted = calloc((size_t)comm->nranks, sizeof(*wanted));
	struct sim_hello from;
	int r = wanted ? 0 : -ENOMEM;

	for (int p = 0; r == 0 && p < comm->rank; p++) {
		int fd = sim_connect(&comm->addrs[p], &hello, comm->abort_fd);

		if (fd < 0)
			r = fd;
		else
			sim_link_init(&comm->coll[p], fd);
	}
	for (int p = comm->rank + 1; r == 0 && p < comm->nranks; p++)
		wanted[p] = true;
	for (int p = comm->rank + 1; r == 0 && p < comm->nranks; p++) {
		int fd = sim_listener_take(&comm->listener, SIM_HELLO_MESH, 0, wanted, comm->nranks,
					   &from);

		if (fd < 0) {
			r = fd;
		} else {
			wanted[from.rank] = false;
			sim_link_init(&comm->coll[from.rank], fd);
		}
	}
	free(wanted);
	return r;
}

ncclResult_t sim_bootstrap_init(ncclComm_t comm, const ncclUniqueId *id)
{
	struct id_layout layout;
	struct sim_hello hello = { .type = SIM_HELLO_INIT,
				   .rank = comm->rank,
				   .nranks = comm->nranks };
	struct sim_hello *members = calloc((size_t)comm->nranks, sizeof(*members));
	int r;

	if (!members)
		return sim_fail(ncclSystemError, "out of memory");
	memcpy(&layout, id, sizeof(layout));
	hello.key = layout.magic;
	r = sim_listener_open(&comm->listener, layout.magic, comm->abort_fd);
	if (r == 0) {
		hello.addr = comm->listener.addr;
		r = roster_join(&layout.addr, &hello, comm->abort_fd, members);
		wait_for_roots();
	}
	if (r == 0) {
		for (int p = 0; p < comm->nranks; p++)
			comm->addrs[p] = members[p].addr;
		r = connect_mesh(comm);
	}
	free(members);
	if (r == -EPROTO)
		return sim_fail(ncclInvalidUsage, "rank %d of %d does not fit in with the others",
				comm->rank, comm->nranks);
	return r < 0 ? net_error(comm, r, "init") : ncclSuccess;
}

/*
 * Exchanges the data of a split: all ranks send theirs to rank 0 of the group, and each gets the
 * list.
 */
static int split_exchange(const struct sim_split *s, const struct sim_hello *hello,
			  struct sim_hello *members)
{
	struct sim_listener *l = &s->parent->listener;
	struct roster r = { 0 };
	struct sim_hello from;
	int result;

	if (hello->rank != 0)
		return roster_join(&s->parent->addrs[s->group[0]], hello, l->abort_fd, members);

	result = roster_init(&r, s->num_group);
	if (result == 0)
		r.members[0] = *hello;
	for (int got = 1; result == 0 && got < s->num_group; got++) {
		int fd = sim_listener_take(l, SIM_HELLO_SPLIT, hello->ordinal, NULL, 0, &from);

		result = fd < 0 ? fd : roster_add(&r, fd, &from);
	}
	if (r.fds && r.members) {
		roster_reply(&r, result, l->abort_fd);
		if (result == 0)
			memcpy(members, r.members, (size_t)r.n * sizeof(*members));
	}
	roster_fini(&r);
	return result;
}

static uint64_t child_key(const struct sim_split *s)
{
	uint64_t h = s->parent->listener.key;

	h = (h ^ s->ordinal) * 0x9e3779b97f4a7c15u;
	h = (h ^ (h >> 29) ^ (uint32_t)s->color) * 0xbf58476d1ce4e5b9u;
	return h ^ (h >> 32);
}

static bool comes_before(const struct sim_hello *a, const struct sim_hello *b)
{
	return a->split_key != b->split_key ? a->split_key < b->split_key : a->rank < b->rank;
}

/* Returns our rank among the members with our colour. *ret_count: their number. */
static int child_rank(const struct sim_hello *members, int n, int me, int *ret_count)
{
	int rank = 0, count = 0;

	for (int i = 0; i < n; i++) {
		if (members[i].color != members[me].color)
			continue;
		count++;
		if (comes_before(&members[i], &members[me]))
			rank++;
	}
	*ret_count = count;
	return rank;
}

static ncclResult_t make_child(const struct sim_split *s, const struct sim_hello *members, int me,
			       struct sim_listener *l, ncclComm_t *ret_comm)
{
	ncclComm_t child;
	ncclResult_t result;
	int nranks, r;
	int rank = child_rank(members, s->num_group, me, &nranks);

	result = sim_comm_new(nranks, rank, s->config, s->parent, &child);
	if (result != ncclSuccess)
		return result;
	for (int i = 0; i < s->num_group; i++) {
		int ignored;

		if (members[i].color == s->color)
			child->addrs[child_rank(members, s->num_group, i, &ignored)] =
				members[i].addr;
	}
	child->listener = *l;
	child->listener.abort_fd = child->abort_fd;
	l->fd = -1; /* the child owns it now */
	l->pending = NULL;
	r = connect_mesh(child);
	if (r < 0) {
		result = net_error(child, r, "split");
		sim_comm_unref(child);
		return result;
	}
	*ret_comm = child;
	return ncclSuccess;
}

ncclResult_t sim_bootstrap_split(const struct sim_split *s, ncclComm_t *ret_comm)
{
	struct sim_hello hello = { .key = s->parent->listener.key,
				   .type = SIM_HELLO_SPLIT,
				   .ordinal = s->ordinal,
				   .rank = -1,
				   .nranks = s->num_group,
				   .color = s->color,
				   .split_key = s->split_key };
	struct sim_hello *members = calloc((size_t)s->num_group, sizeof(*members));
	struct sim_listener l;
	ncclResult_t result = ncclSuccess;
	int r;

	if (!members)
		return sim_fail(ncclSystemError, "out of memory");
	for (int i = 0; i < s->num_group; i++) {
		if (s->group[i] == s->parent->rank)
			hello.rank = i;
	}
	*ret_comm = NULL;
	r = sim_listener_open(&l, child_key(s), s->parent->abort_fd);
	hello.addr = l.addr;
	pthread_mutex_lock(&s->parent->host_lock);
	if (r == 0)
		r = split_exchange(s, &hello, members);
	pthread_mutex_unlock(&s->parent->host_lock);
	if (r < 0)
		result = net_error(s->parent, r, "split");
	else if (s->color != NCCL_SPLIT_NOCOLOR)
		result = make_child(s, members, hello.rank, &l, ret_comm);
	sim_listener_close(&l);
	free(members);
	return result;
}

/*
 * Connects to peers. Of two ranks, the lower one calls, and the higher one acknowledges in its own
 * call, so each waits for the other. We send all calls and acknowledgements before we wait for any.
 * So a complete pair never waits for an incomplete one.
 *
 * We add a connection to the comm only when both sides know about it. The device polls all
 * connections of the comm, and would take the acknowledgement for a message.
 */
static int connect_p2p(ncclComm_t comm, bool *wanted, int *fds)
{
	struct sim_hello hello = { .key = comm->listener.key,
				   .type = SIM_HELLO_P2P,
				   .rank = comm->rank };
	struct sim_hello from;
	char yes = 1;
	int callers = 0, r = 0;

	for (int p = 0; p < comm->nranks; p++) {
		if (!wanted[p] || p < comm->rank) {
			callers += wanted[p];
			continue;
		}
		fds[p] = sim_connect(&comm->addrs[p], &hello, comm->abort_fd);
		if (fds[p] < 0)
			return fds[p];
	}
	for (; callers > 0; callers--) {
		int fd = sim_listener_take(&comm->listener, SIM_HELLO_P2P, 0, wanted, comm->rank,
					   &from);

		if (fd < 0)
			return fd;
		wanted[from.rank] = false;
		fds[from.rank] = fd;
		r = sim_send_all(fd, &yes, sizeof(yes), comm->abort_fd);
		if (r < 0)
			return r;
		sim_link_init(&comm->p2p[from.rank], fd);
		fds[from.rank] = -1;
	}
	for (int p = comm->rank + 1; p < comm->nranks; p++) {
		if (!wanted[p])
			continue;
		r = sim_recv_all(fds[p], &yes, sizeof(yes), comm->abort_fd);
		if (r < 0)
			return r;
		sim_link_init(&comm->p2p[p], fds[p]);
		fds[p] = -1;
	}
	return 0;
}

ncclResult_t sim_bootstrap_p2p(ncclComm_t comm, const bool *wanted)
{
	bool *missing = calloc((size_t)comm->nranks, sizeof(*missing));
	int *fds = calloc((size_t)comm->nranks, sizeof(*fds));
	int r = missing && fds ? 0 : -ENOMEM;

	for (int p = 0; fds && p < comm->nranks; p++)
		fds[p] = -1;
	pthread_mutex_lock(&comm->host_lock);
	for (int p = 0; r == 0 && p < comm->nranks; p++)
		missing[p] = wanted[p] && p != comm->rank && comm->p2p[p].fd < 0;
	if (r == 0)
		r = connect_p2p(comm, missing, fds);
	pthread_mutex_unlock(&comm->host_lock);
	for (int p = 0; fds && p < comm->nranks; p++)
		if (fds[p] >= 0)
			close(fds[p]);
	free(missing);
	free(fds);
	return r < 0 ? net_error(comm, r, "connecting to a peer") : ncclSuccess;
}
