/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wording/phrase.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "model/nccl_result.h"
#include "model/rankset.h"

#define MS INT64_C(1000000)
#define S (1000 * MS)

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* Pod names are usually shorter. Longer ones are cut here and complete in the document. */
#define POD_BYTES 224
/* The length of last_error in record/record_layout.h. Another node may send a longer text. */
#define ERROR_BYTES 95

/* "pod ml/train-3, pid 17 there; ", or nothing */
static const char *phrase_pod(const struct cw_snap_rank *r, char *buf, size_t len)
{
	char pid[32] = "";

	buf[0] = '\0';
	if (!r->pod || !r->pod[0])
		return buf;
	if (r->own_pid > 0)
		(void)snprintf(pid, sizeof(pid), ", pid %" PRId32 " there", r->own_pid);
	(void)snprintf(buf, len, "pod %.63s%s%.120s%s; ", or_empty(r->pod_namespace),
		       r->pod_namespace && r->pod_namespace[0] ? "/" : "", r->pod, pid);
	return buf;
}

bool phrase_is_empty_recording(const struct cw_snap_rank *rank)
{
	return rank->liveness == CW_LIVE_UNKNOWN && rank->sampled_ns &&
	       !(rank->flags & CW_RANKF_HAS_RECORD);
}

const char *phrase_rank(const struct cw_snapshot *snap, uint32_t rank, struct phrase *p)
{
	const struct cw_snap_rank *r = &snap->ranks[rank];
	const char *node = r->node < snap->n_nodes ? or_empty(snap->nodes[r->node].name) : "";
	char label[32] = "a rank without number", pod[POD_BYTES];

	if (r->rank >= 0)
		(void)snprintf(label, sizeof(label), "rank %" PRId32, r->rank);
	/* Recordings do not name the host, and dumps do not even contain the pid. */
	if (r->pid > 0)
		(void)snprintf(p->text, sizeof(p->text), "%s (%s%s%spid %" PRId32 ")", label,
			       phrase_pod(r, pod, sizeof(pod)), node, *node ? ", " : "", r->pid);
	else if (*node)
		(void)snprintf(p->text, sizeof(p->text), "%s (%s)", label, node);
	else
		(void)snprintf(p->text, sizeof(p->text), "%s", label);
	return p->text;
}

const char *phrase_labels(const int32_t *labels, uint32_t n, struct phrase *p)
{
	char set[160];

	(void)snprintf(p->text, sizeof(p->text), "rank%s %s", n == 1 ? "" : "s",
		       cw_rankset_format(labels, n, set, sizeof(set)));
	return p->text;
}

const char *phrase_ranks(const struct cw_snapshot *snap, const uint32_t *ranks, uint32_t n,
			 struct phrase *p)
{
	int32_t *labels = calloc(n ? n : 1, sizeof(*labels));

	/* Out of memory: we still give the number of ranks. */
	if (!labels || !n) {
		(void)snprintf(p->text, sizeof(p->text), "%" PRIu32 " rank%s", n,
			       n == 1 ? "" : "s");
		free(labels);
		return p->text;
	}
	for (uint32_t i = 0; i < n; i++)
		labels[i] = snap->ranks[ranks[i]].rank;
	(void)phrase_labels(labels, n, p);
	free(labels);
	return p->text;
}

const char *phrase_comm(const struct cw_snapshot *snap, uint32_t comm, struct phrase *p)
{
	const struct cw_snap_comm *c = &snap->comms[comm];

	/* PyTorch may name a group by a number alone, and "on 4" would be unclear. */
	if (c->name && c->name[0])
		(void)snprintf(p->text, sizeof(p->text), "%s%.64s",
			       c->name[strspn(c->name, "0123456789")] ? "" : "comm ", c->name);
	else
		(void)snprintf(p->text, sizeof(p->text), "comm 0x%016" PRIx64, c->id);
	return p->text;
}

const char *phrase_kind(unsigned kind)
{
	switch (kind) {
	case CW_OP_NONE: /* the record has lost the call but still has its number */
		return "collective";
	case CW_OP_COMM_INIT:
		return "ncclCommInitRank";
	case CW_OP_COMM_SPLIT:
		return "ncclCommSplit";
	case CW_OP_COMM_SHRINK:
		return "ncclCommShrink";
	case CW_OP_COMM_GROW:
		return "ncclCommGrow";
	case CW_OP_COMM_FINALIZE:
		return "ncclCommFinalize";
	case CW_OP_COMM_DESTROY:
		return "ncclCommDestroy";
	case CW_OP_WINDOW_REGISTER:
		return "ncclCommWindowRegister";
	case CW_OP_GROUP_END:
		return "ncclGroupEnd";
	default:
		return cw_op_kind_name(kind);
	}
}

/* Returns the rank number of this peer, or -1 if it is not visible. */
static int32_t label_of_peer(const struct cw_snapshot *snap, uint32_t comm, int32_t peer)
{
	const struct cw_snap_comm *c = comm < snap->n_comms ? &snap->comms[comm] : NULL;
	uint32_t rank =
		c && peer >= 0 && (uint32_t)peer < c->nranks ? c->members[peer].rank : CW_SNAP_NONE;

	return rank < snap->n_ranks ? snap->ranks[rank].rank : -1;
}

const char *phrase_call(const struct cw_snapshot *snap, uint32_t comm, const struct cw_op *op,
			struct phrase *p)
{
	int32_t label = cw_op_is_p2p(op->kind) ? label_of_peer(snap, comm, op->peer) : -1;
	uint64_t seq = cw_op_is_p2p(op->kind) ? op->p2p_seq : op->coll_seq;
	const char *kind = phrase_kind(op->kind);

	if (cw_op_is_p2p(op->kind) && op->peer >= 0)
		(void)snprintf(p->text, sizeof(p->text), "%s #%" PRIu64 " %s %srank %" PRId32, kind,
			       seq, op->kind == CW_OP_SEND ? "to" : "from",
			       label >= 0 ? "" : "comm ", label >= 0 ? label : op->peer);
	else if (seq)
		(void)snprintf(p->text, sizeof(p->text), "%s #%" PRIu64, kind, seq);
	else
		(void)snprintf(p->text, sizeof(p->text), "%s", kind);
	return p->text;
}

const char *phrase_error(int32_t result, const char *text, struct phrase *p)
{
	char name[CW_NCCL_RESULT_NAME_MAX], words[ERROR_BYTES + 1];

	(void)snprintf(words, sizeof(words), "%s", or_empty(text));
	cw_text_sanitise_line(words);
	(void)snprintf(p->text, sizeof(p->text), "%s%s%s%s",
		       cw_nccl_result_name(result, name, sizeof(name)), *words ? " (\"" : "", words,
		       *words ? "\")" : "");
	return p->text;
}

const char *phrase_time(int64_t ns, struct phrase *p)
{
	if (ns < 0)
		ns = 0;
	if (ns < S)
		(void)snprintf(p->text, sizeof(p->text), "%" PRId64 " ms", ns / MS);
	else if (ns < 10 * S)
		(void)snprintf(p->text, sizeof(p->text), "%.1f s", (double)ns / (double)S);
	else if (ns < 300 * S)
		(void)snprintf(p->text, sizeof(p->text), "%" PRId64 " s", ns / S);
	else if (ns < 3 * 3600 * S)
		(void)snprintf(p->text, sizeof(p->text), "%" PRId64 " min", ns / (60 * S));
	else
		(void)snprintf(p->text, sizeof(p->text), "%" PRId64 " h", ns / (3600 * S));
	return p->text;
}

const char *phrase_since(const struct cw_snapshot *snap, int64_t then_ns, struct phrase *p)
{
	if (then_ns)
		return phrase_time(snap->now_ns - then_ns, p);
	(void)snprintf(p->text, sizeof(p->text), "an unknown time");
	return p->text;
}

/* v is the result of ncclGetVersion: 2804 is 2.8.4, 22809 is 2.28.9. */
static void say_version(uint32_t v, char *text, size_t len)
{
	uint32_t unit = v < 10000 ? 1000 : 10000;

	if (!v)
		cw_text_append(text, len, "loaded an unknown NCCL");
	else
		cw_text_append(text, len, "loaded NCCL %" PRIu32 ".%" PRIu32 ".%" PRIu32, v / unit,
			       v % unit / 100, v % 100);
}

void phrase_trait(const struct cw_snapshot *snap, uint32_t comm, uint32_t rank,
		  enum cw_detail detail, char *text, size_t len)
{
	const struct cw_snap_comm *c = &snap->comms[comm];
	uint32_t m = 0;

	if (detail == CW_DETAIL_VERSION) {
		say_version(snap->ranks[rank].nccl_version, text, len);
	} else if (detail == CW_DETAIL_ENVIRONMENT) {
		cw_text_append(text, len, "started with other NCCL_* variables than the rest");
	} else if (detail == CW_DETAIL_ORDER) {
		cw_text_append(text, len,
			       "made the calls of this group in another order than the rest");
	} else {
		while (m + 1 < c->nranks && c->members[m].rank != rank)
			m++;
		cw_text_append(text, len, "made it with %" PRIu32 " rank%s", c->members[m].nranks,
			       c->members[m].nranks == 1 ? "" : "s");
	}
}
