/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight record, byte by byte. The agent of each rank writes one record into a memfd. The
 * daemon reads it with pread(2), and the CLI reads it from a file. Version 11.
 *
 * The reader trusts nothing in a record: it copies first and checks the copy
 * (record/record_reader.h).
 *
 * Concurrency: all words are naturally aligned. The agent writes them as relaxed atomics of their
 * own size, in native byte order. Only a machine with the writer's byte order can read a record;
 * CW_RECORD_MAGIC shows a mismatch. The agent reserves a ring slot with one atomic add on a ticket.
 * It publishes the slot by a release store of cw_rec_op.publish. The reader copies the slot and
 * accepts the copy only if publish held the same non-zero value before and after. Comm entries use
 * a sequence number in the same way (even = stable). The agent never waits for a reader.
 *
 * A field holds 0 if this version of the agent does not fill in the field. Some fields have another
 * value for "absent", which their comments name. CW_REC_HAS_* in the header says which optional
 * parts the agent fills in.
 *
 * The header holds the offsets of all sections. A reader of version N can therefore read a record
 * of version N-1, and skips sections that it does not know. entry_bytes may grow; fields never
 * move. A writer of version N+1 stores in readable_from the oldest version that may read its
 * record. Readers refuse and count all other records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/nccl_variables.h"

/* "CWRECRD1" as a little-endian number. A reader with another byte order reads another number. */
#define CW_RECORD_MAGIC UINT64_C(0x3144524345525743)
#ifndef CW_RECORD_VERSION /* a test builds programs of the next version */
#define CW_RECORD_VERSION 11u
#endif
/* The oldest version that readers accept. */
#define CW_RECORD_VERSION_MIN 1u
/*
 * Writers store this version in readable_from. We raise it only when an older reader would
 * misunderstand a record.
 */
#define CW_RECORD_READABLE_FROM 2u
#define CW_RECORD_NAME "collwatch-record" /* name of the memfd */

/*
 * docs/design/budgets.md#budgets promises this size. The reader refuses a record that is more than
 * twice as large.
 */
#define CW_RECORD_MAX_BYTES ((2u << 20) + (64u << 10))

/*
 * The capacity of the records that this agent writes. A reader takes the counts from the section
 * table.
 */
#define CW_REC_COMMS 96
#define CW_REC_COMM_OPS 32 /* last ops of a comm, kept even if the bulk ring loses them */
#define CW_REC_CHECKPOINTS 16
#define CW_REC_RING_OPS 8192
#define CW_REC_P2P_BLOCKS 32 /* comms with point-to-point traffic */
#define CW_REC_P2P_PEERS 256 /* peers per comm; the agent only counts further peers */
#define CW_REC_PROGRESS_SLOTS 512
#define CW_REC_MODULES 32
#define CW_REC_STACKS 128
#define CW_REC_STACK_PYTHON 40 /* we keep the innermost frames of a stack */
#define CW_REC_STACK_NATIVE 8
#define CW_REC_FRAMES 360 /* Python frames of all stacks; most stacks share frames */
#define CW_REC_REPLAYS 256
#define CW_REC_TEMPLATES 4096
/*
 * Number of entries in the summaries table. Each device of the process has one of the first
 * entries. It holds the first tensor with NaN or infinity that an op on the device read. The other
 * entries are a ring.
 */
#define CW_REC_SUMMARY_FIRSTS 8
#define CW_REC_SUMMARY_RING 120
#define CW_REC_SUMMARIES (CW_REC_SUMMARY_FIRSTS + CW_REC_SUMMARY_RING)
#define CW_REC_TIMES 64
/*
 * Entries for helper threads. 128 suffice for NCCL's threads (up to three per communicator) and the
 * driver's threads (a few per context).
 */
#define CW_REC_HELPERS 128
#define CW_REC_WAITS 16  /* threads inside the driver at the same time */
#define CW_REC_DEVICES 8 /* devices with a model name; the same number as CW_REC_SUMMARY_FIRSTS */
#define CW_REC_MODEL_BYTES 64 /* NVIDIA's longest name today has 55 bytes with its NUL */
/*
 * Slots for network connections with an open op, of all communicators together. A rank with 8
 * channels to 16 peers in both directions needs 256.
 */
#define CW_REC_CONNECTIONS 1024

enum cw_rec_section_type {
	CW_REC_SECTION_COMMS = 1,         /* cw_rec_comm */
	CW_REC_SECTION_RING = 2,          /* cw_rec_op */
	CW_REC_SECTION_P2P = 3,           /* cw_rec_p2p_block */
	CW_REC_SECTION_PROGRESS_INFO = 4, /* cw_rec_progress_info */
	CW_REC_SECTION_PROGRESS =
		5, /* cw_rec_progress; page-aligned, whole pages, because the GPU writes here */
	CW_REC_SECTION_MODULES = 6,      /* cw_rec_module */
	CW_REC_SECTION_STACKS = 7,       /* cw_rec_stack; only if the user asks for it */
	CW_REC_SECTION_REPLAYS = 8,      /* cw_rec_replay */
	CW_REC_SECTION_SUMMARIES = 9,    /* cw_rec_summary; the GPU writes here */
	CW_REC_SECTION_TIMES = 10,       /* cw_rec_time; the GPU writes here */
	CW_REC_SECTION_TEMPLATES = 11,   /* cw_rec_template */
	CW_REC_SECTION_FRAMES = 12,      /* cw_rec_frame; only if the user asks for it */
	CW_REC_SECTION_CONNECTIONS = 13, /* cw_rec_connection. Version 10 */
	CW_REC_SECTION_VARIABLES = 14,   /* one cw_rec_variables. Version 11 */
	CW_REC_SECTION__MAX = 16,
};

struct cw_rec_section {
	uint32_t type;        /* enum cw_rec_section_type, 0 = unused entry */
	uint32_t entry_bytes; /* stride; a reader ignores a section whose stride is below the size
				 it knows */
	uint32_t count;
	uint32_t reserved;
	uint64_t offset; /* bytes from the record's start; a multiple of 64 */
	uint64_t reserved2;
};

enum { /* cw_rec_header.has */
       CW_REC_HAS_PROGRESS = 1 << 0,
       CW_REC_HAS_SUMMARIES = 1 << 1,
       CW_REC_HAS_STACKS = 1 << 2,
       CW_REC_HAS_REPLAYS = 1 << 3,
       CW_REC_HAS_DEVICE_TIME = 1 << 4,
       CW_REC_HAS_PYTHON = 1 << 5, /* Python stacks are armed */
       CW_REC_HAS_READER = 1 << 6, /* the agent overwrites no summary before a reader has read it
				      (record/summary_taken.h) */
};

enum {                             /* cw_rec_header.clock */
       CW_REC_CLOCK_MONOTONIC = 1, /* clock_gettime(CLOCK_MONOTONIC) in ns */
       CW_REC_CLOCK_TSC = 2,       /* ns = base_ns + ((tsc - tsc_base) * tsc_mult >> tsc_shift) */
};

/*
 * The reason why the agent has stopped its rank. The agent stops a rank only if the user asked for
 * it.
 */
enum cw_rec_stop {
	CW_REC_STOP_NONE = 0,
	CW_REC_STOP_NONFINITE = 1, /* a tensor had NaN or infinity */
	CW_REC_STOP_HEADROOM = 2,  /* a tensor is close to the limit of its type */
	CW_REC_STOP__MAX,
};

enum cw_rec_drop {                           /* index into cw_rec_header.drops */
		   CW_REC_DROP_COMMS = 0,    /* communicators without a free entry */
		   CW_REC_DROP_OPS = 1,      /* ops on unknown communicators, not recorded */
		   CW_REC_DROP_PROGRESS = 2, /* ops without a progress slot: completion unknown */
		   CW_REC_DROP_P2P = 3,      /* p2p ops without a per-peer counter */
		   CW_REC_DROP_GROUP =
			   4, /* ops that did not fit a group's list; seq numbers are right */
		   CW_REC_DROP_MODULES = 5,
		   CW_REC_DROP_UNKNOWN_CALLS = 6, /* calls of functions newer than the table */
		   CW_REC_DROP_SUMMARIES = 7,     /* tensors without statistics: no free entry */
		   CW_REC_DROP_STACKS = 8, /* ops without a call stack, for lack of a free entry */
		   CW_REC_DROP_CONNECTIONS =
			   9, /* parts of ops on a connection whose steps we do not record: all
				 slots are in use, or too many such parts are open. Version 10 */
		   CW_REC_DROP__MAX = 16,
};

/* A thread that waits inside the CUDA driver, asleep or polling. 16 bytes. */
struct cw_rec_wait {
	uint32_t tid; /* thread id in the rank's own pid namespace, 0 = unused */
	uint32_t reserved;
	uint64_t since_ns; /* always CLOCK_MONOTONIC, also with a TSC clock; 0 = not known yet */
};

/* The first 4096 bytes of a record. */
struct cw_rec_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t total_bytes;
	uint32_t state;               /* 0 during setup, 1 = valid, 2 = disarmed: no more writes */
	uint32_t has;                 /* CW_REC_HAS_* */
	uint32_t pid;                 /* process id in the rank's own pid namespace */
	uint32_t clock;               /* CW_REC_CLOCK_* */
	uint64_t process_start_ticks; /* /proc/self/stat field 22 */
	uint64_t created_wall_ns;
	uint64_t created_ns; /* record clock */
	uint64_t tsc_base, tsc_base_ns;
	uint32_t tsc_mult, tsc_shift;
	/*
	 * Time of the last beat (a periodic write of the agent's thread) on CLOCK_MONOTONIC; 0 =
	 * the agent has no thread.
	 */
	uint64_t beat_ns;
	int32_t rank_label;       /* RANK, SLURM_PROCID, …; -1 = none */
	int32_t world_size_label; /* WORLD_SIZE, …; -1 = none */
	int32_t local_rank_label; /* LOCAL_RANK, …; -1 = none */
	uint32_t nccl_version;    /* as ncclGetVersion() returns it: 22809; 0 = unknown */
	uint32_t cuda_driver_version;
	uint32_t comms_used; /* entries [0, comms_used) have been used at least once */
	uint64_t env_hash; /* over the communication-relevant NCCL_* variables, sorted; 0 = none set
			    */
	uint64_t ring_ticket; /* number of ops ever written into the ring; slot = ticket % count */
	uint64_t ops_total;   /* ring_ticket as of the last beat; a store per op would cost time */
	uint64_t group_ticket;
	int64_t step_mark; /* collwatch_mark_step(n); -1 = never called */
	uint64_t step_mark_ns;
	uint64_t drops[CW_REC_DROP__MAX];
	/*
	 * A call that blocks the host now and belongs to no known comm, such as ncclCommInitRank
	 * before the comm exists. The three fields hold the kind of the op, its enter time and the
	 * comm id. 0 = there is no such call. If several threads make such calls at once, the last
	 * writer wins.
	 */
	uint64_t host_call_kind, host_call_enter_ns, host_call_comm_id;
	char job_label[128];        /* from the environment, NUL-terminated, may be empty:
				       "torchelastic:ID" … */
	char rank_label_source[32]; /* the variable that gave rank_label */
	char master[128];           /* MASTER_ADDR:MASTER_PORT or empty */
	char job_policy[16];        /* COLLWATCH_POLICY or empty */
	struct cw_rec_section sections[CW_REC_SECTION__MAX];
	/*
	 * The oldest reader version that can read this record; 0 = only readers of the record's own
	 * version. This field lets an older daemon watch ranks that run a newer agent.
	 */
	uint32_t readable_from;
	uint32_t reserved0;
	uint64_t progress_untracked; /* ops without progress writes (COLLWATCH_PROGRESS=auto) */
	/*
	 * Threads of NCCL, the driver and the agent. Their activity shows nothing about the
	 * program. The agent updates the list about once per beat. The numbers are those of the
	 * rank's own pid namespace; 0 = unused.
	 */
	uint32_t helper_tids[CW_REC_HELPERS];
	uint32_t helpers_over_limit; /* number of further such threads */
	uint32_t stopped_at; /* enum cw_rec_stop, while the agent has stopped the rank. Version 8 */
	struct cw_rec_wait waits[CW_REC_WAITS];
	/*
	 * The job's watchdog ends the job when a call takes longer than this time; 0 = not known.
	 * Version 5.
	 */
	uint64_t job_timeout_ns;
	/* The job's network retries for this long before it gives up; 0 = not set. Version 5. */
	uint64_t net_retry_ns;
	/*
	 * True if the job does not set its timeout. job_timeout_ns is then PyTorch's default.
	 * Version 5.
	 */
	uint32_t is_timeout_assumed;
	uint32_t stopped_by; /* summary that made the agent stop: entry + 1. Version 8 */
	/* Names of the rank's Kubernetes pod, namespace and container, or empty. Version 6. */
	char pod[256];
	char pod_namespace[64];
	char container[64];
	/*
	 * Where job_timeout_ns comes from, as text for people ("COLLWATCH_JOB_TIMEOUT in its
	 * environment"). A source that sets no time is named here, too; the agent then assumes no
	 * timeout. Empty = there is no source, or the agent is older than this field. Version 7.
	 */
	char job_timeout_source[64];
	/*
	 * The memory of the Python interpreter that contains its global lock. A thread that sleeps
	 * on a word in this memory waits for the lock. The agent writes the address last. 0 bytes =
	 * not known, or there is no interpreter. Version 7.
	 */
	uint64_t interpreter_address, interpreter_bytes;
	/*
	 * Bytes that the agent itself reads from files and writes to files. The kernel counts them
	 * as bytes of the process. own_io_begun counts transfers when they begin, and own_io_done
	 * when they end. Version 8.
	 */
	uint64_t own_io_begun, own_io_done;
	/*
	 * The driver's name for each device of the process, by CUDA ordinal ("NVIDIA H100 80GB
	 * HBM3"). A name is NUL-terminated, and cut if longer. The agent writes its first byte
	 * last. Empty = not known, or no communicator uses the device. Version 9.
	 */
	char device_models[CW_REC_DEVICES][CW_REC_MODEL_BYTES];
	uint8_t reserved[1152];
};
_Static_assert(sizeof(struct cw_rec_header) == 4096, "header layout");

/* One op; 128 bytes. Each field means the same as in struct cw_op. */
struct cw_rec_op {
	uint64_t publish; /* 0 = empty or being written; otherwise ticket + 1 in this slot's ring */
	uint64_t op_index;
	uint64_t seq;       /* coll_seq of a collective, p2p_seq of send/recv, 0 = not counted */
	uint64_t enter_ns;  /* record clock */
	uint64_t return_ns; /* record clock; 0 = the call has not returned */
	uint64_t count;
	uint64_t bytes;
	uint64_t send_addr;
	uint64_t recv_addr;
	uint64_t stream;
	uint8_t kind, dtype, redop, reserved0;
	int32_t root_or_peer;
	uint32_t group_id; /* low 32 bits of the group's number, 0 = none */
	uint32_t tid;
	uint16_t comm;  /* index of the comm entry */
	int16_t result; /* ncclResult_t */
	uint16_t flags; /* CW_OPF_* */
	/*
	 * Where the GPU reports the op's progress. CW_REC_NO_SLOT = we do not know when the op
	 * completes. For CW_OPF_UNTRACKED see cw_rec_slot_untracked().
	 */
	uint16_t progress_slot;
	uint16_t module; /* the caller's module, CW_REC_NO_SLOT = unknown */
	/*
	 * Low bits of cw_rec_comm.generation. A mismatch shows that another comm has the entry now.
	 */
	uint16_t comm_generation;
	uint32_t call_offset; /* the return address relative to the start of the module, in bytes */
	uint32_t stack_id;    /* index of a cw_rec_stack + 1; 0 = none */
	uint32_t summary_id;  /* index of the summary of a single op's input + 1; 0 = none */
	uint32_t replay;      /* replay number of a graph launch, 0 = none */
	uint32_t device_ns;   /* duration on the device if there is a timing source, 0 = unknown */
};
_Static_assert(sizeof(struct cw_rec_op) == 128, "op layout");

#define CW_REC_NO_SLOT 0xffffu

/*
 * Encodes the progress_slot of an op without progress writes (CW_OPF_UNTRACKED). The value names
 * the slot that would have held the writes. It also holds a distance from 1 to 15. The distance is
 * this op's op_index minus that of the communicator's newest earlier op in the slot. From the
 * earlier op's progress the reader derives the progress of this op: completed, not begun, or
 * unknown. Readers of version 2 see no slot here.
 */
#define CW_REC_SLOT_UNTRACKED 0x8000u
#define CW_REC_SLOT_SINCE_MAX 15u
#define CW_REC_SLOT_SINCE_SHIFT 9
_Static_assert(CW_REC_PROGRESS_SLOTS <= 1 << CW_REC_SLOT_SINCE_SHIFT, "slot and distance");

static inline uint16_t cw_rec_slot_untracked(uint16_t slot, unsigned since)
{
	return (uint16_t)(CW_REC_SLOT_UNTRACKED | since << CW_REC_SLOT_SINCE_SHIFT | slot);
}

static inline unsigned cw_rec_slot_since(uint16_t untracked)
{
	return untracked >> CW_REC_SLOT_SINCE_SHIFT & CW_REC_SLOT_SINCE_MAX;
}

static inline uint16_t cw_rec_slot_of(uint16_t untracked)
{
	return untracked & ((1 << CW_REC_SLOT_SINCE_SHIFT) - 1);
}

/* True if the op has progress writes of its own. */
static inline bool cw_rec_slot_is_written(uint16_t slot)
{
	return slot < CW_REC_SLOT_UNTRACKED;
}

struct cw_rec_checkpoint {
	uint64_t coll_seq; /* number of the last call in the hash; 0 = unused entry */
	uint64_t hash;
};

enum cw_comm_state {
	CW_COMM_FREE = 0,
	CW_COMM_INIT = 1, /* init/split entered, not returned */
	CW_COMM_READY = 2,
	CW_COMM_FINALIZING = 3,
	CW_COMM_DESTROYED = 4, /* the application destroyed it, and it makes no more calls */
	CW_COMM_ABORTED = 5,
	CW_COMM_FAILED = 6, /* init/split returned an error */
	CW_COMM_REVOKED = 7,
	CW_COMM__MAX,
};

/*
 * A communicator; 5056 bytes. The first 960 bytes hold identity, counters and checkpoints. The last
 * ops follow.
 */
struct cw_rec_comm {
	uint64_t seqlock; /* odd while identity fields change; counters and ops need no lock */
	uint64_t comm_id;
	uint64_t parent_id;  /* comm_id of the parent; 0 = no parent */
	uint64_t nccl_hash;  /* NCCL's own hash of the comm where known; a label, not an identity */
	uint32_t instance;   /* distinguishes comms with the same id */
	uint32_t generation; /* generation of this entry; each reuse adds 1 */
	uint32_t state;      /* enum cw_comm_state */
	uint32_t nranks;
	int32_t comm_rank;      /* -1 = not known yet */
	int32_t device;         /* CUDA ordinal, -1 = unknown */
	uint32_t split_ordinal; /* number of the parent's comm-making call, from 1; 0 = none */
	int32_t split_color;
	uint64_t coll_entered;  /* highest coll_seq that the rank has entered */
	uint64_t coll_returned; /* highest coll_seq whose call returned ncclSuccess or
				   ncclInProgress */
	uint64_t hash;          /* rolling hash after call coll_returned; see model/signature.h */
	uint64_t op_index;      /* number of ops entered */
	uint64_t op_returned;   /* number of ops that returned */
	uint64_t ring_ticket;   /* ops ever written into ops[]; slot = ticket % CW_REC_COMM_OPS */
	uint64_t p2p_total[2];  /* sends, receives */
	uint64_t p2p_dropped;
	uint32_t p2p_block;  /* index + 1, 0 = none */
	uint32_t flags;      /* CW_REC_COMM_* */
	int32_t async_error; /* last result that ncclCommGetAsyncError returned, 0 = none seen */
	int32_t last_result; /* result of the last call on this comm that failed */
	uint64_t created_ns;
	uint64_t ready_ns;
	uint64_t last_enter_ns;
	uint64_t last_return_ns;
	uint64_t ended_ns;
	uint64_t checkpoint_ticket; /* number of checkpoints ever stored */
	/*
	 * cw_checkpoint_slot() gives the slot of a checkpoint. A reader accepts a checkpoint if two
	 * reads of it agree.
	 */
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
       CW_REC_COMM_PROGRESS_LOST = 1 << 2, /* some op on the comm has no progress slot */
       /*
	* The agent learned of this communicator's calls through NCCL's profiler interface.
	* agent/hooks/profiler.c lists the facts that this interface lacks. comm_id then comes from
	* NCCL's own hash.
	*/
       CW_REC_COMM_PROFILER = 1 << 3,
       /*
	* A CUDA graph holds ops of this comm, but the agent does not see the launches of the graph.
	* After the first such graph the comm's counters mean nothing.
	*/
       CW_REC_COMM_UNCOUNTED = 1 << 4,
};

/* Traffic with one peer; 40 bytes. */
struct cw_rec_p2p_peer {
	uint32_t peer_plus_1; /* comm rank + 1, 0 = unused */
	uint32_t reserved;
	uint64_t count[2]; /* sends to, receives from */
	uint64_t hash[2];  /* rolling hash of the sizes in bytes, mixed as for collectives */
};
_Static_assert(sizeof(struct cw_rec_p2p_peer) == 40, "p2p layout");

struct cw_rec_p2p_block {
	uint32_t comm_plus_1; /* 0 = free */
	uint32_t comm_generation;
	uint64_t reserved[7];
	struct cw_rec_p2p_peer peers[CW_REC_P2P_PEERS];
};

/*
 * The owner of a progress slot: one (comm, context, stream). 32 bytes. The host writes it before
 * the first op uses the slot.
 */
struct cw_rec_progress_info {
	uint32_t comm_plus_1; /* 0 = free */
	uint32_t comm_generation;
	uint64_t context;
	uint64_t stream;
	/* The GPU writes only the low 32 bits: full value = base + (uint32_t)(word - base). */
	uint64_t base;
};

/*
 * The progress words of a stream; 16 bytes. The GPU writes the low 32 bits of the op_index that the
 * stream has reached.
 */
struct cw_rec_progress {
	uint32_t reached;
	uint32_t completed;
	uint32_t reserved[2];
};

/* A loaded file that calls NCCL; 64 bytes. */
struct cw_rec_module {
	uint64_t start; /* load bias, an address in the process */
	uint8_t build_id[20];
	uint8_t build_id_bytes; /* 0 = no build-id */
	char name[35];          /* end of the path */
};
_Static_assert(sizeof(struct cw_rec_module) == 64, "module layout");

/* The return address of the code outside of Python that called an op. 8 bytes. */
struct cw_rec_native_frame {
	uint32_t offset; /* bytes from the module's start */
	uint16_t module; /* index of the module, as in cw_rec_op */
	uint16_t reserved;
};

/*
 * A call stack that issued ops, innermost frame first; 160 bytes. The agent fills the entry in
 * once, publishes it, and never changes it afterwards.
 */
struct cw_rec_stack {
	uint64_t publish; /* 0 = free or being written; else the agent's lookup key */
	uint8_t n_python, n_native;
	uint8_t flags; /* CW_REC_STACK_* */
	uint8_t reserved[5];
	uint16_t python[CW_REC_STACK_PYTHON]; /* index of a cw_rec_frame + 1; 0 = no entry */
	struct cw_rec_native_frame native[CW_REC_STACK_NATIVE];
};
_Static_assert(sizeof(struct cw_rec_stack) == 160, "stack layout");

enum {                            /* cw_rec_stack.flags */
       CW_REC_STACK_CUT = 1 << 0, /* the real stack has more Python frames on the outside */
};

/*
 * A line of Python code that makes a call; 128 bytes. The agent fills the entry in once and never
 * changes it, like a cw_rec_stack.
 */
struct cw_rec_frame {
	uint64_t publish;
	uint32_t line; /* line number; 0 = unknown */
	uint32_t reserved;
	char file[72];     /* end of the path */
	char function[40]; /* the end of the qualified name */
};
_Static_assert(sizeof(struct cw_rec_frame) == 128, "frame layout");

/*
 * The ops of one communicator in one CUDA graph; 64 bytes. An op of kind CW_OP_GRAPH_LAUNCH stands
 * for one replay of these ops. In such an op `seq` is the coll_seq of the first collective, and
 * `count` is the number of collectives. `replay` is the number of the launch. `root_or_peer` names
 * this entry (cw_rec_replay_ref).
 *
 * The launch's own progress words say when the stream reached the graph and when the graph
 * completed. Between these times a second pair of words, which belongs to this entry, shows the
 * progress within the graph. This pair says how many of the graph's ops on this communicator the
 * stream has reached and completed. The graph itself writes the pair. Each launch first sets the
 * pair to 0, in stream order before the launch's own "reached".
 */
struct cw_rec_replay {
	uint32_t generation; /* counts uses of this entry, from 1; 0 = free or being changed */
	uint32_t comm_plus_1;
	uint32_t comm_generation;
	uint32_t flags;         /* CW_REC_REPLAY_* */
	uint32_t ops;           /* number of ops on the communicator, including collectives */
	uint32_t colls;         /* number of collectives that coll_seq counts */
	uint32_t first_plus_1;  /* index + 1 of the cw_rec_template of the first ops */
	uint16_t progress_slot; /* CW_REC_NO_SLOT = the progress of a replay is unknown */
	uint16_t reserved0;
	uint64_t graph; /* the graph's handle as a number; 0 = the graph is destroyed */
	uint64_t launches;
	uint64_t last_launch_ns;
	uint64_t reserved;
};
_Static_assert(sizeof(struct cw_rec_replay) == 64, "replay layout");

enum { /* cw_rec_replay.flags */
       /* Replays of the graph may have overlapped, so the pair of words means nothing. */
       CW_REC_REPLAY_MIXED = 1 << 0,
};

/* Returns the root_or_peer of a launch, which is never negative. entry < 65536. */
static inline int32_t cw_rec_replay_ref(uint32_t entry, uint32_t generation)
{
	return (int32_t)((generation & 0x7fff) << 16 | entry);
}

/*
 * A progress slot with this bit in comm_plus_1 belongs to a graph. Its words count the graph's ops.
 */
#define CW_REC_SLOT_OF_GRAPH 0x80000000u

/* Consecutive equal ops of a graph, in the order of their capture; 24 bytes. */
struct cw_rec_template {
	uint64_t count; /* number of elements of each op */
	int32_t root_or_peer;
	uint8_t kind, dtype, redop;
	uint8_t flags;        /* CW_REC_TEMPLATE_* */
	uint32_t repeat;      /* number of ops; 0 = free */
	uint32_t next_plus_1; /* index + 1 of the next run; 0 = this is the last run */
};
_Static_assert(sizeof(struct cw_rec_template) == 24, "template layout");

enum {                                     /* cw_rec_template.flags */
       CW_REC_TEMPLATE_GROUPED = 1 << 0,   /* forms one step with the runs up to GROUP_END */
       CW_REC_TEMPLATE_GROUP_END = 1 << 1, /* the last run of a group */
};

/*
 * Statistics of one tensor (docs/design/summaries.md); 128 bytes. Only the device writes an entry:
 * first publish = 0, then the other fields, then publish. A fence that the host observes follows
 * each write.
 */
struct cw_rec_summary {
	uint64_t publish; /* 0 = empty or being written; otherwise the summary's number, from 1 */
	uint64_t op_index;
	uint64_t seq; /* coll_seq or p2p_seq of the op, 0 = not counted */
	uint32_t comm;
	uint32_t comm_generation;
	uint8_t kind, dtype, is_output;
	/*
	 * The device read one chunk of every 2^(stride_log2_plus_1 - 1); 0 = not known. Version 7,
	 * like the sampling itself.
	 */
	uint8_t stride_log2_plus_1;
	uint32_t device_ns; /* time that the device took for this summary */
	uint64_t elements;  /* number of elements that the device read */
	uint64_t offered;   /* number of elements of the tensor */
	uint64_t nans, infs, zeros;
	/*
	 * All four values come from the finite elements only; 0 = the tensor has none. mean and l2
	 * are NaN if the value exceeds the range of a double.
	 */
	double abs_max, abs_min_nonzero, mean, l2;
	uint64_t checksum;
	uint32_t step_plus_1; /* low bits of step_mark at the call, + 1; 0 = none. Version 7 */
	/*
	 * Shares of the elements that the device read. at_limit counts elements with the largest
	 * finite magnitude of their type, and denormal counts denormal elements. Each share is the
	 * upper half of an IEEE single. We truncate the single, so a small share does not become 0.
	 * 0 = no such element; always 0 for integers. Version 7.
	 */
	uint16_t at_limit, denormal;
};
_Static_assert(sizeof(struct cw_rec_summary) == 128, "summary layout");

/*
 * Begin and end of one sampled op on the device; 64 bytes. The host writes the op's identity. The
 * device writes the times in nanoseconds of its own clock, so only their difference has a meaning.
 */
struct cw_rec_time {
	uint64_t publish; /* 0 = empty or being written; otherwise the sample's number, from 1 */
	uint64_t op_index;
	uint64_t enter_ns; /* enter time of the call, record clock */
	uint64_t bytes;
	uint64_t begin_ns, end_ns; /* 0 = the event has not happened yet */
	uint32_t comm;
	uint32_t comm_generation;
	uint8_t kind, reserved[7];
};
_Static_assert(sizeof(struct cw_rec_time) == 64, "time layout");

enum cw_rec_step {                     /* index into cw_rec_connection.counts */
		   CW_REC_STEP_POSTED, /* the proxy gave the step to the GPU or the network */
		   CW_REC_STEP_READY,  /* sender: the GPU has filled the buffer */
		   CW_REC_STEP_HANDED, /* sender: the network has it. Receiver: the GPU has it */
		   CW_REC_STEP_DONE,   /* sender: the network confirmed it. Receiver: GPU is done */
		   CW_REC_STEP__MAX,
		   CW_REC_STEP_RECEIVED = CW_REC_STEP_READY, /* receiver: the data has arrived */
		   CW_REC_STEP_GIVEN = CW_REC_STEP_HANDED,
};

enum { /* cw_rec_connection.flags */
       CW_REC_CONNECTION_USED = 1 << 0,
       CW_REC_CONNECTION_SEND = 1 << 1, /* the connection sends; without this flag it receives */
       /*
	* The connection carries sends and receives. Collectives use other connections between the
	* same two ranks.
	*/
       CW_REC_CONNECTION_P2P = 1 << 2,
       /*
	* NCCL reports when the GPU has filled a buffer, and how many bytes it sent. Versions 1 to 3
	* of NCCL's profiler interface do not. Without this flag READY and `bytes` are 0 on a
	* sender, and `bytes` is 0 on a receiver.
	*/
       CW_REC_CONNECTION_DETAILED = 1 << 3,
};

/*
 * One network connection between two ranks, and the op at its head; 64 bytes. A connection belongs
 * to one communicator, channel, peer and direction. NCCL cuts the op's part on this connection into
 * steps. `counts` has one number per enum cw_rec_step: how many of the op's steps have got that
 * far. The slot is free unless an op is open on the connection.
 *
 * One thread of NCCL writes a slot. A reader accepts a copy if `sequence` held the same even value
 * before and after.
 */
struct cw_rec_connection {
	uint32_t sequence; /* odd while the writer changes the slot */
	/*
	 * The process that issued the op, if another process did (NCCL's PXN); 0 = this process.
	 * rank, peer and comm_plus_1 then have the meaning that they have in that process. NCCL
	 * reports the pid, as a number of that process's pid namespace.
	 */
	uint32_t pid;
	int32_t rank; /* the rank of the issuing member in the communicator */
	int32_t peer; /* rank in the communicator */
	uint32_t op;  /* low 32 bits of the op's op_index; 0 = unknown */
	/*
	 * If the op is part of a CUDA graph: the number of the replay, from 1. `op` is then the
	 * captured call. After 2^21 - 1 the numbers begin with 1 again. 0 = none, or unknown.
	 */
	uint32_t replay;
	uint32_t steps; /* steps of the op's part on this connection */
	uint32_t counts[CW_REC_STEP__MAX];
	uint8_t comm_plus_1; /* entry + 1 of the communicator, 0 = unknown */
	uint8_t channel;
	uint8_t flags;    /* CW_REC_CONNECTION_* */
	uint8_t open_ops; /* ops on this connection that have not ended; 255 = 255 or more */
	/*
	 * The last change of a count, exact to a few ms. On CLOCK_MONOTONIC, even if the record
	 * clock is a TSC.
	 */
	uint64_t newest_ns;
	uint64_t bytes; /* bytes of the steps handed or received so far */
};
_Static_assert(sizeof(struct cw_rec_connection) == 64, "connection layout");
_Static_assert(CW_REC_COMMS < UINT8_MAX, "comm_plus_1");

/*
 * The NCCL_* variables of the process when the agent made the record (record/nccl_variables.h).
 * 1,024 bytes, which fill the last page of the record: they make no record larger.
 */
struct cw_rec_variables {
	uint32_t omitted; /* number of further variables */
	uint32_t reserved;
	char text[CW_NCCL_VARIABLES_BYTES];
};
_Static_assert(sizeof(struct cw_rec_variables) == 1024, "variables layout");
