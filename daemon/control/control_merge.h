/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of several nodes to one control request, made one. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "daemon/control/control.h"
#include "proto/messages.h"

/* Nodes without an answer that are named; the others are counted. */
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
	json_t *doc; /* so far; NULL = none yet */
	struct cw_control_answer answer;
	json_t *silent; /* names */
	json_t *listed; /* ids of incidents, as keys */
	size_t room;    /* bytes that other nodes' jobs may still add to a status */
	unsigned n_silent;
	unsigned n_not_asked;
	bool is_short; /* memory ran out for some of it */
};

/* Takes the content of local, this node's own answer; it may be NULL. */
void cw_control_merge_begin(struct cw_merge *m, enum cw_merge_verb verb,
			    struct cw_control_answer *local);
/* A node's answer; NULL = it gave none. Returns true when there is no need of more. */
bool cw_control_merge_add(struct cw_merge *m, const char *node,
			  const struct cw_msg_node_reply *reply);
/* So many nodes, of any, were not asked: too many questions to them are under way. */
void cw_control_merge_not_asked(struct cw_merge *m, unsigned n);
/* What they all say; cw_control_answer_fini() it. Nothing is left in m. */
void cw_control_merge_end(struct cw_merge *m, struct cw_control_answer *ret);
