/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace of the daemons of a cluster in memory, as text. Each message that comes or goes has a
 * line, each written bundle, each alert, and each line of the log at info and above. Two builds
 * that do the same make the same bytes: no pointers, no pids of the machine, no time but the
 * cluster's.
 *
 *	16.050 node-b > node-a evidence_reply id=… pid=1005 more=0 #5b0c27a1f00d
 *	16.100 node-a < node-b evidence_reply #5b0c27a1f00d
 *
 * The line of a leaving message (>) has its content, and the line where it comes (<) only the hash.
 * A message of a node to itself only comes. The #… of a message is a hash of all its bytes. Of
 * documents, facts=#… is a hash of all but the sentences, and words=#… a hash of the sentences: a
 * reworded sentence changes no fact.
 *
 * Beats are joined to one line, with their number and a hash of all of their lines: messages that
 * repeat the previous message of their kind on their way, and digests and answers to them where
 * they come. With is_full we do not join them.
 *
 * Its program is linked with --wrap=cw_log, =cw_log_v and =cw_log_event. One at a time; one thread.
 */
#pragma once

#include "cluster.h"

struct effect_trace;

/* Looks at c, which is borrowed, until effect_trace_end(). */
struct effect_trace *effect_trace_new(struct cluster *c, bool is_full);
/* The text; free(). */
char *effect_trace_end(struct effect_trace *t);
