/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the part of a graph from a stream's capture. A program may begin, join and end captures
 * anywhere, so we query the driver about the capture at each op. If we cannot follow a capture, its
 * communicator becomes uncounted.
 */
#include "agent/ops/graph.h"

#include <dlfcn.h>
#include <errno.h>

#include "agent/base/cuda_abi.h"
#include "agent/base/next_dlsym.h"
#include "agent/base/state.h"
#include "agent/cuda/progress.h"
#include "agent/ops/graph_part.h"
#include "agent/ops/p2p.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"

static uintptr_t foreign_graphs[16]; /* last graphs that the program captured into */
static unsigned foreign_count;
static bool has_seen_captures;

/* The driver's own cuStreamIsCapturing and cuStreamGetCaptureInfo_v2, which we do not hook. */
CW_HOT_DATA cw_is_capturing_fn cw_graph_is_capturing;
static CUresult (*capture_info)(cudaStream_t stream, CUstreamCaptureStatus *status, uint64_t *id,
				void **graph, const void **deps, size_t *num_deps);

void cw_graph_comm_ready(int c)
{
	cw_dlsym_fn next = cw_next_dlsym_get();
	int saved_errno = errno;
	void *handle, *p;

	if (!next || __atomic_load_n(&capture_info, __ATOMIC_RELAXED))
		return;
	/* We never close the handle, because our function pointers lead into the library. */
	handle = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
	if (handle) {
		p = next(handle, "cuStreamIsCapturing");
		__atomic_store_n((void **)&cw_graph_is_capturing, p, __ATOMIC_RELEASE);
		p = next(handle, "cuStreamGetCaptureInfo_v2");
		__atomic_store_n((void **)&capture_info, p, __ATOMIC_RELEASE);
	}
	(void)dlerror();
	errno = saved_errno;
}

void cw_graph_capture_seen(void)
{
	CW_STORE(has_seen_captures, true);
}

void cw_graph_capture_into(void *graph)
{
	unsigned n = __atomic_fetch_add(&foreign_count, 1, __ATOMIC_RELAXED);

	CW_STORE(foreign_graphs[n % 16], (uintptr_t)graph);
}

struct capture {
	void *graph;
	uint64_t id;
};

static bool is_foreign(const void *graph)
{
	for (unsigned i = 0; i < 16; i++) {
		if (CW_LOAD(foreign_graphs[i]) == (uintptr_t)graph)
			return true;
	}
	return false;
}

/*
 * Finds the stream's capture. Returns false if we cannot follow ops in it. The body of a condition
 * is a foreign graph, and would reject even a progress write.
 */
static bool find_capture(cudaStream_t stream, struct capture *ret)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	*ret = (struct capture){ 0 };
	return capture_info && CW_LOAD(has_seen_captures) &&
	       capture_info(stream, &status, &ret->id, &ret->graph, NULL, NULL) == CUDA_SUCCESS &&
	       ret->graph && status == CU_STREAM_CAPTURE_STATUS_ACTIVE && !is_foreign(ret->graph);
}

uint64_t cw_graph_capture_id(cudaStream_t stream)
{
	CUresult (*ask)(cudaStream_t, CUstreamCaptureStatus *, uint64_t *, void **, const void **,
			size_t *) = __atomic_load_n(&capture_info, __ATOMIC_ACQUIRE);
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	int saved_errno = errno;
	uint64_t id = 0;

	if (!ask || ask(stream, &status, &id, NULL, NULL, NULL) != CUDA_SUCCESS ||
	    status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		id = 0;
	errno = saved_errno;
	return id;
}

void cw_graph_captured(void *graph, uint64_t id)
{
	/* A graph that is older than its capture keeps its parts, so we remove none. */
	if (!graph || is_foreign(graph) || CW_LOAD(foreign_count) > 16)
		return;
	cw_graph_lock();
	for (unsigned i = 0; i < CW_REC_REPLAYS; i++) {
		struct cw_graph_part *part = &cw_graph_parts[i];

		if (part->is_used && part->graph == (uintptr_t)graph && part->capture_id != id)
			cw_graph_part_left(part);
	}
	cw_graph_unlock();
}

/*
 * Finds or creates the part of the captured graph for communicator c. The caller holds the lock.
 * Returns NULL if the tables are full, and the op is then lost.
 */
static struct cw_graph_part *part_for(int c, const struct capture *capture)
{
	struct cw_graph_part *part = cw_graph_part_find(capture->graph, c);

	/*
	 * Another capture id: the part is left over from a failed capture, and the driver has
	 * reused its handle.
	 */
	if (part && part->capture_id != capture->id) {
		cw_graph_part_left(part);
		part = NULL;
	}
	if (part)
		return part;
	part = cw_graph_part_new(capture->graph, capture->id, c);
	if (part && cw_comms[c].context) {
		part->slot = cw_progress_take(c);
		CW_STORE(cw_graph_replay_of(part)->progress_slot, part->slot);
	}
	return part;
}

void cw_graph_op(struct cw_op_call *call, const struct cw_op_desc *desc, struct cw_group *group)
{
	const struct cw_rec_comm *rc = &cw_record.comms[call->comm];
	struct cw_rec_template run = {
		.count = desc->count,
		.root_or_peer = desc->root_or_peer,
		.kind = desc->kind,
		.dtype = (uint8_t)desc->dtype,
		.redop = cw_op_redop(desc->redop),
		.flags = group ? CW_REC_TEMPLATE_GROUPED : 0,
		.repeat = 1,
	};
	struct cw_graph_part *part = NULL;
	struct capture capture;
	int saved_errno = errno;

	if (!group && call->seq && cw_op_is_collective(call->kind))
		CW_STORE(cw_record.comms[call->comm].coll_entered, CW_LOAD(rc->coll_returned));
	call->seq = 0;
	call->signature = 0;
	call->peer_index = CW_P2P_NO_PLACE;
	if (find_capture(call->stream, &capture)) {
		cw_graph_lock();
		part = part_for(call->comm, &capture);
		if (part && cw_graph_part_append(part, &run))
			call->part_plus_1 = (uint16_t)(part - cw_graph_parts + 1);
		cw_graph_unlock();
	}
	if (!call->part_plus_1) {
		cw_graph_uncounted(call->comm);
	} else if (group) {
		struct cw_group_comm *gc = cw_group_comm(group, call->comm);

		gc->part_plus_1 = call->part_plus_1;
		gc->captured_ops++;
		gc->captured_stream = call->stream;
	} else if (part->slot != CW_REC_NO_SLOT) {
		(void)cw_progress_reached(call->comm, part->slot, call->stream,
					  cw_graph_replay_of(part)->ops);
	}
	errno = saved_errno;
}

void cw_graph_op_done(const struct cw_op_call *call, struct cw_group_comm *gc, bool ok)
{
	struct cw_graph_part *part;

	if (!call->part_plus_1)
		return;
	part = &cw_graph_parts[call->part_plus_1 - 1];
	if (!ok) {
		cw_graph_lock();
		cw_graph_part_take_back(part, 1);
		cw_graph_unlock();
		if (gc && gc->captured_ops)
			gc->captured_ops--;
	} else if (!gc && part->slot != CW_REC_NO_SLOT) {
		(void)cw_progress_completed(call->comm, part->slot, call->stream,
					    cw_graph_replay_of(part)->ops);
	}
}

void cw_graph_group_launch(const struct cw_group_comm *gc)
{
	const struct cw_graph_part *part = &cw_graph_parts[gc->part_plus_1 - 1];

	if (part->slot != CW_REC_NO_SLOT)
		(void)cw_progress_reached(gc->comm, part->slot, gc->captured_stream,
					  cw_graph_replay_of(part)->ops);
}

void cw_graph_group_done(struct cw_group_comm *gc, bool ok)
{
	struct cw_graph_part *part = &cw_graph_parts[gc->part_plus_1 - 1];
	struct cw_rec_template *last;

	if (!ok) {
		cw_graph_lock();
		cw_graph_part_take_back(part, gc->captured_ops);
		cw_graph_unlock();
		return;
	}
	if (gc->captured_ops && part->last_plus_1) {
		last = &cw_record.templates[part->last_plus_1 - 1];
		CW_STORE(last->flags, (uint8_t)(last->flags | CW_REC_TEMPLATE_GROUP_END));
	}
	if (part->slot != CW_REC_NO_SLOT)
		(void)cw_progress_completed(gc->comm, part->slot, gc->captured_stream,
					    cw_graph_replay_of(part)->ops);
}
