/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/known/known_hangs.h"

#include <string.h>

#include "record/nccl_variables.h"

const struct cw_known_hang_row cw_known_hang_rows[] = {
	{
		/*
		 * The weak compare-and-exchange is in src/proxy.cc of v2.28.9-1 and v2.29.2-1, and
		 * in no other tag. The authors tested 2.28.9, 2.29.2, 2.29.3 and 2.30.7.
		 */
		.name = "NVIDIA/nccl#2353",
		.first = 22809,
		.last = 22902,
		.machine = CW_MACHINE_AARCH64,
		.signature = KNOWN_NOT_IN_PROXY,
		.fixed_in = "2.29.3",
		.what = "NCCL loses places of its pool of proxy operations. When the pool of a rank "
			"is empty, its call waits in ncclLocalOpAppend, and its proxy sleeps",
		.sources = { "https://github.com/NVIDIA/nccl/issues/2353",
			     "https://github.com/marin-community/marin/issues/7344",
			     "https://github.com/NVIDIA/nccl/releases/tag/v2.29.3-1" },
	},
	{
		/* The thread confirms 2.31.2, and NVIDIA announces the fix for "2.32u1". */
		.name = "NVIDIA/nccl#2389",
		.first = 23102,
		.last = 23102,
		.signature = KNOWN_RECEIVER_POSTS_NOTHING,
		.fixed_in = "2.32u1",
		.what = "With registered buffers, a receiver's proxy erases the flag with which the "
			"GPU asks it to receive, and never posts the next step",
		.sources = { "https://github.com/NVIDIA/nccl/issues/2389",
			     "https://github.com/NVIDIA/nccl/pull/2390" },
	},
	{
		/* Two reports from DGX Spark (GB10): 2.28.9 hangs, and 2.30.4 does not. */
		.name = "vllm-project/vllm#52504",
		.first = 22809,
		.last = 22809,
		.machine = CW_MACHINE_AARCH64,
		.signature = KNOWN_GRAPH_REPLAY,
		.fixed_in = "2.30.4",
		.what = "The replay of a CUDA graph with collectives of several nodes hangs after a "
			"few requests; the same calls outside of graphs do not",
		.sources = { "https://github.com/vllm-project/vllm/issues/52504",
			     "https://github.com/vllm-project/vllm/issues/40969" },
	},
	{
		.name = "NCCL_NVLS_ENABLE",
		.first = 22703,
		.last = 22809,
		.variable = "NCCL_NVLS_ENABLE",
		.unless = "0",
		.or_unless = "1",
		.signature = KNOWN_INIT_COMPLETE,
		.fixed_in = "2.29.2",
		.what = "If the allocation of NVLS resources (the multicast bind) fails on some of "
			"the ranks only, these ranks silently use another transport, and the "
			"others wait for them. From 2.29 on, the initialisation fails instead",
		.sources = { "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/"
			     "env.html#nccl-nvls-enable" },
	},
	{
		.name = "cuBLASMp's known issues",
		.first = 22907,
		.last = 23004,
		.variable = "NCCL_PXN_DISABLE",
		.unless = "1",
		.signature = KNOWN_PXN,
		.fixed_in = "2.30.7",
		.what = "Programs on several nodes with InfiniBand may hang unless "
			"NCCL_PXN_DISABLE=1 is set",
		.sources = { "https://docs.nvidia.com/cuda/cuest/troubleshooting/index.html" },
	},
};
const size_t cw_n_known_hang_rows = sizeof(cw_known_hang_rows) / sizeof(cw_known_hang_rows[0]);

bool cw_known_hang_has_version(const struct cw_known_hang_row *row, uint32_t nccl_version,
			       uint32_t machine)
{
	return nccl_version >= row->first && nccl_version <= row->last &&
	       (row->machine == CW_MACHINE_UNKNOWN || row->machine == machine);
}

/* True if the rank's variables are known, and the row's variable has no value that avoids it. */
static bool has_variable(const struct cw_known_hang_row *row, const struct cw_snap_rank *rank)
{
	const char *at = rank->nccl_variables ? rank->nccl_variables : "";
	struct cw_nccl_variable v;

	if (!row->variable)
		return true;
	if (!*at)
		return false;
	while (cw_nccl_variables_next(&at, &v)) {
		if (strlen(row->variable) != v.name_len ||
		    memcmp(row->variable, v.name, v.name_len) != 0)
			continue;
		if ((strlen(row->unless) == v.value_len &&
		     memcmp(row->unless, v.value, v.value_len) == 0) ||
		    (row->or_unless && strlen(row->or_unless) == v.value_len &&
		     memcmp(row->or_unless, v.value, v.value_len) == 0))
			return false;
	}
	return !rank->nccl_variables_omitted;
}

static const struct cw_snap_rank *rank_of(const struct cw_snapshot *snap,
					  const struct cw_snap_member *m)
{
	return m->rank < snap->n_ranks ? &snap->ranks[m->rank] : NULL;
}

/* True if all visible members have the version and the variables of the row. */
static bool all_have_setup(const struct cw_known_hang_row *row, const struct cw_snapshot *snap,
			   const struct cw_snap_comm *c)
{
	bool is_any_visible = false;

	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_snap_rank *rank = rank_of(snap, &c->members[m]);

		if (!rank)
			continue;
		is_any_visible = true;
		if (!cw_known_hang_has_version(row, rank->nccl_version, rank->machine) ||
		    !has_variable(row, rank))
			return false;
	}
	return is_any_visible;
}

/* True if visible members run on several nodes; for `is_one`, if two run on one node. */
static bool has_nodes(const struct cw_snapshot *snap, const struct cw_snap_comm *c, bool is_one)
{
	const struct cw_snap_rank *first = NULL;

	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_snap_rank *rank = rank_of(snap, &c->members[m]);

		if (rank && first && (rank->node == first->node) == is_one)
			return true;
		first = first ? first : rank;
	}
	return false;
}

static bool has_connection(const struct cw_snap_comm *c,
			   bool (*fits)(const struct cw_snap_connection *))
{
	for (uint32_t m = 0; m < c->nranks; m++)
		for (uint32_t i = 0; i < c->members[m].n_connections; i++)
			if (fits(&c->members[m].connections[i]))
				return true;
	return false;
}

static bool is_replay(const struct cw_snap_connection *row)
{
	return row->replay > 0 && !(row->flags & CW_CONNECTION_P2P);
}

static bool is_foreign(const struct cw_snap_connection *row)
{
	return (row->flags & (CW_CONNECTION_FOREIGN | CW_CONNECTION_SEND)) ==
	       (CW_CONNECTION_FOREIGN | CW_CONNECTION_SEND);
}

/* True if the receiver of the link has received all steps that it posted, and steps remain. */
static bool posts_nothing(const struct cw_snap_comm *c, const struct cw_link *link)
{
	if (!link->is_set || link->side != CW_LINK_SIDE_RECEIVER)
		return false;
	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_snap_member *member = &c->members[m];

		if (member->rank != link->receiver)
			continue;
		for (uint32_t i = 0; i < member->n_connections; i++) {
			const struct cw_snap_connection *row = &member->connections[i];

			if (row->channel == link->channel && !(row->flags & CW_CONNECTION_SEND) &&
			    row->peer < c->nranks && c->members[row->peer].rank == link->sender)
				return row->posted == row->ready && row->posted < row->steps;
		}
	}
	return false;
}

static bool has_signature(const struct cw_known_hang_row *row, const struct cw_snapshot *snap,
			  const struct cw_snap_comm *c, const struct cw_verdict *v)
{
	if (row->signature == KNOWN_INIT_COMPLETE)
		return v->verdict_class == CW_CLASS_INIT_STUCK && !v->n_culprits && !v->n_crossed &&
		       !v->blind_spots && has_nodes(snap, c, true);
	/* A rank that is held explains the hang. */
	if (v->verdict_class != CW_CLASS_IN_COLLECTIVE || v->detail == CW_DETAIL_STOPPED ||
	    v->detail == CW_DETAIL_TRACED || v->detail == CW_DETAIL_FROZEN)
		return false;
	switch (row->signature) {
	case KNOWN_NOT_IN_PROXY:
		return v->detail == CW_DETAIL_NOT_IN_PROXY;
	case KNOWN_RECEIVER_POSTS_NOTHING:
		return v->detail == CW_DETAIL_CONNECTION && posts_nothing(c, &v->link);
	case KNOWN_GRAPH_REPLAY:
		return has_nodes(snap, c, false) && has_connection(c, is_replay);
	case KNOWN_PXN:
		return has_nodes(snap, c, false) && has_connection(c, is_foreign);
	case KNOWN_INIT_COMPLETE:
		break;
	}
	return false;
}

bool known_hang_fits(const struct cw_known_hang_row *row, const struct cw_snapshot *snap,
		     const struct cw_verdict *v)
{
	const struct cw_snap_comm *c = v->comm < snap->n_comms ? &snap->comms[v->comm] : NULL;

	return c && has_signature(row, snap, c, v) && all_have_setup(row, snap, c);
}
