/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: NCCL passes the plugin's context of a communicator with each event. A context is the
 * address of a byte in cw_profiler_contexts. A communicator that a wrapper creates has its entry in
 * the record already, and its context leads to that entry. All other communicators get an entry
 * from the plugin.
 *
 * Any thread. The functions call neither NCCL nor CUDA, and do not allocate.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/record/record.h"

/* The contexts. An entry that the plugin made has the address of its context as its handle. */
extern char cw_profiler_contexts[CW_REC_COMMS];

/*
 * Returns a context for the communicator with this hash that a wrapper is creating. NULL: no
 * wrapper creates such a communicator, or too many contexts exist.
 */
void *cw_profiler_comms_wrapped(uint64_t comm_hash, int nranks, int rank);

/*
 * Returns a context for versions 1 to 3. Its communicator becomes known with its first launch.
 * NULL: no wrapper creates a communicator, or too many contexts exist.
 */
void *cw_profiler_comms_unnamed(void);

/* Tells an unnamed context its communicator, when NCCL reports the launch of a call. */
void cw_profiler_comms_name(void *context, uint64_t comm_hash, int rank);

struct cw_profiler_comm {
	int entry; /* entry in the record; -1 = unknown */
	bool is_wrapped;
};

/*
 * Returns the communicator of a context. For a context of another process returns entry -1 and
 * false.
 */
struct cw_profiler_comm cw_profiler_comms_of(const void *context);

/*
 * Returns the op that the calling thread's wrapper is recording, and the entry of its communicator.
 * NULL if the thread is in no such wrapper.
 */
const struct cw_rec_op *cw_profiler_comms_current(int *ret_entry);

/*
 * Corrects the entry of a context. The thread is in a wrapper, which knows the communicator for
 * certain, and NCCL reports the wrapper's call in this context.
 */
void cw_profiler_comms_confirm(void *context, int entry);

/* Ends a wrapped or unnamed context. Returns its entry; -1 = unknown. */
int cw_profiler_comms_end(void *context);
