/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight record, byte by byte: one memfd per rank process, written by the agent, read by the
 * daemon with pread(2) and by the CLI from a file. Version 9.
 *
 * Not a protocol between trusting parties: everything in it is untrusted input to the reader, which
 * copies first and checks the copy (record/record_reader.h).
 *
 * Concurrency: all words are naturally aligned, written as relaxed atomics of their own size in
 * native byte order (a record is read on the machine that wrote it, or on one of the same byte
 * order: CW_RECORD_MAGIC tells). Ring slots are reserved with one atomic add on a ticket and
 * published by a release store of cw_rec_op.publish; a reader copies the slot, and takes it only if
 * publish held the same non-zero value before and after. Comm entries use a sequence number in the
 * same way (even = stable). The agent never waits for a reader.
 *
 * A field that this version of the agent does not fill in holds 0, unless its comment names another
 * value for "absent"; CW_REC_HAS_* in the header says which optional parts are filled at all.
 *
 * Offsets are in the header, so that a reader of version N can read N-1 and skip what it does not
 * know: entry_bytes may grow, fields never move. A writer of N+1 says in readable_from from which
 * version on a reader may go on; others are refused and counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "CWRECRD1" as a little-endian number: another byte order does not match. */
#define CW_RECORD_MAGIC UINT64_C(0x3144524345525743)
#ifndef CW_RECORD_VERSION /* a test builds programs of the next one */
#define CW_RECORD_VERSION 9u
#endif
/* Readers take records from this version on. */
#define CW_RECORD_VERSION_MIN 1u
/* What writers put into readable_from: raised only when an older reader would misunderstand. */
#define CW_RECORD_READABLE_FROM 2u
#define CW_RECORD_NAME "collwatch-record" /* name of the memfd */

/* Promise of docs/design/budgets.md#budgets; the reader refuses anything larger than twice that. */
#define CW_RECORD_MAX_BYTES (2u << 20)

/* Capacity of this agent's records. A reader takes the counts from the section table. */
#define CW_REC_COMMS 96
#define CW_REC_COMM_OPS 32 /* last ops kept per comm, whatever the bulk ring loses */
#define CW_REC_CHECKPOINTS 16
#define CW_REC_RING_OPS 8192
#define CW_REC_P2P_BLOCKS 32 /* comms with point-to-point traffic */
#define CW_REC_P2P_PEERS 256 /* peers per such comm; more are counted, not kept */
#define CW_REC_PROGRESS_SLOTS 512
#define CW_REC_MODULES 32
#define CW_REC_STACKS 128
#define CW_REC_STACK_PYTHON 40 /* frames of a stack, the innermost */
#define CW_REC_STACK_NATIVE 8
#define CW_REC_FRAMES 360 /* Python frames of all stacks; most are in many of them */
#define CW_REC_REPLAYS 256
#define CW_REC_TEMPLATES 4096
/*
 * Summaries: the first entries keep, for each device the process uses, the first tensor with NaN or
 * infinity that was fed into an op; the others are a ring.
 */
#define CW_REC_SUMMARY_FIRSTS 8
#define CW_REC_SUMMARY_RING 120
#define CW_REC_SUMMARIES (CW_REC_SUMMARY_FIRSTS + CW_REC_SUMMARY_RING)
#define CW_REC_TIMES 64
/* NCCL has up to three threads a communicator, the driver a few a context. */
#define CW_REC_HELPERS 128
#define CW_REC_WAITS 16       /* threads inside of the driver at the same time */
#define CW_REC_DEVICES 8      /* whose model is kept; as many as have a first bad tensor */
#define CW_REC_MODEL_BYTES 64 /* the longest that NVIDIA sells has 55 and its NUL */

enum cw_rec_section_type {
	CW_REC_SECTION_COMMS = 1,         /* cw_rec_comm */
	CW_REC_SECTION_RING = 2,          /* cw_rec_op */
	CW_REC_SECTION_P2P = 3,           /* cw_rec_p2p_block */
	CW_REC_SECTION_PROGRESS_INFO = 4, /* cw_rec_progress_info */
	CW_REC_SECTION_PROGRESS =
		5, /* cw_rec_progress; page-aligned, whole pages: the GPU writes here */
	CW_REC_SECTION_MODULES = 6,    /* cw_rec_module */
	CW_REC_SECTION_STACKS = 7,     /* cw_rec_stack; only where asked for */
	CW_REC_SECTION_REPLAYS = 8,    /* cw_rec_replay */
	CW_REC_SECTION_SUMMARIES = 9,  /* cw_rec_summary; the GPU writes here */
	CW_REC_SECTION_TIMES = 10,     /* cw_rec_time; the GPU writes here */
	CW_REC_SECTION_TEMPLATES = 11, /* cw_rec_template */
	CW_REC_SECTION_FRAMES = 12,    /* cw_rec_frame; only where asked for */
	CW_REC_SECTION__MAX = 16,
};

struct cw_rec_section {
	uint32_t type;        /* enum cw_rec_section_type, 0 = unused entry */
	uint32_t entry_bytes; /* stride; at least the size this version knows, or the section is
				 ignored */
	uint32_t count;
	uint32_t reserved;
	uint64_t offset; /* from the start of the record, multiple of 64 */
	uint64_t reserved2;
};

enum { /* cw_rec_header.has */
       CW_REC_HAS_PROGRESS = 1 << 0,
       CW_REC_HAS_SUMMARIES = 1 << 1,
       CW_REC_HAS_STACKS = 1 << 2,
       CW_REC_HAS_REPLAYS = 1 << 3,
       CW_REC_HAS_DEVICE_TIME = 1 << 4,
       CW_REC_HAS_PYTHON = 1 << 5, /* Python stacks are armed */
       CW_REC_HAS_READER = 1 << 6, /* no summary is overwritten before it has been read
				      (record/summary_taken.h) */
};

enum {                             /* cw_rec_header.clock */
       CW_REC_CLOCK_MONOTONIC = 1, /* clock_gettime(CLOCK_MONOTONIC) in ns */
       CW_REC_CLOCK_TSC = 2,       /* ns = base_ns + ((tsc - tsc_base) * tsc_mult >> tsc_shift) */
};

/* Why the agent has stopped its rank, because its user asked for that. */
enum cw_rec_stop {
	CW_REC_STOP_NONE = 0,
	CW_REC_STOP_NONFINITE = 1, /* a tensor had NaN or infinity */
	CW_REC_STOP_HEADROOM = 2,  /* one is about to leave its type */
	CW_REC_STOP__MAX,
};

enum cw_rec_drop {                           /* index into cw_rec_header.drops */
		   CW_REC_DROP_COMMS = 0,    /* communicators that found no entry */
		   CW_REC_DROP_OPS = 1,      /* ops on unknown communicators, not recorded */
		   CW_REC_DROP_PROGRESS = 2, /* ops without a progress slot: completion unknown */
		   CW_REC_DROP_P2P = 3,      /* p2p ops without a per-peer counter */
		   CW_REC_DROP_GROUP =
			   4, /* ops past the group list's capacity: seq numbers are still right */
		   CW_REC_DROP_MODULES = 5,
		   CW_REC_DROP_UNKNOWN_CALLS = 6, /* calls of functions newer than the table */
		   CW_REC_DROP_SUMMARIES = 7,     /* tensors not looked at: no place for them */
		   CW_REC_DROP_STACKS = 8,        /* ops whose call stack found no place */
		   CW_REC_DROP__MAX = 16,
};

/* 16 bytes: a thread that waits inside the CUDA driver, which may poll meanwhile. */
struct cw_rec_wait {
	uint32_t tid; /* in the rank's own pid namespace, 0 = unused */
	uint32_t reserved;
	uint64_t since_ns; /* CLOCK_MONOTONIC, whatever the record's clock; 0 = not known yet */
};

/* 4096 bytes. */
struct cw_rec_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t total_bytes;
	uint32_t state; /* 0 while being set up, 1 = valid, 2 = disarmed: contents end here */
	uint32_t has;   /* CW_REC_HAS_* */
	uint32_t pid;   /* in the rank's own pid namespace */
	uint32_t clock; /* CW_REC_CLOCK_* */
	uint64_t process_start_ticks; /* /proc/self/stat field 22 */
	uint64_t created_wall_ns;
	uint64_t created_ns; /* record clock */
	uint64_t tsc_base, tsc_base_ns;
	uint32_t tsc_mult, tsc_shift;
	uint64_t beat_ns;   /* liveness: last beat of the agent's thread, CLOCK_MONOTONIC; 0 = no
			       thread */
	int32_t rank_label; /* RANK, SLURM_PROCID, …; -1 = none */
	int32_t world_size_label; /* -1 = none */
	int32_t local_rank_label; /* -1 = none */
	uint32_t nccl_version;    /* as ncclGetVersion: 22809; 0 = unknown */
	uint32_t cuda_driver_version;
	uint32_t comms_used; /* entries [0, comms_used) have been used at least once */
	uint64_t env_hash; /* over the communication-relevant NCCL_* variables, sorted; 0 = none set
			    */
	uint64_t ring_ticket; /* ops ever written into the ring; slot = ticket % count */
	uint64_t ops_total;   /* ring_ticket as of the last beat: one store less per op */
	uint64_t group_ticket;
	int64_t step_mark; /* collwatch_mark_step(n); -1 = never called */
	uint64_t step_mark_ns;
	uint64_t drops[CW_REC_DROP__MAX];
	/*
	 * Host-blocking call now in progress outside any known comm (ncclCommInitRank before the
	 * comm exists …): kind of the op, its enter time, comm id. 0 = none. Last writer wins when
	 * several threads do this at once.
	 */
	uint64_t host_call_kind, host_call_enter_ns, host_call_comm_id;
	char job_label[128];        /* from the environment, NUL-terminated, may be empty:
				       "torchelastic:ID" … */
	char rank_label_source[32]; /* name of the variable rank_label came from */
	char master[128];           /* MASTER_ADDR:MASTER_PORT or empty */
	char job_policy[16];        /* COLLWATCH_POLICY or empty */
	struct cw_rec_section sections[CW_REC_SECTION__MAX];
	/*
	 * The oldest version whose readers understand what they know of this record; 0 = only its
	 * own. So ranks that were started with a newer agent stay watched by an older daemon.
	 */
	uint32_t readable_from;
	uint32_t reserved0;
	uint64_t progress_left_out; /* ops without progress writes, COLLWATCH_PROGRESS=auto */
	/*
	 * Threads that run on behalf of NCCL, the driver or the agent, whatever the program does,
	 * as of the last beat or so; numbers in the rank's own pid namespace, 0 = unused.
	 */
	uint32_t helper_tids[CW_REC_HELPERS];
	uint32_t helpers_left_out; /* how many more there are */
	uint32_t stopped_at; /* enum cw_rec_stop, while the agent has stopped the rank. Version 8 */
	struct cw_rec_wait waits[CW_REC_WAITS];
	/* The job's own watchdog ends it when a call takes so long; 0 = none is known. Version 5.
	 */
	uint64_t job_timeout_ns;
	/* What its network tries by itself before it gives up; 0 = not set. Version 5. */
	uint64_t net_retry_ns;
	/* Nobody set job_timeout_ns: it is what PyTorch does where nobody does. Version 5. */
	uint32_t is_timeout_assumed;
	uint32_t stopped_by; /* entry + 1 of the summary that showed it. Version 8 */
	/* Names of its Kubernetes pod, that pod's namespace and its container, or empty. Version 6.
	 */
	char pod[256];
	char pod_namespace[64];
	char container[64];
	/*
	 * What says job_timeout_ns, for people ("COLLWATCH_JOB_TIMEOUT in its environment"), or
	 * says something of which no time follows: then nothing is assumed. Empty = nothing said
	 * any, or an agent from before this field was there. Version 7.
	 */
	char job_timeout_source[64];
	/*
	 * Where Python's interpreter keeps its lock: who sleeps on a word in there waits for it.
	 * The address is written last; no bytes = not known, or there is none. Version 7.
	 */
	uint64_t interpreter_address, interpreter_bytes;
	/*
	 * Bytes that the agent itself reads and writes in files, which the kernel counts as the
	 * process's: such as it has begun with, and such as are done. Version 8.
	 */
	uint64_t own_io_begun, own_io_done;
	/*
	 * What the driver calls the device of each CUDA ordinal of this process ("NVIDIA H100 80GB
	 * HBM3"), NUL-terminated, cut where it is longer; its first byte is written last. Empty =
	 * not known, or no communicator was on it. Version 9.
	 */
	char device_models[CW_REC_DEVICES][CW_REC_MODEL_BYTES];
	uint8_t reserved[1152];
};
_Static_assert(sizeof(struct cw_rec_header) == 4096, "header layout");

/* 128 bytes: one op. The meaning of the fields is that of struct cw_op. */
struct cw_rec_op {
	uint64_t publish; /* 0 = empty or being written; else ticket + 1 of the ring it lies in */
	uint64_t op_index;
	uint64_t seq;       /* coll_seq of a collective, p2p_seq of send/recv, 0 = not counted */
	uint64_t enter_ns;  /* record clock */
	uint64_t return_ns; /* 0 = has not returned */
	uint64_t count;
	uint64_t bytes;
	uint64_t send_addr;
	uint64_t recv_addr;
	uint64_t stream;
	uint8_t kind, dtype, redop, reserved0;
	int32_t root_or_peer;
	uint32_t group_id; /* low 32 bits of the group number, 0 = none */
	uint32_t tid;
	uint16_t comm;            /* index of the comm entry */
	int16_t result;           /* ncclResult_t */
	uint16_t flags;           /* CW_OPF_* */
	uint16_t progress_slot;   /* CW_REC_NO_SLOT = completion unknown; with CW_OPF_LEFT_OUT
				     see cw_rec_slot_left_out() */
	uint16_t module;          /* caller's module, CW_REC_NO_SLOT = unknown */
	uint16_t comm_generation; /* low bits of cw_rec_comm.generation: guards against a reused
				     entry */
	uint32_t call_offset;     /* of the return address in the module, in bytes */
	uint32_t stack_id;        /* 0 = none; index + 1 of a cw_rec_stack */
	uint32_t summary_id;      /* of what a single op was fed; 0 = none; index + 1 */
	uint32_t replay;          /* replay number of a graph launch, 0 = none */
	uint32_t device_ns;       /* device duration where a timing source exists, 0 = unknown */
};
_Static_assert(sizeof(struct cw_rec_op) == 128, "op layout");

#define CW_REC_NO_SLOT 0xffffu

/*
 * Of an op whose writes were left out (CW_OPF_LEFT_OUT): the slot that they would have gone to, and
 * how many ops of the communicator before it the newest one lies that has writes there, 1 to 15.
 * Their number says how far this one is: past it, or not begun, or unknown. Readers of version 2
 * take it for no slot.
 */
#define CW_REC_SLOT_LEFT_OUT 0x8000u
#define CW_REC_SLOT_SINCE_MAX 15u
#define CW_REC_SLOT_SINCE_SHIFT 9
_Static_assert(CW_REC_PROGRESS_SLOTS <= 1 << CW_REC_SLOT_SINCE_SHIFT, "slot and distance");

static inline uint16_t cw_rec_slot_left_out(uint16_t slot, unsigned since)
{
	return (uint16_t)(CW_REC_SLOT_LEFT_OUT | since << CW_REC_SLOT_SINCE_SHIFT | slot);
}

static inline unsigned cw_rec_slot_since(uint16_t left_out)
{
	return left_out >> CW_REC_SLOT_SINCE_SHIFT & CW_REC_SLOT_SINCE_MAX;
}

static inline uint16_t cw_rec_slot_of(uint16_t left_out)
{
	return left_out & ((1 << CW_REC_SLOT_SINCE_SHIFT) - 1);
}

/* The op has writes of its own. */
static inline bool cw_rec_slot_is_written(uint16_t slot)
{
	return slot < CW_REC_SLOT_LEFT_OUT;
}

struct cw_rec_checkpoint {
	uint64_t coll_seq; /* 0 = unused */
	uint64_t hash;
};

enum cw_comm_state {
	CW_COMM_FREE = 0,
	CW_COMM_INIT = 1, /* init/split entered, not returned */
	CW_COMM_READY = 2,
	CW_COMM_FINALIZING = 3,
	CW_COMM_DESTROYED = 4, /* destroyed by the application: expects nothing more */
	CW_COMM_ABORTED = 5,
	CW_COMM_FAILED = 6, /* init/split returned an error */
	CW_COMM_REVOKED = 7,
	CW_COMM__MAX,
};

/* 5056 bytes: 960 of identity, counters and checkpoints, then the last ops. */
struct cw_rec_comm {
	uint64_t seqlock; /* odd while identity fields change; counters and ops are torn-free alone
			   */
	uint64_t comm_id;
	uint64_t parent_id;  /* 0 = none */
	uint64_t nccl_hash;  /* NCCL's own comm hash where known; a label, not an identity */
	uint32_t instance;   /* tells comms of the same id apart */
	uint32_t generation; /* of this entry: +1 each time it is reused */
	uint32_t state;      /* enum cw_comm_state */
	uint32_t nranks;
	int32_t comm_rank;      /* -1 = not known yet */
	int32_t device;         /* CUDA ordinal, -1 = unknown */
	uint32_t split_ordinal; /* which of the parent's comm-making calls made it, from 1; 0 = none
				 */
	int32_t split_color;
	uint64_t coll_entered;  /* highest coll_seq whose call was entered */
	uint64_t coll_returned; /* highest coll_seq whose call returned ncclSuccess or
				   ncclInProgress */
	uint64_t hash;          /* rolling hash after coll_returned; see model/signature.h */
	uint64_t op_index;      /* ops entered */
	uint64_t op_returned;   /* ops that returned */
	uint64_t ring_ticket;   /* ops ever written into ops[]; slot = ticket % CW_REC_COMM_OPS */
	uint64_t p2p_total[2];  /* sends, receives */
	uint64_t p2p_dropped;
	uint32_t p2p_block;  /* index + 1, 0 = none */
	uint32_t flags;      /* CW_REC_COMM_* */
	int32_t async_error; /* last result of ncclCommGetAsyncError seen, 0 = none */
	int32_t last_result; /* last non-success result of a call on this comm */
	uint64_t created_ns;
	uint64_t ready_ns;
	uint64_t last_enter_ns;
	uint64_t last_return_ns;
	uint64_t ended_ns;
	uint64_t checkpoint_ticket; /* checkpoints ever stored */
	/* Slots by cw_checkpoint_slot(); a reader takes a pair that two reads show alike. */
	struct cw_rec_checkpoint checkpoints[CW_REC_CHECKPOINTS];
	char name[32];       /* ncclConfig_t.commName, NUL-terminated */
	char last_error[96]; /* ncclGetLastError text, NUL-terminated */
	uint8_t reserved[376];
	struct cw_rec_op ops[CW_REC_COMM_OPS];
};
_Static_assert(sizeof(struct cw_rec_comm) == 5056, "comm layout");
_Static_assert(offsetof(struct cw_rec_comm, ops) == 960, "comm layout");

enum { /* cw_rec_comm.flags */
       CW_REC_COMM_NONBLOCKING = 1 << 0,
       CW_REC_COMM_SCALABLE = 1 << 1,
       CW_REC_COMM_PROGRESS_LOST = 1 << 2, /* some op on it has no progress slot */
       /*
	* Its calls came through NCCL's profiler interface (agent/hooks/profiler.c says what that
	* does not carry); comm_id then comes from NCCL's own hash.
	*/
       CW_REC_COMM_PROFILER = 1 << 3,
       /*
	* Ops of it lie in a CUDA graph whose launches are not seen: its numbers say nothing from
	* then on.
	*/
       CW_REC_COMM_UNCOUNTED = 1 << 4,
};

/* 40 bytes: traffic with one peer. */
struct cw_rec_p2p_peer {
	uint32_t peer_plus_1; /* comm rank + 1, 0 = unused */
	uint32_t reserved;
	uint64_t count[2]; /* sends to, receives from */
	uint64_t hash[2];  /* rolling over bytes, same mix as collectives */
};
_Static_assert(sizeof(struct cw_rec_p2p_peer) == 40, "p2p layout");

struct cw_rec_p2p_block {
	uint32_t comm_plus_1; /* 0 = free */
	uint32_t comm_generation;
	uint64_t reserved[7];
	struct cw_rec_p2p_peer peers[CW_REC_P2P_PEERS];
};

/*
 * What a progress slot stands for: one (comm, context, stream). 32 bytes.
 * Written by the host before the first op uses the slot.
 */
struct cw_rec_progress_info {
	uint32_t comm_plus_1; /* 0 = free */
	uint32_t comm_generation;
	uint64_t context;
	uint64_t stream;
	uint64_t base; /* op_index the words count from: full value = base + (uint32_t)(word - base)
			*/
};

/* 16 bytes, written by the GPU: low 32 bits of the op_index the stream got to. */
struct cw_rec_progress {
	uint32_t reached;
	uint32_t completed;
	uint32_t reserved[2];
};

/* 64 bytes: one loaded file that calls NCCL. */
struct cw_rec_module {
	uint64_t start; /* load bias as an address of the process */
	uint8_t build_id[20];
	uint8_t build_id_bytes; /* 0 = none */
	char name[35];          /* end of the path */
};
_Static_assert(sizeof(struct cw_rec_module) == 64, "module layout");

/* Where an op was issued from outside of Python: a return address. 8 bytes. */
struct cw_rec_native_frame {
	uint32_t offset; /* in the module */
	uint16_t module; /* as in cw_rec_op */
	uint16_t reserved;
};

/*
 * 160 bytes: a call stack from which ops were issued, innermost frame first. Written once, then
 * published; never changed.
 */
struct cw_rec_stack {
	uint64_t publish; /* 0 = free or being written; else what it is found by */
	uint8_t n_python, n_native;
	uint8_t flags; /* CW_REC_STACK_* */
	uint8_t reserved[5];
	uint16_t python[CW_REC_STACK_PYTHON]; /* cw_rec_frame, index + 1; 0 = found no place */
	struct cw_rec_native_frame native[CW_REC_STACK_NATIVE];
};
_Static_assert(sizeof(struct cw_rec_stack) == 160, "stack layout");

enum {                            /* cw_rec_stack.flags */
       CW_REC_STACK_CUT = 1 << 0, /* there are more Python frames outside of these */
};

/* 128 bytes: a line of Python code that calls something. As cw_rec_stack. */
struct cw_rec_frame {
	uint64_t publish;
	uint32_t line; /* 0 = unknown */
	uint32_t reserved;
	char file[72];     /* end of the path */
	char function[40]; /* qualified name, its end */
};
_Static_assert(sizeof(struct cw_rec_frame) == 128, "frame layout");

/*
 * 64 bytes: the ops of one communicator in one CUDA graph. An op of kind CW_OP_GRAPH_LAUNCH stands
 * for a replay: seq is the coll_seq of its first collective, count how many it has, replay the
 * number of the launch, root_or_peer names this entry (cw_rec_replay_ref). Its own progress words
 * say when the stream got to the graph and when the graph was over. In between, the entry's own
 * pair of words says how many of the graph's ops on this communicator were reached and completed:
 * the graph writes them, each launch sets them to 0 in stream order before its own "reached".
 */
struct cw_rec_replay {
	uint32_t generation; /* of this entry, from 1; 0 = free or being changed */
	uint32_t comm_plus_1;
	uint32_t comm_generation;
	uint32_t flags;         /* CW_REC_REPLAY_* */
	uint32_t ops;           /* ops on the communicator, collectives among them */
	uint32_t colls;         /* counted by coll_seq */
	uint32_t first_plus_1;  /* cw_rec_template of the first ops */
	uint16_t progress_slot; /* CW_REC_NO_SLOT = how far a replay has come is unknown */
	uint16_t reserved0;
	uint64_t graph; /* the handle as a number, 0 = destroyed by now */
	uint64_t launches;
	uint64_t last_launch_ns;
	uint64_t reserved;
};
_Static_assert(sizeof(struct cw_rec_replay) == 64, "replay layout");

enum { /* cw_rec_replay.flags */
       /* Replays may have overlapped: the pair of words is of no use. */
       CW_REC_REPLAY_MIXED = 1 << 0,
};

/* What an op says in root_or_peer; entry < 65536. Never negative. */
static inline int32_t cw_rec_replay_ref(uint32_t entry, uint32_t generation)
{
	return (int32_t)((generation & 0x7fff) << 16 | entry);
}

/* A progress slot with this bit in comm_plus_1 belongs to a graph: its words count ops. */
#define CW_REC_SLOT_OF_GRAPH 0x80000000u

/* 24 bytes: a run of equal ops of a graph, in the order of their capture. */
struct cw_rec_template {
	uint64_t count; /* elements of each */
	int32_t root_or_peer;
	uint8_t kind, dtype, redop;
	uint8_t flags;        /* CW_REC_TEMPLATE_* */
	uint32_t repeat;      /* how many; 0 = free */
	uint32_t next_plus_1; /* 0 = the last run */
};
_Static_assert(sizeof(struct cw_rec_template) == 24, "template layout");

enum {                                     /* cw_rec_template.flags */
       CW_REC_TEMPLATE_GROUPED = 1 << 0,   /* one step with the runs up to GROUP_END */
       CW_REC_TEMPLATE_GROUP_END = 1 << 1, /* the last run of a group */
};

/*
 * 128 bytes: numbers of one tensor (docs/design/summaries.md), written by the device alone: first
 * publish = 0, then the rest, then publish, each after a fence that the host sees.
 */
struct cw_rec_summary {
	uint64_t publish; /* 0 = empty or being written; else the summary's number, from 1 */
	uint64_t op_index;
	uint64_t seq; /* coll_seq or p2p_seq of the op, 0 = not counted */
	uint32_t comm;
	uint32_t comm_generation;
	uint8_t kind, dtype, is_output;
	/* Looked at one chunk in 2^(this - 1); 0 = not said. Version 7, as all that says so. */
	uint8_t stride_log2_plus_1;
	uint32_t device_ns; /* how long the device took for it */
	uint64_t elements;  /* looked at */
	uint64_t offered;   /* elements of the tensor */
	uint64_t nans, infs, zeros;
	/* Of the finite ones; 0 = there are none. mean, l2: NaN = out of a double's range. */
	double abs_max, abs_min_nonzero, mean, l2;
	uint64_t checksum;
	uint32_t step_plus_1; /* low bits of step_mark at the call, + 1; 0 = none. Version 7 */
	/*
	 * Which share of what was looked at has the largest finite magnitude of its type, and which
	 * is denormal: the upper half of an IEEE single, cut off, so that few are not none. 0 =
	 * none, and for integers. Version 7.
	 */
	uint16_t at_limit, denormal;
};
_Static_assert(sizeof(struct cw_rec_summary) == 128, "summary layout");

/*
 * 64 bytes: when one op, out of many, began and ended on the device. The host writes who it is, the
 * device the times: nanoseconds of its own clock, of which only differences mean something here.
 */
struct cw_rec_time {
	uint64_t publish; /* 0 = empty or being written; else the sample's number, from 1 */
	uint64_t op_index;
	uint64_t enter_ns; /* of the call, record clock */
	uint64_t bytes;
	uint64_t begin_ns, end_ns; /* 0 = not yet */
	uint32_t comm;
	uint32_t comm_generation;
	uint8_t kind, reserved[7];
};
_Static_assert(sizeof(struct cw_rec_time) == 64, "time layout");
