/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One dump of PyTorch's Flight Recorder, dump versions 2.2 to 2.10, reduced to the parts that
 * collwatch uses: the process groups of a rank and its calls on them. We convert a dump completely
 * into this form and keep none of its values.
 *
 * Field names and meaning: torch/csrc/distributed/c10d/FlightRecorder{.hpp,Detail.hpp} and
 * ProcessGroupNCCL.cpp of PyTorch 2.4 to 2.10. The meaning of the numbers is not obvious:
 *
 * - collective_seq_id counts a group's collectives, from 1; one coalesced group of calls takes one
 *   number. A point-to-point call carries the number of the last collective before it.
 * - p2p_seq_id counts a rank's point-to-point calls (or coalesced batches) on the group, to all
 *   peers together: two ranks' numbers are not comparable.
 * - pg_status contains the latest number of either kind, under an id (pg_id) that is private to
 *   the process; only entries show which group an id belongs to.
 * - a program may destroy a group and create it anew under its name, as it always does with the
 *   default group, with another pg_id and numbers from 1 again. Ids grow, so the highest id of a
 *   name is the current group's. Different ranks have different ids for one group.
 * - "scheduled" means "not started" only if PyTorch records times (TORCH_NCCL_ENABLE_TIMING);
 *   calls inside a coalesced group stay "scheduled", and the state is in the group's last entry,
 *   "coalesced".
 *
 * Hostile input. One thread; no blocking.
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
 * We accept dump versions 2.x in this range. Older versions number calls differently, and newer
 * ones may.
 */
#define CW_FR_OLDEST_MINOR 2u
#define CW_FR_NEWEST_MINOR 10u
/* Limit of rank numbers, and of the members of a group. It is the capacity of a snapshot. */
#define CW_FR_MAX_RANKS (1u << 20)

enum cw_fr_state { CW_FR_SCHEDULED, CW_FR_STARTED, CW_FR_COMPLETED };

enum { /* flags of an op */
       CW_FR_P2P = 1 << 0,
       CW_FR_COALESCED = 1 << 1,  /* represents a coalesced group, or is part of one */
       CW_FR_NO_SHAPE = 1 << 2,   /* name or sizes are unknown: never compare it */
       CW_FR_TIMED_OUT = 1 << 3,  /* retired without completion */
       CW_FR_GROUP_END = 1 << 4,  /* the entry that ends a coalesced group; removed after reading */
       CW_FR_ODD_DTYPE = 1 << 5,  /* an unknown type, counted in elements */
       CW_FR_BOTH_SIZES = 1 << 7, /* the sizes sent and received are both known */
       CW_FR_ENDED = 1 << 8,      /* counts as completed, but may have failed */
       CW_FR_ORPHAN = 1 << 6,     /* in a coalesced group with a missing end; used while reading */
};

struct cw_fr_op {
	uint32_t group; /* index into the dump's groups */
	uint8_t kind;   /* enum cw_op_kind; CW_OP_NONE = unknown name */
	uint8_t dtype;  /* enum cw_dtype */
	uint8_t state;  /* enum cw_fr_state */
	uint16_t flags;
	int32_t peer; /* index in the group; CW_FR_NONE = no peer */
	uint64_t count, bytes;
	uint64_t sent, taken; /* for all_to_all: total elements that the rank sends and receives */
	uint64_t coll_seq, p2p_seq;
	int64_t created_ns, completed_ns; /* wall time; 0 = unknown */
	int64_t timeout_ns;
	uint32_t stack; /* index + 1 into the dump's stacks; 0 = none */
	uint32_t order; /* position of its entry in the dump, across all groups */
};

struct cw_fr_group {
	const char *name, *desc; /* for display */
	const char *whole_name;  /* the full name in the dump, which identifies the group */
	uint32_t whole_name_len;
	const struct cw_value *key, *info; /* only valid while reading */
	int32_t *ranks;                    /* members in order; none = not recorded */
	uint32_t n_ranks;
	int64_t id; /* pg_id; CW_FR_NONE = no entry has it */
	/* id of an older group of the same name that has entries too; CW_FR_NONE = none */
	int64_t older_id;
	uint32_t since; /* while reading only: the order of the first entry of this id */
	bool has_config;
	bool has_borrowed_ranks;  /* during a merge: ranks belongs to another group */
	uint32_t first_op, n_ops; /* its part of the dump's ops, in the order of recording */
	uint64_t highest_coll;    /* the highest coll_seq of its entries */
	uint64_t n_p2p;           /* while reading only */
	bool has_p2p;             /* some entries are point-to-point calls */
	bool has_status;
	int64_t last_enqueued, last_completed; /* number of a collective or p2p call; -1 = none */
};

struct cw_fr_dump {
	int32_t rank; /* named by the dump; CW_FR_NONE = none, as in PyTorch's dumps */
	uint32_t major, minor;
	uint32_t nccl_version; /* like ncclGetVersion(); 0 = unknown */
	bool has_entries;
	bool has_config;    /* the dump lists the groups that the rank has used */
	bool is_cut;        /* the buffer lost entries: the first one may be the rest of a launch */
	bool has_completed; /* the dump lists completed calls, not only active ones */
	bool is_timed;      /* some entry has a start time, so "scheduled" means "not started" */
	struct cw_fr_group *groups;
	uint32_t n_groups;
	struct cw_fr_op *ops; /* by group; within a group in the order of recording */
	uint32_t n_ops;
	uint32_t n_bad_entries, n_unknown_ops, n_unknown_backends;
	/* calls according to pg_status, in all groups; a dump of active calls lists none of them */
	uint64_t counted_calls;
	uint32_t n_open_unlisted;  /* by pg_status, on groups without any entry */
	bool is_numbered_together; /* one counter numbered the calls of all groups */
	/* the first calls of all groups are present, so we renumbered the calls as PyTorch does */
	bool is_renumbered;
	uint64_t n_extents, max_extents;          /* while reading only */
	char unknown_op[48], unknown_backend[24]; /* the first one of each */
	int64_t newest_ns;                        /* the latest of all times; 0 = none */
	/* Only for cw_fr_snapshot(): */
	int64_t taken_ns; /* on the dump's own clock; 0 = unknown */
	int64_t shift_ns; /* difference between the snapshot's clock and the dump's */
	bool is_early;    /* another dump with open calls was taken much later */
	bool is_undated;  /* the age of its calls is unknown, in this dump or in another one */
	struct cw_fr_stacks stacks;
	struct cw_arena arena; /* owns all of the above */
};

/*
 * Reads the contents of one file, which is a pickle or JSON. Zeroes *ret first. After success the
 * caller releases it with cw_fr_dump_fini(). Errors: -ENODATA empty or cut short, -EBADMSG not a
 * dump, -EPERM a pickle that tries to run code, -ENOTSUP an unknown version, -E2BIG, -ENOMEM.
 */
int cw_fr_dump_read(const void *data, size_t size, struct cw_fr_dump *ret, struct cw_err *err);
void cw_fr_dump_fini(struct cw_fr_dump *dump);

/*
 * fr_entry.c: returns the name in c10::toString(ScalarType) of an enum cw_dtype, or "Byte" if it
 * has none.
 */
const char *cw_fr_dtype_name(unsigned dtype);

/*
 * fr_entry.c: reads one entry of the dump into *op, except for group and stack. Returns false if it
 * is not an entry.
 */
bool cw_fr_entry_read(struct cw_fr_dump *dump, const struct cw_value *entry, struct cw_fr_op *op);
/*
 * fr_entry.c: gives the ops of coalesced groups the state of their last entry, and merges each
 * group of collectives into one op. Call it after ops and pg_status were read.
 * Returns 0 or -ENOMEM.
 */
int cw_fr_settle_coalesced(struct cw_fr_dump *dump);
