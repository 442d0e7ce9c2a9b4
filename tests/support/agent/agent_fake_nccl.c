/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/agent/agent_fake_nccl.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "agent/hooks/wrap.h"
#include "agent/record/comms.h"
#include "model/signature.h"

ncclResult_t answer;
int ranks = 4, my_rank = 1;
bool has_handle = true;
void (*inside)(void); /* called from within the fake NCCL */
char handles[256];
static unsigned next_handle;

static ncclResult_t respond(void)
{
	if (inside)
		inside();
	errno = 4711; /* the real NCCL may change errno, too */
	return answer;
}

static ncclResult_t fake_all_reduce(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c,
				    cudaStream_t st)
{
	return respond();
}

static ncclResult_t fake_broadcast(const void *s, void *r, size_t n, int dt, int root, ncclComm_t c,
				   cudaStream_t st)
{
	return respond();
}

/* Calls another public function through its wrapper, as NCCL does. */
static ncclResult_t fake_bcast(void *b, size_t n, int dt, int root, ncclComm_t c, cudaStream_t st)
{
	return cw_impl_ncclBroadcast(&fake, NULL, b, b, n, dt, root, c, st);
}

static ncclResult_t fake_send(const void *s, size_t n, int dt, int peer, ncclComm_t c,
			      cudaStream_t st)
{
	return respond();
}

static ncclResult_t fake_recv(void *s, size_t n, int dt, int peer, ncclComm_t c, cudaStream_t st)
{
	return respond();
}

static ncclResult_t fake_group(void)
{
	return ncclSuccess;
}

static ncclResult_t fake_group_end(void)
{
	return respond();
}

static ncclResult_t fake_simulate(ncclSimInfo_t *info)
{
	return respond();
}

static void hand_out(ncclComm_t *comm)
{
	*comm = has_handle ? (ncclComm_t)&handles[next_handle++] : NULL;
}

static ncclResult_t fake_init(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	hand_out(comm);
	return respond();
}

static ncclResult_t fake_init_config(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
				     ncclConfig_t *config)
{
	return fake_init(comm, nranks, id, rank);
}

static ncclResult_t fake_init_all(ncclComm_t *comms, int n, const int *devices)
{
	for (int i = 0; i < n; i++)
		hand_out(&comms[i]);
	return respond();
}

static ncclResult_t fake_split(ncclComm_t comm, int color, int key, ncclComm_t *child,
			       ncclConfig_t *config)
{
	*child = NULL;
	if (color >= 0)
		hand_out(child);
	return respond();
}

static ncclResult_t fake_one(ncclComm_t comm)
{
	return respond();
}

static ncclResult_t fake_async(ncclComm_t comm, ncclResult_t *state)
{
	*state = answer;
	return ncclSuccess;
}

static ncclResult_t fake_count(const ncclComm_t comm, int *n)
{
	*n = ranks;
	return ncclSuccess;
}

static ncclResult_t fake_rank(const ncclComm_t comm, int *n)
{
	*n = my_rank;
	return ncclSuccess;
}

static const char *fake_error(ncclComm_t comm)
{
	return "the cable is out";
}

struct cw_real fake = {
	.ncclAllReduce = fake_all_reduce,
	.ncclBroadcast = fake_broadcast,
	.ncclBcast = fake_bcast,
	.ncclSend = fake_send,
	.ncclRecv = fake_recv,
	.ncclGroupStart = fake_group,
	.ncclGroupEnd = fake_group_end,
	.ncclGroupSimulateEnd = fake_simulate,
	.ncclCommInitRank = fake_init,
	.ncclCommInitRankConfig = fake_init_config,
	.ncclCommInitAll = fake_init_all,
	.ncclCommSplit = fake_split,
	.ncclCommFinalize = fake_one,
	.ncclCommDestroy = fake_one,
	.ncclCommAbort = fake_one,
	.ncclCommGetAsyncError = fake_async,
	.ncclCommCount = fake_count,
	.ncclCommUserRank = fake_rank,
	.ncclGetLastError = fake_error,
};

/* ---- short names for calls ---- */

ncclUniqueId uid(unsigned n)
{
	ncclUniqueId id = { { 0 } };

	memcpy(id.internal, &n, sizeof(n));
	id.internal[127] = 1;
	return id;
}

ncclComm_t init(unsigned n)
{
	ncclComm_t comm = NULL;

	(void)cw_impl_ncclCommInitRank(&fake, NULL, &comm, ranks, uid(n), my_rank);
	return comm;
}

ncclResult_t all_reduce(ncclComm_t comm, size_t count)
{
	return cw_impl_ncclAllReduce(&fake, NULL, NULL, NULL, count, CW_DTYPE_FP32, CW_REDOP_SUM,
				     comm, NULL);
}

void send_to(ncclComm_t comm, int peer, size_t count)
{
	(void)cw_impl_ncclSend(&fake, NULL, NULL, count, CW_DTYPE_INT64, peer, comm, NULL);
}

void receive_from(ncclComm_t comm, int peer, size_t count)
{
	(void)cw_impl_ncclRecv(&fake, NULL, NULL, count, CW_DTYPE_INT64, peer, comm, NULL);
}

void start(void)
{
	(void)cw_impl_ncclGroupStart(&fake, NULL);
}

ncclResult_t end(void)
{
	return cw_impl_ncclGroupEnd(&fake, NULL);
}

struct cw_rec_comm *entry(ncclComm_t comm)
{
	int c = cw_comm_find(comm);

	cr_assert_geq(c, 0);
	return &cw_record.comms[c];
}

const struct cw_rec_op *last(const struct cw_rec_comm *rc)
{
	return &rc->ops[(rc->ring_ticket - 1) % CW_REC_COMM_OPS];
}

uint64_t signature_of(size_t count)
{
	return cw_signature(CW_OP_ALL_REDUCE, CW_DTYPE_FP32, CW_REDOP_SUM, CW_PEER_NONE, count,
			    4 * count);
}

struct cw_rec_comm *watched;
uint64_t seen_entered, seen_returned, seen_seq;
unsigned seen_flags;

void look(void)
{
	seen_entered = watched->coll_entered;
	seen_returned = watched->coll_returned;
	seen_seq = last(watched)->seq;
	seen_flags = last(watched)->flags;
}
