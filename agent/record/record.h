/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight record of this process as its writer sees it (record/record_layout.h): made once,
 * never moved or freed. Everything that others read is stored with the helpers below, as atomics of
 * the field's own size.
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
	void *device_pages; /* what the GPU writes: progress, summaries, times */
	size_t device_bytes;
	struct cw_rec_replay *replays;
	struct cw_rec_template *templates;
	struct cw_rec_stack *stacks; /* NULL unless asked for, as frames */
	struct cw_rec_frame *frames;
	uint64_t total_bytes;
	int fd;
	struct cw_fd_identity id;
};

extern struct cw_record cw_record;

/*
 * Makes the memfd, maps and seals it, writes the header's fixed part; state stays 0. with_stacks:
 * room for call stacks, where pages are not too large for that. Blocking: page faults only. Return:
 * 0, or -errno with nothing left behind.
 */
int cw_record_create(bool with_stacks);

/*
 * Lays a record without call stacks out in zeroed memory of the caller's, which starts on a page: a
 * laboratory draws many ranks in one process. Returns how many bytes that takes; nothing was done
 * when it is more than there are.
 */
size_t cw_record_take(void *memory, size_t bytes);

/*
 * Around what the agent itself reads or writes in files, as many bytes at most: it is no sign that
 * the program goes on. Any thread, lock-free.
 */
static inline void cw_record_io_begin(uint64_t bytes)
{
	(void)__atomic_fetch_add(&cw_record.header->own_io_begun, bytes, __ATOMIC_SEQ_CST);
}

static inline void cw_record_io_end(uint64_t bytes)
{
	(void)__atomic_fetch_add(&cw_record.header->own_io_done, bytes, __ATOMIC_SEQ_CST);
}

/* Counts a loss. Any thread, lock-free. */
static inline void cw_record_drop(enum cw_rec_drop what)
{
	(void)__atomic_fetch_add(&cw_record.header->drops[what], 1, __ATOMIC_RELAXED);
}
