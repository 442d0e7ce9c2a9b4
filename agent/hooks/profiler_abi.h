/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of NCCL's profiler interface that the agent uses, in versions 1 (NCCL 2.23) to 7 (2.31).
 * The sources are src/include/plugin/nccl_profiler.h and src/include/plugin/profiler/profiler_v1.h
 * to profiler_v6.h of NCCL 2.30.7, and profiler_v7.h of NCCL's later revisions.
 *
 * Version 5 added events for the user's calls (…Api), beside the events for the launches that
 * result from these calls. Versions 6 and 7 only added kinds of events, and fields behind those in
 * this file. Up to version 3, init names no communicator; each launch names it instead.
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
       CW_NCCL_EVENT_PROXY_OP = 1 << 3,   /* one op's part on one network connection */
       CW_NCCL_EVENT_PROXY_STEP = 1 << 4, /* one chunk of that part */
       CW_NCCL_EVENT_GROUP_API = 1 << 8,
       CW_NCCL_EVENT_COLL_API = 1 << 9,
       CW_NCCL_EVENT_P2P_API = 1 << 10,
};

enum { /* states */
       CW_NCCL_STATE_SEND_GPU_WAIT = 8,
       CW_NCCL_STATE_SEND_WAIT = 9,
       CW_NCCL_STATE_RECV_WAIT = 10,
       CW_NCCL_STATE_RECV_FLUSH_WAIT = 11,
       CW_NCCL_STATE_RECV_GPU_WAIT = 12,
       CW_NCCL_STATE_SEND_PEER_WAIT = 20, /* reported from version 4 on */
       CW_NCCL_STATE_GROUP_END_API_START = 24,
};

/* A proxy op, whose layout is the same in all versions. */
struct cw_nccl_proxy_op {
	int pid; /* pid of the process that issued the op */
	uint8_t channel;
	int peer; /* rank in the communicator */
	int steps;
	int chunk_bytes;
	int is_send;
};

struct cw_nccl_proxy_step {
	int number; /* number of the step within the op, from 0 */
};

/*
 * An event from version 4 on. In version 4 the type has only its first byte. All versions share the
 * rest of the layout.
 */
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
			uint64_t number; /* number of the call, counted per function */
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
		struct cw_nccl_proxy_op proxy_op;
		struct cw_nccl_proxy_step proxy_step;
	};
};

_Static_assert(offsetof(struct cw_nccl_event, coll) == 24, "the union follows type, parent, rank");
_Static_assert(offsetof(struct cw_nccl_event, coll_api.is_captured) == 64, "collApi");
_Static_assert(offsetof(struct cw_nccl_event, p2p_api.is_captured) == 56, "p2pApi");
_Static_assert(offsetof(struct cw_nccl_event, coll.datatype) == 72, "coll");
_Static_assert(offsetof(struct cw_nccl_event, p2p.peer) == 56, "p2p");
_Static_assert(offsetof(struct cw_nccl_event, proxy_op.is_send) == 44, "proxyOp");

/* An event in versions 1 to 3. In version 1 the function is a number (ncclFunc_t). */
struct cw_nccl_event_v3 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t comm_hash;
			uint64_t number;
			union {
				const char *func;
				uint8_t func_v1;
			};
			const void *send;
			void *recv;
		} coll;
		struct {
			const char *name;
			uint64_t comm_hash;
			union {
				const char *func;
				uint8_t func_v1;
			};
			void *buff;
		} p2p;
		struct cw_nccl_proxy_op proxy_op;
		struct cw_nccl_proxy_step proxy_step;
	};
};

_Static_assert(offsetof(struct cw_nccl_event_v3, coll.recv) == 64, "coll");
_Static_assert(offsetof(struct cw_nccl_event_v3, p2p.buff) == 48, "p2p");
_Static_assert(offsetof(struct cw_nccl_event_v3, proxy_op.is_send) == 44, "proxyOp");

/* The argument of a step's state, from version 4 on. Earlier versions pass NULL or zeros. */
struct cw_nccl_step_args {
	size_t bytes;
};

/* The members of a plugin after init, which are the same in all versions. */
#define CW_NCCL_PROFILER_TAIL(event_type)                                                          \
	ncclResult_t (*start_event)(void *context, void **handle, const event_type *event);        \
	ncclResult_t (*stop_event)(void *handle);                                                  \
	ncclResult_t (*record_event_state)(void *handle, int state, void *args);                   \
	ncclResult_t (*finalize)(void *context);

struct cw_nccl_profiler_v3 {
	const char *name;
	ncclResult_t (*init)(void **context, int *mask);
	CW_NCCL_PROFILER_TAIL(struct cw_nccl_event_v3)
};

struct cw_nccl_profiler_v4 {
	const char *name;
	ncclResult_t (*init)(void **context, int *mask, const char *comm_name, uint64_t comm_hash,
			     int nnodes, int nranks, int rank, void *log);
	CW_NCCL_PROFILER_TAIL(struct cw_nccl_event)
};

struct cw_nccl_profiler_v5 {
	const char *name;
	ncclResult_t (*init)(void **context, uint64_t comm_hash, int *mask, const char *comm_name,
			     int nnodes, int nranks, int rank, void *log);
	CW_NCCL_PROFILER_TAIL(struct cw_nccl_event)
};
