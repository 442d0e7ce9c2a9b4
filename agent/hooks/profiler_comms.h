/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: NCCL passes the plugin's context of a communicator with each event. It is the address
 * of a byte here. A communicator that a wrapper creates has its entry in the record already, and
 * its context only leads there. All others get an entry of the plugin's own.
 *
 * Any thread. The functions call neither NCCL nor CUDA, and do not allocate.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/record/record.h"

/* An entry of the plugin's own has the address of its context as its handle. */
extern char cw_profiler_contexts[CW_REC_COMMS];

/*
 * Returns a context for the communicator with this hash that a wrapper is creating. NULL: no
 * wrapper creates it, or too many contexts exist.
 */
void *cw_profiler_comms_wrapped(uint64_t comm_hash, int nranks, int rank);

/*
 * For versions 1 to 3: returns a context whose communicator becomes known with its first launch.
 * NULL: no wrapper creates a communicator, or too many contexts exist.
 */
void *cw_profiler_comms_unnamed(void);

/* Notes the launch of a call in an unnamed context. */
void cw_profiler_comms_name(void *context, uint64_t comm_hash, int rank);

struct cw_profiler_comm {
	int entry; /* -1 = unknown */
	bool is_wrapped;
};

/* Returns the communicator of a context. A context of another process gives -1 and false. */
struct cw_profiler_comm cw_profiler_comms_of(const void *context);

/*
 * Returns the op that the calling thread's wrapper records at the moment, and its entry; NULL if
 * the thread is in no such wrapper.
 */
const struct cw_rec_op *cw_profiler_comms_current(int *ret_entry);

/*
 * The thread is in a wrapper, and NCCL reports its call in this context. The wrapper knows the
 * communicator for certain, so this corrects the entry.
 */
void cw_profiler_comms_confirm(void *context, int entry);

/* Ends a wrapped or unnamed context. Returns its entry, -1 = unknown. */
int cw_profiler_comms_end(void *context);
