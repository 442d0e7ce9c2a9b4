/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One dump of PyTorch's Flight Recorder, dump versions 2.2 to 2.10. It is reduced to the parts that
 * collwatch uses: the process groups of a rank, and the rank's calls on them. We convert a dump
 * completely into this form and keep none of its values.
 *
 * Field names and meaning come from torch/csrc/distributed/c10d/FlightRecorder{.hpp,Detail.hpp} and
 * ProcessGroupNCCL.cpp of PyTorch 2.4 to 2.10. The meaning of the numbers is not obvious:
 *
 *  - collective_seq_id counts a group's collectives, from 1. One coalesced group of calls takes one
 *    number. A point-to-point call carries the number of the last collective before it.
 *  - p2p_seq_id counts a rank's point-to-point calls (or coalesced batches) on the group, with all
 *    peers together. So we cannot compare the numbers of two ranks.
 *  - pg_status contains the latest number of either kind, under an id (pg_id) that is private to
 *    the process. Only entries show which group an id belongs to.
 *  - A program may destroy a group and create it anew under its name. With the default group it
 *    always does. The new group has another pg_id, and its numbers start from 1 again. Ids grow, so
 *    the highest id of a name belongs to the current group. Different ranks have different ids for
 *    one group.
 *  - "scheduled" means "not started" only if PyTorch records times (TORCH_NCCL_ENABLE_TIMING).
 *    Calls inside a coalesced group stay "scheduled", and the group's last entry, "coalesced", has
 *    the state.
 *
 * The input is hostile. One thread; no blocking.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "import/fr_frames.h"
#include "import/pickle/value.h"
#include "model/arena.h"

#define CW_FR_NONE (-1)
/*
 * We accept dump versions 2.x in this range. Older versions number calls in another way, and newer
 * ones may.
 */
#define CW_FR_OLDEST_MINOR 2u
#define CW_FR_NEWEST_MINOR 10u
/* The limit of rank numbers and of the members of a group. It is the capacity of a snapshot. */
#define CW_FR_MAX_RANKS (1u << 20)

enum cw_fr_state { CW_FR_SCHEDULED, CW_FR_STARTED, CW_FR_COMPLETED };

enum { /* flags of an op */
       CW_FR_P2P = 1 << 0,
       CW_FR_COALESCED = 1 << 1, /* the op represents a coalesced group, or is part of one */
       /* The name or the sizes are unknown, so we never compare the op. */
       CW_FR_NO_SHAPE = 1 << 2,
       CW_FR_TIMED_OUT = 1 << 3,  /* PyTorch's watchdog retired the op before it completed */
       CW_FR_GROUP_END = 1 << 4,  /* the entry ends a coalesced group; we remove it after reading */
       CW_FR_ODD_DTYPE = 1 << 5,  /* the type is unknown; bytes are in elements */
       CW_FR_BOTH_SIZES = 1 << 7, /* we know both the sent and the received sizes */
       CW_FR_ENDED = 1 << 8,      /* the op counts as completed, but may have failed */
       /* The op is in a coalesced group whose end is missing; used while reading. */
       CW_FR_ORPHAN = 1 << 6,
};

struct cw_fr_op {
	uint32_t group; /* index into the dump's groups */
	uint8_t kind;   /* enum cw_op_kind; CW_OP_NONE = unknown name */
	uint8_t dtype;  /* enum cw_dtype */
	uint8_t state;  /* enum cw_fr_state */
	uint16_t flags;
	int32_t peer; /* index of the peer in the group; CW_FR_NONE = no peer */
	uint64_t count, bytes;
	/* For all_to_all: total numbers of elements that the rank sends and receives. */
	uint64_t sent, taken;
	uint64_t coll_seq, p2p_seq;
	int64_t created_ns, completed_ns; /* wall time; 0 = unknown */
	int64_t timeout_ns;
	uint32_t stack; /* index + 1 into the dump's stacks; 0 = no stack */
	uint32_t order; /* position of the op's entry in the dump, across all groups */
};

struct cw_fr_group {
	const char *name, *desc; /* for display */
	const char *whole_name;  /* the full name in the dump, which identifies the group */
	uint32_t whole_name_len;
	const struct cw_value *key, *info; /* valid only while reading */
	int32_t *ranks;                    /* members in order; NULL = not recorded */
	uint32_t n_ranks;
	int64_t id; /* pg_id; CW_FR_NONE = no entry has it */
	/* The id of an older group with the same name that has entries too; CW_FR_NONE = none. */
	int64_t older_id;
	/* Order of the first entry with this id; used only while reading. */
	uint32_t since;
	bool has_config;
	bool has_borrowed_ranks; /* ranks belongs to another group; used during a merge */
	/* The group's part of the dump's ops, in the order of recording. */
	uint32_t first_op, n_ops;
	uint64_t highest_coll; /* the highest coll_seq of the group's entries */
	uint64_t n_p2p;        /* used only while reading */
	bool has_p2p;          /* some entries are point-to-point calls */
	bool has_status;
	int64_t last_enqueued, last_completed; /* number of a collective or p2p call; -1 = none */
};

struct cw_fr_dump {
	/* The rank that the dump names; CW_FR_NONE = none, as in PyTorch's dumps. */
	int32_t rank;
	uint32_t major, minor;
	uint32_t nccl_version; /* as ncclGetVersion() returns it; 0 = unknown */
	bool has_entries;
	bool has_config; /* the dump lists the groups that the rank has used */
	/* The buffer lost entries, so the first one may be the rest of a launch. */
	bool is_cut;
	bool has_completed; /* the dump lists completed calls, and not only active ones */
	/* Some entry has a start time, so "scheduled" means "not started". */
	bool is_timed;
	struct cw_fr_group *groups;
	uint32_t n_groups;
	struct cw_fr_op *ops; /* sorted by group; within a group in the order of recording */
	uint32_t n_ops;
	uint32_t n_bad_entries, n_unknown_ops, n_unknown_backends;
	/*
	 * Number of calls in all groups, from pg_status. A dump of active calls lists none of the
	 * completed ones.
	 */
	uint64_t counted_calls;
	/* Number of open calls, from pg_status, on groups without any entry. */
	uint32_t n_open_unlisted;
	bool is_numbered_together; /* one counter numbered the calls of all groups */
	/* We have the first calls of all groups, so we renumbered the calls as PyTorch does. */
	bool is_renumbered;
	uint64_t n_extents, max_extents;          /* used only while reading */
	char unknown_op[48], unknown_backend[24]; /* the first unknown name of each */
	int64_t newest_ns; /* the latest of all times in the dump; 0 = none */
	/* Only cw_fr_snapshot() uses the fields from here to is_undated. */
	/* The rank's oldest open call, in the order of its own calls; NULL = none. */
	const struct cw_fr_op *oldest_open;
	int64_t taken_ns; /* when the dump was taken, on its own clock; 0 = unknown */
	int64_t shift_ns; /* the snapshot's clock minus the dump's */
	bool is_early;    /* another dump with open calls was taken much later */
	bool is_undated;  /* the age of calls is unknown, in this dump or in another one */
	struct cw_fr_stacks stacks;
	struct cw_arena arena; /* owns all of the above */
};

/*
 * Reads the contents of one file, which is a pickle or JSON. Zeroes *ret first. After success the
 * caller frees *ret with cw_fr_dump_fini(). Errors: -ENODATA: empty or cut short; -EBADMSG: not a
 * dump; -EPERM: a pickle that tries to run code; -ENOTSUP: an unknown version; -E2BIG.
 */
int cw_fr_dump_read(const void *data, size_t size, struct cw_fr_dump *ret, struct cw_err *err);
void cw_fr_dump_fini(struct cw_fr_dump *dump);

/*
 * Reads one entry of the dump into *op, except for group and stack. Returns false if the value is
 * not an entry. Defined in fr_entry.c.
 */
bool cw_fr_entry_read(struct cw_fr_dump *dump, const struct cw_value *entry, struct cw_fr_op *op);
/*
 * Gives the ops of coalesced groups the state of their last entry, and merges each group of
 * collectives into one op. The caller has read all ops and pg_status before.
 * Defined in fr_entry.c.
 */
void cw_fr_settle_coalesced(struct cw_fr_dump *dump);
