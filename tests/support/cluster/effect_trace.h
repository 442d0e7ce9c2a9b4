/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace of the daemons of a cluster in memory, as text. It has a line for each sent or received
 * message, each bundle written, and each alert. It also has the lines of the log at info and above.
 * Two builds with the same behaviour make the same bytes. So the trace has no pointers, no pids of
 * the machine, and no time but the cluster's.
 *
 *	16.050 node-b > node-a evidence_reply id=… pid=1005 more=0 #5b0c27a1f00d
 *	16.100 node-a < node-b evidence_reply #5b0c27a1f00d
 *
 * The line of a sent message (>) has its content; the line of its receipt (<) has only the hash. A
 * message of a node to itself has only a receipt. The #… of a message is a hash of all its bytes. A
 * document has two hashes: words=#… of its sentences, and facts=#… of the rest. So a reworded
 * sentence changes no fact.
 *
 * A beat is a message that repeats the previous message of its kind between two nodes. The receipts
 * of digests, and of answers to them, are beats too. We join beats to one line, with their number
 * and a hash of all their lines. With is_full we do not join them.
 *
 * Link the program with --wrap=cw_log, =cw_log_v and =cw_log_event. Only one trace at a time; one
 * thread.
 */
#pragma once

#include "cluster.h"

struct effect_trace;

/* Begins a trace of c, which we borrow until effect_trace_end(). */
struct effect_trace *effect_trace_new(struct cluster *c, bool is_full);
/* Ends the trace and returns its text. The caller releases it with free(). */
char *effect_trace_end(struct effect_trace *t);
