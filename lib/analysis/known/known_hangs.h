/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The known hangs of NCCL: one row for each, with its public source (docs/design/known-hangs.md).
 * An alert cites a row only if the version and the signature of the hang fit. A version alone
 * proves nothing, and only `collwatch doctor` mentions it.
 *
 * Pure; no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"
#include "model/verdict_types.h"

/* The part of a verdict that shows a known hang. */
enum known_signature {
	/* The call is not in NCCL's proxy (CW_DETAIL_NOT_IN_PROXY). */
	KNOWN_NOT_IN_PROXY,
	/* A connection at fault whose receiver posts no buffer, although steps remain. */
	KNOWN_RECEIVER_POSTS_NOTHING,
	/* A collective of several nodes hangs in the replay of a CUDA graph. */
	KNOWN_GRAPH_REPLAY,
	/* A collective of several nodes hangs, and another process moves its data (PXN). */
	KNOWN_PXN,
	/* All members are inside the initialisation, several of them on one node. */
	KNOWN_INIT_COMPLETE,
};

struct cw_known_hang_row {
	const char *name;     /* the source as alerts cite it: "NVIDIA/nccl#2353" */
	uint32_t first, last; /* versions, as ncclGetVersion() returns them */
	uint32_t machine;     /* enum cw_machine; CW_MACHINE_UNKNOWN = any */
	/*
	 * A rank whose variable has the value `unless` or `or_unless` avoids the hang. NULL = no
	 * variable matters.
	 */
	const char *variable, *unless, *or_unless;
	enum known_signature signature;
	const char *fixed_in; /* version of NCCL */
	const char *what;     /* the fault, for the documentation */
	const char *sources[3];
};

extern const struct cw_known_hang_row cw_known_hang_rows[];
extern const size_t cw_n_known_hang_rows;

/* True if the version and the machine are those of the row. */
bool cw_known_hang_has_version(const struct cw_known_hang_row *row, uint32_t nccl_version,
			       uint32_t machine);

/* True if version, machine, variables and signature of the verdict fit the row. */
bool known_hang_fits(const struct cw_known_hang_row *row, const struct cw_snapshot *snap,
		     const struct cw_verdict *v);
