/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table has one row per sample: its name, type, help, and the offset of its value in struct
 * cw_metrics. We make both the text for Prometheus and the manual page from this table.
 */
#include "daemon/metrics/metrics.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/verdict_types.h"

#define PREFIX "collwatch_"

const uint32_t cw_lateness_ms[CW_LATENESS_BUCKETS - 1] = { 1, 5, 25, 100, 500, 2000 };

void cw_lateness_add(struct cw_lateness *l, int64_t late_ns)
{
	unsigned i = 0;

	if (late_ns < 0)
		late_ns = 0;
	while (i < CW_LATENESS_BUCKETS - 1 && late_ns > cw_lateness_ms[i] * CW_NS_PER_MS)
		i++;
	l->counts[i]++;
	l->sum_s += (double)late_ns / CW_NS_PER_S;
}

/* ---- the table ---- */

enum value_type {
	VALUE_U64 = 0,
	VALUE_U32,
	VALUE_DOUBLE,
	VALUE_SECONDS,      /* a double, printed with six decimals instead of three */
	VALUE_VERSION,      /* no field: the value is always 1, and the label has the version */
	VALUE_CLASSES,      /* an array of uint64_t, with one sample per verdict class */
	VALUE_KINDS,        /* an array of struct cw_op_sums, with one sample per kind of op */
	VALUE_KIND_SECONDS, /* like VALUE_KINDS, but the field is in nanoseconds */
	/* A struct cw_op_sized: one sample for each kind and size that has calls. */
	VALUE_SIZED,
	VALUE_SIZED_CALLS,  /* like VALUE_SIZED, but the histogram of the calls */
	VALUE_SIZED_DEVICE, /* like VALUE_SIZED, but the histogram of the device's time */
	VALUE_HISTOGRAM,    /* a struct cw_lateness */
	VALUE_FINDINGS,     /* an array, with one metric per kind of finding of the extension */
};

struct metric {
	const char *name;
	const char *type; /* counter, gauge, histogram */
	const char *help; /* NULL = one more sample of the metric in the previous row */
	uint32_t value;   /* enum value_type */
	size_t offset;
	const char *label, *label_value; /* NULL = the sample has no label */
};

#define AT(field) offsetof(struct cw_metrics, field)
#define SUM(field) (offsetof(struct cw_metrics, ops.kinds) + offsetof(struct cw_op_sums, field))
#define SIZED(field) offsetof(struct cw_op_sized, field)
#define COUNTER(name, field, help)                                                                 \
	{                                                                                          \
		PREFIX name, "counter", help, VALUE_U64, AT(field), NULL, NULL                     \
	}
#define GAUGE(name, field, help)                                                                   \
	{                                                                                          \
		PREFIX name, "gauge", help, VALUE_U64, AT(field), NULL, NULL                       \
	}
#define GAUGE32(name, field, help)                                                                 \
	{                                                                                          \
		PREFIX name, "gauge", help, VALUE_U32, AT(field), NULL, NULL                       \
	}
#define SAMPLE(field, label, label_value)                                                          \
	{                                                                                          \
		NULL, NULL, NULL, VALUE_U64, AT(field), label, label_value                         \
	}
#define SAMPLE32(field, label, label_value)                                                        \
	{                                                                                          \
		NULL, NULL, NULL, VALUE_U32, AT(field), label, label_value                         \
	}
/* A metric whose samples are in the following rows. */
#define FAMILY(name, type, help)                                                                   \
	{                                                                                          \
		PREFIX name, type, help, VALUE_U64, SIZE_MAX, NULL, NULL                           \
	}

static const struct metric metrics[] = {
	{ PREFIX "build_info", "gauge", "Always 1; the label is the daemon's version.",
	  VALUE_VERSION, 0, "version", CW_VERSION },
	{ PREFIX "start_time_seconds", "gauge", "Start time of the daemon, in seconds since 1970.",
	  VALUE_DOUBLE, AT(start_time_s), NULL, NULL },
	GAUGE("shadow", is_shadow, "1 if mode = shadow, so that no alerts are sent."),
	GAUGE("config_last_reload_successful", reload_ok,
	      "0 if the last reload was refused or needs a restart, so that the old configuration "
	      "is in use."),
	COUNTER("config_reload_failures_total", reload_failures,
		"Reloads of the configuration that were refused or need a restart."),

	FAMILY("processes", "gauge",
	       "Processes on this node whose flight records the daemon reads."),
	SAMPLE32(node.connected, "state", "connected"),
	SAMPLE(processes_unconnected, "state", "unconnected"),
	SAMPLE32(node.dead, "state", "dead"),
	FAMILY("untracked", "gauge",
	       "Rank processes and jobs that are not watched, because the node's limit is shared "
	       "between users."),
	SAMPLE32(node.untracked, "what", "rank_process"),
	SAMPLE32(leader.untracked, "what", "job"),
	FAMILY("displaced_total", "counter",
	       "Objects that were dropped to make room for a user below the quota, by kind."),
	SAMPLE(node.displaced_total, "what", "rank_process"),
	SAMPLE(leader.displaced, "what", "job"),
	SAMPLE(control.displaced, "what", "control_client"),
	COUNTER("registered_total", node.registered_total, "Agents that have registered."),
	GAUGE32("agents_waiting", node.waiting, "Agents that are waiting to be registered."),
	COUNTER("agents_repeated_total", node.probes_repeated_total,
		"Checks of agents that were restarted because the child process did not finish "
		"them."),
	COUNTER("fork_servers_lost_total", fork_servers_lost,
		"Fork servers for the checks of agents that were replaced, because they ended or "
		"did not answer."),
	COUNTER("scans_cut_total", node.scans_cut_total,
		"Scans of a rank's processes that omitted threads of descendants because there "
		"were too many."),
	COUNTER("samples_total", node.samples_total, "Flight records read."),
	COUNTER("samples_postponed_total", node.postponed_total,
		"Readings of records and processes that were delayed, because their user had used "
		"up its share of the reading time."),
	COUNTER("digests_total", node.digests_total,
		"Digests of this node's ranks that were made."),

	{ PREFIX "ops_total", "counter",
	  "Ops of this node's ranks whose calls have returned, by kind.", VALUE_KINDS, SUM(ops),
	  "kind", NULL },
	{ PREFIX "op_bytes_total", "counter", "Bytes of these ops. Each op counts one rank's part.",
	  VALUE_KINDS, SUM(bytes), "kind", NULL },
	{ PREFIX "op_call_seconds_total", "counter", "Host time that the calls of these ops took.",
	  VALUE_KIND_SECONDS, SUM(call_ns), "kind", NULL },
	{ PREFIX "timed_ops_total", "counter",
	  "Ops that were timed on the device. Only a sample of all ops is timed.", VALUE_KINDS,
	  SUM(timed), "kind", NULL },
	{ PREFIX "timed_op_bytes_total", "counter",
	  "Bytes of the ops that were timed on the device.", VALUE_KINDS, SUM(timed_bytes), "kind",
	  NULL },
	{ PREFIX "timed_op_seconds_total", "counter", "Device time of the ops that were timed.",
	  VALUE_KIND_SECONDS, SUM(device_ns), "kind", NULL },
	{ PREFIX "op_latency_seconds", "histogram",
	  "Host time of calls, for each kind and size that was called on this node.",
	  VALUE_SIZED_CALLS, 0, "kind", NULL },
	{ PREFIX "op_size_bytes_total", "counter",
	  "Bytes of these calls. Each call counts one rank's part.", VALUE_SIZED, SIZED(bytes),
	  "kind", NULL },
	{ PREFIX "op_device_seconds", "histogram",
	  "Device time of ops, for the ops that were timed.", VALUE_SIZED_DEVICE, 0, "kind", NULL },
	{ PREFIX "op_device_bytes_total", "counter", "Bytes of these ops.", VALUE_SIZED,
	  SIZED(timed_bytes), "kind", NULL },
	COUNTER("ops_lost_total", ops.lost,
		"Ops that were overwritten before the daemon read them. No other metric counts "
		"them."),
	COUNTER("bad_tensors_total", node.nonfinite_inputs_total,
		"Rank processes that passed NaN or infinity to an op. Each process counts once."),
	{ .value = VALUE_FINDINGS, .offset = AT(node.findings_total) },

	FAMILY("jobs", "gauge", "Jobs that this daemon leads."),
	SAMPLE(jobs[CW_STALL_QUIET], "state", "healthy"),
	SAMPLE(jobs[CW_STALL_SUSPECT], "state", "suspect"),
	SAMPLE(jobs[CW_STALL_STALLED], "state", "stalled"),
	SAMPLE(jobs[CW_STALL_HANG], "state", "hang"),
	GAUGE("ranks", ranks, "Visible ranks of the jobs that this daemon leads."),
	GAUGE("ranks_expected", ranks_expected, "Ranks that these jobs should have."),
	GAUGE("late_ranks", late_ranks,
	      "Ranks of these jobs that are late again and again while the job makes progress."),
	{ PREFIX "late_wait_seconds", "gauge",
	  "Mean time that the other ranks wait for the most costly late rank, over the calls that "
	  "it enters late; 0 if no rank is late.",
	  VALUE_SECONDS, AT(late_wait_s), NULL, NULL },
	{ PREFIX "late_share_ratio", "gauge", "Fraction of the job's time that this rank costs.",
	  VALUE_SECONDS, AT(late_share), NULL, NULL },
	COUNTER("late_notices_total", leader.late_notices, "Late ranks reported in the journal."),
	COUNTER("evaluations_total", leader.evaluations,
		"Evaluations of jobs. Each gives a verdict."),

	{ PREFIX "incidents_total", "counter",
	  "Confirmed hangs by class, with or without an alert.", VALUE_CLASSES,
	  AT(alerts.incidents), "class", NULL },
	{ PREFIX "notices_total", "counter", "Stalls that were noted before an alert was due.",
	  VALUE_CLASSES, AT(alerts.notices), "class", NULL },
	FAMILY("alerts_suppressed_total", "counter",
	       "Confirmed hangs for which no alert was sent."),
	SAMPLE(alerts.suppressed[CW_SUPPRESSED_SHADOW], "reason", "shadow"),
	SAMPLE(alerts.suppressed[CW_SUPPRESSED_MUTED], "reason", "muted"),
	COUNTER("alerts_folded_total", alerts.folded,
		"Alerts of a user beyond alert_burst that were sent together in a folded alert."),
	COUNTER("alert_folds_total", alerts.folds, "Folded alerts."),
	GAUGE32("alerts_collected", alerts.collected,
		"Alerts that are waiting to be sent in a folded alert."),
	COUNTER("webhook_attempts_total", alerts.webhook.attempts, "Attempts to post an alert."),
	COUNTER("webhook_delivered_total", alerts.webhook.delivered,
		"Alerts that the webhook's server accepted."),
	COUNTER("webhook_failed_total", alerts.webhook.failed,
		"Alerts whose attempts failed. They are tried again later."),
	COUNTER("webhook_no_child_total", alerts.webhook.no_child,
		"Waits of an alert because no child was free to post it."),
	GAUGE32("webhook_pending", alerts.webhook.pending,
		"Alerts that are being posted or are waiting for the next attempt."),

	FAMILY("captures_total", "counter", "Captures of evidence from processes, by result."),
	SAMPLE(capture.done, "result", "done"),
	SAMPLE(capture.failed, "result", "failed"),
	SAMPLE(capture.timed_out, "result", "timed_out"),
	SAMPLE(capture.abandoned, "result", "abandoned"),
	SAMPLE(capture.refused, "result", "refused"),
	GAUGE32("captures_running", capture.running, "Captures that are running."),
	GAUGE("bundles_in_memory", bundles_in_memory,
	      "Bundles kept in memory because they could not yet be written to disk."),
	GAUGE("state_directory_writable", state_writable,
	      "1 if bundles, sent alerts and mutes can be written to disk, 0 if they are kept in "
	      "memory only."),
	COUNTER("bundles_removed_total", bundles_removed,
		"Bundles removed from disk because of their age or to make room."),

	GAUGE("peers", peers, "Other daemons in the configuration."),
	GAUGE("peers_connected", peers_connected,
	      "Configured daemons that are connected and not silent."),
	COUNTER("messages_sent_total", transport.sent,
		"Messages sent to other daemons and to this daemon itself."),
	COUNTER("messages_received_total", transport.received, "Messages received."),

	FAMILY("accept_pauses_total", "counter",
	       "Pauses of a listener because descriptors or memory ran out."),
	SAMPLE(accept.pauses[CW_LISTENER_AGENT], "listener", "agent"),
	SAMPLE(accept.pauses[CW_LISTENER_CONTROL], "listener", "control"),
	SAMPLE(accept.pauses[CW_LISTENER_PEER], "listener", "peer"),
	SAMPLE(accept.pauses[CW_LISTENER_METRICS], "listener", "metrics"),

	FAMILY("dropped_total", "counter", "Objects that were refused or lost, by reason."),
	SAMPLE(node.refused_total, "reason", "agent_refused"),
	SAMPLE(node.bad_messages_total, "reason", "agent_message"),
	SAMPLE(node.record_errors_total, "reason", "record"),
	SAMPLE(node.too_costly_total, "reason", "record_memory"),
	SAMPLE(node.deferred_total, "reason", "agent_deferred"),
	SAMPLE(node.over_quota_total, "reason", "agent_over_quota"),
	SAMPLE(node.no_record_total, "reason", "agent_no_record"),
	SAMPLE(node.untracked_dropped_total, "reason", "untracked_process"),
	SAMPLE(digests_lost, "reason", "digest_not_sent"),
	SAMPLE(leader.refused_digests, "reason", "digest_refused"),
	SAMPLE(leader.refused_jobs, "reason", "job"),
	SAMPLE(leader.untracked_dropped, "reason", "untracked_job"),
	SAMPLE(leader.comms_over_limit, "reason", "communicator"),
	SAMPLE(leader.windows_over_limit, "reason", "window"),
	SAMPLE(transport.dropped, "reason", "message_not_sent"),
	SAMPLE(transport.bad, "reason", "message_bad"),
	SAMPLE(transport.unknown, "reason", "message_unknown"),
	SAMPLE(transport.timeouts, "reason", "request_unanswered"),
	SAMPLE(requests_refused, "reason", "request_refused"),
	SAMPLE(peer_too_often, "reason", "peer_too_often"),
	SAMPLE(leader.overruled, "reason", "objection_overruled"),
	SAMPLE(leader.unconfirmed, "reason", "delivery_unconfirmed"),
	SAMPLE(mutes_unconfirmed, "reason", "mute_unconfirmed"),
	SAMPLE(messages_without_job, "reason", "message_without_job"),
	SAMPLE(bundles_lost, "reason", "bundle_lost"),
	SAMPLE(bundles_refused, "reason", "bundle_refused"),
	SAMPLE(tcp.refused, "reason", "connection_refused"),
	SAMPLE(tcp.key_differs, "reason", "peer_key"),
	SAMPLE(tcp.tls_errors, "reason", "peer_tls"),
	SAMPLE(control.refused, "reason", "control_refused"),
	SAMPLE(control.over_quota, "reason", "control_quota"),
	SAMPLE(control.noise, "reason", "control_noise"),
	SAMPLE(alerts.webhook.refused, "reason", "alert_queue"),
	SAMPLE(alerts.unsynced, "reason", "bundle_sync"),
	SAMPLE(alerts.unlearned, "reason", "delivery_not_noted"),
	SAMPLE(log_lost, "reason", "log_line"),

	{ PREFIX "loop_late_seconds", "histogram",
	  "Lateness of the event loop at a timer that fires four times a second.", VALUE_HISTOGRAM,
	  AT(lateness), NULL, NULL },
	{ PREFIX "loop_held_up_max_seconds", "gauge",
	  "Longest delay of the event loop since the start, excluding time in which the kernel ran "
	  "other processes.",
	  VALUE_DOUBLE, AT(held_up_max_s), NULL, NULL },
	GAUGE("resident_memory_bytes", rss_bytes, "Resident memory of the daemon."),
	{ PREFIX "cpu_seconds_total", "counter", "CPU time of the daemon and its children.",
	  VALUE_DOUBLE, AT(cpu_s), NULL, NULL },
	GAUGE("open_fds", fds, "Open file descriptors of the daemon."),
};

#define N_METRICS (sizeof(metrics) / sizeof(metrics[0]))

/* ---- text ---- */

static void print_escaped(FILE *out, const char *text, bool is_label)
{
	for (; *text; text++) {
		if (*text == '\\' || (is_label && *text == '"'))
			fprintf(out, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", out);
		else
			fputc(*text, out);
	}
}

static void print_name(FILE *out, const char *name, const char *label, const char *value)
{
	fputs(name, out);
	if (label) {
		fprintf(out, "{%s=\"", label);
		print_escaped(out, value, true);
		fputs("\"}", out);
	}
	fputc(' ', out);
}

static void print_classes(FILE *out, const char *name, const struct metric *row,
			  const uint64_t *values)
{
	for (unsigned i = CW_CLASS_HEALTHY + 1; i < CW_CLASS__MAX; i++) {
		print_name(out, name, row->label, cw_class_name(i));
		fprintf(out, "%" PRIu64 "\n", values[i]);
	}
}

static const uint8_t kinds[] = {
	CW_OP_ALL_REDUCE, CW_OP_BROADCAST, CW_OP_REDUCE,  CW_OP_ALL_GATHER, CW_OP_REDUCE_SCATTER,
	CW_OP_ALL_TO_ALL, CW_OP_GATHER,    CW_OP_SCATTER, CW_OP_SEND,       CW_OP_RECV,
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/*
 * Prints one sample per kind of op. at: the address of the field in the first element of the array.
 */
static void print_kinds(FILE *out, const char *name, const struct metric *row, const char *at)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		const uint64_t *v =
			(const void *)(at + (size_t)kinds[i] * sizeof(struct cw_op_sums));

		print_name(out, name, row->label, cw_op_kind_name(kinds[i]));
		if (row->value == VALUE_KINDS)
			fprintf(out, "%" PRIu64 "\n", *v);
		else
			fprintf(out, "%.6f\n", (double)*v / CW_NS_PER_S);
	}
}

/*
 * Prints the name with labels, such as collwatch_x_bucket{kind="…",size="…". The caller prints the
 * closing brace.
 */
static void print_sized_name(FILE *out, const char *name, const char *suffix, unsigned kind,
			     unsigned size)
{
	fprintf(out, "%s%s{kind=\"%s\",size=\"%s\"", name, suffix, cw_op_kind_name(kind),
		cw_op_stats_size_name(size));
}

static void print_sized_histogram(FILE *out, const char *name, unsigned kind, unsigned size,
				  const uint64_t *counts, uint64_t sum_ns)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < CW_OP_BUCKETS; i++) {
		n += counts[i];
		print_sized_name(out, name, "_bucket", kind, size);
		if (i + 1 < CW_OP_BUCKETS)
			fprintf(out, ",le=\"%g\"} %" PRIu64 "\n",
				(double)cw_op_buckets_ns[i] / CW_NS_PER_S, n);
		else
			fprintf(out, ",le=\"+Inf\"} %" PRIu64 "\n", n);
	}
	print_sized_name(out, name, "_sum", kind, size);
	fprintf(out, "} %.6f\n", (double)sum_ns / CW_NS_PER_S);
	print_sized_name(out, name, "_count", kind, size);
	fprintf(out, "} %" PRIu64 "\n", n);
}

static bool has_any(const uint64_t *counts)
{
	for (unsigned i = 0; i < CW_OP_BUCKETS; i++)
		if (counts[i])
			return true;
	return false;
}

/*
 * Prints the samples of one kind and size. Prints nothing if this kind and size has no calls or,
 * for device times, no timed calls.
 */
static void print_sized(FILE *out, const char *name, const struct metric *row, unsigned kind,
			unsigned size, const struct cw_op_sized *s)
{
	bool is_device = row->value == VALUE_SIZED_DEVICE || row->offset == SIZED(timed_bytes);

	if (!has_any(is_device ? s->device : s->calls))
		return;
	if (row->value != VALUE_SIZED) {
		print_sized_histogram(out, name, kind, size, is_device ? s->device : s->calls,
				      is_device ? s->device_ns : s->call_ns);
		return;
	}
	print_sized_name(out, name, "", kind, size);
	fprintf(out, "} %" PRIu64 "\n",
		*(const uint64_t *)(const void *)((const char *)s + row->offset));
}

static void print_all_sized(FILE *out, const char *name, const struct metric *row,
			    const struct cw_op_totals *ops)
{
	for (size_t i = 0; i < N_KINDS; i++)
		for (unsigned size = 0; size < CW_OP_SIZES; size++)
			print_sized(out, name, row, kinds[i], size, &ops->sized[kinds[i]][size]);
}

static void print_histogram(FILE *out, const char *name, const struct cw_lateness *l)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < CW_LATENESS_BUCKETS; i++) {
		sum += l->counts[i];
		if (i + 1 < CW_LATENESS_BUCKETS)
			fprintf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name,
				cw_lateness_ms[i] / 1000.0, sum);
		else
			fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, sum);
	}
	fprintf(out, "%s_sum %.6f\n%s_count %" PRIu64 "\n", name, l->sum_s, name, sum);
}

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s ", name);
	print_escaped(out, help, false);
	fprintf(out, "\n# TYPE %s %s\n", name, type);
}

/* Returns the name of the metric that counts findings of this kind. */
static const char *name_of_kind(const struct cw_extension_kind *kind, char ret[static 64])
{
	(void)snprintf(ret, 64, PREFIX "%s", kind->metric);
	return ret;
}

static void print_findings(FILE *out, const struct cw_extension *extension, const uint64_t *totals)
{
	char name[64];

	for (unsigned k = 0; k < CW_EXTENSION_KINDS; k++) {
		const struct cw_extension_kind *kind = &extension->kinds[k];

		print_head(out, name_of_kind(kind, name), "counter", kind->metric_help);
		fprintf(out, "%s %" PRIu64 "\n", name, totals[k]);
	}
}

static void print_sample(FILE *out, const char *name, const struct metric *row,
			 const struct cw_metrics *m)
{
	const void *at = (const char *)m + row->offset;

	switch (row->value) {
	case VALUE_CLASSES:
		print_classes(out, name, row, at);
		return;
	case VALUE_KINDS:
	case VALUE_KIND_SECONDS:
		print_kinds(out, name, row, at);
		return;
	case VALUE_SIZED:
	case VALUE_SIZED_CALLS:
	case VALUE_SIZED_DEVICE:
		print_all_sized(out, name, row, &m->ops);
		return;
	case VALUE_HISTOGRAM:
		print_histogram(out, name, at);
		return;
	case VALUE_FINDINGS:
		print_findings(out, m->extension, at);
		return;
	default:
		break;
	}
	print_name(out, name, row->label, row->label_value);
	if (row->value == VALUE_VERSION)
		fputs("1\n", out);
	else if (row->value == VALUE_DOUBLE)
		fprintf(out, "%.3f\n", *(const double *)at);
	else if (row->value == VALUE_SECONDS)
		fprintf(out, "%.6f\n", *(const double *)at);
	else if (row->value == VALUE_U32)
		fprintf(out, "%" PRIu32 "\n", *(const uint32_t *)at);
	else
		fprintf(out, "%" PRIu64 "\n", *(const uint64_t *)at);
}

void cw_metrics_print(const struct cw_metrics *m, FILE *out)
{
	const char *name = "";

	for (size_t i = 0; i < N_METRICS; i++) {
		const struct metric *row = &metrics[i];

		if (row->help) {
			name = row->name;
			print_head(out, name, row->type, row->help);
		}
		if (row->offset != SIZE_MAX)
			print_sample(out, name, row, m);
	}
}

static void print_scdoc_text(FILE *out, const char *text)
{
	for (; *text; text++)
		fprintf(out, "%s%c", *text == '_' ? "\\" : "", *text);
}

static void print_scdoc_classes(FILE *out, const char *label)
{
	fprintf(out, " By _%s_: ", label);
	for (unsigned i = CW_CLASS_HEALTHY + 1; i < CW_CLASS__MAX; i++) {
		fputs(i == CW_CLASS_HEALTHY + 1 ? "" : ", ", out);
		print_scdoc_text(out, cw_class_name(i));
	}
}

static void print_scdoc_kinds(FILE *out, const char *label)
{
	fprintf(out, " By _%s_: ", label);
	for (size_t i = 0; i < N_KINDS; i++) {
		fputs(i == 0 ? "" : ", ", out);
		print_scdoc_text(out, cw_op_kind_name(kinds[i]));
	}
}

static bool is_sized(const struct metric *row)
{
	return row->value == VALUE_SIZED || row->value == VALUE_SIZED_CALLS ||
	       row->value == VALUE_SIZED_DEVICE;
}

static void print_scdoc_sizes(FILE *out)
{
	fputs("; and by _size_: ", out);
	for (unsigned size = 0; size < CW_OP_SIZES; size++)
		fprintf(out, "%s%s", size ? ", " : "", cw_op_stats_size_name(size));
}

static void print_scdoc_head(FILE *out, const char *name, const char *type, const char *help)
{
	fputs("*", out);
	print_scdoc_text(out, name);
	fprintf(out, "* (%s)\n\t", type);
	print_scdoc_text(out, help);
}

static void print_scdoc_findings(FILE *out, const struct cw_extension *extension)
{
	char name[64];

	for (unsigned k = 0; k < CW_EXTENSION_KINDS; k++) {
		const struct cw_extension_kind *kind = &extension->kinds[k];

		fputs("\n\n", out);
		print_scdoc_head(out, name_of_kind(kind, name), "counter", kind->metric_help);
	}
}

void cw_metrics_print_scdoc(const struct cw_extension *extension, FILE *out)
{
	for (size_t i = 0; i < N_METRICS; i++) {
		const struct metric *row = &metrics[i];

		if (row->help) {
			fputs(i ? "\n\n" : "", out);
			print_scdoc_head(out, row->name, row->type, row->help);
		}
		if (row->value == VALUE_FINDINGS)
			print_scdoc_findings(out, extension);
		if (row->value == VALUE_CLASSES)
			print_scdoc_classes(out, row->label);
		if (row->label && !row->label_value && row->value != VALUE_CLASSES)
			print_scdoc_kinds(out, row->label);
		if (is_sized(row))
			print_scdoc_sizes(out);
		if (!row->label_value || row->value == VALUE_VERSION)
			continue;
		/* Print the label once, then its values. */
		fputs(row[-1].label_value ? ", " : " By _", out);
		if (!row[-1].label_value) {
			print_scdoc_text(out, row->label);
			fputs("_: ", out);
		}
		print_scdoc_text(out, row->label_value);
	}
	fputs("\n", out);
}
