/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All effects and queries of a leader in one table, which its driver fills in. The inputs of a
 * leader are messages (cw_leader_message(), cw_election_answer()), answers to its requests, time
 * (cw_leader_tick() and its clock), and the outcome of its alerts (cw_leader_posted()). So the same
 * leader runs in the daemon and in a cluster in memory.
 *
 * No function here calls back into the leader. Loop thread only; nothing blocks beyond writing
 * a bundle.
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
 * Identifies an incident: uid and id together are its name, wherever we store anything about it.
 * All borrowed.
 */
struct cw_incident_due {
	const char *id, *job;
	const char *old_id; /* as versions before uids made it; NULL = unknown */
	uint32_t uid, verdict_class;
};

/*
 * An answer to a request. reply: borrowed; NULL = the deadline passed or the node went away,
 * and no more replies come. A window or node request has one reply, an evidence request one for
 * each target.
 */
typedef void (*cw_leader_answer_fn)(const char *node, const struct cw_message *reply, void *asker);

/* user: passed to each function. */
struct cw_leader_effects {
	void *user;

	/* ---- messages to other nodes, and to this one ---- */

	/* msg is borrowed. 0; -errno: not sent. */
	int (*send)(void *user, const char *node, const struct cw_message *msg);
	/*
	 * Sends a digest to the node that leads. Before that, sends a copy to next, which leads if
	 * that node is lost. The digest is borrowed. Returns as send() would; *ret_copy likewise
	 * for the copy.
	 */
	int (*send_digest)(void *user, const char *leader, const char *next,
			   const struct cw_message *digest, int *ret_copy);
	/* Sends to every living peer. Returns the number of peers. */
	unsigned (*announce)(void *user, const struct cw_message *msg);
	/*
	 * Sends a window or evidence request. The driver puts a request id into msg. 0, and fn
	 * gets the answers; -EAGAIN: too many requests are open, try later; other -errno: no
	 * answer will come.
	 */
	int (*ask)(void *user, const char *node, struct cw_message *msg, uint32_t deadline_ms,
		   cw_leader_answer_fn fn, void *asker);
	/* Cancels all answers for this asker. */
	void (*cancel)(void *user, const void *asker);
	/* All peers without this node; *ret_n 0 = none. Borrowed until the leader returns. */
	const struct cw_peer *(*peers)(void *user, unsigned *ret_n);

	/* ---- bundles ---- */

	/*
	 * The directory that put() will use for this id. load_incident and update_incident: either
	 * both are set or both are NULL.
	 */
	void (*path)(void *user, const char *id, char *buf, size_t len);
	int (*put)(void *user, const struct cw_bundle *bundle);
	/*
	 * Loads the incident of an existing bundle: this daemon confirmed it before a restart, or
	 * before it took the job for ended. NULL = no bundle. New reference. *ret_is_whole: the
	 * bundle has the stacks of all ranks, or the reasons for missing ones.
	 */
	json_t *(*load_incident)(void *user, const struct cw_incident_due *due, bool *ret_is_whole);
	/* Replaces the incident of that bundle and keeps the rest of it. 0 or -errno. */
	int (*update_incident)(void *user, json_t *incident);

	/* ---- alerts ---- */

	bool (*was_sent)(void *user, const struct cw_incident_due *due);
	/* The same, without alerts that another node claims to have sent. */
	bool (*was_sent_here)(void *user, const struct cw_incident_due *due);
	/*
	 * Called when the alert is due. NULL = send it; otherwise one static word with the reason,
	 * for bundle, journal and status. The leader writes the bundle in any case.
	 */
	const char *(*suppress_reason)(void *user, const struct cw_incident_due *due);
	/*
	 * Delivers the alert: doc is collwatch.incident/1. 0: under way or done; later
	 * cw_leader_posted() may report a failure. <0: try again later.
	 */
	int (*alert)(void *user, const struct cw_incident_due *due, json_t *doc);
	/*
	 * Reports until when users on another node have muted the job: wall clock, 0 = no mute. The
	 * node has ranks of the job, by an accepted digest. Called once per digest, so every
	 * second. NULL = the driver ignores mutes.
	 */
	void (*muted)(void *user, const char *node, uint32_t uid, const char *job,
		      uint64_t until_wall_ns);

	/*
	 * A notice of a stall, without a page; later events of the stall use the same id. NULL, or
	 * false: the driver wants no notices, and the leader makes none.
	 */
	bool (*wants_notices)(void *user);
	void (*notice)(void *user, const struct cw_incident_due *due, const json_t *doc);

	/*
	 * Stores the post-mortem of a job, doc: collwatch.postmortem/1, beside the bundle with its
	 * id if there is one. may_alert: users who subscribe to post-mortems get it; false = it
	 * belongs to an alert that went out. 0; -EEXIST: the existing post-mortem stays; other
	 * -errno: not stored. NULL = the driver stores none.
	 */
	int (*put_postmortem)(void *user, const struct cw_incident_due *due, json_t *doc,
			      bool may_alert);

	/*
	 * The machine's name for this user; NULL = unknown, or not known yet. Borrowed until the
	 * leader returns. NULL function = always unknown.
	 */
	const char *(*user_name)(void *user, uint32_t uid);

	/* ---- the log; NULL = none ---- */

	/* A line, as cw_log_v(): level is an enum cw_log_level, fmt has static lifetime. */
	void (*log)(void *user, int level, const char *fmt, va_list ap)
		__attribute__((format(printf, 3, 0)));
	/* An event in the life of an incident, as cw_log_event(). */
	void (*event)(void *user, int level, const char *message_id, const char *text,
		      const char *const *fields);
};

void leader_log(const struct cw_leader_effects *e, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds the name of this user to a document without one, if we know it by now. */
void cw_leader_effects_name_user(const struct cw_leader_effects *e, uint32_t uid, json_t *doc);

/* The peer of this name; NULL = no such peer. */
const struct cw_peer *cw_leader_effects_peer(const struct cw_leader_effects *e, const char *name);
