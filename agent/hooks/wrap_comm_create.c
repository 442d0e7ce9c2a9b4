/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrappers of calls that create a communicator. Each call blocks until other ranks arrive. We
 * therefore create the entry of the flight record before we call NCCL. The entry is in state INIT,
 * and the communicator's id is its key. Reports can then show a rank that is stuck in init.
 *
 * We learn the handle later: when the call returns, or at the end of the group. For a non-blocking
 * communicator we learn it when NCCL reports success.
 */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/hooks/wrap.h"
#include "agent/ops/group.h"
#include "agent/ops/ops.h"
#include "agent/record/comms.h"
#include "model/signature.h"

struct birth_call {
	struct cw_op_call op;
	ncclComm_t *where;
};

static bool begin(const struct cw_real *real, const void *caller)
{
	return cw_agent_live() && cw_enter(real, caller);
}

static void enter(struct birth_call *call, const struct cw_comm_birth *birth, unsigned kind,
		  ncclComm_t *where, const void *caller)
{
	int saved_errno = errno;

	call->where = where;
	cw_hostop_enter(&call->op, cw_comm_reserve(birth), kind, birth->comm_id, caller);
	errno = saved_errno;
}

/*
 * Stores the op of a call that creates communicator c. NCCL may report a failure after the call has
 * returned. fail_making() then finds the op and ends it.
 */
static void note_making(int c, const struct cw_op_call *op)
{
	if (op->comm < 0)
		return;
	cw_comms[c].making_ring_ticket = op->ring_ticket;
	cw_comms[c].making_comm_ticket = op->comm_ticket;
	CW_STORE(cw_comms[c].making_at, op->comm);
}

/*
 * Ends the creation of communicator c as far as the result allows. NCCL promises a handle in *where
 * only after success. An init stores the handle earlier, but a split does not.
 */
static void settle(int c, ncclComm_t *where, ncclResult_t r, bool is_init)
{
	struct cw_group *group = cw_tls.group_depth ? cw_tls.group : NULL;
	bool ok = r == ncclSuccess || r == ncclInProgress;

	if (!ok) {
		cw_comm_set_state(c, CW_COMM_FAILED, true);
		return;
	}
	/* With NCCL_COMM_BLOCKING=0 a communicator is non-blocking even without a config. */
	if (r == ncclInProgress)
		(void)__atomic_fetch_or(&cw_record.comms[c].flags, CW_REC_COMM_NONBLOCKING,
					__ATOMIC_RELAXED);
	if (is_init || (!group && r == ncclSuccess))
		cw_comm_bind(c, *where);
	/*
	 * At the end of the group we read *where only if NCCL has not stored the handle yet.
	 * Otherwise we do not touch *where again, because the program may have freed it by then.
	 */
	if (group)
		cw_group_made(group, c, CW_LOAD(cw_comms[c].handle) ? NULL : where);
	else if (r == ncclSuccess)
		cw_comm_ready(c);
	else if (!is_init)
		cw_comm_defer(c, where, cw_comms[c].parent);
}

static void leave(struct birth_call *call, ncclResult_t r, bool is_init)
{
	int saved_errno = errno;

	if (call->op.comm >= 0) {
		note_making(call->op.comm, &call->op);
		settle(call->op.comm, call->where, r, is_init);
	}
	cw_hostop_leave(&call->op, r);
	cw_leave();
	errno = saved_errno;
}

ncclResult_t cw_impl_ncclCommInitRank(const struct cw_real *real, const void *caller,
				      ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
	struct birth_call call;
	ncclResult_t r;

	if (!real->ncclCommInitRank)
		return ncclInvalidUsage;
	if (!begin(real, caller))
		return real->ncclCommInitRank(comm, nranks, commId, rank);
	enter(&call,
	      &(struct cw_comm_birth){ .real = real,
				       .id = &commId,
				       .comm_id = cw_comm_id_of(&commId, 1),
				       .parent = -1,
				       .nranks = nranks,
				       .rank = rank },
	      CW_OP_COMM_INIT, comm, caller);
	r = real->ncclCommInitRank(comm, nranks, commId, rank);
	leave(&call, r, true);
	return r;
}

ncclResult_t cw_impl_ncclCommInitRankConfig(const struct cw_real *real, const void *caller,
					    ncclComm_t *comm, int nranks, ncclUniqueId commId,
					    int rank, ncclConfig_t *config)
{
	struct birth_call call;
	ncclResult_t r;

	if (!real->ncclCommInitRankConfig)
		return ncclInvalidUsage;
	if (!begin(real, caller))
		return real->ncclCommInitRankConfig(comm, nranks, commId, rank, config);
	enter(&call,
	      &(struct cw_comm_birth){ .real = real,
				       .id = &commId,
				       .comm_id = cw_comm_id_of(&commId, 1),
				       .parent = -1,
				       .nranks = nranks,
				       .rank = rank,
				       .config = config },
	      CW_OP_COMM_INIT, comm, caller);
	r = real->ncclCommInitRankConfig(comm, nranks, commId, rank, config);
	leave(&call, r, true);
	return r;
}

ncclResult_t cw_impl_ncclCommInitRankScalable(const struct cw_real *real, const void *caller,
					      ncclComm_t *newcomm, int nranks, int myrank, int nId,
					      ncclUniqueId *commIds, ncclConfig_t *config)
{
	struct birth_call call;
	ncclResult_t r;

	if (!real->ncclCommInitRankScalable)
		return ncclInvalidUsage;
	if (!commIds || nId < 1 || !begin(real, caller))
		return real->ncclCommInitRankScalable(newcomm, nranks, myrank, nId, commIds,
						      config);
	enter(&call,
	      &(struct cw_comm_birth){ .real = real,
				       .id = commIds,
				       .comm_id = cw_comm_id_of(commIds, nId),
				       .parent = -1,
				       .nranks = nranks,
				       .rank = myrank,
				       .flags = CW_REC_COMM_SCALABLE,
				       .config = config },
	      CW_OP_COMM_INIT, newcomm, caller);
	r = real->ncclCommInitRankScalable(newcomm, nranks, myrank, nId, commIds, config);
	leave(&call, r, true);
	return r;
}

/*
 * Returns an id for the communicators of one ncclCommInitAll. NCCL does not show us its own id
 * here. All ranks are in this process, so any id that they share suffices. Like the id from
 * cw_comm_id_of(), it need not resist attacks.
 */
static uint64_t local_id(void)
{
	static uint64_t count;
	uint64_t n = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
	const struct cw_rec_header *h = cw_record.header;

	return cw_hash_step(cw_hash_step(cw_hash_step(CW_HASH_INIT, h->pid), h->created_wall_ns),
			    n) |
	       1;
}

ncclResult_t cw_impl_ncclCommInitAll(const struct cw_real *real, const void *caller,
				     ncclComm_t *comm, int ndev, const int *devlist)
{
	struct birth_call calls[CW_REC_COMMS];
	ncclResult_t r;
	uint64_t id;

	if (!real->ncclCommInitAll)
		return ncclInvalidUsage;
	if (ndev < 1 || ndev > CW_REC_COMMS || !comm || !begin(real, caller))
		return real->ncclCommInitAll(comm, ndev, devlist);
	id = local_id();
	for (int i = 0; i < ndev; i++)
		enter(&calls[i],
		      &(struct cw_comm_birth){ .real = real,
					       .comm_id = id,
					       .parent = -1,
					       .nranks = ndev,
					       .rank = i },
		      CW_OP_COMM_INIT, &comm[i], caller);
	r = real->ncclCommInitAll(comm, ndev, devlist);
	for (int i = 0; i < ndev; i++)
		leave(&calls[i], r, true);
	return r;
}

/* Fills in `birth` for a child of comm. Returns false if we do not know the parent. */
static bool child(struct cw_comm_birth *birth, const struct cw_real *real, ncclComm_t comm,
		  int color, ncclConfig_t *config)
{
	int parent = cw_comm_find(comm);

	if (parent < 0)
		parent = cw_comm_settle_deferred(-1, comm);
	if (parent < 0) {
		cw_record_drop(CW_REC_DROP_COMMS);
		return false;
	}
	*birth = (struct cw_comm_birth){
		.real = real,
		.parent = parent,
		.parent_id = cw_record.comms[parent].comm_id,
		.rank = -1,
		.ordinal = __atomic_add_fetch(&cw_comms[parent].made, 1, __ATOMIC_RELAXED),
		.color = color,
		.config = config,
		/* A child inherits its parent's blocking mode unless it has a config. */
		.flags = config ? 0 : cw_record.comms[parent].flags & CW_REC_COMM_NONBLOCKING,
	};
	birth->comm_id = cw_comm_child_id(parent, birth->ordinal, color);
	return true;
}

/*
 * Records a call that creates a child. Every member of the parent must make this call, so we record
 * it as an op of the parent. The child gets its own entry. With NOCOLOR the rank gets no child.
 */
static void enter_child(struct cw_op_call *op, struct birth_call *call,
			const struct cw_comm_birth *birth, unsigned kind, ncclComm_t *newcomm,
			const void *caller)
{
	int saved_errno = errno;
	bool has_child = birth->color != NCCL_SPLIT_NOCOLOR;

	call->where = newcomm;
	call->op.comm = has_child ? cw_comm_reserve(birth) : -1;
	cw_hostop_enter(op, birth->parent, kind, 0, caller);
	errno = saved_errno;
}

static void leave_child(struct cw_op_call *op, struct birth_call *call, ncclResult_t r)
{
	int saved_errno = errno;

	if (call->op.comm >= 0) {
		note_making(call->op.comm, op);
		settle(call->op.comm, call->where, r, false);
	}
	cw_hostop_leave(op, r);
	cw_leave();
	errno = saved_errno;
}

ncclResult_t cw_impl_ncclCommSplit(const struct cw_real *real, const void *caller, ncclComm_t comm,
				   int color, int key, ncclComm_t *newcomm, ncclConfig_t *config)
{
	struct cw_comm_birth birth;
	struct birth_call call;
	struct cw_op_call op;
	ncclResult_t r;

	if (!real->ncclCommSplit)
		return ncclInvalidUsage;
	if (!begin(real, caller))
		return real->ncclCommSplit(comm, color, key, newcomm, config);
	if (!child(&birth, real, comm, color, config)) {
		cw_leave();
		return real->ncclCommSplit(comm, color, key, newcomm, config);
	}
	enter_child(&op, &call, &birth, CW_OP_COMM_SPLIT, newcomm, caller);
	r = real->ncclCommSplit(comm, color, key, newcomm, config);
	leave_child(&op, &call, r);
	return r;
}

/*
 * Our color of a child that a shrink creates. No split can have this color, because colors of
 * splits are >= 0 or NOCOLOR.
 */
#define SHRINK_COLOR (-2)

ncclResult_t cw_impl_ncclCommShrink(const struct cw_real *real, const void *caller, ncclComm_t comm,
				    int *excludeRanksList, int excludeRanksCount,
				    ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
	struct cw_comm_birth birth;
	struct birth_call call;
	struct cw_op_call op;
	ncclResult_t r;

	if (!real->ncclCommShrink)
		return ncclInvalidUsage;
	if (!begin(real, caller))
		return real->ncclCommShrink(comm, excludeRanksList, excludeRanksCount, newcomm,
					    config, shrinkFlags);
	if (!child(&birth, real, comm, SHRINK_COLOR, config)) {
		cw_leave();
		return real->ncclCommShrink(comm, excludeRanksList, excludeRanksCount, newcomm,
					    config, shrinkFlags);
	}
	enter_child(&op, &call, &birth, CW_OP_COMM_SHRINK, newcomm, caller);
	r = real->ncclCommShrink(comm, excludeRanksList, excludeRanksCount, newcomm, config,
				 shrinkFlags);
	leave_child(&op, &call, r);
	return r;
}

#define GROW_COLOR (-3)

/*
 * Handles a grow on a joining rank. Such a rank has no parent; it knows only the unique id and its
 * rank.
 */
static ncclResult_t join(const struct cw_real *real, const void *caller, int nRanks,
			 const ncclUniqueId *uniqueId, int rank, ncclComm_t *newcomm,
			 ncclConfig_t *config)
{
	struct birth_call call;
	ncclResult_t r;

	enter(&call,
	      &(struct cw_comm_birth){ .real = real,
				       .comm_id = cw_comm_id_of(uniqueId, 1),
				       .parent = -1,
				       .nranks = nRanks,
				       .rank = rank,
				       .config = config },
	      CW_OP_COMM_GROW, newcomm, caller);
	r = real->ncclCommGrow(NULL, nRanks, uniqueId, rank, newcomm, config);
	leave(&call, r, false);
	return r;
}

/*
 * The grown communicator has two ids in our records: one on the parent's members and one on the
 * joining ranks. The two groups share no value that we can see, because only one member of the
 * parent passes the unique id.
 */
ncclResult_t cw_impl_ncclCommGrow(const struct cw_real *real, const void *caller, ncclComm_t comm,
				  int nRanks, const ncclUniqueId *uniqueId, int rank,
				  ncclComm_t *newcomm, ncclConfig_t *config)
{
	struct cw_comm_birth birth;
	struct birth_call call;
	struct cw_op_call op;
	ncclResult_t r;

	if (!real->ncclCommGrow)
		return ncclInvalidUsage;
	if ((!comm && !uniqueId) || !newcomm || !begin(real, caller))
		return real->ncclCommGrow(comm, nRanks, uniqueId, rank, newcomm, config);
	if (!comm)
		return join(real, caller, nRanks, uniqueId, rank, newcomm, config);
	if (!child(&birth, real, comm, GROW_COLOR, config)) {
		cw_leave();
		return real->ncclCommGrow(comm, nRanks, uniqueId, rank, newcomm, config);
	}
	birth.nranks = nRanks;
	enter_child(&op, &call, &birth, CW_OP_COMM_GROW, newcomm, caller);
	r = real->ncclCommGrow(comm, nRanks, uniqueId, rank, newcomm, config);
	leave_child(&op, &call, r);
	return r;
}
