/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A judge of flight records beside the watchdog's own, as one table of functions. The daemon calls
 * it on a digest, for a bundle, for an answer and for metrics. The judge decides which facts of a
 * record matter, and the daemon decides when it may read, and who may see the result.
 * daemon/service.c chooses the table. This header has no code.
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

/* Kinds of findings. `status`, the journal and the metrics have a place for each. */
#define CW_EXTENSION_KINDS 2u

struct cw_extension_kind {
	const char *name;        /* in `collwatch status` */
	const char *message_id;  /* in the journal: 32 hexadecimal digits */
	const char *metric;      /* counter of findings, without the prefix "collwatch_" */
	const char *metric_help; /* a sentence */
};

struct cw_extension_finding {
	int64_t seen_ns; /* monotonic; 0 = never */
	char text[512];
};

/* A rank on this node. */
struct cw_extension_rank {
	struct cw_record *record; /* borrowed; as of its last refresh */
	int32_t pid;              /* as the daemon sees it */
	int64_t ended_wall_ns;    /* 0 = unknown, or it lives */
	bool lives;
};

/* What a page has. All borrowed. */
struct cw_extension_content {
	const char *node;
	int64_t taken_wall_ns;
	const struct cw_extension_rank *ranks;
	uint32_t n_ranks;
	uint32_t n_omitted; /* ranks of the job on this node that did not fit */
};

/* Why a bundle lacks pages of some nodes. All borrowed. */
struct cw_extension_absence {
	const char *node;
	int64_t taken_wall_ns;
	const json_t *silent; /* names of some nodes without an answer; NULL = none */
	unsigned n_silent;    /* the number of all such nodes */
	bool is_asking;       /* some answers are due */
};

/* A page that another node sent. */
struct cw_extension_page {
	const char *node; /* borrowed from the document */
	uint32_t n_ranks, n_omitted;
	/* The last rank of the page: the next page starts behind it. 0 = there is no rank. */
	int64_t last_created_wall_ns, last_pid;
};

struct cw_extension {
	struct cw_extension_kind kinds[CW_EXTENSION_KINDS];
	/* Size of a job's state on this node. The state is zeroed when the job starts. */
	size_t state_bytes;
	/* Limit of ranks in all pages of one node. With it, paging ends even for a hostile node. */
	uint32_t max_node_ranks;
	/*
	 * On a digest, at most once a second. records: the refreshed records of the job's ranks
	 * on this node. Returns a bit for each kind with a new finding, or -ENOMEM.
	 */
	int (*on_digest)(void *state, struct cw_record *const *records, uint32_t n_records,
			 int64_t now_ns);
	/* For an answer: the last finding of this kind, borrowed from the state. */
	const struct cw_extension_finding *(*finding)(const void *state, unsigned kind);
	/*
	 * For an answer or a bundle: the document of these ranks. *ret_n_samples is the number of
	 * samples in it. New reference; NULL = out of memory.
	 */
	json_t *(*page)(const struct cw_extension_content *content, uint32_t *ret_n_samples);
	/* For a bundle: a page without ranks. New reference; NULL = out of memory. */
	json_t *(*empty_page)(const struct cw_extension_absence *absence);
	/* For a bundle: reads a page's head. 0, or -EBADMSG if readers would refuse the page. */
	int (*read_page)(const json_t *doc, struct cw_extension_page *ret);
};
