/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every writer of an entry holds one lock while it changes the tables. Writers of identity fields
 * also hold the entry's sequence lock, for readers in other processes. Once all entries are taken,
 * we reuse the entry of the communicator that ended longest ago. We find a handle's entry by a
 * hint, or else by a scan of all entries.
 */
#include "agent/record/comms.h"

#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/features.h"
#include "agent/base/log.h"
#include "agent/base/state.h"
#include "agent/record/labels.h"
#include "agent/record/own_memory.h"
#include "model/signature.h"
#include "record/group_name.h"

struct cw_comm cw_comms[CW_REC_COMMS];
uint8_t cw_comm_hints[256];

static unsigned char lock_word;

/*
 * NCCL calls the plugin outside of any wrapper, so we raise the depth here. cw_graph_lock()
 * explains the reason.
 */
static void lock(void)
{
	cw_tls.depth++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	while (__atomic_test_and_set(&lock_word, __ATOMIC_ACQUIRE))
		(void)sched_yield();
}

static void unlock(void)
{
	__atomic_clear(&lock_word, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	cw_tls.depth--;
}

/*
 * Identity fields change only between write_begin() and write_end(). A reader that sees an odd
 * number retries.
 */
static void write_begin(struct cw_rec_comm *rc)
{
	CW_STORE(rc->seqlock, rc->seqlock | 1);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static void write_end(struct cw_rec_comm *rc)
{
	__atomic_store_n(&rc->seqlock, (rc->seqlock | 1) + 1, __ATOMIC_RELEASE);
}

int cw_comm_find_slow(uintptr_t handle)
{
	uint32_t used = cw_record.header ? CW_LOAD(cw_record.header->comms_used) : 0;

	if (!handle)
		return -1;
	for (uint32_t i = 0; i < used; i++) {
		if (CW_LOAD(cw_comms[i].handle) == handle) {
			CW_STORE(cw_comm_hints[cw_comm_hint(handle)], (uint8_t)i);
			return (int)i;
		}
	}
	return -1;
}

static bool has_ended(const struct cw_rec_comm *rc)
{
	uint32_t state = CW_LOAD(rc->state);

	return state == CW_COMM_DESTROYED || state == CW_COMM_ABORTED || state == CW_COMM_FAILED;
}

/*
 * Finds the failed entry that this call repeats: an entry with the same id and the same rank. -1 =
 * there is none.
 */
static int find_failed(const struct cw_comm_birth *birth)
{
	for (uint32_t i = 0; i < cw_record.header->comms_used; i++) {
		const struct cw_rec_comm *rc = &cw_record.comms[i];

		if (rc->state == CW_COMM_FAILED && rc->comm_id == birth->comm_id &&
		    rc->comm_rank == birth->rank)
			return (int)i;
	}
	return -1;
}

/*
 * Picks an entry for a new communicator: the failed one that this call repeats, else an unused one,
 * else the one that ended longest ago. Returns -1 if all communicators are alive.
 */
static int pick(const struct cw_comm_birth *birth)
{
	struct cw_rec_header *h = cw_record.header;
	int best = find_failed(birth);

	if (best >= 0) {
		CW_STORE(cw_comms[best].handle, (uintptr_t)0);
		return best;
	}
	if (h->comms_used < CW_REC_COMMS) {
		CW_STORE(h->comms_used, h->comms_used + 1);
		return (int)h->comms_used - 1;
	}
	for (int i = 0; i < CW_REC_COMMS; i++) {
		const struct cw_rec_comm *rc = &cw_record.comms[i];

		if (has_ended(rc) && !CW_LOAD(cw_comms[i].handle) &&
		    (best < 0 || rc->ended_ns < cw_record.comms[best].ended_ns))
			best = i;
	}
	return best;
}

/*
 * Returns how many communicators of this id this rank had before. Failed communicators do not
 * count, because they never existed.
 */
static uint32_t next_instance(const struct cw_comm_birth *birth)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < cw_record.header->comms_used; i++) {
		const struct cw_rec_comm *rc = &cw_record.comms[i];

		if (rc->state != CW_COMM_FREE && rc->state != CW_COMM_FAILED &&
		    rc->comm_id == birth->comm_id && rc->comm_rank == birth->rank &&
		    rc->instance >= next)
			next = rc->instance + 1;
	}
	return next;
}

static void free_p2p(int c)
{
	uint32_t block = cw_record.comms[c].p2p_block;

	if (!block)
		return;
	memset(&cw_record.p2p[block - 1], 0, sizeof(cw_record.p2p[0]));
}

/*
 * Copies the communicator's name from the config. Older callers pass a shorter struct without
 * commName, so we check size and version first.
 */
static void copy_name(struct cw_rec_comm *rc, const ncclConfig_t *config)
{
	const char *name;

	if (!config || config->magic != NCCL_CONFIG_MAGIC ||
	    config->size < offsetof(ncclConfig_t, commName) + sizeof(config->commName) ||
	    config->version < 22700)
		return;
	name = config->commName;
	if (name)
		(void)cw_group_name_of_comm(name, rc->name, sizeof(rc->name));
}

/*
 * Clears an entry. The helper thread may read the entry at the same time, so we write each word
 * atomically.
 */
static void clear_entry(struct cw_rec_comm *rc)
{
	uint64_t *words = (uint64_t *)rc;

	_Static_assert(offsetof(struct cw_rec_comm, seqlock) == 0 &&
			       sizeof(rc->seqlock) == sizeof(*words) &&
			       sizeof(*rc) % sizeof(*words) == 0,
		       "all but the first word");
	for (size_t i = 1; i < sizeof(*rc) / sizeof(*words); i++)
		CW_STORE(words[i], 0);
}

static uint32_t flags_of(const struct cw_comm_birth *birth)
{
	bool is_nonblocking = birth->config && birth->config->magic == NCCL_CONFIG_MAGIC &&
			      birth->config->blocking == 0;

	return birth->flags | (is_nonblocking ? CW_REC_COMM_NONBLOCKING : 0);
}

static void fill_entry(int c, const struct cw_comm_birth *birth)
{
	struct cw_rec_comm *rc = &cw_record.comms[c];
	uint64_t seqlock = rc->seqlock;
	uint32_t generation = rc->generation;
	uint32_t instance = next_instance(birth);

	write_begin(rc);
	free_p2p(c);
	cw_features_comm_forget(c);
	clear_entry(rc);
	rc->seqlock = seqlock | 1;
	rc->comm_id = birth->comm_id;
	rc->parent_id = birth->parent_id;
	rc->instance = instance;
	CW_STORE(rc->generation, generation + 1);
	rc->nranks = (uint32_t)birth->nranks;
	rc->comm_rank = birth->rank;
	rc->device = -1;
	rc->split_ordinal = birth->ordinal;
	rc->split_color = birth->color;
	rc->hash = CW_HASH_INIT;
	CW_STORE(rc->flags, flags_of(birth));
	rc->created_ns = cw_now_ns();
	copy_name(rc, birth->config);
	CW_STORE(rc->state, CW_COMM_INIT);
	write_end(rc);
	/* Set all fields except the handle, which is 0 already: other threads may read it. */
	cw_comms[c].real = birth->real;
	cw_comms[c].context = NULL;
	cw_comms[c].device_words = 0;
	CW_STORE(cw_comms[c].nranks, rc->nranks);
	CW_STORE(cw_comms[c].generation, rc->generation);
	cw_comms[c].made = 0;
	memset(cw_comms[c].streams, 0, sizeof(cw_comms[c].streams));
	cw_comms[c].deferred = NULL;
	cw_comms[c].parent = birth->parent;
	cw_comms[c].making_at = -1;
	cw_comms[c].hashes = birth->id ? cw_nccl_hash_of(birth->id) : (struct cw_nccl_hashes){ 0 };
}

int cw_comm_reserve(const struct cw_comm_birth *birth)
{
	int c;

	lock();
	c = pick(birth);
	if (c >= 0)
		fill_entry(c, birth);
	unlock();
	if (c < 0)
		cw_record_drop(CW_REC_DROP_COMMS);
	return c;
}

void cw_comm_bind(int c, ncclComm_t comm)
{
	uintptr_t handle = (uintptr_t)comm;

	if (!handle)
		return;
	lock();
	/*
	 * NCCL may have freed a communicator without a call that we see, and may now give its
	 * address to another one.
	 */
	for (uint32_t i = 0; i < cw_record.header->comms_used; i++) {
		if ((int)i != c && CW_LOAD(cw_comms[i].handle) == handle) {
			CW_STORE(cw_comms[i].handle, (uintptr_t)0);
			if (cw_record.comms[i].state == CW_COMM_FAILED)
				continue;
			CW_STORE(cw_record.comms[i].state, CW_COMM_DESTROYED);
			CW_STORE(cw_record.comms[i].ended_ns, cw_now_ns());
		}
	}
	CW_STORE(cw_comms[c].handle, handle);
	CW_STORE(cw_comm_hints[cw_comm_hint(handle)], (uint8_t)c);
	unlock();
}

/*
 * Notes the version of NCCL. If NCCL is newer than our table, its new functions bypass the agent.
 * We cannot count the calls of such functions.
 */
static void note_version(int version)
{
	CW_STORE(cw_record.header->nccl_version, (uint32_t)version);
	if (version <= CW_NCCL_NEWEST)
		return;
	cw_record_drop(CW_REC_DROP_UNKNOWN_CALLS);
	cw_log("NCCL %d is newer than this agent: ops may be missing from the record", version);
}

void cw_comm_ready(int c)
{
	struct cw_rec_comm *rc = &cw_record.comms[c];
	const struct cw_real *real = cw_comms[c].real;
	ncclComm_t comm = (ncclComm_t)CW_LOAD(cw_comms[c].handle);
	int nranks = 0, rank = -1, device = -1, version = 0;

	if (!comm || !real)
		return;
	if (real->ncclCommCount && real->ncclCommCount(comm, &nranks) != ncclSuccess)
		nranks = 0;
	if (real->ncclCommUserRank && real->ncclCommUserRank(comm, &rank) != ncclSuccess)
		rank = -1;
	if (real->ncclCommCuDevice && real->ncclCommCuDevice(comm, &device) != ncclSuccess)
		device = -1;
	if (!cw_record.header->nccl_version && real->ncclGetVersion &&
	    real->ncclGetVersion(&version) == ncclSuccess)
		note_version(version);
	lock();
	write_begin(rc);
	if (nranks > 0) {
		CW_STORE(rc->nranks, (uint32_t)nranks);
		CW_STORE(cw_comms[c].nranks, (uint32_t)nranks);
	}
	if (rank >= 0)
		CW_STORE(rc->comm_rank, rank);
	CW_STORE(rc->device, device);
	CW_STORE(rc->ready_ns, cw_now_ns());
	CW_STORE(rc->state, CW_COMM_READY);
	write_end(rc);
	unlock();
	cw_features_comm_ready(c);
	cw_features_armed();
}

void cw_comm_defer(int c, ncclComm_t *where, int parent)
{
	cw_comms[c].parent = parent;
	__atomic_store_n(&cw_comms[c].deferred, where, __ATOMIC_RELEASE);
}

/*
 * Reads the handle that NCCL has stored at *where. The application may have freed that memory since
 * then, so we use a read that fails instead of faulting.
 */
static ncclComm_t read_handle(ncclComm_t *where)
{
	ncclComm_t comm = NULL;

	return cw_own_read((uintptr_t)where, &comm, sizeof(comm)) ? comm : NULL;
}

int cw_comm_settle_deferred(int parent, ncclComm_t handle)
{
	uint32_t used = CW_LOAD(cw_record.header->comms_used);
	int bound = -1;

	for (uint32_t i = 0; i < used; i++) {
		ncclComm_t *where = __atomic_load_n(&cw_comms[i].deferred, __ATOMIC_ACQUIRE);
		ncclComm_t comm;

		if (!where || (!handle && cw_comms[i].parent != parent))
			continue;
		comm = read_handle(where);
		if (!comm || (handle && comm != handle))
			continue;
		/* This exchange lets only one thread settle the child. */
		if (!__atomic_compare_exchange_n(&cw_comms[i].deferred, &where, NULL, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		cw_comm_bind((int)i, comm);
		cw_comm_ready((int)i);
		bound = (int)i;
	}
	return bound;
}

void cw_comm_set_state(int c, enum cw_comm_state state, bool forget_handle)
{
	struct cw_rec_comm *rc = &cw_record.comms[c];

	lock();
	if (rc->state != CW_COMM_FAILED) {
		CW_STORE(rc->state, state);
		if (has_ended(rc))
			CW_STORE(rc->ended_ns, cw_now_ns());
	}
	if (forget_handle)
		CW_STORE(cw_comms[c].handle, (uintptr_t)0);
	unlock();
}

void cw_comm_note_error(int c)
{
	struct cw_rec_comm *rc = &cw_record.comms[c];
	const struct cw_real *real = cw_comms[c].real;
	ncclComm_t comm = (ncclComm_t)CW_LOAD(cw_comms[c].handle);
	const char *text = NULL;

	if (real && real->ncclGetLastError)
		text = real->ncclGetLastError(comm);
	if (!text)
		return;
	lock();
	write_begin(rc);
	strncpy(rc->last_error, text, sizeof(rc->last_error) - 1);
	write_end(rc);
	unlock();
}

bool cw_comm_name(ncclComm_t comm, const char *name)
{
	struct cw_rec_comm *rc;
	int c;

	lock();
	c = cw_comm_find(comm);
	rc = c < 0 ? NULL : &cw_record.comms[c];
	if (rc && !rc->name[0]) {
		write_begin(rc);
		(void)cw_group_name_of_comm(name, rc->name, sizeof(rc->name));
		write_end(rc);
	}
	unlock();
	return rc != NULL;
}

void cw_comm_failed(int c, ncclResult_t result)
{
	CW_STORE(cw_record.comms[c].last_result, (int32_t)result);
	cw_comm_note_error(c);
}

/* ---- p2p blocks ---- */

static struct cw_rec_p2p_block *take_block(int c)
{
	for (uint32_t i = 0; i < CW_REC_P2P_BLOCKS; i++) {
		struct cw_rec_p2p_block *block = &cw_record.p2p[i];
		struct cw_rec_comm *owner =
			block->comm_plus_1 ? &cw_record.comms[block->comm_plus_1 - 1] : NULL;

		if (owner && !has_ended(owner))
			continue;
		if (owner)
			CW_STORE(owner->p2p_block, 0u);
		memset(block, 0, sizeof(*block));
		block->comm_generation = cw_record.comms[c].generation;
		CW_STORE(block->comm_plus_1, (uint32_t)c + 1);
		CW_STORE(cw_record.comms[c].p2p_block, i + 1);
		return block;
	}
	return NULL;
}

struct cw_rec_p2p_block *cw_comm_p2p(int c)
{
	uint32_t block = CW_LOAD(cw_record.comms[c].p2p_block);
	struct cw_rec_p2p_block *p;

	if (cw_likely(block))
		return &cw_record.p2p[block - 1];
	lock();
	block = cw_record.comms[c].p2p_block;
	p = block ? &cw_record.p2p[block - 1] : take_block(c);
	unlock();
	return p;
}

/*
 * ---- ids ----
 *
 * A process can write any id into its own record, so the hash need not resist attacks. The daemon
 * matches ranks by these ids only within one uid and label. A collision, forged or accidental,
 * therefore mixes up only communicators of one user.
 */

uint64_t cw_comm_id_of(const ncclUniqueId *ids, int count)
{
	uint64_t h = CW_HASH_INIT;

	for (int i = 0; i < count; i++) {
		for (unsigned at = 0; at < sizeof(ids[i].internal); at += sizeof(uint64_t)) {
			uint64_t word;

			memcpy(&word, ids[i].internal + at, sizeof(word));
			h = cw_hash_step(h, word);
		}
	}
	/*
	 * If a site sets NCCL_COMM_ID, all its jobs share one id. Our hash then includes the uid
	 * and the job's label, by which the jobs differ. It cannot use the cgroup, because under
	 * Slurm each task has a different one.
	 */
	if (cw_labels_comm_id_is_constant())
		h = cw_hash_step(h, cw_labels_job_key());
	return h ? h : 1;
}

uint64_t cw_comm_child_id(int parent, uint32_t ordinal, int32_t color)
{
	const struct cw_rec_comm *rc = &cw_record.comms[parent];
	uint64_t h = rc->comm_id;

	if (rc->instance)
		h = cw_hash_step(h, rc->instance);
	h = cw_hash_step(h, ordinal);
	h = cw_hash_step(h, (uint32_t)color);
	return h ? h : 1;
}
