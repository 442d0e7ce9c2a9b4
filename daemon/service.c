/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.c creates the parts so that each part comes after the parts that it needs. It frees them
 * in reverse order. Each part calls back into this file and knows no other part.
 *
 * We limit the messages of each peer, and then dispatch them by type. One timer, the tick, checks
 * all deadlines. A timer without a delay delivers the messages of this node to itself.
 */
#include "daemon/service.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/awake.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "daemon/agents/agent_probe.h"
#include "daemon/alerts/alerts.h"
#include "daemon/alerts/mutes.h"
#include "daemon/alerts/webhook_post.h"
#include "daemon/bundle_nodes.h"
#include "daemon/bundle_parts.h"
#include "daemon/config/config_reader.h"
#include "daemon/control/control_socket.h"
#include "daemon/control/summaries_doc.h"
#include "daemon/evidence/capture.h"
#include "daemon/evidence/core/core_take.h"
#include "daemon/evidence/responder.h"
#include "daemon/kernel/closed_files.h"
#include "daemon/kernel/kernel_events.h"
#include "daemon/leader_driver.h"
#include "daemon/loop_lag.h"
#include "daemon/metrics/metrics_output.h"
#include "daemon/node/lock_owners.h"
#include "daemon/node/node.h"
#include "daemon/node/unregistered_scan.h"
#include "daemon/process/fdstore.h"
#include "daemon/store/store.h"
#include "leader/election.h"
#include "leader/incident/incident.h"
#include "leader/leader.h"
#include "loop/conn_closer.h"
#include "loop/events.h"
#include "loop/sd_notify.h"
#include "loop/user_names.h"
#include "numerics/node/numerics_extension.h"
#include "transport/peer_rate.h"
#include "transport/tcp.h"

/* Interval of the tick. The shortest deadline that we promise is 2 s. */
#define TICK_MS 250
/* Interval of our tries to write the bundles that are not on disk yet. */
#define STORE_RETRY_NS (5 * CW_NS_PER_S)
/*
 * Maximum number of registered processes of one node, far above its number of GPUs. One user gets
 * half of these places.
 */
#define MAX_PROCESSES 4096u
/*
 * Maximum number of captures at the same time on one node (docs/design/evidence.md#native-stacks).
 */
#define MAX_CAPTURES 2u
/*
 * Maximum number of captures in the queue. One user can queue captures for all ranks of a full
 * node. The rest is for ranks that an alert waits for, and for other users (identity/quota.h).
 */
#define MAX_CAPTURES_QUEUED 112u

const struct cw_extension *const cw_service_extension = &cw_numerics_extension;

/*
 * Capabilities of children. READING: closed files of /proc, and memory. KERNEL: also by BPF, or
 * /proc/PID/stack. UNWINDING: also files that a program has mapped (CAP_SYS_ADMIN before Linux
 * 5.9), and changing to the user of a process. The unit does not grant CAP_SYS_ADMIN and
 * CAP_SYS_NICE.
 */
#define CAPABILITY(name) (UINT64_C(1) << (name))
#define READING (CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_DAC_READ_SEARCH))
#define KERNEL (READING | CAPABILITY(CAP_BPF) | CAPABILITY(CAP_PERFMON) | CAPABILITY(CAP_SYS_ADMIN))
#define UNWINDING                                                                                  \
	(READING | CAPABILITY(CAP_CHECKPOINT_RESTORE) | CAPABILITY(CAP_SETUID) |                   \
	 CAPABILITY(CAP_SETGID) | CAPABILITY(CAP_KILL) | CAPABILITY(CAP_SYS_NICE) |                \
	 CAPABILITY(CAP_SYS_ADMIN))

const struct cw_fork_job cw_service_jobs[CW_SERVICE_JOBS] = {
	{ cw_agent_probe_child, READING },
	{ cw_conn_closer_child, 0 },
	{ cw_lock_owner_child, READING },
	{ cw_capture_proc_child, KERNEL },
	{ cw_capture_python_child, UNWINDING },
	{ cw_capture_native_child, UNWINDING },
	{ cw_capture_sweep_child, UNWINDING },
	{ cw_core_child, UNWINDING },
	{ cw_unregistered_scan_child, READING },
	{ cw_config_reader_child, CAPABILITY(CAP_DAC_READ_SEARCH) },
	{ .run = cw_webhook_post_child, .is_reserved = true },
	{ cw_closed_files_child, READING | CAPABILITY(CAP_BPF) | CAPABILITY(CAP_SYS_NICE) },
};

struct cw_service {
	struct event_base *base;
	struct cw_config *config;
	struct cw_fork_server *forks;
	struct cw_awake awake; /* a clock that all parts use */
	int64_t started_ns;
	struct cw_reload_state reload;
	struct cw_transport *transport;
	struct cw_tcp *tcp;
	struct cw_election *members;
	struct cw_leader_driver driver; /* effects for the leader and the election */
	struct cw_leader *leader;
	struct cw_node *node;
	struct cw_kernel_events *kernel; /* NULL = not available, for the reason in kernel_err */
	struct cw_err kernel_err;
	struct cw_capture *capture;
	struct cw_responder *responder;
	struct cw_peer_rate *peer_rate;
	struct cw_store *store;
	struct cw_mutes *mutes;
	struct cw_bundle_nodes *bundle_nodes;
	struct cw_alerts *alerts;
	struct cw_user_names *user_names;
	struct cw_control_socket *control;
	struct cw_metrics_output *metrics;
	struct cw_lateness lateness; /* how late the tick fired */
	int64_t ticked_ns;
	struct event *tick;
	struct event *wake; /* timer that delivers the messages of this node to itself */
	struct cw_loop_lag lag;
	int64_t store_retry_ns;
	uint64_t digests_lost;
};

/* Announces to the other nodes that the alert was delivered. */
static void announce_delivered(struct cw_service *s, const struct cw_incident_due *due)
{
	struct cw_message msg = { .type = CW_MSG_INCIDENT_DELIVERED,
				  .incident_delivered = {
					  .id = due->id, .uid = due->uid, .label = due->job } };

	(void)cw_transport_announce(s->transport, &msg);
}

static void hear_delivered(struct cw_service *s, const char *from,
			   const struct cw_msg_incident_delivered *d)
{
	if (!cw_leader_is_unconfirmed(s->leader, from, d->uid, d->label, d->id))
		cw_alerts_learn(s->alerts, from, d);
}

static void on_posted(const struct cw_incident_due *due, bool delivered, void *user)
{
	struct cw_service *s = user;

	if (delivered)
		announce_delivered(s, due);
	cw_leader_posted(s->leader, due->uid, due->id, delivered);
}

/* ---- messages ---- */

/* True if the peer has sent too many requests that cost this node work. */
static bool is_too_often(struct cw_service *s, const char *from, const struct cw_message *msg)
{
	enum cw_peer_ask kind;

	if (!strcmp(from, s->config->node_name))
		return false;
	switch (msg->type) {
	case CW_MSG_EVIDENCE_REQUEST:
		kind = CW_PEER_ASK_EVIDENCE;
		break;
	case CW_MSG_WINDOW_REQUEST:
		kind = CW_PEER_ASK_WINDOWS;
		break;
	case CW_MSG_RANK_SEARCH:
		kind = CW_PEER_ASK_SEARCH;
		break;
	case CW_MSG_INCIDENT_ANNOUNCE:
		kind = CW_PEER_ASK_ANNOUNCE;
		break;
	case CW_MSG_NODE_REQUEST:
		kind = strcmp(msg->node_request.verb, "mute") ? CW_PEER_ASK_QUESTION
							      : CW_PEER_ASK_MUTE;
		break;
	default:
		return false;
	}
	return !cw_peer_rate_admits(s->peer_rate, from, kind);
}

static void on_message(const char *from, struct cw_message **msg, void *user)
{
	struct cw_service *s = user;

	if (is_too_often(s, from, *msg))
		return; /* drop it: the peer's request has a deadline, which reports the failure */
	if ((*msg)->type == CW_MSG_INCIDENT_DELIVERED)
		hear_delivered(s, from, &(*msg)->incident_delivered);
	else if ((*msg)->type == CW_MSG_MEMBERS)
		cw_election_answer(s->members, from, &(*msg)->members);
	else if (!cw_control_socket_message(s->control, from, *msg) &&
		 !cw_leader_message(s->leader, from, msg) &&
		 !cw_responder_message(s->responder, from, *msg))
		log_debug("%s sent a message of type %u that has no business here", from,
			  (*msg)->type);
}

static void on_wake_wanted(void *user)
{
	struct cw_service *s = user;
	const struct timeval now = { 0 };

	if (s->wake)
		/* If this fails, the next tick delivers the messages. */
		(void)event_add(s->wake, &now);
}

static void on_wake(evutil_socket_t fd, short what, void *user)
{
	struct cw_service *s = user;

	cw_transport_run(s->transport);
	if (cw_leader_continue(s->leader))
		on_wake_wanted(s);
}

static void on_digest(const struct cw_msg_digest *digest, void *user)
{
	struct cw_service *s = user;
	struct cw_msg_digest own = *digest;
	int r;

	own.muted_until_ns = (uint64_t)cw_mutes_own_until(s->mutes, own.uid, own.label);
	r = cw_election_publish(s->members, &own);
	if (r == 0)
		return;
	s->digests_lost++;
	/*
	 * Log rarely, because each job has one failure per second as long as the reason persists.
	 */
	if ((s->digests_lost & (s->digests_lost - 1)) == 0)
		log_warn("job=%s: digest not sent: %s (%llu so far)", digest->label, strerror(-r),
			 (unsigned long long)s->digests_lost);
}

/*
 * True if this node has this incident open. If another node leads the job and reports an incident,
 * we return true, too, because we do not know the id of its incident.
 */
static bool is_open_somewhere(uint32_t uid, const char *label, const char *id, void *user)
{
	const struct cw_service *s = user;
	const char *leader;
	struct cw_job_id job;

	if (cw_leader_has_open(s->leader, uid, id) || cw_job_id_make(uid, label, &job) < 0)
		return true;
	leader = cw_election_leader(s->members, &job);
	return leader && strcmp(leader, s->config->node_name) != 0 &&
	       cw_election_has_incident(s->members, &job);
}

static void on_tick(evutil_socket_t fd, short what, void *user)
{
	struct cw_service *s = user;
	int64_t now = cw_clock_now_ns(&s->awake.clock);

	if (s->ticked_ns)
		cw_lateness_add(&s->lateness, now - s->ticked_ns - TICK_MS * CW_NS_PER_MS);
	s->ticked_ns = now;
	cw_loop_lag_tick(&s->lag, now, cw_loop_lag_run_delay_ns(&s->lag));
	cw_log_tick();
	cw_transport_run(s->transport);
	if (cw_leader_tick(s->leader))
		on_wake_wanted(s);
	cw_bundle_nodes_tick(s->bundle_nodes);
	if (now < s->store_retry_ns)
		return;
	s->store_retry_ns = now + STORE_RETRY_NS;
	/* Status and metrics show the bundles that are not on disk yet. */
	(void)cw_store_retry(s->store);
	(void)cw_store_close_unseen(s->store, is_open_somewhere, s); /* logs its own errors */
	cw_mutes_retry(s->mutes);
	cw_alerts_resend(s->alerts);
}

/* Returns the number of announcements and answers that we refused because they name no job. */
static uint64_t messages_without_job(const struct cw_service *s)
{
	struct cw_leader_stats leader;

	cw_leader_stats(s->leader, &leader);
	return leader.unnamed + cw_election_unnamed(s->members);
}

static void on_status(struct cw_status_source *ret, void *user)
{
	struct cw_service *s = user;

	*ret = (struct cw_status_source){
		.clock = &s->awake.clock,
		.transport = s->transport,
		.members = s->members,
		.leader = s->leader,
		.ranks = s->node,
		.mutes = s->mutes,
		.is_shadow = cw_alerts_is_shadow(s->alerts),
		.started_ns = s->started_ns,
		.loop_max_ns = s->lag.max_ns,
		.log_lost = cw_log_lost(),
		.store = s->store,
		.no_kernel_events = s->kernel ? NULL : s->kernel_err.text,
		.reload = &s->reload,
	};
	if (s->tcp)
		(void)cw_tcp_note(s->tcp, ret->peers_note, sizeof(ret->peers_note));
	cw_node_stats(s->node, &ret->node);
	cw_accept_pause_stats(&ret->accept);
}

/* ---- assembly ---- */

static struct cw_thresholds thresholds_of(const struct cw_config *c)
{
	struct cw_thresholds t = cw_thresholds_default();

	t.stall_min_ns = c->stall_min_ns;
	t.stall_max_ns = c->stall_max_ns;
	t.no_progress_after_ns = c->no_progress_after_ns;
	t.first_op_ns = c->first_op_after_ns;
	/*
	 * A proof's alert must go out 3 s after we first see the proof. With peers this includes
	 * the time for their objections.
	 */
	if (cw_config_has_peers(c) && t.proof_ns > CW_INCIDENT_OBJECTION_NS)
		t.proof_ns -= CW_INCIDENT_OBJECTION_NS;
	return t;
}

static int open_store(struct cw_service *s, struct cw_err *err)
{
	struct cw_store_config config = {
		.state_dir = s->config->state_dir,
		.max_bytes = (uint64_t)s->config->state_max_bytes,
		.max_age_ns = s->config->state_max_age_ns,
		.clock = &s->awake.clock,
	};

	return cw_store_open(&config, &s->store, err);
}

static int open_mutes(struct cw_service *s, struct cw_err *err)
{
	int r = cw_mutes_open(s->config->state_dir, &s->awake.clock, &s->mutes);

	return r < 0 ? cw_err_set(err, -r, "mutes in %s: %s", s->config->state_dir, strerror(-r))
		     : 0;
}

static void complete_bundle(const json_t *head, struct cw_bundle *bundle, void *user)
{
	const struct cw_service *s = user;
	const struct cw_summaries_source source = { .extension = cw_service_extension,
						    .node = s->node,
						    .node_name = s->config->node_name,
						    .clock = &s->awake.clock };

	if (!s->node)
		return;
	cw_bundle_parts_add(&source, head, bundle);
	/*
	 * Request the summaries of other nodes only if ranks of this node make summaries, or if
	 * this node has no ranks of the job. Either all ranks of a job make summaries, or none
	 * does.
	 */
	if (bundle->summaries || !bundle->ops)
		cw_bundle_nodes_want(s->bundle_nodes, head);
}

static int open_alerts(struct cw_service *s, struct cw_err *err)
{
	struct cw_alerts_config config = {
		.base = s->base,
		.forks = s->forks,
		.clock = &s->awake.clock,
		.store = s->store,
		.mutes = s->mutes,
		.state_dir = s->config->state_dir,
		.on_posted = on_posted,
		.complete = complete_bundle,
		.user = s,
	};

	return cw_alerts_new(&config, s->config, &s->alerts, err);
}

static int open_user_names(struct cw_service *s, struct cw_err *err)
{
	const struct cw_user_names_config config = { .base = s->base, .clock = &s->awake.clock };

	return cw_user_names_new(&config, &s->user_names) < 0
		       ? cw_err_set(err, ENOMEM, "out of memory")
		       : 0;
}

static int open_transport(struct cw_service *s, struct cw_err *err)
{
	const struct cw_config *c = s->config;
	_cleanup_(freep) const char **names = calloc(c->n_peers + 1, sizeof(*names));
	_cleanup_(freep) const char **addresses = calloc(c->n_peers + 1, sizeof(*addresses));
	struct cw_transport_config config = {
		.clock = &s->awake.clock,
		.self = c->node_name,
		.names = names,
		.addresses = addresses,
		.n_peers = c->n_peers,
		.finds_peers = *c->peers_from,
		.on_message = on_message,
		.on_wake = on_wake_wanted,
		.user = s,
	};
	struct cw_tcp_config tcp = {
		.base = s->base,
		.clock = &s->awake.clock,
		.epoch = (uint64_t)cw_clock_wall_ns(&s->awake.clock),
		.listen = c->listen,
		.find_under = *c->peers_from ? c->peers_from : NULL,
		.tls = cw_config_tls_files(c),
	};
	struct cw_bundle_nodes_config bundle_nodes = { .clock = &s->awake.clock,
						       .store = s->store,
						       .extension = cw_service_extension };

	for (unsigned i = 0; names && addresses && i < c->n_peers; i++) {
		names[i] = c->peers[i].name;
		addresses[i] = c->peers[i].address;
	}
	if (!names || !addresses || cw_transport_new(&config, &s->transport) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	bundle_nodes.transport = tcp.transport = s->transport;
	if (cw_bundle_nodes_new(&bundle_nodes, &s->bundle_nodes) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	return cw_config_has_peers(c) ? cw_tcp_new(&tcp, &s->tcp, err) : 0;
}

static int open_kernel_events(struct cw_service *s, struct cw_err *err)
{
	if (cw_kernel_events_new(&s->kernel, &s->kernel_err) < 0)
		log_notice(CW_STATUS_NO_KERNEL "%s", s->kernel_err.text);
	return 0; /* go on: the daemon works without these facts */
}

static bool has_incident(const struct cw_job_id *job, void *user)
{
	const struct cw_service *s = user;

	return s->members && cw_election_has_incident(s->members, job);
}

/*
 * Returns MAX_PROCESSES. If there are too few descriptors for so many processes, returns the number
 * that fits.
 */
static uint32_t process_capacity(void)
{
	struct rlimit limit;
	uint32_t capacity;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return MAX_PROCESSES;
	capacity = cw_node_room(limit.rlim_cur, MAX_PROCESSES);
	if (capacity < MAX_PROCESSES)
		log_notice("%llu descriptors are enough for %u rank processes, not for %u: see "
			   "LimitNOFILE= of the unit",
			   (unsigned long long)limit.rlim_cur, capacity, MAX_PROCESSES);
	return capacity;
}

static int open_node(struct cw_service *s, struct cw_err *err)
{
	uint32_t capacity = process_capacity();
	struct cw_node_config node = {
		.base = s->base,
		.clock = &s->awake.clock,
		.forks = s->forks,
		.socket_path = s->config->agent_socket,
		.listen_fd = cw_notify_listen_fd("agent"),
		.node_name = s->config->node_name,
		.extension = cw_service_extension,
		.epoch = (uint64_t)cw_clock_wall_ns(&s->awake.clock),
		.sample_ms = (uint32_t)(s->config->sample_interval_ns / CW_NS_PER_MS),
		.digest_ms = 1000,
		.max_processes = capacity,
		.max_processes_per_uid = (capacity + 1) / 2,
		.keeps_descriptors = true,
		.kernel = s->kernel,
		.has_incident = has_incident,
		.on_digest = on_digest,
		.user = s,
	};
	struct cw_capture_config capture = {
		.base = s->base,
		.forks = s->forks,
		.clock = &s->awake.clock,
		.node_name = s->config->node_name,
		.core = &cw_core_captures,
		.max_running = MAX_CAPTURES,
		.max_queued = MAX_CAPTURES_QUEUED,
	};
	int r = cw_fdstore_take(&s->awake.clock, &node.fdstore, &node.n_fdstore);

	r = r < 0 ? cw_err_set(err, -r, "out of memory") : cw_node_new(&node, &s->node, err);
	if (r < 0)
		return r;
	capture.node = s->node;
	r = cw_capture_new(&capture, &s->capture);
	return r < 0 ? cw_err_set(err, -r, "captures: %s", strerror(-r)) : 0;
}

static int64_t cpu_ns(void *user)
{
	return cw_clock_cpu_ns();
}

static int open_leader(struct cw_service *s, struct cw_err *err)
{
	struct cw_leader_config leader = {
		.clock = &s->awake.clock,
		.self = s->config->node_name,
		.finds_peers = *s->config->peers_from,
		.effects = &s->driver.effects,
		.thresholds = thresholds_of(s->config),
		.cpu_ns = cpu_ns,
	};
	struct cw_responder_config responder = {
		.transport = s->transport,
		.node = s->node,
		.capture = s->capture,
		.node_name = s->config->node_name,
	};

	cw_leader_driver_init(&s->driver, s->transport, s->alerts, s->user_names);
	if (cw_election_new(&s->awake.clock, s->config->node_name, &s->driver.effects,
			    &s->members) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	leader.members = s->members;
	responder.members = s->members;
	if (cw_leader_new(&leader, &s->leader) < 0 ||
	    cw_responder_new(&responder, &s->responder) < 0 ||
	    cw_peer_rate_new(&s->awake.clock, &s->peer_rate) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int open_control(struct cw_service *s, struct cw_err *err)
{
	struct cw_control_socket_config config = {
		.base = s->base,
		.clock = &s->awake.clock,
		.forks = s->forks,
		.path = s->config->control_socket,
		.group = s->config->control_group,
		.listen_fd = cw_notify_listen_fd("control"),
		.source = { .status = on_status,
			    .store = s->store,
			    .mutes = s->mutes,
			    .extension = cw_service_extension,
			    .node_name = s->config->node_name,
			    .user = s },
		.stacks = { .clock = &s->awake.clock,
			    .transport = s->transport,
			    .effects = &s->driver.effects,
			    .leader = s->leader,
			    .members = s->members,
			    .node = s->node },
	};

	return cw_control_socket_new(&config, &s->control, err);
}

static void collect_metrics(struct cw_metrics *ret, void *user)
{
	const struct cw_service *s = user;
	const struct cw_metrics_parts parts = {
		.clock = &s->awake.clock,
		.forks = s->forks,
		.extension = cw_service_extension,
		.node = s->node,
		.leader = s->leader,
		.transport = s->transport,
		.tcp = s->tcp,
		.capture = s->capture,
		.alerts = s->alerts,
		.control = s->control,
		.lateness = &s->lateness,
		.started_ns = s->started_ns,
		.held_up_max_ns = s->lag.max_ns,
		.store = s->store,
		.responder = s->responder,
		.peer_rate = s->peer_rate,
		.digests_lost = s->digests_lost,
		.mutes_unconfirmed = cw_mutes_unconfirmed(s->mutes),
		.messages_without_job = messages_without_job(s),
		.reload = &s->reload,
	};

	cw_metrics_collect(&parts, ret);
}

static int open_metrics(struct cw_service *s, struct cw_err *err)
{
	const struct cw_metrics_output_config config = {
		.base = s->base,
		.clock = &s->awake.clock,
		.socket_path = s->config->metrics_socket,
		.group = s->config->control_group,
		.file_path = s->config->metrics_textfile,
		.collect = collect_metrics,
		.user = s,
	};

	return cw_metrics_output_new(&config, &s->metrics, err);
}

static int start_timers(struct cw_service *s, struct cw_err *err)
{
	const struct timeval period = { .tv_usec = TICK_MS * 1000 };

	cw_loop_lag_init(&s->lag, TICK_MS * CW_NS_PER_MS);
	s->wake = event_new(s->base, -1, 0, on_wake, s);
	s->tick = event_new(s->base, -1, EV_PERSIST, on_tick, s);
	if (!s->wake || !s->tick || event_add(s->tick, &period) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	return 0;
}

int cw_service_new(struct event_base *base, const struct cw_clock *clock,
		   struct cw_fork_server *forks, struct cw_config *config, struct cw_service **ret,
		   struct cw_err *err)
{
	static int (*const steps[])(struct cw_service * s, struct cw_err * err) = {
		open_store,     open_mutes,         open_alerts,  open_user_names,
		open_transport, open_kernel_events, open_node,    open_leader,
		open_control,   open_metrics,       start_timers,
	};
	struct cw_service *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return cw_err_set(err, ENOMEM, "out of memory");
	s->base = base;
	s->forks = forks;
	s->config = config;
	s->lag.run_delay_fd = -1;
	cw_awake_init(&s->awake, clock);
	s->started_ns = cw_clock_now_ns(&s->awake.clock);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && r >= 0; i++)
		r = steps[i](s, err);
	if (r < 0) {
		s->config = NULL; /* on failure, the caller still owns config */
		cw_service_free(s);
		return r;
	}
	cw_log_set_level((int)config->log_level);
	*ret = s;
	return 0;
}

struct cw_service *cw_service_free(struct cw_service *s)
{
	if (!s)
		return NULL;
	/* Free a part before the parts that it calls. */
	event_freep(&s->tick);
	event_freep(&s->wake);
	cw_loop_lag_fini(&s->lag);
	cw_metrics_output_free(s->metrics);
	cw_control_socket_free(s->control);
	cw_tcp_free(s->tcp);
	cw_capture_free(s->capture);
	cw_responder_free(s->responder);
	cw_peer_rate_free(s->peer_rate);
	cw_node_free(s->node);
	(void)cw_kernel_events_free(s->kernel); /* always NULL */
	cw_leader_free(s->leader);
	cw_election_free(s->members);
	(void)cw_bundle_nodes_free(s->bundle_nodes); /* always NULL */
	cw_transport_free(s->transport);
	cw_user_names_free(s->user_names);
	cw_alerts_free(s->alerts);
	cw_mutes_close(s->mutes);
	cw_store_close(s->store);
	cw_config_free(s->config);
	free(s);
	return NULL;
}

int cw_service_reload(struct cw_service *s, struct cw_config *config, const char **ret_restart,
		      struct cw_err *err)
{
	struct cw_thresholds thresholds = thresholds_of(config);
	int r;

	*ret_restart = cw_config_needs_restart(s->config, config);
	if (*ret_restart) {
		/* Change nothing: a half-applied configuration would be worse. */
		cw_config_free(config);
		return 0;
	}
	/* Reload the alerts first, because only this step can fail. */
	r = cw_alerts_reload(s->alerts, s->config, config, err);
	if (r < 0)
		return r;
	/* The new webhook may accept alerts that the old one did not deliver. */
	cw_leader_retry_alerts(s->leader);
	cw_leader_set_thresholds(s->leader, &thresholds);
	cw_log_set_level((int)config->log_level);
	/*
	 * Keep the old configuration, because parts borrow its strings. It takes the reloadable
	 * settings of the new one.
	 */
	cw_config_take_reloadable(s->config, config);
	cw_config_free(config);
	return 0;
}

void cw_service_note_reload(struct cw_service *s, enum cw_reload_result result, const char *why)
{
	s->reload.result = result;
	s->reload.at_ns = cw_clock_now_ns(&s->awake.clock);
	s->reload.failures += result != CW_RELOAD_DONE;
	(void)snprintf(s->reload.why, sizeof(s->reload.why), "%s", why);
}

void cw_service_end_iteration(struct cw_service *s)
{
	cw_loop_lag_end_iteration(&s->lag, cw_clock_cpu_ns());
}

void cw_service_status(const struct cw_service *s, char *buf, unsigned len)
{
	struct cw_leader_stats leader;
	struct cw_node_stats node;
	unsigned n_peers;

	cw_leader_stats(s->leader, &leader);
	cw_node_stats(s->node, &node);
	n_peers = cw_transport_n_alive(s->transport);
	(void)snprintf(buf, len, "%u process%s here, %u job%s led, %u peer%s alive", node.processes,
		       node.processes == 1 ? "" : "es", leader.jobs, leader.jobs == 1 ? "" : "s",
		       n_peers, n_peers == 1 ? "" : "s");
}
