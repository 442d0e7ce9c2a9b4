/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the answers of several nodes to one control request. Depends only on its arguments. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "daemon/control/control.h"
#include "proto/messages.h"

/*
 * Maximum number of silent nodes that we name. A silent node is one that did not answer. We count
 * the others.
 */
#define CW_MERGE_MAX_SILENT 16u

enum cw_merge_verb {
	CW_MERGE_INCIDENTS,
	CW_MERGE_REPORT,
	CW_MERGE_MUTE,
	CW_MERGE_STACKS,
	CW_MERGE_SUMMARIES,
	CW_MERGE_COMMUNICATORS,
	CW_MERGE_STATUS,
	CW_MERGE__MAX,
};

struct cw_merge {
	enum cw_merge_verb verb;
	json_t *doc; /* the merged document so far; NULL = no answer had one */
	struct cw_control_answer answer;
	json_t *silent; /* names of the nodes that did not answer */
	json_t *listed; /* ids of the incidents in doc, as keys */
	size_t room;    /* bytes that a status may still grow, for jobs that other nodes lead */
	unsigned n_silent;
	unsigned n_not_asked;
	bool is_short; /* memory ran out, so a part of the document is missing */
};

/*
 * Starts the merge with `local`, this node's own answer, and takes its content. NULL = this node
 * has no answer.
 */
void cw_control_merge_begin(struct cw_merge *m, enum cw_merge_verb verb,
			    struct cw_control_answer *local);
/*
 * Adds the answer of a node; reply NULL = the node did not answer. Returns true if we need no
 * further answer.
 */
bool cw_control_merge_add(struct cw_merge *m, const char *node,
			  const struct cw_msg_node_reply *reply);
/* Notes that we did not ask n nodes. Too many queries to other nodes were under way. */
void cw_control_merge_not_asked(struct cw_merge *m, unsigned n);
/*
 * Fills *ret with the merged answer, which the caller frees with cw_control_answer_fini(). Empties
 * m.
 */
void cw_control_merge_end(struct cw_merge *m, struct cw_control_answer *ret);
