/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a leader does to the world, and all that it asks it: one table, which its driver fills
 * in. What goes in is messages (cw_leader_message(), cw_election_answer()), answers to what
 * it has asked, time (cw_leader_tick() and its clock), and what became of its alerts
 * (cw_leader_posted()). So the same leader runs in the daemon and in a cluster in memory.
 *
 * Nothing here calls the leader back from inside. Loop thread only; nothing blocks beyond writing
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
 * Whose incident, and which: uid and id are its name together, for all who keep anything by it. All
 * borrowed.
 */
struct cw_incident_due {
	const char *id, *job;
	const char *old_id; /* as versions before uids made it; NULL = not known */
	uint32_t uid, verdict_class;
};

/*
 * An answer to what was asked. reply: borrowed; NULL = the deadline passed or the node went away,
 * and nothing more comes. A window or node request has one reply, an evidence request one for each
 * target.
 */
typedef void (*cw_leader_answer_fn)(const char *node, const struct cw_message *reply, void *asker);

/* user: passed to each. */
struct cw_leader_effects {
	void *user;

	/* ---- other nodes, and the own one by the same way ---- */

	/* msg is borrowed. 0; -errno: it does not go out. */
	int (*send)(void *user, const char *node, const struct cw_message *msg);
	/*
	 * A digest, which is borrowed, to the node that leads, and to next, which leads when that
	 * is lost, before it as a copy. Returns as send() would; *ret_copy likewise for the copy.
	 */
	int (*send_digest)(void *user, const char *leader, const char *next,
			   const struct cw_message *digest, int *ret_copy);
	/* To every living peer. Returns to how many it went. */
	unsigned (*announce)(void *user, const struct cw_message *msg);
	/*
	 * Sends a window or evidence request under an id that the driver gives it, in msg. 0, and
	 * the answers come as calls of fn; -EAGAIN: too many are open, try later; other -errno:
	 * none.
	 */
	int (*ask)(void *user, const char *node, struct cw_message *msg, uint32_t deadline_ms,
		   cw_leader_answer_fn fn, void *asker);
	/* No answers for this asker any more. */
	void (*forget)(void *user, const void *asker);
	/* Without the own node; *ret_n 0 = none. Borrowed until the leader returns. */
	const struct cw_peer *(*peers)(void *user, unsigned *ret_n);

	/* ---- bundles ---- */

	/* The directory that put() will use for this id. before and amend: both, or NULL. */
	void (*path)(void *user, const char *id, char *buf, size_t len);
	int (*put)(void *user, const struct cw_bundle *bundle);
	/*
	 * The incident of the bundle that is there already, because this daemon confirmed it before
	 * it was started again, or before it took the job for ended; NULL = there is none. New
	 * reference. *ret_is_whole: the stacks of all ranks are in the bundle, or why not.
	 */
	json_t *(*before)(void *user, const struct cw_incident_due *due, bool *ret_is_whole);
	/* Replaces the incident of that bundle and leaves all else in it. 0 or -errno. */
	int (*amend)(void *user, json_t *incident);

	/* ---- alerts ---- */

	bool (*was_sent)(void *user, const struct cw_incident_due *due);
	/* The same, and not by another node that told of it. */
	bool (*was_sent_here)(void *user, const struct cw_incident_due *due);
	/*
	 * Asked when the alert is due: NULL = tell people; else one static word for why not, which
	 * goes into bundle, journal and status. The bundle is written in any case.
	 */
	const char *(*suppress_reason)(void *user, const struct cw_incident_due *due);
	/*
	 * Delivers the alert: doc is collwatch.incident/1. 0: under way or done; later
	 * cw_leader_posted() may report that it failed. <0: try again later.
	 */
	int (*alert)(void *user, const struct cw_incident_due *due, json_t *doc);
	/*
	 * Another node, which has ranks of this job by a digest that was taken, says until when
	 * people there have muted it: wall clock, 0 = they have not. Once a digest, so each second.
	 * NULL = nobody wants to know.
	 */
	void (*muted)(void *user, const char *node, uint32_t uid, const char *job,
		      uint64_t until_wall_ns);

	/*
	 * A stall that is told of, but to nobody who sleeps; what becomes of it is told of by the
	 * same id. NULL, or false: nobody wants such, and there are none.
	 */
	bool (*wants_notices)(void *user);
	void (*notice)(void *user, const struct cw_incident_due *due, const json_t *doc);

	/*
	 * Keeps the epitaph of a job, doc: collwatch.epitaph/1, beside the bundle with its id if
	 * there is one. may_tell: whoever wants to be told of epitaphs is; else it concerns an
	 * alert that went out. 0; -EEXIST: there is one already, which stays; other -errno: it is
	 * not kept. NULL = nothing is.
	 */
	int (*bury)(void *user, const struct cw_incident_due *due, json_t *doc, bool may_tell);

	/*
	 * What the machine calls this user; NULL = that is not known, or not yet. Borrowed until
	 * the leader returns. NULL = it is never known.
	 */
	const char *(*user_name)(void *user, uint32_t uid);

	/* ---- the log; NULL = none ---- */

	/* A line, as cw_log_v(): level is an enum cw_log_level, fmt lives for ever. */
	void (*log)(void *user, int level, const char *fmt, va_list ap)
		__attribute__((format(printf, 3, 0)));
	/* What becomes of an incident, as cw_log_event(). */
	void (*event)(void *user, int level, const char *message_id, const char *text,
		      const char *const *fields);
};

void leader_log(const struct cw_leader_effects *e, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts the name of this user into a document that lacks it, if it is known by now. */
void cw_leader_effects_name_user(const struct cw_leader_effects *e, uint32_t uid, json_t *doc);

/* The peer of this name; NULL = there is none. */
const struct cw_peer *cw_leader_effects_peer(const struct cw_leader_effects *e, const char *name);
