/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL ops in CUDA graphs, as the agent records them. Every test runs in a process of its own. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/base/next_dlsym.h"
#include "agent/cuda/cuda_driver.h"
#include "agent/hooks/cuda_hooks.h"
#include "agent/hooks/wrap.h"
#include "agent/ops/graph.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"
#include "model/signature.h"
#include "tests/support/agent/cuda/bare_cuda.h"
#include "tests/support/agent/cuda/fake_cuda.h"

/* The exported wrappers, called as a program that is linked with the driver does. */
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamBeginCaptureToGraph(void *stream, void *graph, const void *deps, const void *data,
				size_t count, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuGraphCreate(void **graph, unsigned flags);
int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags);
int cuGraphLaunch(void *exec, void *stream);
int cuGraphClone(void **clone, void *graph);
int cuGraphDestroy(void *graph);
int cuGraphExecDestroy(void *exec);
int cuGraphExecUpdate_v2(void *exec, void *graph, void *info);
int cuGraphAddChildGraphNode(void **node, void *graph, const void *deps, size_t n, void *child);

#define STREAM ((void *)0x70)

static char context, graphs[4][16];
static char handles[4];
static ncclResult_t answer;

static struct cw_rec_comm *comm_at(int c)
{
	return &cw_record.comms[c];
}

static const struct cw_rec_op *last(int c)
{
	return &comm_at(c)->ops[(comm_at(c)->ring_ticket - 1) % CW_REC_COMM_OPS];
}

static const struct cw_rec_replay *replay_of(const struct cw_rec_op *launch)
{
	return &cw_record.replays[launch->root_or_peer & 0xffff];
}

static ncclResult_t fake_init(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	*comm = (ncclComm_t)&handles[(unsigned char)id.internal[0]];
	return ncclSuccess;
}

static ncclResult_t fake_all_reduce(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c,
				    cudaStream_t st)
{
	return answer;
}

static ncclResult_t fake_send(const void *s, size_t n, int dt, int peer, ncclComm_t c,
			      cudaStream_t st)
{
	return answer;
}

static ncclResult_t fake_group(void)
{
	return answer;
}

static const struct cw_real fake = {
	.ncclAllReduce = fake_all_reduce,
	.ncclSend = fake_send,
	.ncclGroupStart = fake_group,
	.ncclGroupEnd = fake_group,
	.ncclCommInitRank = fake_init,
};

static ncclComm_t init(unsigned n)
{
	ncclUniqueId id = { { (char)n } };
	ncclComm_t comm;

	fake_cuda.stream_owner = fake_cuda.current = &context;
	(void)cw_impl_ncclCommInitRank(&fake, NULL, &comm, 4, id, 0);
	return comm;
}

static void call(ncclComm_t comm, size_t count)
{
	(void)cw_impl_ncclAllReduce(&fake, NULL, NULL, NULL, count, CW_DTYPE_FP32, CW_REDOP_SUM,
				    comm, STREAM);
}

static void begin(unsigned graph)
{
	fake_cuda.graph = graphs[graph];
	(void)cuStreamBeginCapture_v2(STREAM, 0);
}

static void *finish(void)
{
	void *exec = NULL, *graph = NULL;

	cr_assert_eq(cuStreamEndCapture(STREAM, &graph), 0);
	cr_assert_eq(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
	return exec;
}

static void *capture(ncclComm_t comm, unsigned graph, unsigned ops, size_t count)
{
	begin(graph);
	for (unsigned i = 0; i < ops; i++)
		call(comm, count);
	return finish();
}

Test(agent_graphs, captured_ops_count_when_they_are_launched)
{
	ncclComm_t comm = init(0);
	void *exec;

	call(comm, 8);
	exec = capture(comm, 0, 3, 100);
	cr_assert(last(0)->flags & CW_OPF_CAPTURED);
	cr_assert_eq(last(0)->seq, 0);
	cr_assert_eq(comm_at(0)->coll_entered, 1, "a template enters nothing");
	cr_assert_eq(comm_at(0)->coll_returned, 1);
	cr_assert_eq(cuGraphLaunch(exec, STREAM), 0);
	cr_assert_eq(comm_at(0)->coll_returned, 4);
	cr_assert_eq(cuGraphLaunch(exec, STREAM), 0);
	cr_assert_eq(comm_at(0)->coll_entered, 7);
	cr_assert_eq(comm_at(0)->coll_returned, 7);
	cr_assert_eq(last(0)->kind, CW_OP_GRAPH_LAUNCH);
	cr_assert_eq(last(0)->seq, 5, "of its first collective");
	cr_assert_eq(last(0)->count, 3);
	cr_assert_eq(last(0)->replay, 2);
	cr_assert_eq(replay_of(last(0))->ops, 3);
	cr_assert_not(comm_at(0)->flags & CW_REC_COMM_UNCOUNTED);
}

/* A rank that calls by hand and a rank that replays have the same history. */
Test(agent_graphs, replays_hash_as_the_calls_they_stand_for)
{
	ncclComm_t a = init(0), b = init(1);
	void *exec;

	begin(0);
	call(a, 16);
	call(a, 16);
	call(a, 32);
	exec = finish();
	(void)cuGraphLaunch(exec, STREAM);
	(void)cuGraphLaunch(exec, STREAM);
	for (unsigned i = 0; i < 2; i++) {
		call(b, 16);
		call(b, 16);
		call(b, 32);
	}
	cr_assert_eq(comm_at(0)->coll_returned, 6);
	cr_assert_eq(comm_at(0)->hash, comm_at(1)->hash);
}

Test(agent_graphs, groups_stay_one_step)
{
	ncclComm_t a = init(0), b = init(1);
	void *exec;

	begin(0);
	(void)cw_impl_ncclGroupStart(&fake, NULL);
	call(a, 16);
	call(a, 32);
	(void)cw_impl_ncclGroupEnd(&fake, NULL);
	call(a, 8);
	exec = finish();
	(void)cuGraphLaunch(exec, STREAM);
	(void)cw_impl_ncclGroupStart(&fake, NULL);
	call(b, 32);
	call(b, 16);
	(void)cw_impl_ncclGroupEnd(&fake, NULL);
	call(b, 8);
	cr_assert_eq(comm_at(0)->coll_returned, 3);
	cr_assert_eq(comm_at(0)->hash, comm_at(1)->hash);
}

static void look_inside(void)
{
	const struct cw_rec_op *launch = last(0);
	const struct cw_rec_progress *own = &cw_record.progress[launch->progress_slot];
	const struct cw_rec_progress *ops = &cw_record.progress[replay_of(launch)->progress_slot];

	cr_expect_not(launch->flags & CW_OPF_RETURNED);
	cr_expect_eq(own->reached, launch->op_index);
	cr_expect_lt(own->completed, launch->op_index);
	cr_expect_eq(ops->reached, 2, "the second op is where it is stuck");
	cr_expect_eq(ops->completed, 1);
}

Test(agent_graphs, words_say_how_far_a_replay_is)
{
	ncclComm_t comm = init(0);
	void *exec = capture(comm, 0, 3, 100);
	const struct cw_rec_progress *ops;

	cr_assert_eq(fake_cuda.captured, 6, "before and after each op");
	(void)cuGraphLaunch(exec, STREAM);
	ops = &cw_record.progress[replay_of(last(0))->progress_slot];
	cr_assert_eq(ops->completed, 3);
	/* The next replay begins at 0 and gets stuck in its second op. */
	fake_cuda.stop_after = 3;
	fake_cuda.inside = look_inside;
	(void)cuGraphLaunch(exec, STREAM);
}

Test(agent_graphs, failed_calls_are_no_part_of_the_template)
{
	ncclComm_t comm = init(0);
	void *exec;

	begin(0);
	call(comm, 8);
	answer = ncclInvalidUsage;
	call(comm, 16);
	(void)cw_impl_ncclGroupStart(&fake, NULL);
	answer = ncclSuccess;
	(void)cw_impl_ncclGroupStart(&fake, NULL);
	call(comm, 16);
	call(comm, 8);
	answer = ncclInvalidUsage;
	(void)cw_impl_ncclGroupEnd(&fake, NULL);
	answer = ncclSuccess;
	exec = finish();
	(void)cuGraphLaunch(exec, STREAM);
	cr_assert_eq(comm_at(0)->coll_returned, 1);
	cr_assert_eq(replay_of(last(0))->ops, 1);
}

Test(agent_graphs, a_failed_launch_enters_nothing)
{
	ncclComm_t comm = init(0);
	void *exec = capture(comm, 0, 2, 8);

	fake_cuda.graph_result = 1;
	cr_assert_eq(cuGraphLaunch(exec, STREAM), 1, "the program learns of it");
	cr_assert_eq(comm_at(0)->coll_entered, 0);
	cr_assert(last(0)->flags & CW_OPF_DROPPED);
}

Test(agent_graphs, sends_are_counted_per_launch)
{
	ncclComm_t comm = init(0);
	void *exec;

	begin(0);
	(void)cw_impl_ncclSend(&fake, NULL, NULL, 4, CW_DTYPE_FP32, 2, comm, STREAM);
	exec = finish();
	cr_assert_eq(comm_at(0)->p2p_total[0], 0);
	(void)cuGraphLaunch(exec, STREAM);
	(void)cuGraphLaunch(exec, STREAM);
	cr_assert_eq(comm_at(0)->p2p_total[0], 2);
}

Test(agent_graphs, other_graphs_are_left_alone)
{
	ncclComm_t comm = init(0);
	uint64_t ops = comm_at(0)->op_index;
	void *exec;

	begin(0);
	exec = finish();
	(void)cuGraphLaunch(exec, STREAM);
	cr_assert_eq(comm_at(0)->op_index, ops);
	cr_assert_eq(fake_cuda.graph_launches, 1);
	cr_assert_eq(fake_cuda.writes, 0);
	(void)comm;
}

/* A capture that fails leaves no graph; the next one may get its handle. */
static void capture_in_vain(ncclComm_t comm)
{
	void *graph;

	begin(0);
	call(comm, 8);
	fake_cuda.graph_result = 901;
	cr_assert_eq(cuStreamEndCapture(STREAM, &graph), 901);
	fake_cuda.graph_result = 0;
}

Test(agent_graphs, a_failed_capture_leaves_nothing_to_the_next_graph)
{
	ncclComm_t comm = init(0);
	void *exec, *graph;

	capture_in_vain(comm);
	begin(0);
	exec = finish(); /* without NCCL, under the same handle */
	(void)cuGraphLaunch(exec, STREAM);
	cr_assert_eq(comm_at(0)->coll_entered, 0, "a rank would be said to be ahead");
	capture_in_vain(comm);
	(void)cuGraphCreate(&graph, 0);
	(void)cuGraphInstantiateWithFlags(&exec, graph, 0);
	(void)cuGraphLaunch(exec, STREAM);
	cr_assert_eq(comm_at(0)->coll_entered, 0);
	exec = capture(comm, 0, 2, 8);
	(void)cuGraphLaunch(exec, STREAM);
	cr_assert_eq(comm_at(0)->coll_entered, 2);
	cr_assert_not(comm_at(0)->flags & CW_REC_COMM_UNCOUNTED);
}

Test(agent_graphs, a_capture_into_a_graph_keeps_what_it_had)
{
	ncclComm_t comm = init(0);
	void *exec = capture(comm, 0, 2, 8), *graph;

	(void)cuStreamBeginCaptureToGraph(STREAM, graphs[0], NULL, NULL, 0, 0);
	(void)cuStreamEndCapture(STREAM, &graph);
	(void)cuGraphInstantiateWithFlags(&exec, graph, 0);
	(void)cuGraphLaunch(exec, STREAM);
	cr_assert_eq(comm_at(0)->coll_entered, 2);
}

Test(agent_graphs, two_graphs_and_an_update_are_told_apart)
{
	ncclComm_t comm = init(0);
	void *small = capture(comm, 0, 1, 8), *large = capture(comm, 1, 5, 8);

	(void)cuGraphLaunch(small, STREAM);
	(void)cuGraphLaunch(large, STREAM);
	cr_assert_eq(comm_at(0)->coll_returned, 6);
	cr_assert_eq(cuGraphExecUpdate_v2(small, graphs[1], NULL), 0);
	(void)cuGraphLaunch(small, STREAM);
	cr_assert_eq(comm_at(0)->coll_returned, 11);
}

Test(agent_graphs, clones_and_children_bring_their_ops)
{
	ncclComm_t comm = init(0);
	void *clone = NULL, *exec = NULL, *node = NULL;

	(void)capture(comm, 0, 2, 8);
	(void)cuGraphClone(&clone, graphs[0]);
	(void)cuGraphInstantiateWithFlags(&exec, clone, 0);
	(void)cuGraphLaunch(exec, STREAM);
	cr_assert_eq(comm_at(0)->coll_returned, 2);
	(void)cuGraphAddChildGraphNode(&node, graphs[2], NULL, 0, graphs[0]);
	(void)cuGraphInstantiateWithFlags(&exec, graphs[2], 0);
	(void)cuGraphLaunch(exec, STREAM);
	cr_assert_eq(comm_at(0)->coll_returned, 4);
	cr_assert_not(comm_at(0)->flags & CW_REC_COMM_UNCOUNTED);
	/* Twice the same child: their order is unknown. */
	(void)cuGraphAddChildGraphNode(&node, graphs[2], NULL, 0, graphs[0]);
	cr_assert(comm_at(0)->flags & CW_REC_COMM_UNCOUNTED);
}

Test(agent_graphs, what_cannot_be_followed_is_uncounted)
{
	ncclComm_t a = init(0), b = init(1), c = init(2);
	void *exec;

	/* A capture that was begun past the agent. */
	fake_cuda.graph = graphs[0];
	fake_cuda.capture_status = 1;
	call(a, 8);
	fake_cuda.capture_status = 0;
	cr_assert(comm_at(0)->flags & CW_REC_COMM_UNCOUNTED);
	cr_assert_eq(comm_at(0)->coll_entered, 0);
	/* The body of a condition: no write may go in there. */
	(void)cuStreamBeginCaptureToGraph(STREAM, graphs[1], NULL, NULL, 0, 0);
	call(b, 8);
	fake_cuda.capture_status = 0;
	cr_assert(comm_at(1)->flags & CW_REC_COMM_UNCOUNTED);
	cr_assert_eq(fake_cuda.captured, 0);
	/* A launch that is captured itself. */
	exec = capture(c, 2, 1, 8);
	cr_assert_not(comm_at(2)->flags & CW_REC_COMM_UNCOUNTED);
	begin(3);
	(void)cuGraphLaunch(exec, STREAM);
	cr_assert(comm_at(2)->flags & CW_REC_COMM_UNCOUNTED);
	cr_assert_eq(comm_at(2)->coll_entered, 0);
}

typedef int (*instantiate_fn)(void **exec, void *graph, void *c, void *d, uintptr_t e);

/*
 * For each name and version the driver may return another function. We call the returned one, with
 * the arguments of the caller.
 */
Test(agent_graphs, each_version_of_a_name_leads_to_its_own_function)
{
	int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags,
				int *status);
	void *v11 = NULL, *v12 = NULL, *flagged = NULL, *exec = NULL;

	(void)init(0);
	cr_assert_eq(cuGetProcAddress_v2("cuGraphInstantiateWithFlags", &flagged, 12040, 0, NULL),
		     0);
	cr_assert_eq(cuGetProcAddress_v2("cuGraphInstantiate", &v12, 12040, 0, NULL), 0);
	cr_assert_eq(cuGetProcAddress_v2("cuGraphInstantiate", &v11, 11040, 0, NULL), 0);
	cr_assert(v11 != v12 && v12 != flagged && v11 != flagged);
	cr_assert_eq(((instantiate_fn)v12)(&exec, graphs[0], NULL, graphs[1], 9), 0);
	cr_assert_eq(fake_cuda.log_size, 9, "the function with five parameters got all five");
	cr_assert_eq(exec, graphs[0] + 1);
}

Test(agent_graphs, tables_are_used_again)
{
	ncclComm_t comm = init(0);

	for (unsigned i = 0; i < 3 * CW_REC_REPLAYS; i++) {
		void *exec;

		fake_cuda.captured = 0;
		exec = capture(comm, i % 2, 1 + i % 7, 8 + i);
		(void)cuGraphLaunch(exec, STREAM);
		(void)cuGraphDestroy(fake_cuda.graph);
		(void)cuGraphExecDestroy(exec);
	}
	cr_assert_not(comm_at(0)->flags & CW_REC_COMM_UNCOUNTED);
	cr_assert_neq(replay_of(last(0))->progress_slot, CW_REC_NO_SLOT);
	cr_assert_eq(comm_at(0)->coll_entered, comm_at(0)->coll_returned);
}

Test(agent_graphs, without_room_the_communicator_is_uncounted)
{
	static char many[CW_REC_REPLAYS + 1][16];
	ncclComm_t comm = init(0);

	for (unsigned i = 0; i < CW_REC_REPLAYS; i++) {
		fake_cuda.captured = 0;
		fake_cuda.graph = many[i];
		(void)cuStreamBeginCapture_v2(STREAM, 0);
		call(comm, 8);
		(void)finish();
	}
	cr_assert_not(comm_at(0)->flags & CW_REC_COMM_UNCOUNTED);
	fake_cuda.graph = many[CW_REC_REPLAYS];
	(void)cuStreamBeginCapture_v2(STREAM, 0);
	call(comm, 8);
	cr_assert(comm_at(0)->flags & CW_REC_COMM_UNCOUNTED);
}

Test(agent_graphs, progress_off_still_counts)
{
	ncclComm_t comm;
	void *exec;

	(void)setenv("COLLWATCH_PROGRESS", "off", 1);
	comm = init(0);
	exec = capture(comm, 0, 3, 8);
	cr_assert_eq(fake_cuda.captured, 0);
	(void)cuGraphLaunch(exec, STREAM);
	cr_assert_eq(fake_cuda.writes, 0);
	cr_assert_eq(comm_at(0)->coll_returned, 3);
	cr_assert_eq(last(0)->progress_slot, CW_REC_NO_SLOT);
}

/* A driver of its own, from a file that is gone again. */
static void *load_driver(char path[static 64])
{
	char dir[] = "/tmp/cw-graphs-XXXXXX", bytes[4096];
	FILE *from, *to;
	void *handle;
	size_t n;

	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, 64, "%s/libcuda.so.1", dir);
	from = fopen(bare_cuda_path(), "r");
	to = fopen(path, "w");
	cr_assert(from && to);
	while ((n = fread(bytes, 1, sizeof(bytes), from)) > 0)
		cr_assert_eq(fwrite(bytes, 1, n, to), n);
	(void)fclose(from);
	(void)fclose(to);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	(void)unlink(path);
	(void)rmdir(dir);
	cr_assert_not_null(handle, "%s", dlerror());
	return handle;
}

Test(agent_graphs, the_driver_stays_loaded_and_a_second_one_is_left_alone)
{
	cw_dlsym_fn next = cw_next_dlsym_get();
	char first[64], second[64];
	void *a = load_driver(first), *b = load_driver(second);
	void *ours = cw_cuda_symbol(next, a, "cuGraphLaunch");
	Dl_info info;

	cr_assert_eq(ours, (void *)cuGraphLaunch);
	cr_assert_eq(dlclose(a), 0);
	cr_assert(dladdr(next(a, "cuGraphLaunch"), &info), "unmapped under its wrapper");
	cr_assert_str_eq(info.dli_fname, first);
	cr_assert_eq(cw_cuda_symbol(next, b, "cuGraphLaunch"), next(b, "cuGraphLaunch"));
	cr_assert_eq(cw_cuda_symbol(next, a, "cuGraphLaunch"), ours);
}
