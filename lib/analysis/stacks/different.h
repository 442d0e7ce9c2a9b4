/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the ranks whose stacks differ from those of their peers (analysis/stacks/peers.h). If
 * nearly all peers are in the same functions and a few are elsewhere, these few are different. This
 * is a hint and never a proof, so the confidence is at most "likely". In a symmetric state no rank
 * differs.
 *
 * While ranks make progress, each rank is in another place at any moment. Then we report a rank
 * only if its host is idle, or the hosts of all its peers are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A host without activity for this long is idle (the fact host_activity_ns). */
#define CW_STACKS_IDLE_NS (INT64_C(10) * 1000000000)

enum cw_stack_host {
	CW_STACK_HOST_UNKNOWN = 0,
	CW_STACK_HOST_IDLE,
	CW_STACK_HOST_BUSY, /* the process used the CPU, or did I/O, in the last seconds */
};

/*
 * The activity of one thread of a rank. A rank may have several samples, each with a different
 * role.
 */
struct cw_stack_sample {
	uint32_t rank;  /* index in the snapshot */
	uint32_t peers; /* the rank's group of peers; CW_SNAP_NONE = not known */
	uint64_t role;  /* equal for threads with the same role, for example the main thread */
	bool is_main;
	uint64_t functions; /* equal for stacks with the same functions */
	uint64_t lines;     /* equal for stacks with the same functions and lines */
	uint32_t host;      /* enum cw_stack_host */
};

struct cw_stack_difference {
	uint32_t sample; /* index of the sample that differs */
	uint32_t usual;  /* index of a sample of the peers that do not differ */
	uint32_t n_peers, n_usual;
	uint32_t confidence; /* enum cw_confidence: likely or possible */
};

/*
 * Finds the different ranks, each at most once. Ranks whose main thread differs come first;
 * otherwise the list is in the order of ranks. moves: the job makes progress. Does not reorder the
 * samples. *ret_list has *ret_n entries, and the caller releases it with free(). Pure; O(n log n).
 * Returns 0 or -ENOMEM.
 */
int cw_stack_differences_find(const struct cw_stack_sample *samples, size_t n, bool moves,
			      struct cw_stack_difference **ret_list, size_t *ret_n);
