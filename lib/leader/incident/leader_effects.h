/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All effects and queries of a leader in one table, which the leader's driver fills in. The inputs
 * of a leader are messages (cw_leader_message(), cw_election_answer()), answers to its requests,
 * time (cw_leader_tick() and its clock), and the outcome of its alerts (cw_leader_posted()). So the
 * same leader runs in the daemon and in a simulated cluster in memory.
 *
 * No function of the table calls back into the leader. Loop thread only; nothing blocks beyond
 * writing a bundle.
 */
#pragma once

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/log.h"
#include "model/peer.h"

struct cw_bundle;
struct cw_message;

/*
 * Identifies an incident. Wherever we store facts about an incident, uid and id together name it.
 * All pointers are borrowed.
 */
struct cw_incident_due {
	const char *id, *job;
	uint32_t uid, verdict_class;
};

/*
 * Takes an answer to a request. reply: borrowed; NULL = no more replies come, because the deadline
 * passed or the node went away. A window or node request has one reply. An evidence request has one
 * reply for each target.
 */
typedef void (*cw_leader_answer_fn)(const char *node, const struct cw_message *reply, void *asker);

/* The effects. Each function gets `user` as its first argument. */
struct cw_leader_effects {
	void *user;

	/* ---- messages to all nodes, including this one ---- */

	/*
	 * Sends a message to a node. msg is borrowed. Returns 0, or -errno if the message was not
	 * sent.
	 */
	int (*send)(void *user, const char *node, const struct cw_message *msg);
	/*
	 * Sends a digest to the leader. Before that, sends a copy to node `next`, which leads if
	 * the leader is lost. The digest is borrowed. Returns the result of sending to the leader,
	 * as send() does. *ret_copy is the result of sending the copy.
	 */
	int (*send_digest)(void *user, const char *leader, const char *next,
			   const struct cw_message *digest, int *ret_copy);
	/* Sends a message to every living peer. Returns the number of peers. */
	unsigned (*announce)(void *user, const struct cw_message *msg);
	/*
	 * Sends a window or evidence request. The driver puts a request id into msg. Returns 0 if
	 * fn will get the answers. -EAGAIN: too many requests are open, so the leader tries again
	 * later. Another -errno: no answer will come.
	 */
	int (*ask)(void *user, const char *node, struct cw_message *msg, uint32_t deadline_ms,
		   cw_leader_answer_fn fn, void *asker);
	/* Cancels all answers for this asker. */
	void (*cancel)(void *user, const void *asker);
	/*
	 * Returns all peers, without this node. *ret_n = 0: there are none. The array is borrowed
	 * until the leader returns.
	 */
	const struct cw_peer *(*peers)(void *user, unsigned *ret_n);

	/* ---- bundles ---- */

	/*
	 * Fills buf with the directory that put() will use for this id. The driver sets either both
	 * of load_incident and update_incident, or neither.
	 */
	void (*path)(void *user, const char *id, char *buf, size_t len);
	int (*put)(void *user, const struct cw_bundle *bundle);
	/*
	 * Loads the incident of an existing bundle. This daemon confirmed it before a restart, or
	 * before it believed that the job had ended. Returns a new reference; NULL = no bundle.
	 * *ret_is_whole: the bundle has the stacks of all ranks, or the reasons for missing stacks.
	 */
	json_t *(*load_incident)(void *user, const struct cw_incident_due *due, bool *ret_is_whole);
	/*
	 * Replaces the incident in an existing bundle, and keeps the rest of the bundle. Returns 0
	 * or -errno.
	 */
	int (*update_incident)(void *user, json_t *incident);

	/* ---- alerts ---- */

	bool (*was_sent)(void *user, const struct cw_incident_due *due);
	/* Like was_sent(), but ignores alerts that another node claims to have sent. */
	bool (*was_sent_here)(void *user, const struct cw_incident_due *due);
	/*
	 * Decides about an alert that is due. Returns NULL to send the alert. Otherwise returns one
	 * static word with the reason, for bundle, journal and status. The leader writes the bundle
	 * in any case.
	 */
	const char *(*suppress_reason)(void *user, const struct cw_incident_due *due);
	/*
	 * Delivers the alert. doc is a collwatch.incident/1. Returns 0 if delivery is under way or
	 * done; cw_leader_posted() may report a failure later. Returns < 0 if the leader should try
	 * again later.
	 */
	int (*alert)(void *user, const struct cw_incident_due *due, json_t *doc);
	/*
	 * Passes on until when users on another node have muted the job: wall clock, 0 = no mute.
	 * The node has ranks of the job, as its accepted digest shows. The leader runs this for
	 * each digest, that is, every second. NULL = the driver ignores mutes.
	 */
	void (*muted)(void *user, const char *node, uint32_t uid, const char *job,
		      uint64_t until_wall_ns);

	/*
	 * Sends a notice of a stall, without a page. Later events of the stall use the same id. If
	 * wants_notices is NULL or returns false, the leader makes no notices.
	 */
	bool (*wants_notices)(void *user);
	void (*notice)(void *user, const struct cw_incident_due *due, const json_t *doc);

	/*
	 * Stores the post-mortem of a job. doc is a collwatch.incident/1 of severity `failed`. If a
	 * bundle has the same id, the facts about the end join its incident. may_alert: users who subscribe to
	 * post-mortems get it; false = it belongs to an alert that was sent. Returns 0, -EEXIST if
	 * the existing post-mortem stays, or another -errno if it was not stored. NULL = the driver
	 * stores no post-mortems.
	 */
	int (*put_postmortem)(void *user, const struct cw_incident_due *due, json_t *doc,
			      bool may_alert);

	/*
	 * Returns the machine's name for this user; NULL = unknown, or not known yet. The name is
	 * borrowed until the leader returns. If the function is NULL, names are always unknown.
	 */
	const char *(*user_name)(void *user, uint32_t uid);

	/* ---- the log; NULL = no log ---- */

	/*
	 * Logs a line, as cw_log_v() does. level is an enum cw_log_level. fmt has static lifetime.
	 */
	void (*log)(void *user, int level, const char *fmt, va_list ap)
		__attribute__((format(printf, 3, 0)));
	/* Logs an event in the life of an incident, as cw_log_event() does. */
	void (*event)(void *user, int level, const char *message_id, const char *text,
		      const char *const *fields);
};

void leader_log(const struct cw_leader_effects *e, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds the user's name to the document if the document lacks it and we know the name. */
void cw_leader_effects_name_user(const struct cw_leader_effects *e, uint32_t uid, json_t *doc);

/* Returns the peer of this name; NULL = no such peer. */
const struct cw_peer *cw_leader_effects_peer(const struct cw_leader_effects *e, const char *name);
