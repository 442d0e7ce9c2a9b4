/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's side of the flight record of this process (record/record_layout.h). The agent makes
 * the record once and never moves or frees it. Fields that other threads or processes read need the
 * macros below, which store a field as an atomic of its own size.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/descriptors.h"
#include "record/record_layout.h"

#define CW_STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)
#define CW_LOAD(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

struct cw_record {
	struct cw_rec_header *header;
	struct cw_rec_comm *comms;
	struct cw_rec_op *ring;
	struct cw_rec_p2p_block *p2p;
	struct cw_rec_progress_info *progress_info;
	struct cw_rec_progress *progress;
	struct cw_rec_module *modules;
	struct cw_rec_summary *summaries;
	struct cw_rec_time *times;
	void *device_pages; /* the sections that the GPU writes: progress, summaries, times */
	size_t device_bytes;
	struct cw_rec_replay *replays;
	struct cw_rec_template *templates;
	struct cw_rec_connection *connections;
	struct cw_rec_variables *variables;
	/* `stacks` and `frames` are NULL if the record has no call stacks. */
	struct cw_rec_stack *stacks;
	struct cw_rec_frame *frames;
	uint64_t total_bytes;
	int fd;
	struct cw_fd_identity id;
};

extern struct cw_record cw_record;

/*
 * Makes the memfd, maps and seals it, and writes the fixed part of the header. The header's state
 * stays 0. with_stacks adds room for call stacks, unless the system's pages are too large for that.
 * Blocks only on page faults. Returns 0 or -errno. After an error no resource remains.
 */
int cw_record_create(bool with_stacks);

/*
 * Lays out a record without call stacks in the caller's memory, which must be zeroed and
 * page-aligned. The lab simulates many ranks in one process with this function. Returns the bytes
 * that the record needs. If that is more than `bytes`, the function has changed nothing.
 */
size_t cw_record_take(void *memory, size_t bytes);

/*
 * The agent calls cw_record_io_begin() and cw_record_io_end() around its own file reads and writes
 * of at most this many bytes. The daemon can then distinguish them from progress of the program.
 * Any thread, lock-free.
 */
static inline void cw_record_io_begin(uint64_t bytes)
{
	(void)__atomic_fetch_add(&cw_record.header->own_io_begun, bytes, __ATOMIC_SEQ_CST);
}

static inline void cw_record_io_end(uint64_t bytes)
{
	(void)__atomic_fetch_add(&cw_record.header->own_io_done, bytes, __ATOMIC_SEQ_CST);
}

/* Counts one loss. Any thread, lock-free. */
static inline void cw_record_drop(enum cw_rec_drop what)
{
	(void)__atomic_fetch_add(&cw_record.header->drops[what], 1, __ATOMIC_RELAXED);
}
