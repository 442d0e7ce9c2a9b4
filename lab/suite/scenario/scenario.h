/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A labelled scenario: a job, what its ranks do, what goes wrong, and what must be said about it.
 * docs/lab/suite.md describes the text it is read from.
 *
 * Plain data with fixed limits, so that a hostile file can cost no more than the limits say. Sets
 * of ranks are kept as written, not resolved, so that a job can be scaled
 * (cw_suite_scenario_scale()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "model/facts.h"
#include "model/op.h"
#include "model/verdict_types.h"

#define SUITE_MAX_RANKS 65536u
#define SUITE_MAX_FAMILIES 12u
#define SUITE_MAX_PROGRAMS 6u
#define SUITE_MAX_INSNS 512u
#define SUITE_MAX_FAULTS 40u
#define SUITE_MAX_ANSWERS 8u
#define SUITE_MAX_RANGES 16u
#define SUITE_MAX_NEST 8u
#define SUITE_MAX_TRAITS 12u
#define SUITE_MAX_MACHINES 8u
#define SUITE_NAME 24u
#define SUITE_TITLE 160u
#define SUITE_NONE UINT32_MAX
#define SUITE_FOREVER INT64_MAX

/* When a member's part of a collective ends. */
enum suite_completion {
	SUITE_BARRIER = 0, /* once all members have come, for all at once */
	SUITE_NCCL,        /* as NCCL's device code does it: lab/vjob/cluster_flow.c */
};

enum suite_layout {
	SUITE_OTHER = 0,
	SUITE_DP,
	SUITE_TP_DP,
	SUITE_3D,
	SUITE_EP,
	SUITE_ZERO,
	SUITE_LAYOUT__MAX,
};

struct suite_range {
	uint32_t first, last; /* last = SUITE_NONE: to the last rank */
};

struct suite_set {
	bool is_negated;
	uint32_t step, phase; /* only ranks with rank % step == phase; step 0 = all */
	uint32_t n;           /* 0 = all ranks */
	struct suite_range ranges[SUITE_MAX_RANGES];
};

enum suite_made { SUITE_AT_START = 0, SUITE_BY_INIT, SUITE_BY_SPLIT };

/* One comm over a set of ranks, or the comms that cut all ranks into parts of equal size. */
struct suite_family {
	char name[SUITE_NAME];
	bool is_partition;
	struct suite_set set; /* of a lone comm */
	uint32_t size,
		stride; /* of a partition; size 0 = as many as there are (n_ranks / stride) */
	enum suite_made made;
	bool is_lazy; /* connections are made by the first call that needs them, which waits */
};

enum suite_peer {
	SUITE_PEER_NONE = 0,
	SUITE_PEER_NUMBER, /* a comm rank */
	SUITE_PEER_NEXT,   /* none after the last */
	SUITE_PEER_PREV,
	SUITE_PEER_RING_NEXT,
	SUITE_PEER_RING_PREV,
	SUITE_PEER_PAIR, /* comm rank xor 1 */
	SUITE_PEER_EACH, /* one op for every other member */
};

struct suite_call {
	uint8_t kind; /* enum cw_op_kind */
	uint8_t dtype, redop;
	uint8_t peer_kind; /* enum suite_peer */
	int32_t root, peer;
	uint64_t count;
	uint32_t family; /* the comm's */
	uint32_t child;  /* family that a split makes, or SUITE_NONE */
	uint32_t stream;
	int64_t takes_ns; /* on the device; 0 = by its size */
};

enum suite_insn_kind {
	SUITE_CALL,
	SUITE_WORK,    /* host, uses the CPU */
	SUITE_IO,      /* host, reads or writes files */
	SUITE_CHILD,   /* host waits for a child that works */
	SUITE_SLEEP,   /* host, no sign of work */
	SUITE_COMPUTE, /* a kernel on a stream */
	SUITE_SYNC,    /* host spins until its device, or a stream of it, is idle */
	SUITE_WAIT,    /* the same, asleep */
	SUITE_LOOP,    /* n times; 0 = for ever */
	SUITE_EVERY,   /* in each n-th iteration of the innermost loop */
	SUITE_ONLY,    /* on these ranks */
	SUITE_GROUP,
	SUITE_GRAPH, /* a CUDA graph of what is in it, launched on stream n */
	SUITE_END,   /* of the block that began at `other` */
	SUITE_EXIT,
	SUITE_SIGTERM, /* the launcher ends the whole job, this program says so */
};

struct suite_insn {
	uint8_t kind;   /* enum suite_insn_kind */
	uint32_t other; /* of a block: its end, and the other way round */
	/* Iterations, exit code, stream (SUITE_NONE: all); of SUITE_SLEEP: enum cw_host_wait. */
	uint32_t n;
	int64_t ns;
	union {
		struct suite_call call;
		struct suite_set set;
	};
};

struct suite_program {
	struct suite_set set;
	uint32_t n_insns;
	struct suite_insn *insns;
};

enum suite_action {
	SUITE_BLOCK, /* the host stands still outside NCCL */
	SUITE_SPIN,  /* busy, gets nowhere */
	SUITE_BUSY_IO,
	SUITE_BUSY_CHILD,
	SUITE_EXIT_NOW,
	SUITE_KILL,
	SUITE_OOM,
	SUITE_STOP,
	SUITE_TRACE,
	SUITE_FREEZE,
	SUITE_SKIP,
	SUITE_ADD,
	SUITE_CHANGE,
	SUITE_SWAP,   /* this call and the next change places */
	SUITE_SLOW,   /* each call comes this much later */
	SUITE_STUCK,  /* a kernel that never ends, on the call's stream */
	SUITE_WEDGE,  /* the collective does not complete though everybody has come */
	SUITE_BLIND,  /* no data of the rank */
	SUITE_FAILS,  /* the call returns an error; field: enum suite_failed, value: exit code */
	SUITE_ERRORS, /* its comm has an asynchronous error, from that time on */
	SUITE_NODE_LOST,
	SUITE_NODE_SILENT,
	SUITE_NODE_GOODBYE,
	SUITE_NODE_KILLED,     /* its daemon, which begins again afterwards */
	SUITE_NODE_SUSPENDED,  /* the machine with all on it, as while it is moved */
	SUITE_DAEMONS_RESTART, /* all of them, the leader too: what they remembered is gone */
	SUITE_DAEMONS_STOP,    /* all stand still and go on with what they knew */
	SUITE_CLOCK,           /* the wall clock is set; value: ns, as int64_t */
	SUITE_CANCEL,          /* the job gets SIGTERM */
	SUITE_RESTART,         /* … and is started again */
	/* Between daemons; nothing happens to ranks. */
	SUITE_NODE_CUT,     /* connections of these nodes with those in `others` break */
	SUITE_NODE_STALLED, /* … carry nothing; what was sent arrives afterwards */
	SUITE_LEADER,       /* befalls the node that leads the job then; value: enum suite_leader */
	SUITE_DIGESTS,      /* each value-th on its way; field: enum suite_digests */
	SUITE_ALERTS,       /* on their way to people; value: enum suite_alerts */
	SUITE_RELOAD,       /* daemons read their configuration again */
	SUITE_CROWD,        /* another user starts `value` jobs on all nodes */
	SUITE_ACTION__MAX,
};

/* What befalls the node that leads. */
enum suite_leader {
	SUITE_LEADER_KILLED, /* its daemon, which begins again afterwards */
	SUITE_LEADER_SILENT, /* its daemon is stopped and goes on afterwards */
	SUITE_LEADER_CUT,
	SUITE_LEADER_STALLED,
	SUITE_LEADER_ANEW, /* it forgets the jobs it leads; its daemon runs on */
	SUITE_LEADER__MAX,
};

enum suite_digests {
	SUITE_DIGESTS_LATE, /* by late_ns: later ones overtake it */
	SUITE_DIGESTS_LOST,
	SUITE_DIGESTS_TWICE,
	SUITE_DIGESTS__MAX,
};

enum suite_alerts {
	SUITE_ALERTS_UNDELIVERED, /* nobody answers where they are sent */
	SUITE_ALERTS_MUTED,       /* somebody has muted the job */
	SUITE_ALERTS__MAX,
};

enum suite_field {
	SUITE_FIELD_COUNT,
	SUITE_FIELD_DTYPE,
	SUITE_FIELD_REDOP,
	SUITE_FIELD_ROOT,
	SUITE_FIELD_KIND,
	SUITE_FIELD_COMM,
	SUITE_FIELD_PEER,
};

/* What a host does whose call has failed. */
enum suite_failed {
	SUITE_FAILED_GOES_ON,
	SUITE_FAILED_EXITS,
	SUITE_FAILED_STANDS, /* it does not come out of what it does then */
};

/* Of them a leader has no place for more than a third. */
#define SUITE_MAX_CROWD 4096u

struct suite_fault {
	struct suite_set set; /* ranks; nodes for SUITE_NODE_* */
	int64_t at_ns;
	uint32_t family; /* at the first call on it from at_ns on; SUITE_NONE = on any */
	uint8_t op_kind; /* … of this kind; CW_OP_NONE = any */
	uint8_t action;  /* enum suite_action */
	uint8_t field;   /* enum suite_field */
	uint8_t wait;    /* of SUITE_BLOCK: enum cw_host_wait */
	int64_t for_ns;  /* how long; SUITE_FOREVER */
	uint64_t value;  /* of the field; exit code; signal */
	int64_t late_ns; /* of SUITE_DIGESTS_LATE */
	/* Nodes, of SUITE_NODE_CUT and SUITE_NODE_STALLED. */
	struct suite_set others;
};

/* What befalls daemons and what they send to each other, and no rank. */
static inline bool suite_fault_is_between_daemons(const struct suite_fault *f)
{
	return f->action >= SUITE_NODE_CUT;
}

/* How nodes are from the beginning on. The last line that has a node counts for each field. */
struct suite_machine {
	struct suite_set set; /* of nodes */
	bool is_old;          /* its daemon is of the version before */
	bool has_ahead, has_drift;
	int64_t ahead_ns;  /* its clocks */
	int32_t drift_ppm; /* they run so much faster */
};

/* What ranks came with. The last line that has a rank counts. */
enum suite_trait_kind {
	SUITE_VERSION,     /* of NCCL, as it numbers itself */
	SUITE_ENVIRONMENT, /* a number for the values of NCCL_* variables; SUITE_OWN = no other's */
	SUITE_SIZE,        /* how many members they are told that a comm has */
	SUITE_STARTS,      /* ns after the others, at most; */
	SUITE_STARTS_AT,   /* … exactly */
};
#define SUITE_OWN UINT64_MAX

struct suite_trait {
	struct suite_set set;
	uint8_t kind;    /* enum suite_trait_kind */
	uint32_t family; /* of SUITE_SIZE */
	uint64_t value;
};

struct suite_answer {
	uint8_t verdict_class; /* enum cw_class */
	uint8_t incident;      /* which of those expected; answers are in this order */
	uint8_t detail;        /* enum cw_detail; CW_DETAIL_NONE = any */
	bool is_notice;        /* a notice is expected, and no page */
	bool has_culprits;     /* false: any */
	bool is_nobody;        /* culprits: none */
	struct suite_set culprits;
};

#define SUITE_MAX_WATCHDOGS 4u

/* A rank of the set aborts once a call of its on the comm has been open for so long. */
struct suite_watchdog {
	struct suite_set set;
	uint32_t family; /* SUITE_NONE = any */
	int64_t after_ns;
};

/* Who started the ranks, and ends those that are left once one has failed. */
struct suite_launcher {
	bool is_there;
	int64_t grace_ns; /* from SIGTERM to SIGKILL */
	int64_t apart_ns; /* until the launchers of other nodes know */
	int64_t saves_ns; /* what a rank still does once it is asked to end */
};

struct suite_scenario {
	char name[SUITE_TITLE];
	char file[SUITE_TITLE];
	unsigned line;
	uint32_t layout; /* enum suite_layout */
	uint32_t n_ranks, per_node;
	uint32_t per_process;    /* ranks that a process is: one for each device that it drives */
	uint32_t policy;         /* enum cw_policy */
	bool has_no_progress;    /* no progress words */
	bool is_recorded;        /* by agents' own code, where the pipeline goes through digests */
	bool is_usual_wait;      /* its rank waits as those of healthy jobs may; counted only */
	bool is_whole;           /* watched to its end, whatever is told meanwhile */
	bool is_fast_forwarding; /* healthy stretches are shown in part, then left out */
	bool is_fast_forwarding_waits; /* … and those of a wait in which nothing happens */
	uint8_t completion;            /* enum suite_completion */
	int64_t run_ns;                /* how long it is watched */
	uint32_t seed;                 /* of the instants at which ranks are looked at */
	uint32_t n_families, n_programs, n_faults, n_answers, n_traits;
	bool is_alone; /* watched beyond the first alert: nothing else may be said */
	uint32_t n_machines;
	struct suite_trait traits[SUITE_MAX_TRAITS];
	struct suite_machine machines[SUITE_MAX_MACHINES];
	struct suite_family families[SUITE_MAX_FAMILIES];
	struct suite_program programs[SUITE_MAX_PROGRAMS];
	struct suite_fault faults[SUITE_MAX_FAULTS];
	struct suite_answer answers[SUITE_MAX_ANSWERS]; /* the first of each incident is the
							 * expected one; 0 = silence */
	bool nobody_is_slow;        /* silence, and nobody comes late at the end */
	bool may_be_silent;         /* … or nothing at all: "expect silence or …" */
	bool has_no_notices;        /* as with notices = false */
	uint32_t iteration_members; /* memberships that a leader evaluates at once; 0 = default */
	int64_t job_timeout_ns; /* the job's own watchdog ends it after so long; 0 = it has none */
	/* What is said of the job when it has died; of each, any one of them. 0 = anything. */
	uint32_t n_postmortems;
	struct suite_answer postmortems[SUITE_MAX_ANSWERS];
	bool has_no_postmortem; /* … nothing */
	/* How jobs end that nobody ends from outside; all 0 = they do not. */
	uint32_t n_watchdogs;
	struct suite_watchdog watchdogs[SUITE_MAX_WATCHDOGS];
	struct suite_launcher launcher;
};

static inline bool suite_expects_postmortem(const struct suite_scenario *s)
{
	return s->n_postmortems || s->has_no_postmortem;
}

/* How many are expected; several are watched for beyond the first alert. */
static inline uint32_t suite_n_incidents(const struct suite_scenario *s)
{
	return s->n_answers ? s->answers[s->n_answers - 1].incident + 1u : 0;
}

/* A rank keeps others waiting for ever, by itself: it is alive, and does not come. */
static inline bool suite_is_hanging_wait(const struct suite_scenario *s)
{
	const struct suite_answer *a = s->n_answers       ? s->answers
				       : s->n_postmortems ? s->postmortems
							  : NULL;

	return a && (a->verdict_class == CW_CLASS_NEVER_ENTERED ||
		     (a->verdict_class == CW_CLASS_P2P_UNMATCHED && a->detail != CW_DETAIL_SIZE) ||
		     (a->verdict_class == CW_CLASS_INIT_STUCK && !a->is_nobody));
}

/* What is told of an incident before all is a notice: nobody may be paged for it. */
static inline bool suite_expects_notice(const struct suite_scenario *s)
{
	return s->n_answers && s->answers[0].is_notice;
}

/* Silence is what is expected, or nothing but notices. */
static inline bool suite_is_control(const struct suite_scenario *s)
{
	return !s->n_answers || s->may_be_silent || suite_expects_notice(s);
}

/* Owned by the reader; holds during the call only. Negative return stops the reading. */
typedef int (*suite_scenario_fn)(void *user, const struct suite_scenario *s);

/*
 * Reads scenarios from `text` (need not end in NUL) and hands each to fn, repeats expanded. At most
 * max_lines lines, counted after expansion. 0, -EINVAL with "file:line: what is wrong" in err,
 * -E2BIG past a limit, -ENOMEM, or what fn returned.
 */
int cw_suite_read_text(const char *text, size_t len, const char *file, uint64_t max_lines,
		       suite_scenario_fn fn, void *user, struct cw_err *err);

/* The same for a file, or for all *.scn of a directory, by name. */
int cw_suite_read_path(const char *path, suite_scenario_fn fn, void *user, struct cw_err *err);

bool cw_suite_set_has(const struct suite_set *set, uint32_t rank);

/* The whole job times k; false and untouched where it is too large, or ranks would have no program.
 */
bool cw_suite_scenario_scale(struct suite_scenario *s, uint32_t k);

/* "dp", "tp_dp", … */
const char *suite_layout_name(unsigned layout);

#define SUITE_MAX_LINES 4000000u
