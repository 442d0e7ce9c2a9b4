/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine says: a verdict, its names, and what tells it from others. For everybody who
 * keeps, sends or prints one; who makes one is analysis/verdict.h.
 *
 * Pure; any thread; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/op.h"
#include "model/snapshot.h"

enum cw_class {
	CW_CLASS_HEALTHY = 0, /* nobody waits for anything that cannot come */
	CW_CLASS_PROCESS_DEAD,
	CW_CLASS_NODE_UNREACHABLE,
	CW_CLASS_NEVER_ENTERED,
	CW_CLASS_MISMATCH,
	CW_CLASS_DEADLOCK,
	CW_CLASS_P2P_UNMATCHED,
	CW_CLASS_INIT_STUCK,
	CW_CLASS_DEVICE_STALLED,
	CW_CLASS_IN_COLLECTIVE,
	CW_CLASS_SLOW,
	CW_CLASS_UNKNOWN, /* somebody waits, the evidence does not say for whom */
	CW_CLASS__MAX,
};

/* What makes one case of a class another; incidents carry it by name. */
enum cw_detail {
	CW_DETAIL_NONE = 0,
	/* How a process ended. */
	CW_DETAIL_OOM_KILLED,
	CW_DETAIL_EXITED,
	CW_DETAIL_KILLED,
	CW_DETAIL_GONE,
	/* What a rank does that has not come. */
	CW_DETAIL_STOPPED,
	CW_DETAIL_TRACED,
	CW_DETAIL_FROZEN,
	CW_DETAIL_ABORTED,
	CW_DETAIL_DESTROYED,
	CW_DETAIL_INSIDE_OTHER_CALL,
	CW_DETAIL_OUTSIDE_NCCL,
	/* Why it is not known who is to blame. */
	CW_DETAIL_NOT_VISIBLE,
	CW_DETAIL_LEFT_OUT,
	CW_DETAIL_PROGRESS_UNKNOWN,
	CW_DETAIL_NODE_SILENT,
	CW_DETAIL_DAEMON_RESTARTING,
	/* Of a call that blocks the host: which. */
	CW_DETAIL_INIT,
	CW_DETAIL_SPLIT,
	CW_DETAIL_SHRINK,
	CW_DETAIL_GROW,
	CW_DETAIL_FINALIZE,
	CW_DETAIL_HOST_CALL,
	CW_DETAIL_FAILED, /* NCCL gave the culprit an error: it is not in the call */
	/* Of a send or receive. */
	CW_DETAIL_NOT_POSTED,
	CW_DETAIL_SIZE,
	/* Of calls that differ: the first field in which they do, or how their order does. */
	CW_DETAIL_KIND,
	CW_DETAIL_COUNT,
	CW_DETAIL_DTYPE,
	CW_DETAIL_REDOP,
	CW_DETAIL_ROOT,
	CW_DETAIL_MISSING,
	CW_DETAIL_EXTRA,
	CW_DETAIL_ORDER,
	CW_DETAIL_UNKNOWN_CALL,
	/* Of members of a new communicator: what they do not have in common. */
	CW_DETAIL_MEMBERSHIP,
	CW_DETAIL_VERSION,
	CW_DETAIL_ENVIRONMENT,
	/* in_collective */
	CW_DETAIL_UNFINISHED, /* others have completed it, these have not */
	CW_DETAIL__MAX,
};

enum cw_confidence {
	CW_CONFIDENCE_POSSIBLE = 0,
	CW_CONFIDENCE_LIKELY = 1,
	CW_CONFIDENCE_CERTAIN = 2,
};

/*
 * In what a cause may hide. A verdict is certain, and a cause ruled out, only where it could have
 * been seen.
 */
enum cw_blind_spot {
	/* Ranks wait for a rank outside of NCCL, and the daemon cannot see into the wait there. */
	CW_BLIND_WAIT = 0,
	CW_BLIND_RANK,     /* a rank is not visible, or its node does not report */
	CW_BLIND_CALLS,    /* a record lost calls, or a part of a launch is not at hand */
	CW_BLIND_PROGRESS, /* how far a device is, is not recorded */
	CW_BLIND__MAX,
};

/* All ranks seem to be inside a call: here the program could hide another cause. */
#define CW_BLIND_OF_CALL (1u << CW_BLIND_RANK | 1u << CW_BLIND_CALLS)

/*
 * Is it a hang? Another question than who is waited for, which a verdict's confidence is about: a
 * rank 0 that evaluates is certainly waited for, and no hang.
 */
enum cw_hang {
	CW_HANG_NONE = 0, /* nobody is held up for good: calls that differ and went through */
	CW_HANG_POSSIBLE,
	CW_HANG_LIKELY,
	CW_HANG_PROVEN, /* waiting longer cannot change it */
};

/* What is done about it. */
enum cw_severity {
	CW_SEVERITY_NOTICE = 0, /* journal, status, metrics, bundle */
	CW_SEVERITY_PAGE,       /* and people */
};

struct cw_culprit {
	uint32_t rank;    /* index into snapshot.ranks */
	char reason[256]; /* for people: where it is and what it is doing */
};

/* Ranks that did the same thing at the call in question. */
struct cw_side {
	uint32_t *ranks; /* indices, ascending by label */
	uint32_t n_ranks;
	bool has_op; /* false: these ranks have not entered it */
	struct cw_op op;
};

/* rank waits, inside op on comm, for waits_for. */
struct cw_wait {
	uint32_t rank;
	uint32_t comm;
	struct cw_op op;
	uint32_t waits_for; /* rank index; CW_SNAP_NONE = a member nobody has reported as */
};

struct cw_alternative {
	enum cw_class verdict_class;
	uint32_t *culprits;
	uint32_t n_culprits;
	double probability;
	char reason[256];
};

struct cw_verdict {
	enum cw_class verdict_class;
	enum cw_detail detail;
	enum cw_confidence confidence;
	uint32_t blind_spots; /* of enum cw_blind_spot, a bit each */
	/*
	 * True where waiting longer cannot change it: mismatching signatures, a wait cycle, a dead
	 * rank others wait for (docs/design/hang.md#patience, first row).
	 */
	bool is_proof;
	/* True where more evidence would help: windows of `wanted` have not been fetched. */
	bool wants_windows;
	/* True where that is so because rolling hashes differ, whether or not anybody waits. */
	bool histories_differ;
	/*
	 * True where NCCL gave the culprits an error in the call that the others wait in: of an
	 * init_stuck/failed, and of a process_dead whose process ended afterwards.
	 */
	bool has_failed_call;
	/* True of a p2p_unmatched that was seen in the record: nobody waits for it. */
	bool is_left_behind;
	/* Of a mismatch: `ended` (a rank index) was the first to end, by itself, soon after it. */
	bool has_ended;
	uint32_t ended;
	/*
	 * Of init_stuck: in how many makings all ranks of the job wait, to none of which all have
	 * come or can come; 0 = somebody may.
	 */
	uint32_t n_crossed;
	/* Some wait in other calls, behind these: their hosts may still do something. */
	bool is_crossed_behind;
	/* True where one has sent more than another received, or less: windows may tell why. */
	bool messages_are_uneven;

	struct cw_culprit *culprits;
	uint32_t n_culprits;
	uint32_t *victims; /* rank indices, ascending by label */
	uint32_t n_victims;

	uint32_t comm; /* where: index into snapshot.comms; CW_SNAP_NONE = nowhere in particular */
	uint64_t coll_seq;
	/* Of a mismatch known by hash alone: it is a call after this one, up to coll_seq; 0 = any.
	 */
	uint64_t after_seq;
	struct cw_side *sides;
	uint32_t n_sides;
	struct cw_wait *chain; /* from a victim to the culprit, or the cycle of a deadlock */
	uint32_t n_chain;
	struct cw_alternative *alternatives;
	uint32_t n_alternatives;
	char **ruled_out; /* sentences */
	uint32_t n_ruled_out;
	uint32_t *wanted; /* comm indices whose windows are wanted */
	uint32_t n_wanted;

	int64_t waiting_since_ns; /* enter time of the oldest op anybody waits in; 0 = none */
	int64_t last_progress_ns; /* newest movement on the comms concerned; 0 = unknown */
	char summary[512];        /* one line for people */
	void *owner;              /* private: the memory of all of the above */
};

/*
 * The hold on the rank's process, so that none of its threads runs: CW_DETAIL_FROZEN, _TRACED or
 * _STOPPED; CW_DETAIL_NONE = none is known. Of two holds the first to go counts: a debugger and
 * SIGCONT reach a frozen process only after the thaw.
 */
enum cw_detail cw_rank_held_by(const struct cw_snap_rank *r);
bool cw_detail_is_hold(unsigned detail);

/* Something is wrong, and nobody waits because of it. */
bool cw_verdict_is_silent(const struct cw_verdict *v);

/* Takes a zeroed one too. */
void cw_verdict_fini(struct cw_verdict *v);

/* More troubles at once than that are one: the job stands still. */
#define CW_VERDICT_LIST_MAX 8u

/* At least one verdict, which may be "healthy"; the worst first. */
struct cw_verdict_list {
	struct cw_verdict v[CW_VERDICT_LIST_MAX];
	uint32_t n;
};

void cw_verdict_list_fini(struct cw_verdict_list *list);

/*
 * "never_entered" …, "outside_nccl" … ("" = none), "certain" …, "wait" …, "proven" …, "page" …;
 * never NULL.
 * From names: -1 when unknown, as those of a newer version's incidents may be.
 */
const char *cw_class_name(unsigned verdict_class);
const char *cw_detail_name(unsigned detail);
const char *cw_confidence_name(unsigned confidence);
const char *cw_blind_spot_name(unsigned spot);
const char *cw_hang_name(unsigned hang);
const char *cw_severity_name(unsigned severity);
int cw_class_from_name(const char *name);
int cw_detail_from_name(const char *name);
int cw_confidence_from_name(const char *name);
int cw_hang_from_name(const char *name);

/*
 * What a verdict is about, within its job: never culprits or class, so that it stays the same while
 * the class is refined. All of it is compared: a program chooses its communicators' ids, and must
 * not choose what is taken for something else. A mismatch that nobody waits for is told by its
 * communicator alone: from its first difference on the histories differ for good, and a leader that
 * takes over sees that later than the one before.
 */
struct cw_verdict_key {
	uint64_t comm_id;
	uint64_t seq;     /* coll_seq; 0 = of what nobody waits for */
	uint64_t p2p_seq; /* with has_op */
	uint32_t instance;
	uint32_t op_kind; /* with has_op */
	bool is_set;      /* false: about nothing, the verdict is healthy */
	bool is_waited;
	bool has_op; /* without a coll_seq: the op waited in tells matters apart */
};

struct cw_verdict_key cw_verdict_key(const struct cw_snapshot *snap, const struct cw_verdict *v);
/* What messages on that communicator that do not fit are told by while nobody waits for them. */
struct cw_verdict_key cw_verdict_key_left_behind(const struct cw_verdict_key *of);
/* About the same matter; two that are about nothing are not. */
bool cw_verdict_key_is_same(const struct cw_verdict_key *a, const struct cw_verdict_key *b);
