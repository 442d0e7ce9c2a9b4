/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the answers of several nodes to one control request. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "daemon/control/control.h"
#include "proto/messages.h"

/* We name at most this many silent nodes and count the others. */
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
	json_t *doc; /* the merged document so far; NULL = none yet */
	struct cw_control_answer answer;
	json_t *silent; /* names of nodes without an answer */
	json_t *listed; /* ids of incidents, as keys */
	size_t room;    /* bytes that other nodes' jobs may still add to a status */
	unsigned n_silent;
	unsigned n_not_asked;
	bool is_short; /* a part is missing: memory ran out */
};

/* Starts with this node's own answer, `local`, and takes its content. local may be NULL. */
void cw_control_merge_begin(struct cw_merge *m, enum cw_merge_verb verb,
			    struct cw_control_answer *local);
/* Adds a node's answer; NULL = the node did not answer. True if no further answer is needed. */
bool cw_control_merge_add(struct cw_merge *m, const char *node,
			  const struct cw_msg_node_reply *reply);
/* Notes that we did not ask n nodes, because too many queries to other nodes are under way. */
void cw_control_merge_not_asked(struct cw_merge *m, unsigned n);
/*
 * Fills *ret with the merged answer, which the caller frees with cw_control_answer_fini(). m is
 * empty afterwards.
 */
void cw_control_merge_end(struct cw_merge *m, struct cw_control_answer *ret);
