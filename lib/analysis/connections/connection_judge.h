/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges the network connections of a collective that all members have entered and none can finish
 * (docs/design/verdict.md#connections). Pure; the memory comes from the caller's arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/verdict_types.h"

/*
 * A connection stands if its daemon has read the same counts twice, at least this long apart. One
 * reading proves nothing, because each step of a healthy connection also waits somewhere.
 */
#define CONNECTION_STANDS_NS (INT64_C(2) * 1000000000)
#define CONNECTION_STANDS_LONG_NS (INT64_C(10) * 1000000000)

struct connection_judgement {
	/*
	 * CW_DETAIL_NONE = the connections show no culprit. Otherwise CW_DETAIL_CONNECTION,
	 * CW_DETAIL_SLOW_CONNECTION, CW_DETAIL_GPU_NOT_CONSUMING, CW_DETAIL_GPU_NOT_PRODUCING or
	 * CW_DETAIL_NOT_IN_PROXY.
	 */
	enum cw_detail detail;
	enum cw_confidence allows; /* the highest confidence that the connections allow */
	/* the connection at fault, for CW_DETAIL_CONNECTION and CW_DETAIL_SLOW_CONNECTION */
	struct cw_link link;
	/*
	 * For a GPU or a proxy: indices of the ranks at fault. Ranks that exchange data without the
	 * network share the fault, because we cannot distinguish them.
	 */
	uint32_t *ranks;
	uint32_t n_ranks;
};

/*
 * Judges op `seq` of kind `op_kind` on the comm. seq is a coll_seq; 0 = sends and receives. The
 * ranks of *ret are allocated in `arena`. Returns 0 or -ENOMEM.
 */
int connection_judge(const struct cw_snapshot *snap, uint32_t comm, uint64_t seq, uint32_t op_kind,
		     struct cw_arena *arena, struct connection_judgement *ret);
