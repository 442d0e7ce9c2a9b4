/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of the engine: a verdict, the names of its parts, and the key that distinguishes
 * verdicts. Meant for code that stores, sends or prints verdicts. analysis/verdict.h makes
 * verdicts.
 *
 * Pure; any thread; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/op.h"
#include "model/saying.h"
#include "model/snapshot.h"

enum cw_class {
	CW_CLASS_HEALTHY = 0, /* no rank is blocked on a call that cannot complete */
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
	CW_CLASS_UNKNOWN, /* a rank waits, and the evidence names no culprit */
	CW_CLASS__MAX,
};

/* A detail distinguishes the cases of a class. Incidents carry its name. */
enum cw_detail {
	CW_DETAIL_NONE = 0,
	/* The end of a process. */
	CW_DETAIL_OOM_KILLED,
	CW_DETAIL_EXITED,
	CW_DETAIL_KILLED,
	CW_DETAIL_GONE,
	/* The state of the missing rank. */
	CW_DETAIL_STOPPED,
	CW_DETAIL_TRACED,
	CW_DETAIL_FROZEN,
	CW_DETAIL_ABORTED,
	CW_DETAIL_DESTROYED,
	CW_DETAIL_INSIDE_OTHER_CALL,
	CW_DETAIL_OUTSIDE_NCCL,
	/* The reason why the culprit is unknown. */
	CW_DETAIL_NOT_VISIBLE,
	CW_DETAIL_PROGRESS_UNTRACKED,
	CW_DETAIL_PROGRESS_UNKNOWN,
	CW_DETAIL_NODE_SILENT,
	CW_DETAIL_DAEMON_RESTARTING,
	/* The kind of a call that blocks the host. */
	CW_DETAIL_INIT,
	CW_DETAIL_SPLIT,
	CW_DETAIL_SHRINK,
	CW_DETAIL_GROW,
	CW_DETAIL_FINALIZE,
	CW_DETAIL_HOST_CALL,
	CW_DETAIL_FAILED, /* NCCL returned an error to the culprit, which has left the call */
	/* The fault of a send or receive. */
	CW_DETAIL_NOT_POSTED,
	CW_DETAIL_SIZE,
	/* The first field that differs between calls, or the difference in their order. */
	CW_DETAIL_KIND,
	CW_DETAIL_COUNT,
	CW_DETAIL_DTYPE,
	CW_DETAIL_REDOP,
	CW_DETAIL_ROOT,
	CW_DETAIL_MISSING,
	CW_DETAIL_EXTRA,
	CW_DETAIL_ORDER,
	CW_DETAIL_UNKNOWN_CALL,
	/* The property in which the members of a new communicator differ. */
	CW_DETAIL_MEMBERSHIP,
	CW_DETAIL_VERSION,
	CW_DETAIL_ENVIRONMENT,
	/* Only for the class in_collective. */
	CW_DETAIL_UNFINISHED, /* other ranks have completed the op, but the culprits have not */
	/* Only for the class in_collective: the fault that the network connections show. */
	CW_DETAIL_CONNECTION,      /* a connection moves no data */
	CW_DETAIL_SLOW_CONNECTION, /* a connection moves data far slower than the others */
	CW_DETAIL_GPU_NOT_CONSUMING,
	CW_DETAIL_GPU_NOT_PRODUCING,
	CW_DETAIL_NOT_IN_PROXY, /* the call has not given its part to NCCL's proxy */
	/* Only for the class in_collective: one of the two ranks of a message is stuck in it. */
	CW_DETAIL_PAIR,
	CW_DETAIL__MAX,
};

enum cw_confidence {
	CW_CONFIDENCE_POSSIBLE = 0,
	CW_CONFIDENCE_LIKELY = 1,
	CW_CONFIDENCE_CERTAIN = 2,
};

/*
 * Blind spots: places where a cause may be hidden from the engine. We call a verdict certain, and
 * rule a cause out, only if we could have seen the cause.
 */
enum cw_blind_spot {
	/*
	 * Ranks wait for a rank that is outside of NCCL, and the daemon cannot see why that rank
	 * waits.
	 */
	CW_BLIND_WAIT = 0,
	CW_BLIND_RANK,     /* a rank is not visible, or its node does not report */
	CW_BLIND_CALLS,    /* a record lost calls, or a part of a graph launch is missing */
	CW_BLIND_PROGRESS, /* the progress of the device is not recorded */
	CW_BLIND__MAX,
};

/*
 * The blind spots that matter if all ranks seem to be inside a call. Even then the program could
 * hide another cause in these blind spots.
 */
#define CW_BLIND_OF_CALL (1u << CW_BLIND_RANK | 1u << CW_BLIND_CALLS)

/*
 * Whether the job hangs. The value is independent of a verdict's confidence, which is about the
 * culprit. For example, while rank 0 evaluates a model, the other ranks certainly wait for it, but
 * the job does not hang.
 */
enum cw_hang {
	CW_HANG_NONE = 0, /* no rank is blocked for good; calls differed, but completed */
	CW_HANG_POSSIBLE,
	CW_HANG_LIKELY,
	CW_HANG_PROVEN, /* a longer wait cannot change the verdict */
};

/* The reaction to a verdict. */
enum cw_severity {
	CW_SEVERITY_NOTICE = 0, /* goes to journal, status, metrics and bundle */
	CW_SEVERITY_PAGE,       /* goes to the same places, and alerts people */
	/* a post-mortem without an alert: the job failed, and no leader called it a hang before */
	CW_SEVERITY_FAILED,
};

/* Why a rank is the first of a failed job. The numbers are not in documents. */
enum cw_first_reason {
	CW_FIRST_ONLY = 0, /* no other rank failed */
	CW_FIRST_BY_TIME,
	CW_FIRST_BY_CAUSE,
	CW_FIRST_TIE,
};

/* The end of an incident. The numbers are not in documents, so they may change. */
enum cw_closed_as {
	CW_CLOSED_AS_SLOW = 0,  /* progress resumed */
	CW_CLOSED_AS_JOB_ENDED, /* the job ended first */
	CW_CLOSED_AS_UNSEEN,    /* no node had it open for ten minutes */
	CW_CLOSED_AS__MAX,
};

/* Sizes of buffers for the text of a whole verdict, and of one reason or ruled-out cause. */
#define CW_VERDICT_TEXT_MAX 512u
#define CW_REASON_TEXT_MAX 256u

struct cw_culprit {
	uint32_t rank;         /* index into snapshot.ranks */
	struct cw_clause said; /* the culprit's position and activity */
};

/* Ranks that made the same call, or entered no call, at the call in question. */
struct cw_side {
	uint32_t *ranks; /* indices of ranks, ascending by label */
	uint32_t n_ranks;
	bool has_op; /* false: these ranks have not entered the call */
	struct cw_op op;
};

/* The rank `rank` waits for `waits_for`, inside `op` on `comm`. */
struct cw_wait {
	uint32_t rank;
	uint32_t comm;
	struct cw_op op;
	uint32_t waits_for; /* rank index; CW_SNAP_NONE = no rank has reported as this member */
};

/* The end of a connection to look at first. */
enum cw_link_side { CW_LINK_SIDE_UNKNOWN = 0, CW_LINK_SIDE_SENDER, CW_LINK_SIDE_RECEIVER };

/*
 * A network connection between two ranks, for CW_DETAIL_CONNECTION and CW_DETAIL_SLOW_CONNECTION.
 */
struct cw_link {
	bool is_set;
	uint32_t sender, receiver; /* rank indices */
	uint32_t channel;
	enum cw_link_side side;
	/* Steps of the sender, and of the receiver. */
	uint32_t steps, handed, confirmed, received;
	int64_t held_ns;      /* for a slow connection: time of a step; 0 = unknown */
	uint64_t bytes_per_s; /* for a slow connection: its rate; 0 = unknown */
};

struct cw_alternative {
	enum cw_class verdict_class;
	uint32_t *culprits;
	uint32_t n_culprits;
	double probability;
	struct cw_clause said;
};

struct cw_verdict {
	enum cw_class verdict_class;
	enum cw_detail detail;
	enum cw_confidence confidence;
	uint32_t blind_spots; /* a bit for each enum cw_blind_spot */
	/*
	 * True if a longer wait cannot change the verdict. Examples are mismatching signatures, a
	 * wait cycle, and a dead rank that other ranks wait for (docs/design/patience.md#patience,
	 * first row).
	 */
	bool is_proof;
	/* True if more evidence would help: the windows of `wanted` have not been fetched. */
	bool wants_windows;
	/* True if rolling hashes differ. wants_windows is then set even if no rank waits. */
	bool histories_differ;
	/*
	 * True if NCCL returned an error to the culprits in the call that the other ranks wait in.
	 * We set it for init_stuck/failed, and for a process_dead if the process ended after the
	 * error.
	 */
	bool has_failed_call;
	/* True for a p2p_unmatched that we found in the record: no rank waits for the message. */
	bool is_left_behind;
	/*
	 * For a mismatch: true if rank `ended` (an index) was the first rank to end soon after the
	 * mismatch, and ended by itself.
	 */
	bool has_ended;
	uint32_t ended;
	/*
	 * For init_stuck: the number of calls that make communicators and that all ranks of the job
	 * wait in. None of these calls has all its members or can get them. 0 = a rank may still
	 * come to one of the calls.
	 */
	uint32_t n_crossed;
	/*
	 * True if some ranks wait in other calls, behind the calls that n_crossed counts. The hosts
	 * of these ranks may still be active.
	 */
	bool is_crossed_behind;
	/*
	 * True if a rank has sent more messages, or fewer, than another rank received. Windows may
	 * show why.
	 */
	bool messages_are_uneven;

	struct cw_link link;
	struct cw_culprit *culprits;
	uint32_t n_culprits;
	uint32_t *victims; /* rank indices, ascending by label */
	uint32_t n_victims;

	uint32_t comm; /* index into snapshot.comms; CW_SNAP_NONE = no particular comm */
	uint64_t coll_seq;
	/*
	 * For a mismatch that we know only by hash. The first differing call is after call
	 * after_seq, and at most call coll_seq. 0 = it may be any call up to coll_seq.
	 */
	uint64_t after_seq;
	struct cw_side *sides;
	uint32_t n_sides;
	/* The waits from a victim to the culprit, or the cycle of a deadlock. */
	struct cw_wait *chain;
	uint32_t n_chain;
	struct cw_alternative *alternatives;
	uint32_t n_alternatives;
	struct cw_clause *ruled_out_said; /* a sentence each */
	uint32_t n_ruled_out;
	/* The known hangs of NCCL whose version and signature fit. The texts are static. */
	struct cw_known_hang {
		const char *name, *fixed_in;
	} * known_hangs;
	uint32_t n_known_hangs;
	/*
	 * Observations that accuse no rank, a sentence each: known hangs, and variables of NCCL in
	 * which ranks differ.
	 */
	struct cw_clause *also_said;
	uint32_t n_also;
	uint32_t *wanted; /* indices of comms whose windows would help */
	uint32_t n_wanted;

	/*
	 * The time at which a rank entered the oldest op that a rank waits in; 0 = no rank waits.
	 */
	int64_t waiting_since_ns;
	int64_t last_progress_ns; /* newest progress on the affected comms; 0 = unknown */
	struct cw_clause said;    /* the sentence for people, on one line */
	void *owner;              /* private: owns all of the above */
};

/*
 * Returns the hold that keeps all threads of the rank's process from running: CW_DETAIL_FROZEN,
 * CW_DETAIL_TRACED or CW_DETAIL_STOPPED. CW_DETAIL_NONE = no known hold. If there are two holds, we
 * return the one that the user must lift first. A debugger and SIGCONT reach a frozen process only
 * after the thaw.
 */
enum cw_detail cw_rank_held_by(const struct cw_snap_rank *r);
bool cw_detail_is_hold(unsigned detail);

/* True if the verdict is a fault, but no rank waits because of the fault. */
bool cw_verdict_is_silent(const struct cw_verdict *v);

/* Frees the verdict's memory and zeroes it. The verdict may already be zeroed. */
void cw_verdict_fini(struct cw_verdict *v);

/*
 * The limit of simultaneous verdicts. Further verdicts tell nothing new, because the job stands
 * still.
 */
#define CW_VERDICT_LIST_MAX 8u

/* The verdicts of a job, the worst first. There is at least one verdict, which may be "healthy". */
struct cw_verdict_list {
	struct cw_verdict v[CW_VERDICT_LIST_MAX];
	uint32_t n;
};

void cw_verdict_list_fini(struct cw_verdict_list *list);

/*
 * The first eight functions return the name of a number: "never_entered" …, "outside_nccl" … ("" =
 * none), "certain" …, "wait" …, "proven" …, "page" …, "slow" …, "only" …. They never return NULL.
 * The other functions return the number of a name. They return -1 for an unknown name, which an
 * incident of a newer version may have.
 */
const char *cw_class_name(unsigned verdict_class);
const char *cw_detail_name(unsigned detail);
const char *cw_confidence_name(unsigned confidence);
const char *cw_blind_spot_name(unsigned spot);
const char *cw_hang_name(unsigned hang);
const char *cw_severity_name(unsigned severity);
const char *cw_closed_as_name(unsigned closed_as);
const char *cw_first_reason_name(unsigned reason);
int cw_class_from_name(const char *name);
int cw_detail_from_name(const char *name);
int cw_confidence_from_name(const char *name);
int cw_blind_spot_from_name(const char *name);
int cw_hang_from_name(const char *name);
int cw_severity_from_name(const char *name);
int cw_closed_as_from_name(const char *name);
int cw_first_reason_from_name(const char *name);

/*
 * The subject of a verdict within its job. The key contains neither culprits nor class. It
 * therefore stays the same while we refine the class. We compare all fields, because a program
 * chooses the ids of its communicators. It must not be able to make two subjects look equal.
 *
 * If a mismatch blocks no rank, its subject is its communicator alone. The histories stay different
 * after the first difference. A new leader sees the difference later than its predecessor, and a
 * call's number in the key would make a second incident.
 */
struct cw_verdict_key {
	uint64_t comm_id;
	uint64_t seq;     /* coll_seq; 0 = no rank waits for it */
	uint64_t p2p_seq; /* valid if has_op is true */
	uint32_t instance;
	uint32_t op_kind; /* valid if has_op is true */
	bool is_set;      /* false = the verdict is healthy and has no subject */
	bool is_waited;
	bool has_op; /* true: there is no coll_seq, and the awaited op distinguishes subjects */
};

struct cw_verdict_key cw_verdict_key(const struct cw_snapshot *snap, const struct cw_verdict *v);
/* Returns the key of unmatched messages that no rank waits for, on the communicator of `of`. */
struct cw_verdict_key cw_verdict_key_left_behind(const struct cw_verdict_key *of);
/* True if both keys have the same subject. Two keys without a subject differ. */
bool cw_verdict_key_is_same(const struct cw_verdict_key *a, const struct cw_verdict_key *b);
