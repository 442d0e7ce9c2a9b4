/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A labelled scenario: a job, the programs of its ranks, the faults, and the expected answers.
 * docs/lab/suite.md describes the text form.
 *
 * Scenarios are plain data with fixed limits, which also bound the cost of a hostile file. We keep
 * sets of ranks as written and do not resolve them. So cw_suite_scenario_scale() can scale a job.
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

/* The rule by which a member's part of a collective ends. */
enum suite_completion {
	SUITE_BARRIER = 0, /* all parts end together, once all members have come */
	SUITE_NCCL,        /* parts end as in NCCL's device code; see lab/vjob/cluster_flow.c */
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
	uint32_t first, last; /* last = SUITE_NONE: up to the last rank */
};

struct suite_set {
	bool is_negated;
	uint32_t step, phase; /* the set has only ranks with rank % step == phase; step 0 = all */
	uint32_t n;           /* 0 = all ranks */
	struct suite_range ranges[SUITE_MAX_RANGES];
};

enum suite_made { SUITE_AT_START = 0, SUITE_BY_INIT, SUITE_BY_SPLIT };

/*
 * A family of comms: one comm over a set of ranks, or the comms that divide all ranks into parts of
 * equal size.
 */
struct suite_family {
	char name[SUITE_NAME];
	bool is_partition;
	struct suite_set set; /* ranks of a comm that is not part of a partition */
	uint32_t size,
		stride; /* of a partition; size 0 = as large as possible (n_ranks / stride) */
	enum suite_made made;
	/* the first call that needs connections makes them, and waits for the peers */
	bool is_lazy;
};

enum suite_peer {
	SUITE_PEER_NONE = 0,
	SUITE_PEER_NUMBER, /* a comm rank */
	SUITE_PEER_NEXT,   /* no peer after the last rank */
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
	uint32_t family; /* family of the comm */
	uint32_t child;  /* family that a split makes; SUITE_NONE = not a split */
	uint32_t stream;
	int64_t takes_ns; /* time on the device; 0 = by its size */
};

enum suite_insn_kind {
	SUITE_CALL,
	SUITE_WORK,    /* the host uses the CPU */
	SUITE_IO,      /* the host reads or writes files */
	SUITE_CHILD,   /* the host waits for a child that works */
	SUITE_SLEEP,   /* the host sleeps and shows no sign of work */
	SUITE_COMPUTE, /* a kernel on a stream */
	SUITE_SYNC,    /* the host spins until its device, or one of its streams, is idle */
	SUITE_WAIT,    /* the host sleeps until its device, or one of its streams, is idle */
	SUITE_LOOP,    /* a block that repeats n times; 0 = endlessly */
	SUITE_EVERY,   /* a block for each n-th iteration of the innermost loop */
	SUITE_ONLY,    /* a block that only some ranks execute */
	SUITE_GROUP,
	SUITE_GRAPH, /* a CUDA graph of the block's contents, launched on stream n */
	SUITE_END,   /* end of the block that began at `other` */
	SUITE_EXIT,
	SUITE_SIGTERM, /* the program itself makes the launcher end the whole job */
};

struct suite_insn {
	uint8_t kind;   /* enum suite_insn_kind */
	uint32_t other; /* index of a block's end or, at the end, of its beginning */
	/*
	 * Iterations, exit code or stream (SUITE_NONE = all). For SUITE_SLEEP: enum cw_host_wait.
	 */
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
	SUITE_BLOCK, /* the host is idle outside NCCL */
	SUITE_SPIN,  /* the host is busy, but makes no progress */
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
	SUITE_SWAP,   /* this call and the next one change places */
	SUITE_SLOW,   /* each call comes later by a fixed time */
	SUITE_STUCK,  /* a kernel that never ends, on the call's stream */
	SUITE_WEDGE,  /* the collective does not complete, though all members have come */
	SUITE_BLIND,  /* daemons have no data of the rank */
	SUITE_FAILS,  /* the call returns an error; field: enum suite_failed, value: exit code */
	SUITE_ERRORS, /* the comm has an asynchronous error from that time on */
	SUITE_NODE_LOST,
	SUITE_NODE_SILENT,
	SUITE_NODE_GOODBYE,
	SUITE_NODE_KILLED,     /* its daemon is killed, and starts again afterwards */
	SUITE_NODE_SUSPENDED,  /* the machine is suspended with all its processes, then goes on */
	SUITE_DAEMONS_RESTART, /* all daemons restart, leaders included, and lose their memory */
	/* all daemons stop for a while, then go on with their old knowledge */
	SUITE_DAEMONS_STOP,
	SUITE_CLOCK,   /* the wall clock is set; value: ns, as int64_t */
	SUITE_CANCEL,  /* the job gets SIGTERM */
	SUITE_RESTART, /* the job gets SIGTERM and is started again */
	/* Faults between daemons, which do not affect ranks. */
	/* connections between the nodes of the fault and those in `others` break */
	SUITE_NODE_CUT,
	/* connections between these nodes carry nothing; old messages arrive afterwards */
	SUITE_NODE_STALLED,
	/* strikes the node that leads the job at that time; value: enum suite_leader */
	SUITE_LEADER,
	SUITE_DIGESTS, /* strikes each value-th digest in transit; field: enum suite_digests */
	SUITE_ALERTS,  /* strikes alerts on their way to users; value: enum suite_alerts */
	SUITE_RELOAD,  /* daemons read their configuration again */
	SUITE_CROWD,   /* another user starts `value` jobs on all nodes */
	SUITE_ACTION__MAX,
};

/* The faults of the node that leads. */
enum suite_leader {
	SUITE_LEADER_KILLED, /* its daemon is killed, and starts again afterwards */
	SUITE_LEADER_SILENT, /* its daemon stops for a while, and then goes on */
	SUITE_LEADER_CUT,
	SUITE_LEADER_STALLED,
	SUITE_LEADER_ANEW, /* its daemon forgets the jobs that it leads, but runs on */
	SUITE_LEADER__MAX,
};

enum suite_digests {
	SUITE_DIGESTS_LATE, /* digests arrive late by late_ns, so later ones overtake them */
	SUITE_DIGESTS_LOST,
	SUITE_DIGESTS_TWICE,
	SUITE_DIGESTS__MAX,
};

enum suite_alerts {
	SUITE_ALERTS_UNDELIVERED, /* the receiver does not answer */
	SUITE_ALERTS_MUTED,       /* a user has muted the job */
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

/* What a host does after its call has failed. */
enum suite_failed {
	SUITE_FAILED_GOES_ON,
	SUITE_FAILED_EXITS,
	SUITE_FAILED_STANDS, /* the host blocks endlessly afterwards */
};

/* Limit on the jobs of a crowd. A leader has places for no more than a third of them. */
#define SUITE_MAX_CROWD 4096u

struct suite_fault {
	struct suite_set set; /* ranks; nodes for SUITE_NODE_* */
	int64_t at_ns;
	/* the fault strikes the first call on this comm from at_ns on; SUITE_NONE = any comm */
	uint32_t family;
	uint8_t op_kind; /* kind of that call; CW_OP_NONE = any */
	uint8_t action;  /* enum suite_action */
	uint8_t field;   /* enum suite_field */
	uint8_t wait;    /* for SUITE_BLOCK: enum cw_host_wait */
	int64_t for_ns;  /* duration of the fault, or SUITE_FOREVER */
	uint64_t value;  /* value of the field, exit code, or signal */
	int64_t late_ns; /* delay of digests, for SUITE_DIGESTS_LATE */
	/* The nodes at the other end of the faults SUITE_NODE_CUT and SUITE_NODE_STALLED. */
	struct suite_set others;
};

/* True if the fault strikes daemons or their messages to each other, and no rank. */
static inline bool suite_fault_is_between_daemons(const struct suite_fault *f)
{
	return f->action >= SUITE_NODE_CUT;
}

/*
 * Properties of nodes from the beginning on. If several lines name a node, the last one counts for
 * each field.
 */
struct suite_machine {
	struct suite_set set; /* nodes */
	bool is_newer;        /* the node's daemon has a later version */
	bool has_ahead, has_drift;
	int64_t ahead_ns;  /* how far its clocks are ahead */
	int32_t drift_ppm; /* how much faster its clocks run */
};

/* A property that ranks start with. If several lines name a rank, the last one counts. */
enum suite_trait_kind {
	SUITE_VERSION, /* version of NCCL, as NCCL encodes it */
	/* number that stands for the NCCL_* variables; SUITE_OWN = unlike any other rank's */
	SUITE_ENVIRONMENT,
	SUITE_SIZE,      /* number of members that the ranks pass to NCCL for a comm */
	SUITE_STARTS,    /* the ranks start at most this many ns after the others */
	SUITE_STARTS_AT, /* the ranks start exactly this many ns after the others */
};
#define SUITE_OWN UINT64_MAX

struct suite_trait {
	struct suite_set set;
	uint8_t kind;    /* enum suite_trait_kind */
	uint32_t family; /* for SUITE_SIZE */
	uint64_t value;
};

struct suite_answer {
	uint8_t verdict_class; /* enum cw_class */
	uint8_t incident;      /* index of the expected incident; answers are in this order */
	uint8_t detail;        /* enum cw_detail; CW_DETAIL_NONE = any */
	bool is_notice;        /* we expect a notice, and no page */
	bool has_culprits;     /* false: any culprits are right */
	bool is_nobody;        /* there must be no culprits */
	struct suite_set culprits;
};

#define SUITE_MAX_WATCHDOGS 4u

/* A rank of the set aborts if one of its calls on the comm stays open for this long. */
struct suite_watchdog {
	struct suite_set set;
	uint32_t family; /* SUITE_NONE = any */
	int64_t after_ns;
};

/* The launcher that started the ranks. If a rank fails, the launcher ends the others. */
struct suite_launcher {
	bool is_there;
	int64_t grace_ns; /* time from SIGTERM to SIGKILL */
	int64_t apart_ns; /* time until the launchers of other nodes know of a failure */
	int64_t saves_ns; /* time that a rank still works after the request to end */
};

struct suite_scenario {
	char name[SUITE_TITLE];
	char file[SUITE_TITLE];
	unsigned line;
	uint32_t layout; /* enum suite_layout */
	uint32_t n_ranks, per_node;
	uint32_t per_process; /* ranks of a process, one for each device that it drives */
	uint32_t policy;      /* enum cw_policy */
	bool has_no_progress; /* devices write no progress words */
	/* the agents' own code writes flight records, if the pipeline uses digests */
	bool is_recorded;
	bool is_usual_wait;      /* the wait looks like that of a healthy job; we only count it */
	bool is_whole;           /* we watch the scenario to its end and ignore the reports */
	bool is_fast_forwarding; /* daemons see parts of healthy stretches, and we skip the rest */
	bool is_fast_forwarding_waits; /* we also skip most of a wait in which nothing changes */
	uint8_t completion;            /* enum suite_completion */
	int64_t run_ns;                /* time that we watch the scenario */
	uint32_t seed;                 /* seed of the instants at which ranks are sampled */
	uint32_t n_families, n_programs, n_faults, n_answers, n_traits;
	bool is_alone; /* we watch beyond the first alert, because there must be no other */
	uint32_t n_machines;
	struct suite_trait traits[SUITE_MAX_TRAITS];
	struct suite_machine machines[SUITE_MAX_MACHINES];
	struct suite_family families[SUITE_MAX_FAMILIES];
	struct suite_program programs[SUITE_MAX_PROGRAMS];
	struct suite_fault faults[SUITE_MAX_FAULTS];
	/* The first answer of each incident is the expected one. n_answers = 0: silence. */
	struct suite_answer answers[SUITE_MAX_ANSWERS];
	bool nobody_is_slow; /* we expect silence, and at the end no rank that comes late */
	bool may_be_silent;  /* silence is also right: "expect silence or …" */
	bool has_no_notices; /* the daemons have the setting notices = false */
	/* Number of memberships that a leader evaluates in one step; 0 = the default. */
	uint32_t iteration_members;
	int64_t job_timeout_ns; /* time-out of the job's own watchdog; 0 = it has none */
	/* The right answers for the post-mortem. 0 answers = any post-mortem is right. */
	uint32_t n_postmortems;
	struct suite_answer postmortems[SUITE_MAX_ANSWERS];
	bool has_no_postmortem; /* there must be no post-mortem */
	/* The ways in which the job ends by itself. All 0 = it does not. */
	uint32_t n_watchdogs;
	struct suite_watchdog watchdogs[SUITE_MAX_WATCHDOGS];
	struct suite_launcher launcher;
};

static inline bool suite_expects_postmortem(const struct suite_scenario *s)
{
	return s->n_postmortems || s->has_no_postmortem;
}

/*
 * Returns the number of expected incidents. If there are several, we watch beyond the first alert.
 */
static inline uint32_t suite_n_incidents(const struct suite_scenario *s)
{
	return s->n_answers ? s->answers[s->n_answers - 1].incident + 1u : 0;
}

/* True if a living rank never reaches the call in which other ranks wait. */
static inline bool suite_is_hanging_wait(const struct suite_scenario *s)
{
	const struct suite_answer *a = s->n_answers       ? s->answers
				       : s->n_postmortems ? s->postmortems
							  : NULL;

	return a && (a->verdict_class == CW_CLASS_NEVER_ENTERED ||
		     (a->verdict_class == CW_CLASS_P2P_UNMATCHED && a->detail != CW_DETAIL_SIZE) ||
		     (a->verdict_class == CW_CLASS_INIT_STUCK && !a->is_nobody));
}

/* True if the expected answer is a notice, so no user may be paged. */
static inline bool suite_expects_notice(const struct suite_scenario *s)
{
	return s->n_answers && s->answers[0].is_notice;
}

/* True if the expected answer is silence, or only notices. */
static inline bool suite_is_control(const struct suite_scenario *s)
{
	return !s->n_answers || s->may_be_silent || suite_expects_notice(s);
}

/*
 * Receives one scenario. The reader owns it, and it is valid during the call. A negative result
 * stops the reading.
 */
typedef int (*suite_scenario_fn)(void *user, const struct suite_scenario *s);

/*
 * Reads scenarios from `text`, which need not end in NUL. Expands repeats and passes each scenario
 * to fn. Reads at most max_lines lines, counted after expansion. Returns 0; -EINVAL with
 * "file:line: what is wrong" in err; -E2BIG beyond a limit; or the result of fn.
 */
int cw_suite_read_text(const char *text, size_t len, const char *file, uint64_t max_lines,
		       suite_scenario_fn fn, void *user, struct cw_err *err);

/* Reads a file, or all *.scn of a directory in order of name, like cw_suite_read_text(). */
int cw_suite_read_path(const char *path, suite_scenario_fn fn, void *user, struct cw_err *err);

bool cw_suite_set_has(const struct suite_set *set, uint32_t rank);

/*
 * Multiplies the size of the whole job by k. Returns false and changes nothing if the job would be
 * too large, or if ranks would have no program.
 */
bool cw_suite_scenario_scale(struct suite_scenario *s, uint32_t k);

/* Returns the name of a layout, such as "dp" or "tp_dp". */
const char *suite_layout_name(unsigned layout);

#define SUITE_MAX_LINES 4000000u
