/* SPDX-License-Identifier: Apache-2.0 */
#include "model/verdict_types.h"

#include <stdlib.h>
#include <string.h>

#include "model/arena.h"

/* The names of classes in incidents, in bundles and on terminals. */
static const char *const class_names[CW_CLASS__MAX] = {
	[CW_CLASS_HEALTHY] = "healthy",
	[CW_CLASS_PROCESS_DEAD] = "process_dead",
	[CW_CLASS_NODE_UNREACHABLE] = "node_unreachable",
	[CW_CLASS_NEVER_ENTERED] = "never_entered",
	[CW_CLASS_MISMATCH] = "mismatch",
	[CW_CLASS_DEADLOCK] = "deadlock",
	[CW_CLASS_P2P_UNMATCHED] = "p2p_unmatched",
	[CW_CLASS_INIT_STUCK] = "init_stuck",
	[CW_CLASS_DEVICE_STALLED] = "device_stalled",
	[CW_CLASS_IN_COLLECTIVE] = "in_collective",
	[CW_CLASS_SLOW] = "slow",
	[CW_CLASS_UNKNOWN] = "unknown",
};

static const char *const detail_names[CW_DETAIL__MAX] = {
	[CW_DETAIL_NONE] = "",
	[CW_DETAIL_OOM_KILLED] = "oom_killed",
	[CW_DETAIL_EXITED] = "exited",
	[CW_DETAIL_KILLED] = "killed",
	[CW_DETAIL_GONE] = "gone",
	[CW_DETAIL_STOPPED] = "stopped",
	[CW_DETAIL_TRACED] = "traced",
	[CW_DETAIL_FROZEN] = "frozen",
	[CW_DETAIL_ABORTED] = "aborted",
	[CW_DETAIL_DESTROYED] = "destroyed",
	[CW_DETAIL_INSIDE_OTHER_CALL] = "inside_other_call",
	[CW_DETAIL_OUTSIDE_NCCL] = "outside_nccl",
	[CW_DETAIL_NOT_VISIBLE] = "not_visible",
	[CW_DETAIL_PROGRESS_UNTRACKED] = "progress_untracked",
	[CW_DETAIL_PROGRESS_UNKNOWN] = "progress_unknown",
	[CW_DETAIL_NODE_SILENT] = "node_silent",
	[CW_DETAIL_DAEMON_RESTARTING] = "daemon_restarting",
	[CW_DETAIL_INIT] = "init",
	[CW_DETAIL_SPLIT] = "split",
	[CW_DETAIL_SHRINK] = "shrink",
	[CW_DETAIL_GROW] = "grow",
	[CW_DETAIL_FINALIZE] = "finalize",
	[CW_DETAIL_HOST_CALL] = "host_call",
	[CW_DETAIL_FAILED] = "failed",
	[CW_DETAIL_NOT_POSTED] = "not_posted",
	[CW_DETAIL_SIZE] = "size",
	[CW_DETAIL_KIND] = "kind",
	[CW_DETAIL_COUNT] = "count",
	[CW_DETAIL_DTYPE] = "dtype",
	[CW_DETAIL_REDOP] = "redop",
	[CW_DETAIL_ROOT] = "root",
	[CW_DETAIL_MISSING] = "missing",
	[CW_DETAIL_EXTRA] = "extra",
	[CW_DETAIL_ORDER] = "order",
	[CW_DETAIL_UNKNOWN_CALL] = "unknown_call",
	[CW_DETAIL_MEMBERSHIP] = "membership",
	[CW_DETAIL_VERSION] = "version",
	[CW_DETAIL_ENVIRONMENT] = "environment",
	[CW_DETAIL_UNFINISHED] = "unfinished",
	[CW_DETAIL_CONNECTION] = "connection",
	[CW_DETAIL_SLOW_CONNECTION] = "slow_connection",
	[CW_DETAIL_GPU_NOT_CONSUMING] = "gpu_not_consuming",
	[CW_DETAIL_GPU_NOT_PRODUCING] = "gpu_not_producing",
	[CW_DETAIL_NOT_IN_PROXY] = "not_in_proxy",
	[CW_DETAIL_PAIR] = "pair",
};

static const char *const confidence_names[] = {
	[CW_CONFIDENCE_POSSIBLE] = "possible",
	[CW_CONFIDENCE_LIKELY] = "likely",
	[CW_CONFIDENCE_CERTAIN] = "certain",
};

#define N_CONFIDENCES (sizeof(confidence_names) / sizeof(confidence_names[0]))

static const char *const blind_spot_names[CW_BLIND__MAX] = {
	[CW_BLIND_WAIT] = "wait",
	[CW_BLIND_RANK] = "rank",
	[CW_BLIND_CALLS] = "calls",
	[CW_BLIND_PROGRESS] = "progress",
};

static const char *const hang_names[] = {
	[CW_HANG_NONE] = "none",
	[CW_HANG_POSSIBLE] = "possible",
	[CW_HANG_LIKELY] = "likely",
	[CW_HANG_PROVEN] = "proven",
};

#define N_HANGS (sizeof(hang_names) / sizeof(hang_names[0]))

static const char *const severity_names[] = {
	[CW_SEVERITY_NOTICE] = "notice",
	[CW_SEVERITY_PAGE] = "page",
	[CW_SEVERITY_FAILED] = "failed",
};

#define N_SEVERITIES (sizeof(severity_names) / sizeof(severity_names[0]))

static const char *const closed_as_names[CW_CLOSED_AS__MAX] = {
	[CW_CLOSED_AS_SLOW] = "slow",
	[CW_CLOSED_AS_JOB_ENDED] = "job_ended",
	[CW_CLOSED_AS_UNSEEN] = "unseen",
};

static const char *const first_reason_names[] = {
	[CW_FIRST_ONLY] = "only",
	[CW_FIRST_BY_TIME] = "time",
	[CW_FIRST_BY_CAUSE] = "cause",
	[CW_FIRST_TIE] = "tie",
};

#define N_FIRST_REASONS (sizeof(first_reason_names) / sizeof(first_reason_names[0]))

static int find_name(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; name && i < n; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

const char *cw_class_name(unsigned verdict_class)
{
	return verdict_class < CW_CLASS__MAX ? class_names[verdict_class] : "unknown";
}

const char *cw_detail_name(unsigned detail)
{
	return detail < CW_DETAIL__MAX ? detail_names[detail] : "";
}

const char *cw_confidence_name(unsigned confidence)
{
	return confidence < N_CONFIDENCES ? confidence_names[confidence] : "possible";
}

const char *cw_blind_spot_name(unsigned spot)
{
	return spot < CW_BLIND__MAX ? blind_spot_names[spot] : "";
}

const char *cw_hang_name(unsigned hang)
{
	return hang < N_HANGS ? hang_names[hang] : "possible";
}

const char *cw_severity_name(unsigned severity)
{
	return severity < N_SEVERITIES ? severity_names[severity] : "page";
}

const char *cw_closed_as_name(unsigned closed_as)
{
	return closed_as < CW_CLOSED_AS__MAX ? closed_as_names[closed_as] : "unseen";
}

const char *cw_first_reason_name(unsigned reason)
{
	return reason < N_FIRST_REASONS ? first_reason_names[reason] : "tie";
}

int cw_class_from_name(const char *name)
{
	return find_name(class_names, CW_CLASS__MAX, name);
}

int cw_detail_from_name(const char *name)
{
	return find_name(detail_names, CW_DETAIL__MAX, name);
}

int cw_confidence_from_name(const char *name)
{
	return find_name(confidence_names, N_CONFIDENCES, name);
}

int cw_blind_spot_from_name(const char *name)
{
	return find_name(blind_spot_names, CW_BLIND__MAX, name);
}

int cw_severity_from_name(const char *name)
{
	return find_name(severity_names, N_SEVERITIES, name);
}

int cw_closed_as_from_name(const char *name)
{
	return find_name(closed_as_names, CW_CLOSED_AS__MAX, name);
}

int cw_first_reason_from_name(const char *name)
{
	return find_name(first_reason_names, N_FIRST_REASONS, name);
}

int cw_hang_from_name(const char *name)
{
	return find_name(hang_names, N_HANGS, name);
}

void cw_verdict_list_fini(struct cw_verdict_list *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		cw_verdict_fini(&list->v[i]);
	list->n = 0;
}

void cw_verdict_fini(struct cw_verdict *v)
{
	if (v->owner)
		cw_arena_fini(v->owner);
	free(v->owner);
	*v = (struct cw_verdict){ 0 };
}

enum cw_detail cw_rank_held_by(const struct cw_snap_rank *r)
{
	if (cw_liveness_is_dead(r->liveness))
		return CW_DETAIL_NONE;
	if (r->flags & CW_RANKF_FROZEN)
		return CW_DETAIL_FROZEN;
	if (r->liveness == CW_LIVE_TRACED)
		return CW_DETAIL_TRACED;
	return r->liveness == CW_LIVE_STOPPED ? CW_DETAIL_STOPPED : CW_DETAIL_NONE;
}

bool cw_detail_is_hold(unsigned detail)
{
	return detail == CW_DETAIL_FROZEN || detail == CW_DETAIL_TRACED ||
	       detail == CW_DETAIL_STOPPED;
}

/* True for a mismatch, or a lost message, that blocks no rank. */
bool cw_verdict_is_silent(const struct cw_verdict *v)
{
	return v->is_left_behind || (v->verdict_class == CW_CLASS_MISMATCH && !v->waiting_since_ns);
}

/*
 * Makes the key of a verdict. Point-to-point calls and calls that block the host have no coll_seq,
 * so the awaited op distinguishes them. The key omits the op's local numbers (op_index, group),
 * which differ between ranks.
 */
struct cw_verdict_key cw_verdict_key(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	bool is_silent = cw_verdict_is_silent(v);
	struct cw_verdict_key key = { 0 };
	const struct cw_snap_comm *c;

	if (v->verdict_class == CW_CLASS_HEALTHY || v->comm >= snap->n_comms)
		return key;
	c = &snap->comms[v->comm];
	key.is_set = true;
	key.comm_id = c->id;
	key.instance = c->instance;
	key.seq = is_silent ? 0 : v->coll_seq;
	key.is_waited = v->waiting_since_ns != 0;
	if (v->is_left_behind) {
		key = cw_verdict_key_left_behind(&key);
	} else if (!v->coll_seq && v->n_sides) {
		key.has_op = true;
		key.op_kind = v->sides[0].op.kind;
		key.p2p_seq = v->sides[0].op.p2p_seq;
	}
	return key;
}

struct cw_verdict_key cw_verdict_key_left_behind(const struct cw_verdict_key *of)
{
	/*
	 * Which of several unmatched messages we find first is arbitrary. So the key does not
	 * contain p2p_seq.
	 */
	return (struct cw_verdict_key){ .comm_id = of->comm_id,
					.instance = of->instance,
					.op_kind = CW_OP_SEND,
					.is_set = true,
					.has_op = true };
}

bool cw_verdict_key_is_same(const struct cw_verdict_key *a, const struct cw_verdict_key *b)
{
	return a->is_set && b->is_set && a->comm_id == b->comm_id && a->instance == b->instance &&
	       a->seq == b->seq && a->is_waited == b->is_waited && a->has_op == b->has_op &&
	       a->op_kind == b->op_kind && a->p2p_seq == b->p2p_seq;
}
