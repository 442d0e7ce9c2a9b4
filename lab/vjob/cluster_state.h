/* SPDX-License-Identifier: Apache-2.0 */
/* All that a virtual cluster is made of: ranks, devices, comms, and what happens next. */
#pragma once

#include "lab/vjob/cluster.h"
#include "record/record_layout.h"

#define MS INT64_C(1000000)
#define S INT64_C(1000000000)

#define RING 256u /* last ops kept per member; a power of two */
#define STREAMS 8u
#define OPEN_MAX 40u  /* items on a rank's device before a launch blocks the host */
#define GROUP_MAX 96u /* ops in a group */
#define GRAPH_MAX 64u /* kernels and calls in a graph */
#define SLOTS 256u    /* collectives of a comm that some members have come to */
#define HOST_KINDS 3u /* init, split, finalize */
#define INTERVALS 15u
#define CALL_NS (10 * INT64_C(1000))

struct drawn;
struct member;
struct rank;
struct flow;
struct record_told;

/* One launch on a stream: a kernel, or the ops of one comm that were launched together. */
struct item {
	struct item *next;
	struct rank *rank;
	struct member *m; /* NULL = a kernel */
	uint32_t stream;
	uint64_t first_op; /* op_index; n_ops in a row */
	uint32_t n_ops, n_open;
	int64_t ns; /* how long it runs once nobody is missing; SUITE_FOREVER */
	bool is_reached, is_wedged, is_done;
};

/* A collective that some members' devices have come to. */
struct slot {
	uint64_t seq;
	uint32_t n_arrived;
	struct item **items;  /* by comm rank */
	uint64_t *op_indices; /* likewise */
};

/* A send or receive whose device has come to it, and whose other half has not been seen. */
struct half {
	struct half *next;
	uint32_t me, peer;
	uint64_t seq, bytes;
	bool is_send;
	struct item *item; /* NULL = a send that the peer's buffer took */
	uint64_t op_index;
};

struct comm {
	uint64_t id;
	uint32_t family, nranks;
	struct member *members; /* by comm rank */
	struct slot slots[SLOTS];
	struct half *halves;         /* without SUITE_NCCL; with it, members have them */
	struct flow *flow;           /* with SUITE_NCCL; NULL = no data yet */
	uint32_t inside[HOST_KINDS]; /* members in a call that waits for all */
	int64_t jam_ns;              /* it takes so much longer; SUITE_FOREVER */
	char name[SUITE_NAME + 16];
};

struct peer_count {
	uint64_t sends, recvs;
	uint64_t send_hash, recv_hash; /* as agents keep them */
};

/* What a member's device has come to for another member. */
struct pair {
	uint64_t sends, recvs;
	struct half *halves;
};

struct view_member {
	struct cw_snap_member m;
	struct cw_op pending, last;
	uint64_t done; /* for the rhythm */
	int64_t done_ns;
	int64_t intervals[INTERVALS];
	uint32_t n_intervals;
};

/* An op, and which call of the rank on its comm it came with: a graph's launch brings many. */
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
	uint64_t first_open; /* oldest op that has not completed */
	uint64_t hash;
	struct cw_checkpoint checkpoints[CW_REC_CHECKPOINTS]; /* by cw_checkpoint_slot() */
	uint64_t sends, recvs;
	bool is_connected;                /* for collectives, where that is done late */
	int32_t async_error, last_result; /* ncclResult_t; 0 = none */
	struct peer_count *peers;         /* by comm rank; NULL = no p2p yet */
	struct noted *ring;               /* RING; NULL = no op yet */
	uint64_t calls, launch; /* what agents count: a graph's launch once; the last one */
	struct item *in_flight;
	/* With SUITE_NCCL: the collective whose data move, and how far. */
	uint64_t flow_op; /* op_index; 0 = none */
	uint64_t flow_at, flow_down_at, flow_stop;
	/* What its device has come to, by comm rank, by hand or inside a collective; NULL =
	 * nothing. */
	struct pair *pairs;
	int entry; /* in its rank's flight record */
	int64_t moved_ns;
	struct view_member view;
};

enum host_state {
	HOST_READY,   /* a wake-up is on its way */
	HOST_BUSY,    /* until a wake-up, or for ever */
	HOST_SYNC,    /* until its device is idle */
	HOST_LAUNCH,  /* in a call, until its device has room */
	HOST_BARRIER, /* in a call, until all members have come */
	HOST_ENDED,
};

struct frame {
	uint32_t insn;
	uint64_t left, turn; /* left 0 = for ever */
};

/* A kernel, or a call, of the graph that is being put together. */
struct graph_step {
	int64_t kernel_ns, wedge_ns;
	struct suite_call call;
	uint32_t group; /* 0 = by itself */
	bool is_kernel, is_wedged;
};

struct view_rank {
	bool is_seen;
	uint32_t liveness, flags;
	int64_t sampled_ns, headway_ns;
	const char *headway_by;
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
	const char *busy_by; /* what headway shows while busy; NULL = nothing */
	uint32_t wait;       /* with nothing: enum cw_host_wait */
	int64_t active_ns;   /* last sign of work */
	bool is_frozen, missed_wake;
	bool is_through;     /* its program has ended; its process ends with the last of it */
	int64_t thawed_ns;   /* when it was let go last; 0 = never */
	int64_t wait_end_ns; /* of a fault that makes it wait, the last; 0 = none, or for ever */
	int64_t call_ns;     /* of its last call: no two are made at one instant */
	uint64_t wake_id;    /* wake-ups of another id are void */
	uint32_t liveness, flags, exit_code, term_signal;
	int64_t started_ns; /* nobody has seen it before */
	int64_t ended_ns;
	int64_t hit_ns; /* when a fault befell it last; 0 = never */
	bool is_blind;
	struct member **members; /* by family; NULL = none */
	struct item *streams[STREAMS], *tails[STREAMS];
	uint32_t n_items;
	/* The group being made, or the call that waits for room. */
	struct suite_call group[GROUP_MAX];
	uint32_t n_group;
	bool in_group, is_wedging;
	struct graph_step *graph; /* GRAPH_MAX; NULL = no graph yet */
	uint32_t n_graph, n_graph_groups;
	uint64_t launch, n_launches; /* of graphs; launch 0 = none at the moment */
	bool in_graph;
	struct item *waiting;      /* of HOST_LAUNCH, not yet on a stream; NULL: a graph */
	struct member *connecting; /* … until its peers have come; NULL: until there is room */
	struct member *barrier_member;
	uint32_t barrier_kind;
	struct suite_call barrier_call;
	struct suite_call held; /* SUITE_SWAP */
	bool has_held, was_slowed;
	const struct suite_fault *failing; /* of FAULT_FAILS */
	int64_t slow_ns, slow_until_ns, wedge_ns;
	uint32_t sync_stream; /* of HOST_SYNC; SUITE_NONE = all */
	int64_t sample_phase_ns;
	struct drawn *drawn; /* its flight record; NULL = none is written */
	struct view_rank view;
};

enum event_kind {
	EVENT_WAKE,
	EVENT_ITEM,
	EVENT_FAULT,
	EVENT_THAW,
	EVENT_DIE,
	EVENT_WATCHDOG, /* the rank's looks at its calls */
	EVENT_ASK,      /* its launcher asks it to end */
	EVENT_DAEMONS_BACK,
	EVENT_DAEMON_ANEW, /* of one node */
	EVENT_READ,
};

struct event {
	int64_t at_ns;
	uint64_t order;
	enum event_kind kind;
	struct rank *rank;
	struct item *item;
	uint64_t id; /* of a wake-up, a fault, a signal */
};

struct node {
	char name[24];
	int64_t quiet_from_ns, quiet_until_ns; /* 0 = reports */
	enum cluster_daemon daemon;            /* while it is quiet */
	int64_t since_ns;                      /* what its daemon remembers begins here */
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
	bool *fault_done;                /* by rank × fault */
	int64_t fault_ns, last_fault_ns; /* first and last time one happened to somebody */
	uint32_t n_faults_hit;
	bool fault_hit[SUITE_MAX_FAULTS];
	int64_t restart_ns;
	bool is_ending; /* a rank has failed, and its launcher ends the others */
	int64_t wall_offset_ns;
	int64_t daemons_back_ns;  /* they stand still until then; 0 = they do not */
	int64_t daemons_since_ns; /* what they remember begins here */
	bool are_daemons_new;     /* when they are back, they remember nothing */
	struct record_told *told; /* by node; NULL = without flight records */
	int error;
};

uint64_t cluster_random(struct cluster *c, uint64_t n);

/* The first of the n ranks that one process is, this one among them. */
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

/* Its daemon says nothing at the moment. */
bool node_is_quiet(const struct cluster *c, const struct node *n);

/* ---- events (cluster.c) ---- */
void cluster_at(struct cluster *c, int64_t at_ns, uint32_t kind, struct rank *r, struct item *item,
		uint64_t id);
void host_wake_at(struct rank *r, int64_t at_ns);
/* After times of events were changed. */
void events_reorder(struct cluster *c);

/* ---- host (cluster_host.c) ---- */
void host_step(struct rank *r);
/* The rank's device has room, or is idle. */
void host_on_device(struct rank *r);
void host_die(struct rank *r, uint32_t liveness, uint32_t number);

/* ---- how jobs end by themselves (cluster_end.c) ---- */
void end_schedule(struct cluster *c);
void end_on_watchdog(struct rank *r);
/* The rank has just ended. */
void end_on_death(struct rank *r);
void end_on_ask(struct rank *r);

/* ---- calls (cluster_call.c) ---- */
/* Makes the calls of a group, or a lone one; sets the host's state. */
void call_make(struct rank *r, const struct suite_call *calls, uint32_t n, bool is_group);
void call_block_host(struct rank *r, const struct suite_call *call);
/* NCCL returns an error; nothing is launched, and the call has no number. */
void call_fail(struct rank *r, const struct suite_call *call);
/* The same of a call that waits for all members: the rank is not in it, and gets no comm. */
void call_refuse(struct rank *r, const struct suite_call *call);
/* A launch that waited for room. */
void call_resume(struct rank *r);
void call_leave_barrier(struct rank *r);

/* ---- connections that the first call makes (cluster_connect.c) ---- */
/* The item's call waits for its peers, and the host with it; others may be through then. */
bool connect_is_needed(const struct item *item);
void connect_wait(struct rank *r, struct item *item);
/* Somebody has come, or goes on. */
void connect_step(struct comm *comm);

/* ---- device (cluster_device.c) ---- */
void device_kernel(struct rank *r, uint32_t stream, int64_t ns);
void device_enqueue(struct item *item);
void device_on_item(struct item *item);
/* Its ops are reached: their progress, and the member's, say so. */
void device_note_reached(const struct item *item);
/* A part of the item is done: all ops of it complete when all parts are. */
void device_part_done(struct item *item);
struct cw_op *member_op(struct member *m, uint64_t op_index);
void member_advance(struct member *m);

/* ---- data between members (cluster_flow.c) ---- */
/* The device has come to the item, whose ops are reached. */
void flow_begin(struct item *item);
void flow_free(struct flow *f);

/* ---- graphs (cluster_graph.c) ---- */
void graph_begin(struct rank *r);
/* While one is being put together. */
void graph_add_calls(struct rank *r, const struct suite_call *calls, uint32_t n, bool is_group);
void graph_add_kernel(struct rank *r, int64_t ns);
/* One launch of all of it; false: the device has no room, to be asked again. */
bool graph_launch(struct rank *r, uint32_t stream);

/* ---- what ranks have in common (cluster_trait.c) ---- */
uint32_t trait_version(const struct suite_scenario *s, uint32_t rank);
uint64_t trait_environment(const struct suite_scenario *s, uint32_t rank);
/* Members that this one was told its comm has. */
uint32_t trait_size(const struct member *m);
bool trait_sizes_differ(const struct comm *comm);
/* How much later than the job's first process it comes up; drawn at each call. */
int64_t trait_start_ns(struct cluster *c, uint32_t rank);

/* ---- faults (cluster_fault.c) ---- */
enum fault_effect { FAULT_GOES_ON, FAULT_SKIPS, FAULT_WAITS, FAULT_TWICE, FAULT_FAILS };
/* Before a call of the host; may change it. */
enum fault_effect fault_before_call(struct rank *r, struct suite_call *call);
int fault_schedule(struct cluster *c);
void fault_on_event(struct cluster *c, uint32_t fault);
void fault_thaw(struct rank *r);
void fault_daemons_back(struct cluster *c, bool is_new);
/* The daemon of the node begins again, if it is not to be quiet for longer. */
void fault_daemon_anew(struct cluster *c, uint32_t node);
bool fault_is_due(const struct cluster *c, uint32_t fault);

/* ---- the agent's view (cluster_view.c) ---- */
void view_sample(struct rank *r);
/* One of its ops, as a daemon has it. */
struct cw_op view_op(struct member *m, uint64_t op_index);
/* It went in order, by the launcher or with its job. */
bool view_is_shutdown(const struct cluster *c, const struct rank *r);
/* Whose doing its end was, as the kernel of its node has it: enum cw_end_by. */
uint32_t view_end_by(const struct rank *r);
/* The launcher on each node: who sends signals. */
#define CLUSTER_LAUNCHER_PID 900
void view_forget(struct cluster *c);
/* The ranks of one node. */
void view_forget_node(struct cluster *c, uint32_t node);

/* ---- points of the history (cluster_checkpoint.c) ---- */
/* A step was taken from coll_seq `before` to m->returned. */
void checkpoint_note(struct member *m, uint64_t before);
/* Those that daemons tell of. */
void checkpoint_view(const struct member *m, struct cw_checkpoint ret[CW_SNAP_CHECKPOINTS]);

/* ---- flight records (cluster_record.c); nothing where a rank has none ---- */
void record_end(struct cluster *c);
/* It is there without a call of its own. */
void record_ready(struct member *m);
/* A group begins; its ops, or a lone one; all are entered; the call has come back. */
void record_group(struct rank *r);
void record_op(struct member *m, const struct cw_op *op);
void record_launch(struct rank *r);
void record_return(struct rank *r);
/* It has come back with this ncclResult_t. */
void record_failed(struct rank *r, int result);
void record_error(struct member *m);
/* A call that waits for all members. */
void record_block(struct member *m, unsigned kind);
/* It has come back with this ncclResult_t. */
void record_refused(struct member *m, int result);
void record_unblock(struct member *m, unsigned kind);
/* The member's device has come to this op, and completed all up to that one. */
void record_device(struct member *m, uint64_t reached_op, uint64_t completed_op);
/* Its daemon reads it, and will again. */
void record_on_read(struct rank *r);
void record_forget(struct rank *r);
/* As cluster_tell() and cluster_windows(), after the node's ranks were looked at. */
int record_tell(struct cluster *c, uint32_t node, struct cw_msg_rank **ret, uint32_t *ret_n);
int record_windows(struct cluster *c, uint32_t node, const struct cw_msg_window_request *q,
		   struct cw_msg_window **ret, uint32_t *ret_n);
