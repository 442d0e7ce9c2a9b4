/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bundle: everything that collwatch keeps about an incident. It is a directory that another
 * machine can read without a running daemon (docs/design/alerts.md#bundle):
 *
 *	incident.json   collwatch.incident/1, the decision
 *	snapshot.json   collwatch.snapshot/1, the exact input of the decision, with thresholds
 *	evidence.json   array of collwatch.evidence/1, one per rank that we inspected
 *	stacks.json     collwatch.stacks/1, the stacks of all ranks merged
 *	ops.json        collwatch.ops/1, statistics of the calls of ranks on the leader's node
 *	summaries.json  collwatch.summaries/1, the last tensor summaries of ranks on that node
 *	summaries-N.json  collwatch.summaries/1 of another node, N from 1 on; these arrive later
 *
 * The bundle of a job that failed before any alert has only the incident and the last three kinds
 *of file.
 *
 * Files have mode 0640, directories 0750. The reader treats the files as hostile: it limits their
 * sizes and parses strict JSON.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"

#define CW_BUNDLE_MAX_FILE (256u << 20)
/* Limits on the summaries of other nodes: the number of their files, and the total bytes. */
#define CW_BUNDLE_MAX_REMOTE_SUMMARIES 1024u
#define CW_BUNDLE_MAX_REMOTE_SUMMARIES_BYTES (64u << 20)

struct cw_bundle {
	json_t *incident; /* object */
	json_t *snapshot; /* object or NULL; for writing, also its text as a string */
	json_t *evidence; /* array or NULL */
	json_t *stacks;   /* object or NULL */
	json_t *ops;      /* object or NULL */
	/* Object or NULL; for writing, also its text as a string. A long one is written as text. */
	json_t *summaries;
	json_t *remote_summaries; /* array of objects from other nodes, or NULL */
	/* number of other nodes' objects that exceeded a limit */
	unsigned n_remote_summaries_omitted;
};

/* Drops the references that the bundle holds. Accepts a zeroed bundle. */
void cw_bundle_fini(struct cw_bundle *bundle);

/*
 * Writes the bundle as directory `name` under the directory dirfd. A rename replaces an older
 * bundle of that name, so a reader finds either the old or the new bundle. If this bundle has no
 * ops or summaries (of this or other nodes), the files of the older bundle stay.
 * Returns 0 or -errno.
 */
int cw_bundle_write(int dirfd, const char *name, const struct cw_bundle *bundle,
		    struct cw_err *err);

/*
 * Replaces the incident of the existing bundle `name` under dirfd and changes nothing else in it.
 * Returns 0 or -errno.
 */
int cw_bundle_update_incident(int dirfd, const char *name, const json_t *incident,
			      struct cw_err *err);

/*
 * Adds or replaces one file of summaries from another node in the existing bundle `name` under
 * dirfd. n: the number in its file name, from 1 to CW_BUNDLE_MAX_REMOTE_SUMMARIES. doc: an object
 * or its text. Returns 0 or -errno.
 */
int cw_bundle_add_remote_summaries(int dirfd, const char *name, unsigned n, const json_t *doc,
				   struct cw_err *err);

/*
 * Parses the bundle's snapshot and summaries into objects if they are texts. A text that fails to
 * parse stays a text. Returns 0 or -errno.
 */
int cw_bundle_parse_texts(struct cw_bundle *bundle);

/*
 * Reads the bundle directory at path. It must contain an incident; all other files are optional. If
 * the file of another node is unreadable, it becomes an object whose only member `node` is the name
 * of that file. Returns 0 or -errno. -EAGAIN: the writer replaced the bundle during every attempt
 * to read it.
 */
int cw_bundle_read(const char *path, struct cw_bundle *ret, struct cw_err *err);
/* Size limits in bytes for reading a bundle. We omit a part that is larger. SIZE_MAX: no limit. */
struct cw_bundle_limits {
	size_t document;         /* the snapshot; the summaries of the leader's node */
	size_t remote_summaries; /* all summaries of other nodes together */
};

/* Reads a bundle like cw_bundle_read(), but omits parts beyond the limits. */
int cw_bundle_read_up_to(const char *path, const struct cw_bundle_limits *limits,
			 struct cw_bundle *ret, struct cw_err *err);
