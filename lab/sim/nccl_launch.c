/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches. A launch is a host function on the caller's stream that blocks, like a NCCL kernel,
 * until the peers have done their part. Launches of one communicator run one after the other in the
 * order of the calls, on any streams: each has a ticket.
 *
 * On a capturing stream the host function becomes a node of the graph. It runs each time the graph
 * reaches it, when no other launch of the communicator runs. It has no ticket, because launches
 * with tickets may wait behind it. So only its stream determines its place among the others; the
 * real library keeps the order across streams, too. Such a launch lives as long as its
 * communicator. As with the real library, a communicator has to outlive its graphs.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "lab/sim/nccl_cuda.h"
#include "lab/sim/nccl_profiler.h"
#include "lab/sim/nccl_sim.h"

#define STALL_SEEN_MS 50

struct sim_launch {
	struct sim_launch *next; /* next captured launch of the communicator */
	ncclComm_t comm;
	bool is_captured;
	uint64_t ticket;
	struct sim_task *tasks;
};

void sim_tasks_free(struct sim_task *tasks)
{
	while (tasks) {
		struct sim_task *next = tasks->next;

		free(tasks);
		tasks = next;
	}
}

/*
 * A connection may stop if SIM_NCCL_STALL_FILE is set. No event wakes its waiter then, so the
 * waiter must poll.
 */
static int longest_wait_ms(void)
{
	return getenv("SIM_NCCL_STALL_FILE") ? STALL_SEEN_MS : -1;
}

void sim_links_wait(ncclComm_t comm, struct sim_link *links, const bool *wants_input)
{
	struct pollfd *fds = calloc((size_t)comm->nranks + 1, sizeof(*fds));
	nfds_t n = 1;

	/* Without memory we can only wait for an abort, so the op hangs. */
	struct pollfd only_abort = { .fd = comm->abort_fd, .events = POLLIN };

	if (!fds) {
		(void)poll(&only_abort, 1, -1);
		return;
	}
	fds[0] = only_abort;
	for (int p = 0; p < comm->nranks; p++) {
		short events = sim_link_events(&links[p], wants_input[p]);

		/*
		 * We omit a link that cannot make progress, because a closed socket is always
		 * readable.
		 */
		if (events)
			fds[n++] = (struct pollfd){ .fd = links[p].fd, .events = events };
	}
	(void)poll(fds, n,
		   longest_wait_ms()); /* after any wake-up the caller polls all links again */
	free(fds);
}

/* True if it is the launch's turn. Lock held. */
static bool is_turn_of(const struct sim_launch *l)
{
	const struct ncclComm *comm = l->comm;

	return comm->is_aborted ||
	       (!comm->n_running && (l->is_captured || comm->launches_done == l->ticket));
}

static void take_turn(struct sim_launch *l)
{
	pthread_mutex_lock(&l->comm->lock);
	while (!is_turn_of(l))
		pthread_cond_wait(&l->comm->turn, &l->comm->lock);
	l->comm->n_running++;
	pthread_mutex_unlock(&l->comm->lock);
}

static void end_turn(struct sim_launch *l)
{
	pthread_mutex_lock(&l->comm->lock);
	l->comm->n_running--;
	if (!l->is_captured)
		l->comm->launches_done++;
	pthread_cond_broadcast(&l->comm->turn);
	pthread_mutex_unlock(&l->comm->lock);
}

static void run(void *arg)
{
	struct sim_launch *l = arg;
	ncclComm_t comm = l->comm;
	bool is_captured = l->is_captured; /* the comm owns such a launch, and may free it */

	take_turn(l);
	if (!comm->is_aborted) {
		if (is_captured)
			sim_profiler_launch(comm, l->tasks, true);
		if (sim_is_p2p(l->tasks))
			sim_p2p_run(comm, l->tasks);
		else
			sim_coll_run(comm, l->tasks);
	}
	end_turn(l);
	if (is_captured)
		return;
	sim_tasks_free(l->tasks);
	free(l);
	sim_comm_unref(comm);
}

void sim_launches_free(ncclComm_t comm)
{
	while (comm->captured) {
		struct sim_launch *l = comm->captured;

		comm->captured = l->next;
		sim_tasks_free(l->tasks);
		free(l);
	}
}

/* Makes @to wait for the work on @from. */
static bool order_streams(const struct sim_cuda *cuda, CUstream from, CUstream to)
{
	CUevent event;
	bool is_ok;

	if (cuda->event_create(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
		return false;
	is_ok = cuda->event_record(event, from) == CUDA_SUCCESS &&
		cuda->wait_event(to, event, 0) == CUDA_SUCCESS;
	cuda->event_destroy(event);
	return is_ok;
}

static bool order_others(const struct sim_cuda *cuda, const struct sim_task *tasks, bool is_before)
{
	for (const struct sim_task *t = tasks->next; t; t = t->next) {
		if (t->stream == tasks->stream)
			continue;
		if (!order_streams(cuda, is_before ? t->stream : tasks->stream,
				   is_before ? tasks->stream : t->stream))
			return false;
	}
	return true;
}

static ncclResult_t submit(const struct sim_cuda *cuda, struct sim_launch *l)
{
	ncclComm_t comm = l->comm;
	CUstream stream = l->tasks->stream;
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	ncclResult_t result = ncclSuccess;

	if (!order_others(cuda, l->tasks, true))
		return sim_fail(ncclUnhandledCudaError, "cannot order the streams of a group");

	if (cuda->is_capturing(stream, &status) != CUDA_SUCCESS)
		return sim_fail(ncclUnhandledCudaError, "launch on the stream failed");
	l->is_captured = status != CU_STREAM_CAPTURE_STATUS_NONE;
	/*
	 * We take the ticket and the place in the stream under one lock. Otherwise the orders of
	 * tickets and streams could differ.
	 */
	sim_comm_ref(comm);
	pthread_mutex_lock(&comm->lock);
	l->ticket = comm->launches;
	if (cuda->launch_host_fn(stream, run, l) != CUDA_SUCCESS) {
		result = sim_fail(ncclUnhandledCudaError, "launch on the stream failed");
	} else if (l->is_captured) {
		l->next = comm->captured;
		comm->captured = l;
	} else {
		comm->launches++;
	}
	pthread_mutex_unlock(&comm->lock);
	/* A captured launch belongs to the communicator and holds no reference to it. */
	if (result != ncclSuccess || status != CU_STREAM_CAPTURE_STATUS_NONE)
		sim_comm_unref(comm);
	return result;
}

/* Submits the launch on the first stream of a batch. The batch's other streams wait for it, too. */
static ncclResult_t submit_all(const struct sim_cuda *cuda, struct sim_launch *l)
{
	struct sim_task first = { 0 };
	struct sim_task *others = NULL;
	ncclResult_t result;

	/*
	 * We copy the list first. The launch may end, and free its tasks, before submit() returns.
	 */
	for (const struct sim_task *t = l->tasks->next; t; t = t->next) {
		struct sim_task *copy;

		if (t->stream == l->tasks->stream)
			continue;
		copy = malloc(sizeof(*copy));
		if (!copy) {
			sim_tasks_free(others);
			return sim_fail(ncclSystemError, "out of memory");
		}
		*copy = *t;
		copy->next = others;
		others = copy;
	}
	first.stream = l->tasks->stream;
	first.next = others;
	result = submit(cuda, l);
	if (result == ncclSuccess && !order_others(cuda, &first, false))
		(void)sim_fail(ncclUnhandledCudaError, "cannot order the streams of a group");
	sim_tasks_free(others);
	return result;
}

/*
 * True for the communicator's first collective of a kind, under SIM_NCCL_SPIN. Real NCCL connects
 * for such a collective inside the call, and polls on the host until the peer comes. We poll until
 * that collective has run.
 */
static bool begins_kind(ncclComm_t comm, const struct sim_task *task)
{
	uint32_t kind = 1u << task->kind;
	bool is_first;

	if (sim_is_p2p(task) || !getenv("SIM_NCCL_SPIN"))
		return false;
	pthread_mutex_lock(&comm->lock);
	is_first = !(comm->connected & kind);
	comm->connected |= kind;
	pthread_mutex_unlock(&comm->lock);
	return is_first;
}

static bool has_run(ncclComm_t comm)
{
	bool has_run;

	pthread_mutex_lock(&comm->lock);
	has_run = comm->is_aborted || comm->launches_done >= comm->launches;
	pthread_mutex_unlock(&comm->lock);
	return has_run;
}

ncclResult_t sim_launch(ncclComm_t comm, struct sim_task *tasks)
{
	const struct sim_cuda *cuda = sim_cuda();
	struct sim_launch *l = cuda ? malloc(sizeof(*l)) : NULL;
	bool spins = begins_kind(comm, tasks);
	ncclResult_t result;
	CUcontext old;

	if (!l) {
		sim_tasks_free(tasks);
		return cuda ? sim_fail(ncclSystemError, "out of memory") : ncclUnhandledCudaError;
	}
	*l = (struct sim_launch){ .comm = comm, .tasks = tasks };
	if (cuda->push_ctx(comm->ctx) == CUDA_SUCCESS) {
		result = submit_all(cuda, l);
		(void)cuda->pop_ctx(&old); /* cannot fail after a push */
	} else {
		result = sim_fail(ncclUnhandledCudaError, "the communicator's context is gone");
	}
	if (result != ncclSuccess) {
		sim_tasks_free(tasks);
		free(l);
	}
	while (spins && result == ncclSuccess && !has_run(comm))
		continue;
	return result;
}

void sim_launch_drain(ncclComm_t comm)
{
	pthread_mutex_lock(&comm->lock);
	while (comm->launches_done < comm->launches || comm->n_running)
		pthread_cond_wait(&comm->turn, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
}
