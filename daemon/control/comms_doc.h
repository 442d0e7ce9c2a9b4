/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatch.communicators/1: communicators of jobs that this node leads, of which members are in no
 * digest of the job. Where two jobs list the same one, their ranks are one job with two labels.
 * Nothing is joined by this: it is for people. Loop thread only; does not block.
 */
#pragma once

#include <jansson.h>

#include "daemon/control/status_doc.h"

/* Entries of one node, and of all nodes together; each of at most some 300 bytes. */
#define CW_COMMS_DOC_MAX 256u
#define CW_COMMS_DOC_MAX_ALL 2048u

/* For one caller. New reference; NULL = out of memory. */
json_t *cw_comms_doc(const struct cw_status_source *s, const struct cw_caller *caller);

/* Appends another node's entries, those that are such. */
void cw_comms_doc_merge(json_t *doc, const json_t *more);
