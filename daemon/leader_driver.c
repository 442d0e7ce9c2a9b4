/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leader_driver.h"

#include "daemon/alerts/alerts.h"
#include "loop/user_names.h"
#include "transport/transport.h"

/* ---- other nodes ---- */

static int send_message(void *user, const char *node, const struct cw_message *msg)
{
	const struct cw_leader_driver *d = user;

	return cw_transport_send(d->transport, node, msg);
}

static int send_digest(void *user, const char *leader, const char *next,
		       const struct cw_message *digest, int *ret_copy)
{
	const struct cw_leader_driver *d = user;

	return cw_transport_send_digest(d->transport, leader, next, digest, ret_copy);
}

static unsigned announce(void *user, const struct cw_message *msg)
{
	const struct cw_leader_driver *d = user;

	return cw_transport_announce(d->transport, msg);
}

static int ask(void *user, const char *node, struct cw_message *msg, uint32_t deadline_ms,
	       cw_leader_answer_fn fn, void *asker)
{
	const struct cw_leader_driver *d = user;

	return cw_transport_request(d->transport, node, msg, deadline_ms, fn, asker, NULL);
}

static void cancel(void *user, const void *asker)
{
	const struct cw_leader_driver *d = user;

	cw_transport_cancel(d->transport, asker);
}

static const struct cw_peer *peers(void *user, unsigned *ret_n)
{
	const struct cw_leader_driver *d = user;

	return cw_transport_peers(d->transport, ret_n);
}

/* ---- bundles and alerts ---- */

static void path(void *user, const char *id, char *buf, size_t len)
{
	const struct cw_leader_driver *d = user;

	cw_alerts_path(d->alerts, id, buf, len);
}

static int put(void *user, const struct cw_bundle *bundle)
{
	const struct cw_leader_driver *d = user;

	return cw_alerts_put(d->alerts, bundle);
}

static json_t *load_incident(void *user, const struct cw_incident_due *due, bool *ret_is_whole)
{
	const struct cw_leader_driver *d = user;

	return cw_alerts_load_incident(d->alerts, due, ret_is_whole);
}

static int update_incident(void *user, json_t *incident)
{
	const struct cw_leader_driver *d = user;

	return cw_alerts_update_incident(d->alerts, incident);
}

static bool was_sent(void *user, const struct cw_incident_due *due)
{
	const struct cw_leader_driver *d = user;

	return cw_alerts_was_sent(d->alerts, due);
}

static bool was_sent_here(void *user, const struct cw_incident_due *due)
{
	const struct cw_leader_driver *d = user;

	return cw_alerts_was_sent_here(d->alerts, due);
}

static const char *suppress_reason(void *user, const struct cw_incident_due *due)
{
	const struct cw_leader_driver *d = user;

	return cw_alerts_suppress_reason(d->alerts, due);
}

static int alert(void *user, const struct cw_incident_due *due, json_t *doc)
{
	const struct cw_leader_driver *d = user;

	return cw_alerts_send(d->alerts, due, doc);
}

static void muted(void *user, const char *node, uint32_t uid, const char *job,
		  uint64_t until_wall_ns)
{
	const struct cw_leader_driver *d = user;

	cw_alerts_muted(d->alerts, node, uid, job, until_wall_ns);
}

static bool wants_notices(void *user)
{
	const struct cw_leader_driver *d = user;

	return cw_alerts_wants_notices(d->alerts);
}

static void notice(void *user, const struct cw_incident_due *due, const json_t *doc)
{
	const struct cw_leader_driver *d = user;

	cw_alerts_note(d->alerts, due, doc);
}

static int put_postmortem(void *user, const struct cw_incident_due *due, json_t *doc,
			  bool may_alert)
{
	const struct cw_leader_driver *d = user;

	return cw_alerts_put_postmortem(d->alerts, due, doc, may_alert);
}

static const char *user_name(void *user, uint32_t uid)
{
	const struct cw_leader_driver *d = user;

	return cw_user_names_get(d->user_names, uid);
}

/* ---- the log ---- */

__attribute__((format(printf, 3, 0))) static void log_line(void *user, int level, const char *fmt,
							   va_list ap)
{
	cw_log_v(level, fmt, ap);
}

static void log_event(void *user, int level, const char *message_id, const char *text,
		      const char *const *fields)
{
	cw_log_event(level, message_id, text, fields);
}

void cw_leader_driver_init(struct cw_leader_driver *d, struct cw_transport *transport,
			   struct cw_alerts *alerts, struct cw_user_names *user_names)
{
	*d = (struct cw_leader_driver){
		.transport = transport,
		.alerts = alerts,
		.user_names = user_names,
		.effects = {
			.user = d,
			.send = send_message,
			.send_digest = send_digest,
			.announce = announce,
			.ask = ask,
			.cancel = cancel,
			.peers = peers,
			.path = path,
			.put = put,
			.load_incident = load_incident,
			.update_incident = update_incident,
			.was_sent = was_sent,
			.was_sent_here = was_sent_here,
			.suppress_reason = suppress_reason,
			.alert = alert,
			.muted = muted,
			.wants_notices = wants_notices,
			.notice = notice,
			.put_postmortem = put_postmortem,
			.user_name = user_name,
			.log = log_line,
			.event = log_event,
		},
	};
}
