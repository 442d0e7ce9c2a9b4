/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's metrics in Prometheus's text format. One table lists the fixed names;
 * collwatchd-metrics(7) comes from the same table. No label grows with ranks, jobs or users.
 * Unbounded data belongs into reports. Metrics of ops have the labels kind and size, at most
 * CW_METRICS_OP_SERIES series in all.
 *
 * To collect means to read the counters of the daemon's parts. Loop thread only, does not block.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "common/clock.h"
#include "daemon/alerts/alerts.h"
#include "daemon/control/control_socket.h"
#include "daemon/evidence/capture.h"
#include "daemon/evidence/responder.h"
#include "daemon/node/node.h"
#include "daemon/process/op_stats.h"
#include "daemon/store/store.h"
#include "digest/extension.h"
#include "leader/leader.h"
#include "loop/accept_pause.h"
#include "loop/fork_server.h"
#include "loop/reload_state.h"
#include "transport/peer_rate.h"
#include "transport/tcp.h"
#include "transport/transport.h"

/*
 * Number of buckets for the lateness of the loop's timer. cw_lateness_ms has their upper bounds in
 * milliseconds; the last bucket has no bound.
 */
#define CW_LATENESS_BUCKETS 7u
extern const uint32_t cw_lateness_ms[CW_LATENESS_BUCKETS - 1];

struct cw_lateness {
	uint64_t counts[CW_LATENESS_BUCKETS]; /* not cumulative: each count belongs to one bucket */
	double sum_s;
};

/*
 * Counts one firing of the loop's timer. late_ns: how late it fired; a negative value counts as 0.
 */
void cw_lateness_add(struct cw_lateness *l, int64_t late_ns);

/*
 * Maximum number of series about ops. Each kind of op has CW_OP_SIZES sizes, and each of these has
 * two histograms and two byte counters.
 */
#define CW_METRICS_OP_SERIES (10u * CW_OP_SIZES * (2u * (CW_OP_BUCKETS + 2u) + 2u))

/* The parts of the daemon whose counters we read; all are borrowed. */
struct cw_metrics_parts {
	const struct cw_clock *clock;
	const struct cw_fork_server *forks;
	const struct cw_extension *extension;
	struct cw_node *node;
	const struct cw_leader *leader;
	const struct cw_transport *transport;
	const struct cw_tcp *tcp; /* NULL = this daemon has no peers */
	const struct cw_capture *capture;
	const struct cw_alerts *alerts;
	const struct cw_control_socket *control;
	const struct cw_lateness *lateness;
	int64_t started_ns; /* monotonic time of the daemon's start */
	int64_t held_up_max_ns;
	struct cw_store *store;
	const struct cw_responder *responder;
	const struct cw_peer_rate *peer_rate;
	uint64_t digests_lost, messages_without_job, mutes_unconfirmed;
	const struct cw_reload_state *reload; /* NULL = no reload yet */
};

/* The values of all metrics at one moment. */
struct cw_metrics {
	/* Borrowed; it has the names for node.findings_total. */
	const struct cw_extension *extension;
	double start_time_s, cpu_s, held_up_max_s;
	uint64_t rss_bytes, fds;
	uint64_t is_shadow;
	uint64_t reload_ok, reload_failures;
	uint64_t jobs[CW_STALL_HANG + 1], ranks, ranks_expected, late_ranks;
	/* These two concern the rank whose lateness costs its job the most time. */
	double late_wait_s, late_share;
	uint64_t processes_unconnected;
	uint64_t fork_servers_lost;
	uint64_t peers, peers_connected;
	uint64_t state_writable, bundles_in_memory, bundles_lost, bundles_removed, bundles_refused;
	uint64_t digests_lost, requests_refused, peer_too_often, messages_without_job;
	uint64_t mutes_unconfirmed, log_lost;
	struct cw_node_stats node;
	struct cw_op_totals ops;
	struct cw_leader_stats leader;
	struct cw_transport_stats transport;
	struct cw_tcp_stats tcp;
	struct cw_capture_stats capture;
	struct cw_alerts_stats alerts;
	struct cw_control_socket_stats control;
	struct cw_lateness lateness;
	struct cw_accept_pause_stats accept;
};

void cw_metrics_collect(const struct cw_metrics_parts *parts, struct cw_metrics *ret);
/* Prints all metrics. Depends only on m. */
void cw_metrics_print(const struct cw_metrics *m, FILE *out);
/* Prints the names and their meanings in scdoc, as a section of a manual page. */
void cw_metrics_print_scdoc(const struct cw_extension *extension, FILE *out);
