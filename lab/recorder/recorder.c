/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To switch recorders, we copy the agent's global variables. We copy only the communicators in use,
 * and the queue of a group only if a group is open. Handles differ between recorders, so hints that
 * another recorder has left match nothing.
 */
#include "lab/recorder/recorder.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "agent/cuda/cuda_driver.h"
#include "agent/ops/group.h"
#include "agent/ops/ops.h"
#include "agent/ops/p2p.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"
#include "common/or_exit/or_exit.h"
#include "lab/recorder/recorder_clock.h"

#define NS_PER_S INT64_C(1000000000)
/* Limit on the words that wait for a device: two for each op in flight, more for groups. */
#define MAX_WRITES 1024u
#define MAX_SIZE ((size_t)4 << 20)

/* A word that the device will write when it reaches the op. */
struct word {
	uint32_t *to;
	uint32_t value;
	uint16_t comm;
	bool is_completed; /* this is the second word of its slot */
};

struct recorder {
	void *memory;
	size_t bytes;
	uint64_t number;
	/* A copy of the globals, valid while another recorder owns them. */
	struct cw_record record;
	struct cw_tls tls;
	struct cw_comm comms[CW_REC_COMMS];
	/* NULL = no send or receive is queued */
	struct cw_p2p_pending (*pending)[CW_REC_P2P_PEERS];
	/* The current call. */
	struct cw_op_call call;
	struct cw_op_desc desc;
	bool is_new;

	bool has_progress;
	uint32_t n_words;
	struct word words[MAX_WRITES];
	uint64_t reached[CW_REC_COMMS], completed[CW_REC_COMMS];
};

static struct recorder *current; /* the recorder that owns the globals; NULL = none */
static int64_t clock_ns;
static const unsigned char armed = 1;
static uint64_t made;
static const struct cw_real no_nccl;

int recorder_clock_gettime(clockid_t id, struct timespec *ret)
{
	ret->tv_sec = clock_ns / NS_PER_S;
	ret->tv_nsec = clock_ns % NS_PER_S;
	return 0;
}

/* ---- the part of the driver that the agent calls ---- */

static char context;

static CUresult get_current(CUcontext *ret)
{
	*ret = (CUcontext)(void *)&context;
	return CUDA_SUCCESS;
}

static CUresult write_later(CUstream stream, CUdeviceptr addr, uint32_t value, unsigned flags)
{
	struct recorder *r = current;
	size_t at = (uintptr_t)addr - (uintptr_t)cw_record.progress;
	size_t slot = at / sizeof(struct cw_rec_progress);
	uint32_t comm_plus_1 = cw_record.progress_info[slot].comm_plus_1;

	if (r->n_words == MAX_WRITES || !comm_plus_1 || comm_plus_1 > CW_REC_COMMS)
		return !CUDA_SUCCESS; /* a driver error: the result stays unknown */
	r->words[r->n_words++] = (struct word){
		.to = (uint32_t *)(uintptr_t)addr,
		.value = value,
		.comm = (uint16_t)(comm_plus_1 - 1),
		.is_completed = at % sizeof(struct cw_rec_progress) ==
				offsetof(struct cw_rec_progress, completed),
	};
	return CUDA_SUCCESS;
}

static void write_words(struct recorder *r)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < r->n_words; i++) {
		const struct word *w = &r->words[i];
		uint64_t done = w->is_completed ? r->completed[w->comm] : r->reached[w->comm];

		if (w->value <= done)
			CW_STORE(*w->to, w->value);
		else
			r->words[kept++] = *w;
	}
	r->n_words = kept;
}

/* ---- switching ---- */

static size_t comms_bytes(const struct cw_record *record)
{
	return record->header->comms_used * sizeof(cw_comms[0]);
}

static void put_away(struct recorder *r)
{
	r->record = cw_record;
	r->tls = cw_tls;
	memcpy(r->comms, cw_comms, comms_bytes(&cw_record));
	if (r->tls.group && r->pending) {
		memcpy(r->pending, cw_p2p_pending, sizeof(cw_p2p_pending));
		memset(cw_p2p_pending, 0, sizeof(cw_p2p_pending));
	}
}

static void begin(struct recorder *r, int64_t now_ns)
{
	clock_ns = now_ns;
	if (current == r)
		return;
	if (current)
		put_away(current);
	current = r;
	cw_armed = &armed;
	cw_cuda = (struct cw_cuda){ .ctx_get_current = get_current, .stream_write32 = write_later };
	cw_record = r->record;
	cw_tls = r->tls;
	memcpy(cw_comms, r->comms, comms_bytes(&cw_record));
	if (r->tls.group && r->pending)
		memcpy(cw_p2p_pending, r->pending, sizeof(cw_p2p_pending));
}

static void set_label(char *to, size_t size, const char *text)
{
	size_t len = strnlen(text, size - 1);

	memcpy(to, text, len);
	to[len] = '\0';
}

static void fill_header(struct cw_rec_header *h, const struct recorder_config *config)
{
	h->pid = config->pid;
	h->process_start_ticks = config->start_ticks;
	h->created_ns = (uint64_t)config->now_ns;
	h->created_wall_ns = (uint64_t)config->wall_ns;
	h->rank_label = config->rank;
	h->world_size_label = config->world_size;
	h->nccl_version = config->nccl_version;
	h->env_hash = config->env_hash;
	h->job_timeout_ns = (uint64_t)config->job_timeout_ns;
	set_label(h->job_label, sizeof(h->job_label), config->job_label);
	set_label(h->rank_label_source, sizeof(h->rank_label_source), "RANK");
	if (config->has_progress)
		h->has |= CW_REC_HAS_PROGRESS;
	h->state = 1;
}

struct recorder *recorder_new(const struct recorder_config *config)
{
	/* calloc() aligns only for the C types; the agent's objects are aligned to a cache line. */
	struct recorder *r = cw_or_exit(aligned_alloc(alignof(struct recorder), sizeof(*r)));

	memset(r, 0, sizeof(*r));
	r->pending = cw_or_exit(calloc(1, sizeof(cw_p2p_pending)));
	r->memory =
		mmap(NULL, MAX_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	r->memory = cw_or_exit(r->memory == MAP_FAILED ? NULL : r->memory);
	if (current)
		put_away(current);
	current = NULL;
	r->number = ++made;
	r->has_progress = config->has_progress;
	r->bytes = cw_record_take(r->memory, MAX_SIZE);
	r->record = cw_record;
	r->tls.tid = config->pid;
	fill_header(cw_record.header, config);
	return r;
}

struct recorder *recorder_free(struct recorder *r)
{
	if (!r)
		return NULL;
	if (r->tls.group || (current == r && cw_tls.group)) {
		begin(r, clock_ns);
		recorder_group_leave(r, clock_ns); /* closes the group */
	}
	if (current == r) {
		current = NULL;
		cw_tls = (struct cw_tls){ 0 };
	}
	(void)munmap(r->memory, MAX_SIZE);
	free(r->pending);
	free(r);
	return NULL;
}

const void *recorder_memory(const struct recorder *r, size_t *ret_bytes)
{
	*ret_bytes = r->bytes;
	return r->memory;
}

void recorder_beat(struct recorder *r, int64_t now_ns)
{
	begin(r, now_ns);
	CW_STORE(cw_record.header->beat_ns, (uint64_t)now_ns);
}

/* ---- communicators ---- */

static ncclComm_t handle_of(const struct recorder *r, int c)
{
	return (ncclComm_t)(uintptr_t)(r->number << 16 | (unsigned)(c + 1) << 4);
}

int recorder_comm(struct recorder *r, const struct recorder_comm *comm, int64_t now_ns)
{
	struct cw_comm_birth birth = { .comm_id = comm->comm_id,
				       .parent = -1,
				       .nranks = (int32_t)comm->nranks,
				       .rank = comm->comm_rank };
	struct cw_rec_comm *rc;
	int c;

	begin(r, now_ns);
	c = cw_comm_reserve(&birth);
	if (c < 0)
		return -1;
	rc = &cw_record.comms[c];
	rc->nccl_hash = comm->nccl_hash;
	rc->device = comm->device;
	set_label(rc->name, sizeof(rc->name), comm->name);
	r->reached[c] = r->completed[c] = 0;
	cw_comm_bind(c, handle_of(r, c));
	if (r->has_progress) {
		cw_comms[c].device_words = (CUdeviceptr)(uintptr_t)cw_record.progress;
		cw_comms[c].context = &context;
	} else {
		rc->flags |= CW_REC_COMM_PROGRESS_LOST;
	}
	return c;
}

void recorder_comm_state(struct recorder *r, int c, enum cw_comm_state state, int64_t now_ns)
{
	begin(r, now_ns);
	cw_comm_set_state(c, state, false);
}

/* ---- calls ---- */

void recorder_enter(struct recorder *r, int c, const struct recorder_op *op, int64_t now_ns)
{
	begin(r, now_ns);
	r->desc = (struct cw_op_desc){ .kind = op->kind,
				       .dtype = op->dtype,
				       .redop = op->redop,
				       .root_or_peer = op->root_or_peer,
				       .count = op->count,
				       .comm = handle_of(r, c),
				       .stream = (cudaStream_t)(uintptr_t)op->stream };
	/* cannot fail, because we are not inside another call */
	(void)cw_op_enter(&r->call, &no_nccl, NULL, &r->desc);
	if (cw_tls.group_depth)
		cw_op_leave(&r->call, ncclSuccess);
	write_words(r);
}

void recorder_leave(struct recorder *r, int64_t now_ns)
{
	begin(r, now_ns);
	cw_op_leave(&r->call, ncclSuccess);
	write_words(r);
}

void recorder_fail(struct recorder *r, int result, int64_t now_ns)
{
	begin(r, now_ns);
	cw_op_leave(&r->call, (ncclResult_t)result);
	write_words(r);
}

void recorder_error(struct recorder *r, int c, int32_t result, int64_t now_ns)
{
	begin(r, now_ns);
	CW_STORE(cw_record.comms[c].async_error, result);
}

void recorder_group_begin(struct recorder *r, int64_t now_ns)
{
	begin(r, now_ns);
	if (cw_tls.group_depth++ == 0)
		cw_group_begin();
}

void recorder_group_launch(struct recorder *r, int64_t now_ns)
{
	begin(r, now_ns);
	if (cw_tls.group)
		cw_group_launch(cw_tls.group);
	write_words(r);
}

void recorder_group_leave(struct recorder *r, int64_t now_ns)
{
	struct cw_group *group;

	begin(r, now_ns);
	group = cw_tls.group;
	cw_tls.group_depth = 0;
	if (group)
		cw_group_finish(group, ncclSuccess, true);
	write_words(r);
}

void recorder_block(struct recorder *r, int c, unsigned kind, bool is_new, int64_t now_ns)
{
	begin(r, now_ns);
	r->is_new = is_new;
	if (cw_enter(&no_nccl, NULL))
		cw_hostop_enter(&r->call, c, kind, is_new ? cw_record.comms[c].comm_id : 0, NULL);
}

void recorder_unblock(struct recorder *r, int64_t now_ns)
{
	begin(r, now_ns);
	cw_hostop_leave(&r->call, ncclSuccess);
	cw_leave();
	if (r->is_new)
		cw_comm_set_state(r->call.comm, CW_COMM_READY, false);
}

void recorder_refuse(struct recorder *r, int result, int64_t now_ns)
{
	begin(r, now_ns);
	if (r->is_new)
		cw_comm_set_state(r->call.comm, CW_COMM_FAILED, true);
	cw_hostop_leave(&r->call, (ncclResult_t)result);
	cw_leave();
}

/* ---- the device ---- */

void recorder_device(struct recorder *r, int c, uint64_t reached_op, uint64_t completed_op)
{
	begin(r, clock_ns);
	if (reached_op > r->reached[c])
		r->reached[c] = reached_op;
	if (completed_op > r->completed[c])
		r->completed[c] = completed_op;
	write_words(r);
}
