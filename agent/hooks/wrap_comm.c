/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrappers of calls that query or end a communicator, and of the collective host calls on an
 * existing communicator.
 */
#include <errno.h>

#include "agent/base/state.h"
#include "agent/hooks/wrap.h"
#include "agent/ops/ops.h"
#include "agent/record/comms.h"

static void enter(struct cw_op_call *op, ncclComm_t comm, unsigned kind, const void *caller)
{
	int saved_errno = errno;
	int c = cw_comm_find(comm);

	if (c < 0)
		c = cw_comm_settle_deferred(-1, comm);
	if (c < 0)
		cw_record_drop(CW_REC_DROP_OPS);
	cw_hostop_enter(op, c, kind, 0, caller);
	errno = saved_errno;
}

static void leave(struct cw_op_call *op, ncclResult_t r)
{
	int saved_errno = errno;

	cw_hostop_leave(op, r);
	cw_leave();
	errno = saved_errno;
}

ncclResult_t cw_impl_ncclCommFinalize(const struct cw_real *real, const void *caller,
				      ncclComm_t comm)
{
	struct cw_op_call op;
	ncclResult_t r;

	if (!real->ncclCommFinalize)
		return ncclInvalidUsage;
	if (!cw_enter(real, caller))
		return real->ncclCommFinalize(comm);
	enter(&op, comm, CW_OP_COMM_FINALIZE, caller);
	r = real->ncclCommFinalize(comm);
	if (op.comm >= 0 && (r == ncclSuccess || r == ncclInProgress))
		cw_comm_set_state(op.comm, CW_COMM_FINALIZING, false);
	leave(&op, r);
	return r;
}

/*
 * Forgets the handle before NCCL frees it, because another thread's new communicator may get the
 * same address. The entry stays in state FINALIZING until the call returns. A report can therefore
 * show a rank that is stuck in destroy.
 */
ncclResult_t cw_impl_ncclCommDestroy(const struct cw_real *real, const void *caller,
				     ncclComm_t comm)
{
	struct cw_op_call op;
	ncclResult_t r;

	if (!real->ncclCommDestroy)
		return ncclInvalidUsage;
	if (!comm || !cw_enter(real, caller))
		return real->ncclCommDestroy(comm);
	enter(&op, comm, CW_OP_COMM_DESTROY, caller);
	if (op.comm >= 0)
		cw_comm_set_state(op.comm, CW_COMM_FINALIZING, true);
	r = real->ncclCommDestroy(comm);
	leave(&op, r);
	if (op.comm >= 0)
		cw_comm_set_state(op.comm, CW_COMM_DESTROYED, false);
	return r;
}

/*
 * Sets state ABORTED before the call, because this rank takes part in no further op from then on.
 */
ncclResult_t cw_impl_ncclCommAbort(const struct cw_real *real, const void *caller, ncclComm_t comm)
{
	struct cw_op_call op;
	ncclResult_t r;

	if (!real->ncclCommAbort)
		return ncclInvalidUsage;
	if (!comm || !cw_enter(real, caller))
		return real->ncclCommAbort(comm);
	enter(&op, comm, CW_OP_COMM_ABORT, caller);
	if (op.comm >= 0)
		cw_comm_set_state(op.comm, CW_COMM_ABORTED, true);
	r = real->ncclCommAbort(comm);
	leave(&op, r);
	return r;
}

ncclResult_t cw_impl_ncclCommRevoke(const struct cw_real *real, const void *caller, ncclComm_t comm,
				    int revokeFlags)
{
	struct cw_op_call op;
	ncclResult_t r;

	if (!real->ncclCommRevoke)
		return ncclInvalidUsage;
	if (!cw_enter(real, caller))
		return real->ncclCommRevoke(comm, revokeFlags);
	enter(&op, comm, CW_OP_COMM_REVOKE, caller);
	r = real->ncclCommRevoke(comm, revokeFlags);
	if (op.comm >= 0 && r == ncclSuccess)
		cw_comm_set_state(op.comm, CW_COMM_REVOKED, false);
	leave(&op, r);
	return r;
}

/*
 * Records that NCCL failed to create communicator c. The call that creates the communicator has
 * already returned, while NCCL was still at work.
 */
static void fail_making(int c, ncclResult_t result)
{
	int at = CW_LOAD(cw_comms[c].making_at);

	cw_comm_set_state(c, CW_COMM_FAILED, false);
	if (at < 0)
		return;
	cw_ops_finish(at, cw_comms[c].making_ring_ticket, cw_comms[c].making_comm_ticket,
		      cw_now_ns(), result, CW_OPF_RETURNED | CW_OPF_DROPPED,
		      CW_OPF_QUEUED | CW_OPF_IN_PROGRESS);
	cw_comm_failed(at, result);
}

/*
 * Fails the communicators that NCCL was still creating from this parent. NCCL reports the failure
 * of a non-blocking child through its parent.
 */
static void fail_children(int parent, ncclResult_t result)
{
	uint32_t used = CW_LOAD(cw_record.header->comms_used);

	for (uint32_t i = 0; i < used; i++) {
		ncclComm_t *where = __atomic_load_n(&cw_comms[i].deferred, __ATOMIC_ACQUIRE);

		if (where && cw_comms[i].parent == parent &&
		    __atomic_compare_exchange_n(&cw_comms[i].deferred, &where, NULL, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			fail_making((int)i, result);
	}
}

/*
 * Records the asynchronous state of a communicator. Watchdogs poll this state, so we record only
 * changes. For a blocking communicator we never cause CUDA work here.
 */
static void note_async(ncclComm_t comm, ncclResult_t state)
{
	int c = cw_comm_find(comm);
	struct cw_rec_comm *rc;

	if (c < 0)
		return;
	rc = &cw_record.comms[c];
	if (state == ncclSuccess) {
		if (CW_LOAD(rc->state) == CW_COMM_INIT)
			cw_comm_ready(c);
		if (CW_LOAD(cw_comms[c].made))
			(void)cw_comm_settle_deferred(c, NULL);
	} else if (state != ncclInProgress && CW_LOAD(rc->async_error) != state) {
		CW_STORE(rc->async_error, state);
		cw_comm_note_error(c);
		if (CW_LOAD(rc->state) == CW_COMM_INIT)
			fail_making(c, state);
		else if (CW_LOAD(cw_comms[c].made))
			fail_children(c, state);
	}
}

ncclResult_t cw_impl_ncclCommGetAsyncError(const struct cw_real *real, const void *caller,
					   ncclComm_t comm, ncclResult_t *asyncError)
{
	int saved_errno;
	ncclResult_t r;

	if (!real->ncclCommGetAsyncError)
		return ncclInvalidUsage;
	if (!cw_enter(real, caller))
		return real->ncclCommGetAsyncError(comm, asyncError);
	r = real->ncclCommGetAsyncError(comm, asyncError);
	saved_errno = errno;
	if (r == ncclSuccess && asyncError)
		note_async(comm, *asyncError);
	cw_leave();
	errno = saved_errno;
	return r;
}

ncclResult_t cw_impl_ncclCommWindowRegister(const struct cw_real *real, const void *caller,
					    ncclComm_t comm, void *buff, size_t size,
					    ncclWindow_t *win, int winFlags)
{
	struct cw_op_call op;
	ncclResult_t r;

	if (!real->ncclCommWindowRegister)
		return ncclInvalidUsage;
	if (!cw_enter(real, caller))
		return real->ncclCommWindowRegister(comm, buff, size, win, winFlags);
	enter(&op, comm, CW_OP_WINDOW_REGISTER, caller);
	r = real->ncclCommWindowRegister(comm, buff, size, win, winFlags);
	leave(&op, r);
	return r;
}

ncclResult_t cw_impl_ncclCommWindowDeregister(const struct cw_real *real, const void *caller,
					      ncclComm_t comm, ncclWindow_t win)
{
	struct cw_op_call op;
	ncclResult_t r;

	if (!real->ncclCommWindowDeregister)
		return ncclInvalidUsage;
	if (!cw_enter(real, caller))
		return real->ncclCommWindowDeregister(comm, win);
	enter(&op, comm, CW_OP_WINDOW_DEREGISTER, caller);
	r = real->ncclCommWindowDeregister(comm, win);
	leave(&op, r);
	return r;
}

ncclResult_t cw_impl_ncclDevCommCreate(const struct cw_real *real, const void *caller,
				       ncclComm_t comm, const ncclDevCommRequirements_t *reqs,
				       ncclDevComm_t *outDevComm)
{
	struct cw_op_call op;
	ncclResult_t r;

	if (!real->ncclDevCommCreate)
		return ncclInvalidUsage;
	if (!cw_enter(real, caller))
		return real->ncclDevCommCreate(comm, reqs, outDevComm);
	enter(&op, comm, CW_OP_DEV_COMM_CREATE, caller);
	r = real->ncclDevCommCreate(comm, reqs, outDevComm);
	leave(&op, r);
	return r;
}
