/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of NCCL's profiler interface that the agent uses, in versions 4 (NCCL 2.27) to 7 (2.31).
 * The sources are plugins/profiler/example/nccl/profiler_v*.h and
 * src/include/plugin/profiler/profiler_v*.h of NCCL's own repository. Version 5 added the user's
 * calls (…Api) beside the launches that result from them. Versions 6 and 7 only added kinds of
 * events, and fields behind those below.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/nccl_abi.h"

enum { /* kinds of events: bits of the activation mask */
       CW_NCCL_EVENT_GROUP = 1 << 0,
       CW_NCCL_EVENT_COLL = 1 << 1,
       CW_NCCL_EVENT_P2P = 1 << 2,
       CW_NCCL_EVENT_GROUP_API = 1 << 8,
       CW_NCCL_EVENT_COLL_API = 1 << 9,
       CW_NCCL_EVENT_P2P_API = 1 << 10,
};

#define CW_NCCL_STATE_GROUP_END_API_START 24

/* Version 4 has only the first byte of the type. All versions share the rest of the layout. */
struct cw_nccl_event {
	union {
		uint8_t type_v4;
		uint64_t type;
	};
	void *parent;
	int rank;
	union {
		struct {
			bool is_captured;
			int depth; /* 1: NCCL's own group around a single call */
		} group_api;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			int root;
			void *stream;
			bool is_captured;
		} coll_api;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			void *stream;
			bool is_captured;
		} p2p_api;
		struct {
			uint64_t number; /* counted per function */
			const char *func;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *datatype;
		} coll;
		struct {
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
		} p2p;
	};
};

_Static_assert(offsetof(struct cw_nccl_event, coll) == 24, "the union follows type, parent, rank");
_Static_assert(offsetof(struct cw_nccl_event, coll_api.is_captured) == 64, "collApi");
_Static_assert(offsetof(struct cw_nccl_event, p2p_api.is_captured) == 56, "p2pApi");
_Static_assert(offsetof(struct cw_nccl_event, coll.datatype) == 72, "coll");
_Static_assert(offsetof(struct cw_nccl_event, p2p.peer) == 56, "p2p");

typedef ncclResult_t (*cw_nccl_start_fn)(void *context, void **handle,
					 const struct cw_nccl_event *event);

/* The members after init are the same in all versions. */
#define CW_NCCL_PROFILER_TAIL                                                                      \
	cw_nccl_start_fn start_event;                                                              \
	ncclResult_t (*stop_event)(void *handle);                                                  \
	ncclResult_t (*record_event_state)(void *handle, int state, void *args);                   \
	ncclResult_t (*finalize)(void *context);

struct cw_nccl_profiler_v4 {
	const char *name;
	ncclResult_t (*init)(void **context, int *mask, const char *comm_name, uint64_t comm_hash,
			     int nnodes, int nranks, int rank, void *log);
	CW_NCCL_PROFILER_TAIL
};

struct cw_nccl_profiler_v5 {
	const char *name;
	ncclResult_t (*init)(void **context, uint64_t comm_hash, int *mask, const char *comm_name,
			     int nnodes, int nranks, int rank, void *log);
	CW_NCCL_PROFILER_TAIL
};
