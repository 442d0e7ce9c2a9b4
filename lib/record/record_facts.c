/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a rank from its record, in the terms of model/fact_list.h. */
#include "record/record_internal.h"
#include "record/record_reader.h"

#include <string.h>

#include "record/pod.h"

static uint32_t known_of(const struct cw_rec_comm *e, const struct cw_record_state *state)
{
	uint32_t known = CW_KNOWN_ENTERED | CW_KNOWN_RETURNED;

	/*
	 * The agent does not see the launches of this comm's CUDA graphs, so no number shows its
	 * progress.
	 */
	if (e->flags & CW_REC_COMM_UNCOUNTED)
		return 0;
	if (state->reached_known)
		known |= CW_KNOWN_REACHED;
	if (state->completed_known)
		known |= CW_KNOWN_COMPLETED;
	if (e->p2p_dropped == 0)
		known |= CW_KNOWN_P2P;
	return known;
}

/*
 * Returns the time that the creation of the communicator took. Returns 0 for NCCL's profiler
 * interface, which reports a communicator only after its creation.
 */
static uint64_t making_ns(const struct cw_rec_comm *e)
{
	return e->flags & CW_REC_COMM_PROFILER || e->ready_ns < e->created_ns
		       ? 0
		       : e->ready_ns - e->created_ns;
}

struct cw_member_facts cw_record_member_facts(const struct cw_record_comm *comm,
					      const struct cw_record_state *state)
{
	const struct cw_rec_comm *e = &comm->entry;

	return (struct cw_member_facts){
		.state = e->state,
		.known = known_of(e, state),
		.pending_count = state->pending_count,
		.nranks = e->nranks,
		.coll_entered = e->coll_entered,
		.coll_returned = e->coll_returned,
		.coll_reached = state->coll_reached,
		.coll_completed = state->coll_completed,
		.op_index = e->op_index,
		.sends = e->p2p_total[0],
		.recvs = e->p2p_total[1],
		.async_error = e->async_error,
		.last_result = e->last_result,
		.by_profiler = !!(e->flags & CW_REC_COMM_PROFILER),
		.making_ns = making_ns(e),
	};
}

struct cw_comm_facts cw_record_comm_facts(const struct cw_record_comm *comm)
{
	return (struct cw_comm_facts){
		.parent_id = comm->entry.parent_id,
		.nccl_hash = comm->entry.nccl_hash,
		.instance = comm->entry.instance,
		.split_ordinal = comm->entry.split_ordinal,
		.split_color = comm->entry.split_color,
	};
}

uint64_t cw_record_dropped(const struct cw_rec_header *h)
{
	return h->drops[CW_REC_DROP_COMMS] + h->drops[CW_REC_DROP_OPS] + h->drops[CW_REC_DROP_P2P] +
	       h->drops[CW_REC_DROP_UNKNOWN_CALLS];
}

/*
 * Upper limits of plausible values in a record. No job waits longer than a month. The network's
 * longest retry is 4.096 us x 2^31 x 8, which is 20 hours.
 */
#define MAX_JOB_TIMEOUT_NS (UINT64_C(30) * 86400 * 1000000000)
#define MAX_NET_RETRY_NS (UINT64_C(86400) * 1000000000)

int64_t cw_record_job_timeout_ns(const struct cw_rec_header *h)
{
	return h->job_timeout_ns <= MAX_JOB_TIMEOUT_NS ? (int64_t)h->job_timeout_ns : 0;
}

const char *cw_record_job_timeout_source(const struct cw_rec_header *h)
{
	size_t n = strnlen(h->job_timeout_source, sizeof(h->job_timeout_source));
	bool is_plain = n < sizeof(h->job_timeout_source);

	for (size_t i = 0; i < n; i++)
		is_plain = is_plain && h->job_timeout_source[i] >= ' ' &&
			   h->job_timeout_source[i] <= '~';
	return is_plain && cw_record_job_timeout_ns(h) ? h->job_timeout_source : "";
}

int64_t cw_record_net_retry_ns(const struct cw_rec_header *h)
{
	return h->net_retry_ns <= MAX_NET_RETRY_NS ? (int64_t)h->net_retry_ns : 0;
}

const char *cw_record_device_model(const struct cw_rec_header *h, int32_t ordinal)
{
	return ordinal >= 0 && ordinal < CW_REC_DEVICES ? h->device_models[ordinal] : "";
}

int cw_record_nccl_variables(const struct cw_record *rec, struct cw_rec_variables *ret)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_VARIABLES];
	struct cw_rec_variables found = { .omitted = 0 };
	int r = s->count ? cw_record_read_table(rec, s, 0, 1, sizeof(found), &found) : 0;

	if (r < 0)
		return r;
	if (!*cw_nccl_variables_check(found.text, sizeof(found.text)))
		found = (struct cw_rec_variables){ .omitted = 0 };
	*ret = found;
	return 0;
}

static void take_name(const char *from, size_t size, char *to, size_t len)
{
	size_t n = strnlen(from, size);

	if (n == size || n >= len || !cw_pod_is_name(from))
		return;
	memcpy(to, from, n + 1);
}

struct cw_pod cw_record_pod(const struct cw_rec_header *h)
{
	struct cw_pod pod = { 0 };

	take_name(h->pod, sizeof(h->pod), pod.name, sizeof(pod.name));
	if (!pod.name[0])
		return pod;
	take_name(h->pod_namespace, sizeof(h->pod_namespace), pod.ns, sizeof(pod.ns));
	take_name(h->container, sizeof(h->container), pod.container, sizeof(pod.container));
	return pod;
}

bool cw_record_own_io(const struct cw_record *rec, uint64_t *ret_begun, uint64_t *ret_done)
{
	uint64_t both[2];

	_Static_assert(offsetof(struct cw_rec_header, own_io_done) ==
			       offsetof(struct cw_rec_header, own_io_begun) + sizeof(*both),
		       "side by side");
	if (cw_record_pread(rec, both, sizeof(both), offsetof(struct cw_rec_header, own_io_begun)) <
	    0)
		return false;
	*ret_begun = both[0];
	*ret_done = both[1];
	return true;
}

struct cw_record_op cw_record_host_call(const struct cw_record *rec)
{
	const struct cw_rec_header *h = cw_record_header(rec);
	bool is_any = h->host_call_kind > CW_OP_NONE && h->host_call_kind < CW_OP__MAX;

	return (struct cw_record_op){
		.kind = is_any ? (uint8_t)h->host_call_kind : CW_OP_NONE,
		.dtype = CW_DTYPE_NONE,
		.redop = CW_REDOP_NONE,
		.root = CW_PEER_NONE,
		.peer = CW_PEER_NONE,
		.enter_mono_ns = cw_record_time(rec, h->host_call_enter_ns),
	};
}
