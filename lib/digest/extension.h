/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An additional judge of flight records beside the watchdog's own, as one table of functions. The
 * daemon calls the judge on a digest, for a bundle, for an answer and for metrics. The judge
 * decides which facts of a record matter. The daemon decides when the judge may read, and which
 * users may see the result. daemon/service.c chooses the table. This header has no code.
 *
 * Each function runs in the loop thread, reads memory and does not block. Records and documents are
 * untrusted. The caller keeps the table for the life of the process.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_record;

/*
 * Number of kinds of findings. `status`, the journal and the metrics have an entry for each kind.
 */
#define CW_EXTENSION_KINDS 2u

struct cw_extension_kind {
	const char *name;       /* name in `collwatch status` */
	const char *message_id; /* id in the journal: 32 hexadecimal digits */
	/* Name of the counter of findings, without the prefix "collwatch_". */
	const char *metric;
	const char *metric_help; /* a sentence that explains the counter */
};

struct cw_extension_finding {
	int64_t seen_ns; /* time of the last finding, monotonic; 0 = never */
	char text[512];
};

/* A rank on this node. */
struct cw_extension_rank {
	struct cw_record *record; /* borrowed; as of its last refresh */
	int32_t pid;              /* number in the daemon's pid namespace */
	int64_t ended_wall_ns;    /* 0 = the time is unknown, or the process lives */
	bool lives;
};

/* The input for a page, which is a document about some ranks of a node. All borrowed. */
struct cw_extension_content {
	const char *node;
	int64_t taken_wall_ns;
	const struct cw_extension_rank *ranks;
	uint32_t n_ranks;
	uint32_t n_omitted; /* ranks of the job on this node that do not fit the page */
};

/* Why a bundle lacks the pages of some nodes. All borrowed. */
struct cw_extension_absence {
	const char *node;
	int64_t taken_wall_ns;
	const json_t *silent; /* names of some nodes that did not answer; NULL = none */
	unsigned n_silent;    /* number of all nodes that did not answer */
	bool is_asking;       /* true: we still wait for some answers */
};

/* A page that another node sent. */
struct cw_extension_page {
	const char *node; /* borrowed from the document */
	uint32_t n_ranks, n_omitted;
	/*
	 * The last rank of the page. The next page begins with the rank after it. 0 = the page has
	 * no rank.
	 */
	int64_t last_created_wall_ns, last_pid;
};

struct cw_extension {
	struct cw_extension_kind kinds[CW_EXTENSION_KINDS];
	/*
	 * Size of the judge's state per job on this node. The daemon zeroes the state when the job
	 * starts.
	 */
	size_t state_bytes;
	/*
	 * Limit of ranks in all pages of one node. Without this limit a hostile node could send
	 * pages without end.
	 */
	uint32_t max_node_ranks;
	/*
	 * Judges a digest, at most once a second. records: the refreshed records of the job's ranks
	 * on this node. Returns a bit for each kind with a new finding, or -ENOMEM.
	 */
	int (*on_digest)(void *state, struct cw_record *const *records, uint32_t n_records,
			 int64_t now_ns);
	/* Returns the last finding of this kind for an answer, borrowed from the state. */
	const struct cw_extension_finding *(*finding)(const void *state, unsigned kind);
	/*
	 * Makes the page of these ranks for an answer or a bundle. *ret_n_samples is the number of
	 * samples in the page. New reference; NULL = out of memory.
	 */
	json_t *(*page)(const struct cw_extension_content *content, uint32_t *ret_n_samples);
	/* Makes a page without ranks for a bundle. New reference; NULL = out of memory. */
	json_t *(*empty_page)(const struct cw_extension_absence *absence);
	/*
	 * Reads the head of a page for a bundle. Returns 0, or -EBADMSG if readers would refuse the
	 * page.
	 */
	int (*read_page)(const json_t *doc, struct cw_extension_page *ret);
};
