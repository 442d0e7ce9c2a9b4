/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a virtual cluster: ranks, devices, comms, and pending events. */
#pragma once

#include "lab/vjob/cluster.h"
#include "record/record_layout.h"

#define MS INT64_C(1000000)
#define S INT64_C(1000000000)

#define RING 256u /* number of ops that we keep per member; a power of two */
#define STREAMS 8u
#define OPEN_MAX 40u  /* items on a rank's device before a launch blocks the host */
#define GROUP_MAX 96u /* ops in a group */
#define GRAPH_MAX 64u /* kernels and calls in a graph */
#define SLOTS 256u    /* collectives per comm that some members have reached */
#define HOST_KINDS 3u /* init, split, finalize */
#define INTERVALS 15u
#define CALL_NS (10 * INT64_C(1000))

struct drawn;
struct member;
struct rank;
struct flow;
struct record_digests;

/* One launch on a stream: a kernel, or ops of one comm that are launched together. */
struct item {
	struct item *next;
	struct rank *rank;
	struct member *m; /* NULL = the item is a kernel */
	uint32_t stream;
	uint64_t first_op; /* op_index of the first of n_ops consecutive ops */
	uint32_t n_ops, n_open;
	int64_t ns; /* duration after all members have come; may be SUITE_FOREVER */
	bool is_reached, is_wedged, is_done;
};

/* A collective that the devices of some members have reached. */
struct slot {
	uint64_t seq;
	uint32_t n_arrived;
	struct item **items;  /* by comm rank */
	uint64_t *op_indices; /* by comm rank */
};

/* A send or receive that the device has reached, and whose counterpart has not come. */
struct half {
	struct half *next;
	uint32_t me, peer;
	uint64_t seq, bytes;
	bool is_send;
	struct item *item; /* NULL = a send that is already in the peer's buffer */
	uint64_t op_index;
};

struct comm {
	uint64_t id;
	uint32_t family, nranks;
	struct member *members; /* by comm rank */
	struct slot slots[SLOTS];
	/* only without SUITE_NCCL; with SUITE_NCCL, each pair has its own list */
	struct half *halves;
	struct flow *flow;           /* only with SUITE_NCCL; NULL = no data yet */
	uint32_t inside[HOST_KINDS]; /* number of members in a call that waits for all */
	int64_t jam_ns;              /* extra duration of calls; may be SUITE_FOREVER */
	char name[SUITE_NAME + 16];
};

struct peer_count {
	uint64_t sends, recvs;
	uint64_t send_hash, recv_hash; /* hashes of the messages, as agents compute them */
};

/* A member's progress with another member. */
struct pair {
	uint64_t sends, recvs;
	struct half *halves;
};

struct view_member {
	struct cw_snap_member m;
	struct cw_op pending, last;
	uint64_t done; /* number of completed ops so far, to compute their usual interval */
	int64_t done_ns;
	int64_t intervals[INTERVALS];
	uint32_t n_intervals;
};

/*
 * An op, and the number of its call on the comm. Several ops may have one number, because a graph's
 * launch contains many.
 */
struct noted {
	struct cw_op op;
	uint64_t call;
};

struct member {
	struct comm *comm;
	struct rank *rank;
	uint32_t comm_rank;
	uint32_t state; /* enum cw_comm_state */
	uint64_t entered, returned, reached, completed, op_index;
	uint64_t first_open; /* index of the oldest op that has not completed */
	uint64_t hash;
	struct cw_checkpoint checkpoints[CW_REC_CHECKPOINTS]; /* by cw_checkpoint_slot() */
	uint64_t sends, recvs;
	bool is_connected;                /* collectives have connected, if connections are lazy */
	int32_t async_error, last_result; /* ncclResult_t; 0 = none */
	struct peer_count *peers;         /* by comm rank; NULL = no p2p yet */
	struct noted *ring;               /* has RING entries; NULL = no op yet */
	/*
	 * The agent's counters. A graph's launch counts as one call. `launch` is the last launch of
	 * a graph.
	 */
	uint64_t calls, launch;
	struct item *in_flight;
	/* With SUITE_NCCL: the current collective, and its progress. */
	uint64_t flow_op; /* op_index; 0 = none */
	uint64_t flow_at, flow_down_at, flow_stop;
	/*
	 * The reached sends and receives by comm rank, called directly or as part of a collective;
	 * NULL = none.
	 */
	struct pair *pairs;
	int entry; /* index in its rank's flight record */
	int64_t moved_ns;
	struct view_member view;
};

enum host_state {
	HOST_READY,   /* a wake-up is pending */
	HOST_BUSY,    /* busy or asleep until a wake-up, which may never come */
	HOST_SYNC,    /* waits until its device is idle */
	HOST_LAUNCH,  /* in a call; waits until its device has room */
	HOST_BARRIER, /* in a call; waits until all members have come */
	HOST_ENDED,
};

struct frame {
	uint32_t insn;
	uint64_t left, iteration; /* left 0 = endless */
};

/* A kernel or a call of the graph that we build. */
struct graph_step {
	int64_t kernel_ns, wedge_ns;
	struct suite_call call;
	uint32_t group; /* 0 = not in a group */
	bool is_kernel, is_wedged;
};

struct view_rank {
	bool is_seen;
	uint32_t liveness, flags;
	int64_t sampled_ns, host_activity_ns;
	const char *host_activity_by;
	uint32_t host_wait;
	struct cw_op host_call;
	uint64_t host_call_comm_id;
};

struct rank {
	struct cluster *c;
	uint32_t index, node;
	const struct suite_program *program;
	uint32_t pc;
	struct frame frames[SUITE_MAX_NEST];
	uint32_t n_frames;
	enum host_state host;
	const char *busy_by; /* source of host activity while busy; NULL = none */
	uint32_t wait;       /* enum cw_host_wait while there is no activity */
	int64_t active_ns;   /* time of the last activity */
	bool is_frozen, missed_wake;
	bool is_through;     /* the rank's program has ended; the process ends with its last rank */
	int64_t thawed_ns;   /* end of the last freeze; 0 = never */
	int64_t wait_end_ns; /* end of the last fault that makes it wait; 0 = none, or endless */
	int64_t call_ns;     /* time of the rank's last call; no two calls have the same time */
	uint64_t wake_id;    /* wake-ups with another id are void */
	uint32_t liveness, flags, exit_code, term_signal;
	int64_t started_ns; /* the rank is invisible before this time */
	int64_t ended_ns;
	int64_t hit_ns; /* time when a fault last struck the rank; 0 = never */
	bool is_blind;
	struct member **members; /* by family; NULL = none */
	struct item *streams[STREAMS], *tails[STREAMS];
	uint32_t n_items;
	/* The calls of the group that we build, or the call that waits for room. */
	struct suite_call group[GROUP_MAX];
	uint32_t n_group;
	bool in_group, is_wedging;
	struct graph_step *graph; /* has GRAPH_MAX steps; NULL = no graph yet */
	uint32_t n_graph, n_graph_groups;
	uint64_t launch, n_launches; /* launches of graphs; launch 0 = no launch now */
	bool in_graph;
	/* Item that waits for a place on a stream, for HOST_LAUNCH; NULL = a graph. */
	struct item *waiting;
	/* The member that waits for its peers to come; NULL = the rank waits for room. */
	struct member *connecting;
	struct member *barrier_member;
	uint32_t barrier_kind;
	struct suite_call barrier_call;
	struct suite_call held; /* call that will follow the next one, for SUITE_SWAP */
	bool has_held, was_slowed;
	const struct suite_fault *failing; /* fault that makes the call fail (FAULT_FAILS) */
	int64_t slow_ns, slow_until_ns, wedge_ns;
	uint32_t sync_stream; /* stream that the host waits for, for HOST_SYNC; SUITE_NONE = all */
	int64_t sample_phase_ns;
	struct drawn *drawn; /* the rank's flight record; NULL = not recorded */
	struct view_rank view;
};

enum event_kind {
	EVENT_WAKE,
	EVENT_ITEM,
	EVENT_FAULT,
	EVENT_THAW,
	EVENT_DIE,
	EVENT_WATCHDOG, /* the rank's watchdog checks its calls */
	EVENT_ASK,      /* the launcher asks the rank to end */
	EVENT_DAEMONS_BACK,
	EVENT_DAEMON_ANEW, /* for the daemon of one node */
	EVENT_READ,
};

struct event {
	int64_t at_ns;
	uint64_t order;
	enum event_kind kind;
	struct rank *rank;
	struct item *item;
	uint64_t id; /* number of a wake-up, a fault, or a signal */
};

struct node {
	char name[24];
	/* The time in which the node sends no reports; 0 = it reports. */
	int64_t quiet_from_ns, quiet_until_ns;
	enum cluster_daemon daemon; /* state in the quiet time */
	int64_t since_ns;           /* time at which its daemon's memory begins */
};

struct cluster {
	const struct suite_scenario *s;
	int64_t start_ns, now_ns;
	uint64_t random;
	struct rank *ranks;
	struct comm *comms;
	uint32_t n_comms, n_nodes;
	struct node *nodes;
	struct event *heap;
	size_t n_heap, cap_heap;
	uint64_t next_order;
	bool *fault_done;                /* per rank and fault: the fault has struck */
	int64_t fault_ns, last_fault_ns; /* times at which any fault first and last struck */
	uint32_t n_faults_hit;
	bool fault_hit[SUITE_MAX_FAULTS];
	int64_t restart_ns;
	bool is_ending; /* a rank has failed, and its launcher ends the others */
	int64_t wall_offset_ns;
	int64_t daemons_back_ns;        /* time until which daemons are stopped; 0 = they run */
	int64_t daemons_since_ns;       /* time at which the daemons' memory begins */
	bool are_daemons_new;           /* the daemons will return with an empty memory */
	struct record_digests *digests; /* by node; NULL = there are no flight records */
	int error;
};

uint64_t cluster_random(struct cluster *c, uint64_t n);

/* Returns the first of the *ret_n ranks in this rank's process. */
static inline struct rank *process_ranks(const struct rank *r, uint32_t *ret_n)
{
	const struct suite_scenario *s = r->c->s;

	*ret_n = s->per_process;
	return &r->c->ranks[r->index - r->index % s->per_process];
}

static inline int32_t process_pid(const struct rank *r)
{
	return (int32_t)(1000 + r->index - r->index % r->c->s->per_process);
}

/* True while the node's daemon sends nothing. */
bool node_is_quiet(const struct cluster *c, const struct node *n);

/* ---- events (cluster.c) ---- */
void cluster_at(struct cluster *c, int64_t at_ns, uint32_t kind, struct rank *r, struct item *item,
		uint64_t id);
void host_wake_at(struct rank *r, int64_t at_ns);
/* Call it after changing times of events. */
void events_reorder(struct cluster *c);

/* ---- host (cluster_host.c) ---- */
void host_step(struct rank *r);
/* Called when the rank's device has room, or is idle. */
void host_on_device(struct rank *r);
void host_die(struct rank *r, uint32_t liveness, uint32_t number);

/* ---- natural ends of jobs (cluster_end.c) ---- */
void end_schedule(struct cluster *c);
void end_on_watchdog(struct rank *r);
/* Called when the rank has just ended. */
void end_on_death(struct rank *r);
void end_on_ask(struct rank *r);

/* ---- calls (cluster_call.c) ---- */
/* Makes the calls of a group, or a lone call, and sets the host's state. */
void call_make(struct rank *r, const struct suite_call *calls, uint32_t n, bool is_group);
void call_block_host(struct rank *r, const struct suite_call *call);
/* Makes a call fail: NCCL returns an error. It launches nothing, and the call has no number. */
void call_fail(struct rank *r, const struct suite_call *call);
/*
 * Makes a call fail that waits for all members. The rank does not enter the call, and gets no comm.
 */
void call_refuse(struct rank *r, const struct suite_call *call);
/* Continues a launch that has waited for room. */
void call_resume(struct rank *r);
void call_leave_barrier(struct rank *r);

/* ---- lazy connections (cluster_connect.c) ---- */
/*
 * connect_is_needed(): true if the item's call has to wait for its peers. connect_wait() blocks the
 * host until the peers come. Peers that have already finished their calls count as well.
 */
bool connect_is_needed(const struct item *item);
void connect_wait(struct rank *r, struct item *item);
/* Called when a member has come, or has continued. */
void connect_step(struct comm *comm);

/* ---- device (cluster_device.c) ---- */
void device_kernel(struct rank *r, uint32_t stream, int64_t ns);
void device_enqueue(struct item *item);
void device_on_item(struct item *item);
/* Marks the item's ops as reached, in their progress and in that of the member. */
void device_note_reached(const struct item *item);
/* Called when a part of the item is done. All its ops complete together after the last part. */
void device_part_done(struct item *item);
struct cw_op *member_op(struct member *m, uint64_t op_index);
void member_advance(struct member *m);

/* ---- data between members (cluster_flow.c) ---- */
/* Called when the device has reached the item and its ops. */
void flow_begin(struct item *item);
void flow_free(struct flow *f);

/* ---- graphs (cluster_graph.c) ---- */
void graph_begin(struct rank *r);
/* Add a step to the graph that we build. */
void graph_add_calls(struct rank *r, const struct suite_call *calls, uint32_t n, bool is_group);
void graph_add_kernel(struct rank *r, int64_t ns);
/*
 * Launches the whole graph at once. Returns false if the device has no room; the caller then tries
 * again.
 */
bool graph_launch(struct rank *r, uint32_t stream);

/* ---- properties that ranks start with (cluster_trait.c) ---- */
uint32_t trait_version(const struct suite_scenario *s, uint32_t rank);
uint64_t trait_environment(const struct suite_scenario *s, uint32_t rank);
/* Returns the size of the comm that this member passed to NCCL. */
uint32_t trait_size(const struct member *m);
bool trait_sizes_differ(const struct comm *comm);
/* Returns the rank's delay after the job's first process. Draws a new number at each call. */
int64_t trait_start_ns(struct cluster *c, uint32_t rank);

/* ---- faults (cluster_fault.c) ---- */
enum fault_effect { FAULT_GOES_ON, FAULT_SKIPS, FAULT_WAITS, FAULT_TWICE, FAULT_FAILS };
/* Called before a call of the host. May change the call. */
enum fault_effect fault_before_call(struct rank *r, struct suite_call *call);
void fault_schedule(struct cluster *c);
void fault_on_event(struct cluster *c, uint32_t fault);
void fault_thaw(struct rank *r);
void fault_daemons_back(struct cluster *c, bool is_new);
/* Restarts the node's daemon, unless it must stay quiet for longer. */
void fault_daemon_anew(struct cluster *c, uint32_t node);
bool fault_is_due(const struct cluster *c, uint32_t fault);

/* ---- the agent's view (cluster_view.c) ---- */
void view_sample(struct rank *r);
/* Returns one of the member's ops as a daemon sees it. */
struct cw_op view_op(struct member *m, uint64_t op_index);
/* True if the rank ended in order: by the launcher, or with its job. */
bool view_is_shutdown(const struct cluster *c, const struct rank *r);
/* Returns the cause of the rank's end as the node's kernel reports it, an enum cw_end_by. */
uint32_t view_end_by(const struct rank *r);
/* The pid of the launcher on each node, which sends signals. */
#define CLUSTER_LAUNCHER_PID 900
void view_forget(struct cluster *c);
/* Forgets the ranks of one node. */
void view_forget_node(struct cluster *c, uint32_t node);

/* ---- checkpoints of the history (cluster_checkpoint.c) ---- */
/* Records a step from coll_seq `before` to m->returned. */
void checkpoint_note(struct member *m, uint64_t before);
/* Returns the checkpoints that daemons report. */
void checkpoint_view(const struct member *m, struct cw_checkpoint ret[CW_SNAP_CHECKPOINTS]);

/* ---- flight records (cluster_record.c); these do nothing for a rank without a record ---- */
void record_end(struct cluster *c);
/* Called when the comm becomes ready without a call of its own. */
void record_ready(struct member *m);
/*
 * Called in this order: record_group() at the beginning of a group; record_op() for each op of the
 * group, or for a lone op; record_launch() when all ops have entered; record_return() when the call
 * has returned.
 */
void record_group(struct rank *r);
void record_op(struct member *m, const struct cw_op *op);
void record_launch(struct rank *r);
void record_return(struct rank *r);
/* Called when the call has returned this ncclResult_t. */
void record_failed(struct rank *r, int result);
void record_error(struct member *m);
/* Called when the rank enters a call that waits for all members. */
void record_block(struct member *m, unsigned kind);
/* Called when a call that waits for all members has returned this ncclResult_t. */
void record_refused(struct member *m, int result);
void record_unblock(struct member *m, unsigned kind);
/*
 * Called when the member's device has reached the first op, and completed all ops up to the second.
 */
void record_device(struct member *m, uint64_t reached_op, uint64_t completed_op);
/* Samples the rank for its daemon, and schedules the next sample. */
void record_on_read(struct rank *r);
void record_forget(struct rank *r);
/*
 * Return the results of cluster_digest_ranks() and cluster_windows() from records. They sample the
 * node's ranks first.
 */
int record_digest_ranks(struct cluster *c, uint32_t node, struct cw_msg_rank **ret,
			uint32_t *ret_n);
int record_windows(struct cluster *c, uint32_t node, const struct cw_msg_window_request *q,
		   struct cw_msg_window **ret, uint32_t *ret_n);
