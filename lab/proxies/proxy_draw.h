/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws a job with one fault of the network, of a GPU or of a proxy. Runs the model of the proxies
 * (proxy_model.h) into the fault, and makes the snapshot that a leader would then have. Keeps the
 * true fault beside the snapshot, so that proxy_score.h can check the verdict.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lab/proxies/proxy_model.h"
#include "model/snapshot.h"

enum proxy_fault {
	PROXY_FAULT_STALL,      /* one link */
	PROXY_FAULT_ONE_WAY,    /* all links from one node to another */
	PROXY_FAULT_CUT,        /* all links between two nodes */
	PROXY_FAULT_SLOW,       /* one link takes 100 times as long */
	PROXY_FAULT_LATE,       /* a stall that ends later than the verdict */
	PROXY_FAULT_UNLAUNCHED, /* a GPU does not start its kernel */
	PROXY_FAULT_GPU_STOPS,  /* a GPU stops in the middle of the op */
	PROXY_FAULT_POOL,       /* a call cannot give its part to the proxy */
	/* For these faults the connections must not name a culprit: */
	PROXY_FAULT_NONE,     /* healthy, or slow everywhere */
	PROXY_FAULT_STOPPED,  /* a process is stopped */
	PROXY_FAULT_ABSENT,   /* a rank does not call the op */
	PROXY_FAULT_MISMATCH, /* a rank calls another op */
	PROXY_FAULT__MAX,
};

const char *proxy_fault_name(enum proxy_fault fault);

struct proxy_truth {
	enum proxy_fault fault;
	uint32_t comm;
	uint32_t rank; /* the rank at fault, if the fault concerns one rank */
	struct {
		uint32_t from, to, channel; /* ranks: sender and receiver */
	} links[PROXY_MAX_LINKS];
	uint32_t n_links;
};

struct proxy_case {
	struct proxy_truth truth;
	/*
	 * Two snapshots of one hang. `early` is less than 2 s after the last move on the
	 * communicator; NULL = the case has none.
	 */
	struct cw_snapshot *early, *late;
};

/*
 * Makes the case of this seed. If a fault does no harm, we draw again. Returns 0 or -ENOMEM. The
 * caller frees the case with proxy_case_fini().
 */
int proxy_case_draw(uint64_t seed, enum proxy_fault fault, struct proxy_case *ret);
void proxy_case_fini(struct proxy_case *c);
