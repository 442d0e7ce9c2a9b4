/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One dump of PyTorch's Flight Recorder, dump versions 2.2 to 2.10, as far as collwatch has a use
 * for it: the process groups a rank belongs to and the calls it made on them. A dump is read whole
 * into this form, so that its values need not be kept.
 *
 * Field names and meaning: torch/csrc/distributed/c10d/FlightRecorder{.hpp,Detail.hpp} and
 * ProcessGroupNCCL.cpp of PyTorch 2.4 to 2.10. What its numbers mean is not obvious:
 *
 * - collective_seq_id counts a group's collectives, from 1; one coalesced group of calls takes one
 *   number. A point-to-point call carries the number of the last collective before it.
 * - p2p_seq_id counts a rank's point-to-point calls (or coalesced batches) on the group, whichever
 *   the peer: it is not comparable between ranks.
 * - pg_status holds numbers of either kind, whatever came last, under an id (pg_id) that only this
 *   process knows; only entries say which group an id belongs to.
 * - a group that was destroyed may be made anew under its name, as the default group always is,
 *   with another pg_id and numbers from 1 again. Ids grow, so of several under one name the highest
 *   is that of the group of now. Between ranks ids of one group differ.
 * - "scheduled" means "not started" only where PyTorch takes times (TORCH_NCCL_ENABLE_TIMING);
 *   calls inside a coalesced group stay so for ever, and the state is in the group's last entry,
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
/* Dump versions 2.x: older ones number calls in another way, newer ones may. */
#define CW_FR_OLDEST_MINOR 2u
#define CW_FR_NEWEST_MINOR 10u
/* Rank numbers are below this, those of a group no more: what a snapshot could hold at most. */
#define CW_FR_MAX_RANKS (1u << 20)

enum cw_fr_state { CW_FR_SCHEDULED, CW_FR_STARTED, CW_FR_COMPLETED };

enum { /* flags of an op */
       CW_FR_P2P = 1 << 0,
       CW_FR_COALESCED = 1 << 1,  /* stands for, or is part of, a coalesced group */
       CW_FR_NO_SHAPE = 1 << 2,   /* name or sizes are not known: compare with nothing */
       CW_FR_TIMED_OUT = 1 << 3,  /* retired without having completed */
       CW_FR_GROUP_END = 1 << 4,  /* the entry that ends a coalesced group; gone after reading */
       CW_FR_ODD_DTYPE = 1 << 5,  /* one that is not known here, counted in elements */
       CW_FR_BOTH_SIZES = 1 << 7, /* sent and taken are known */
       CW_FR_ENDED = 1 << 8,      /* taken for completed: it may have failed as well */
       CW_FR_ORPHAN = 1 << 6,     /* of a coalesced group whose end is not there; as above */
};

struct cw_fr_op {
	uint32_t group; /* index into the dump's groups */
	uint8_t kind;   /* enum cw_op_kind; CW_OP_NONE = a name that is not known */
	uint8_t dtype;  /* enum cw_dtype */
	uint8_t state;  /* enum cw_fr_state */
	uint16_t flags;
	int32_t peer; /* place in the group; CW_FR_NONE = no peer */
	uint64_t count, bytes;
	uint64_t sent, taken; /* of all_to_all, elements: in all from it, and to it */
	uint64_t coll_seq, p2p_seq;
	int64_t created_ns, completed_ns; /* wall time; 0 = unknown */
	int64_t timeout_ns;
	uint32_t stack; /* index + 1 into the dump's; 0 = none */
	uint32_t order; /* of its entry among those of the dump, whatever the group */
};

struct cw_fr_group {
	const char *name, *desc; /* as they are shown */
	const char *whole_name;  /* what the group is known by: all of it, as it stands there */
	uint32_t whole_name_len;
	const struct cw_value *key, *info; /* while reading only */
	int32_t *ranks;                    /* members in order; none = not recorded */
	uint32_t n_ranks;
	int64_t id;       /* pg_id; CW_FR_NONE = no entry tells it */
	int64_t older_id; /* of one of that name that entries tell of too; CW_FR_NONE = none */
	uint32_t since;   /* while reading only: the order of the first entry of this id */
	bool has_config;
	bool has_borrowed_ranks;  /* ranks are somebody else's, for the time of a merge */
	uint32_t first_op, n_ops; /* its ops in the dump's, in the order they were recorded */
	uint64_t highest_coll;    /* coll_seq of its entries */
	uint64_t n_p2p;           /* while reading only */
	bool has_p2p;             /* entries tell of some */
	bool has_status;
	int64_t last_enqueued, last_completed; /* of either kind of number; -1 = none */
};

struct cw_fr_dump {
	int32_t rank; /* as the dump itself says; CW_FR_NONE = it does not, as PyTorch's do not */
	uint32_t major, minor;
	uint32_t nccl_version; /* as ncclGetVersion(); 0 = unknown */
	bool has_entries;
	bool has_config;    /* it lists the groups it has used */
	bool is_cut;        /* its buffer has lost entries: the first may be the rest of a launch */
	bool has_completed; /* it lists some: not those that are active alone */
	bool is_timed;      /* some entry has a start time: "scheduled" means something */
	struct cw_fr_group *groups;
	uint32_t n_groups;
	struct cw_fr_op *ops; /* by group, each group's in the order they were recorded */
	uint32_t n_ops;
	uint32_t n_bad_entries, n_unknown_ops, n_unknown_backends;
	uint64_t counted_calls; /* by pg_status, of all groups; a dump of active calls lists none of
				   them */
	uint32_t n_open_unlisted;  /* by pg_status, on groups that no entry tells of */
	bool is_numbered_together; /* one counter has counted the calls of all groups */
	bool is_renumbered;        /* … and the first of them are there: now it is as PyTorch's */
	uint64_t n_extents, max_extents;          /* while reading only */
	char unknown_op[48], unknown_backend[24]; /* the first ones */
	int64_t newest_ns;                        /* of all times; 0 = none */
	/* cw_fr_snapshot()'s own. */
	int64_t taken_ns; /* by the clock of its times; 0 = not known */
	int64_t shift_ns; /* from its times to those of the snapshot */
	bool is_early;    /* another dump with open calls was taken much later */
	bool is_undated;  /* how old its calls were is not known, for it or for another dump */
	struct cw_fr_stacks stacks;
	struct cw_arena arena; /* owner of all of the above */
};

/*
 * Reads what one file holds: a pickle, or JSON. *ret is zeroed first; cw_fr_dump_fini() it after
 * success. -ENODATA empty or cut short, -EBADMSG not a dump, -EPERM a pickle that wants to run
 * something, -ENOTSUP a version that is not known, -E2BIG, -ENOMEM.
 */
int cw_fr_dump_read(const void *data, size_t size, struct cw_fr_dump *ret, struct cw_err *err);
void cw_fr_dump_fini(struct cw_fr_dump *dump);

/* fr_entry.c: c10::toString(ScalarType) of an enum cw_dtype; "Byte" where there is none. */
const char *cw_fr_dtype_name(unsigned dtype);

/* fr_entry.c: reads one entry of the dump into *op (group and stack left alone). False: not an
 * entry. */
bool cw_fr_entry_read(struct cw_fr_dump *dump, const struct cw_value *entry, struct cw_fr_op *op);
/*
 * fr_entry.c: gives coalesced groups the state of their last entry, and makes one op of each group
 * of collectives. Needs ops and pg_status. 0 or -ENOMEM.
 */
int cw_fr_settle_coalesced(struct cw_fr_dump *dump);
