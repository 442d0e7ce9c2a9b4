/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bundle: all that is kept of an incident, as a directory that can be read on another machine
 * with no daemon running (docs/design/incident.md#bundle):
 *
 *	incident.json   collwatch.incident/1, what was decided
 *	snapshot.json   collwatch.snapshot/1, exactly what it was decided from, thresholds included
 *	evidence.json   array of collwatch.evidence/1, one per rank looked at closely
 *	stacks.json     collwatch.stacks/1, the stacks of all ranks merged
 *	epitaph.json    collwatch.epitaph/1, what the job died of, when it did
 *	ops.json        collwatch.ops/1, what calls of ranks on the leader's node added up to
 *	summaries.json  collwatch.summaries/1, what these ranks' last tensors looked like
 *	summaries-N.json  the same of ranks on other nodes, from N = 1 on: they come behind the rest
 *
 * A job that failed before anybody was alerted leaves the last three alone.
 *
 * Files 0640, directory 0750. Reading treats the files as hostile: size limits, strict JSON.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"

#define CW_BUNDLE_MAX_FILE (256u << 20)
/* Of an epitaph: it lists what is bounded. */
#define CW_BUNDLE_MAX_EPITAPH (1u << 20)
/* Of other nodes' summaries: files, and bytes of all of them. */
#define CW_BUNDLE_MAX_ELSEWHERE 1024u
#define CW_BUNDLE_MAX_ELSEWHERE_BYTES (64u << 20)

struct cw_bundle {
	json_t *incident; /* object; NULL in a valid bundle where there is an epitaph */
	json_t *snapshot; /* object, or to be written only its text as a string; or NULL */
	json_t *evidence; /* array or NULL */
	json_t *stacks;   /* object or NULL */
	json_t *epitaph;  /* object or NULL */
	json_t *ops;      /* object or NULL */
	/* As the snapshot, and as that written as text where it is long. */
	json_t *summaries;
	json_t *elsewhere;             /* array of objects, of other nodes, or NULL */
	unsigned n_elsewhere_left_out; /* of them, for there was a limit */
};

/* Drops the references. Takes a zeroed bundle. */
void cw_bundle_fini(struct cw_bundle *bundle);

/*
 * Writes the bundle as directory `name` under the directory dirfd, replacing an older one of that
 * name atomically enough that a reader finds either (write beside, rename). The older one's
 * epitaph, ops and summaries, those of other nodes too, stay, where this one has none. 0 or -errno.
 */
int cw_bundle_write(int dirfd, const char *name, const struct cw_bundle *bundle,
		    struct cw_err *err);

/*
 * Replaces the incident of the bundle `name` under dirfd, which must be there; nothing else in it
 * is touched. 0 or -errno.
 */
int cw_bundle_amend(int dirfd, const char *name, const json_t *incident, struct cw_err *err);

/* Adds or replaces the epitaph in the same way. 0 or -errno. */
int cw_bundle_bury(int dirfd, const char *name, const json_t *epitaph, struct cw_err *err);

/*
 * Adds or replaces the n-th of other nodes' summaries, from 1 to CW_BUNDLE_MAX_ELSEWHERE: an
 * object, or its text. 0 or -errno.
 */
int cw_bundle_add_elsewhere(int dirfd, const char *name, unsigned n, const json_t *doc,
			    struct cw_err *err);

/* Its incident, or where there is none its epitaph: id, job, uid, class and summary are in both. */
json_t *cw_bundle_head(const struct cw_bundle *bundle);

/*
 * Makes of the texts of snapshot and summaries, where they are texts, the objects. 0 or -errno,
 * then what could not be made is as before.
 */
int cw_bundle_parse_texts(struct cw_bundle *bundle);

/*
 * Reads the bundle directory at path. Only the incident or the epitaph must be there. What another
 * node gave and cannot be read is an object without more than a `node`, the name of that file.
 * -EAGAIN: it is written anew so often that none was read whole.
 */
int cw_bundle_read(const char *path, struct cw_bundle *ret, struct cw_err *err);
/* Bytes above which a part is left out; SIZE_MAX: never. */
struct cw_bundle_limits {
	size_t document;  /* the snapshot; its own node's summaries */
	size_t elsewhere; /* all of other nodes' summaries together */
};

/* The same without what is larger than that. */
int cw_bundle_read_up_to(const char *path, const struct cw_bundle_limits *limits,
			 struct cw_bundle *ret, struct cw_err *err);
