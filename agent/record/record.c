/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record is one memfd with a fixed layout: a header that lists the sections, and then the
 * sections. We map the memfd and then seal it. After the seal only our mapping can write to it, and
 * no process can shrink it under a reader.
 */
#include "agent/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/base/file_size.h"
#include "agent/base/log.h"
#include "agent/base/state.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

CW_HOT_DATA struct cw_record cw_record = { .fd = -1 };

static uint64_t align_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

struct plan {
	struct cw_rec_section sections[CW_REC_SECTION__MAX];
	unsigned count;
	uint64_t end;
};

static uint64_t place(struct plan *plan, uint32_t type, uint32_t entry_bytes, uint32_t count,
		      uint64_t align)
{
	struct cw_rec_section *s = &plan->sections[plan->count++];

	s->type = type;
	s->entry_bytes = entry_bytes;
	s->count = count;
	s->offset = align_up(plan->end, align);
	plan->end = align_up(s->offset + (uint64_t)entry_bytes * count, align);
	return s->offset;
}

struct offsets {
	uint64_t comms, ring, p2p, info, progress, modules, summaries, times, replays, templates;
	uint64_t connections, variables;
	uint64_t stacks, frames; /* 0 = the record has no call stacks */
};

/*
 * Plans the layout. The sections that the GPU writes come first. They share no page with other
 * sections, because we register their pages with the driver.
 */
static struct offsets lay_out(struct plan *plan, uint64_t page, bool has_stacks)
{
	struct offsets o = { .stacks = 0, .frames = 0 };

	*plan = (struct plan){ .count = 0 };
	plan->end = sizeof(struct cw_rec_header);
	o.progress = place(plan, CW_REC_SECTION_PROGRESS, sizeof(struct cw_rec_progress),
			   CW_REC_PROGRESS_SLOTS, page);
	o.summaries = place(plan, CW_REC_SECTION_SUMMARIES, sizeof(struct cw_rec_summary),
			    CW_REC_SUMMARIES, 64);
	o.times = place(plan, CW_REC_SECTION_TIMES, sizeof(struct cw_rec_time), CW_REC_TIMES, 64);
	plan->end = align_up(plan->end, page);
	o.comms = place(plan, CW_REC_SECTION_COMMS, sizeof(struct cw_rec_comm), CW_REC_COMMS, 64);
	o.ring = place(plan, CW_REC_SECTION_RING, sizeof(struct cw_rec_op), CW_REC_RING_OPS, 64);
	o.p2p = place(plan, CW_REC_SECTION_P2P, sizeof(struct cw_rec_p2p_block), CW_REC_P2P_BLOCKS,
		      64);
	o.info = place(plan, CW_REC_SECTION_PROGRESS_INFO, sizeof(struct cw_rec_progress_info),
		       CW_REC_PROGRESS_SLOTS, 64);
	o.modules = place(plan, CW_REC_SECTION_MODULES, sizeof(struct cw_rec_module),
			  CW_REC_MODULES, 64);
	o.replays = place(plan, CW_REC_SECTION_REPLAYS, sizeof(struct cw_rec_replay),
			  CW_REC_REPLAYS, 64);
	o.templates = place(plan, CW_REC_SECTION_TEMPLATES, sizeof(struct cw_rec_template),
			    CW_REC_TEMPLATES, 64);
	o.connections = place(plan, CW_REC_SECTION_CONNECTIONS, sizeof(struct cw_rec_connection),
			      CW_REC_CONNECTIONS, 64);
	o.variables = place(plan, CW_REC_SECTION_VARIABLES, sizeof(struct cw_rec_variables), 1, 64);
	if (has_stacks) {
		o.stacks = place(plan, CW_REC_SECTION_STACKS, sizeof(struct cw_rec_stack),
				 CW_REC_STACKS, 64);
		o.frames = place(plan, CW_REC_SECTION_FRAMES, sizeof(struct cw_rec_frame),
				 CW_REC_FRAMES, 64);
	}
	plan->end = align_up(plan->end, page);
	return o;
}

static int map_and_seal(int fd, uint64_t bytes, void **ret_map)
{
	void *map;
	int r;

	if (cw_ftruncate(fd, (off_t)bytes) < 0)
		return -errno;
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	/* Without MADV_DONTFORK a forked child would write into its parent's record. */
	if (madvise(map, bytes, MADV_DONTFORK) < 0)
		goto fail;
	/*
	 * We add F_SEAL_FUTURE_WRITE after our own mapping, so no other process can ever write.
	 * Linux before 5.1 lacks this seal. We then make no record, and the job runs on.
	 */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL) < 0)
		goto fail;
	*ret_map = map;
	return 0;
fail:
	r = -errno;
	(void)munmap(map, bytes);
	return r;
}

static void fill_header(const struct plan *plan)
{
	struct cw_rec_header *h = cw_record.header;

	h->magic = CW_RECORD_MAGIC;
	h->version = CW_RECORD_VERSION;
	h->readable_from = CW_RECORD_READABLE_FROM;
	h->header_bytes = sizeof(*h);
	h->total_bytes = plan->end;
	h->pid = (uint32_t)syscall(SYS_getpid);
	h->clock = CW_REC_CLOCK_MONOTONIC;
	h->rank_label = h->world_size_label = h->local_rank_label = -1;
	h->step_mark = -1;
	memcpy(h->sections, plan->sections, sizeof(h->sections));
}

/* Points cw_record into memory, which must be zeroed and have the layout of the plan. */
static void take(void *memory, const struct plan *plan, const struct offsets *o)
{
	char *base = memory;

	cw_record = (struct cw_record){
		.header = memory,
		.comms = (void *)(base + o->comms),
		.ring = (void *)(base + o->ring),
		.p2p = (void *)(base + o->p2p),
		.progress_info = (void *)(base + o->info),
		.progress = (void *)(base + o->progress),
		.modules = (void *)(base + o->modules),
		.summaries = (void *)(base + o->summaries),
		.times = (void *)(base + o->times),
		.device_pages = base + o->progress,
		.device_bytes = o->comms - o->progress,
		.replays = (void *)(base + o->replays),
		.templates = (void *)(base + o->templates),
		.connections = (void *)(base + o->connections),
		.variables = (void *)(base + o->variables),
		.stacks = o->stacks ? (void *)(base + o->stacks) : NULL,
		.frames = o->frames ? (void *)(base + o->frames) : NULL,
		.total_bytes = plan->end,
		.fd = -1,
	};
	fill_header(plan);
}

size_t cw_record_take(void *memory, size_t bytes)
{
	struct plan plan;
	struct offsets o = lay_out(&plan, (uint64_t)sysconf(_SC_PAGESIZE), false);

	if (plan.end <= bytes)
		take(memory, &plan, &o);
	return plan.end;
}

int cw_record_create(bool with_stacks)
{
	struct plan plan;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct offsets o = lay_out(&plan, page, with_stacks);
	struct cw_fd_identity id;
	void *map = NULL;
	int fd, r;

	if (plan.end > CW_RECORD_MAX_BYTES && o.stacks) {
		cw_log("pages are too large for call stacks: none");
		o = lay_out(&plan, page, false);
	}
	if (plan.end > CW_RECORD_MAX_BYTES)
		return -EFBIG;
	fd = cw_memfd(CW_RECORD_NAME);
	if (fd < 0)
		return fd;
	r = map_and_seal(fd, plan.end, &map);
	if (r == 0) {
		r = cw_fd_identify(fd, &id);
		if (r < 0)
			(void)munmap(map, plan.end);
	}
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	take(map, &plan, &o);
	cw_record.fd = fd;
	cw_record.id = id;
	return 0;
}
