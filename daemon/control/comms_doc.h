/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatch.communicators/1: communicators of jobs that this node leads, if some member appears in
 * no digest of the job. If two jobs list the same communicator, their ranks probably belong to one
 * job that has two labels. The document only informs users; the daemon does not join the jobs. Loop
 * thread only; does not block.
 */
#pragma once

#include <jansson.h>

#include "daemon/control/status_doc.h"

/*
 * Maximum number of entries from one node, and from all nodes together. An entry has at most some
 * 300 bytes.
 */
#define CW_COMMS_DOC_MAX 256u
#define CW_COMMS_DOC_MAX_ALL 2048u

/* Returns the document for one caller, as a new reference; NULL = out of memory. */
json_t *cw_comms_doc(const struct cw_status_source *s, const struct cw_caller *caller);

/* Appends the valid entries of `more`, another node's document, to doc. */
void cw_comms_doc_merge(json_t *doc, const json_t *more);
