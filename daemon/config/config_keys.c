/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys, with type, default, range and help of each. */
#include "daemon/config/config.h"

#define KEY(field) offsetof(struct cw_config, field)

const struct cw_config_key cw_config_keys[] = {
	{ "node_name", CW_CONFIG_NAME, KEY(node_name), "", "", NULL, NULL, NULL, false,
	  "Name of this node in reports and among the peers. Default: the host name." },
	{ "agent_socket", CW_CONFIG_PATH, KEY(agent_socket), "", "/run/collwatch/agent.sock", NULL,
	  NULL, NULL, false,
	  "Where the agents inside the ranks register. Containers of jobs mount its directory, so no "
	  "other socket belongs there." },
	{ "control_socket", CW_CONFIG_PATH, KEY(control_socket), "",
	  "/run/collwatch-control/control.sock", NULL, NULL, NULL, false,
	  "Where the collwatch command asks for status and reports. uid 0 sees all jobs there, so no "
	  "container of a job may mount its directory." },
	{ "control_group", CW_CONFIG_STRING, KEY(control_group), "", "collwatch", NULL, NULL, NULL,
	  false, "Group that sees the jobs of all users. Ignored where it does not exist." },
	{ "state_dir", CW_CONFIG_PATH, KEY(state_dir), "", "/var/lib/collwatch", NULL, NULL, NULL,
	  false, "Incident bundles, and which alerts were delivered." },
	{ "state_max", CW_CONFIG_BYTES, KEY(state_max_bytes), "bytes", "1GiB", "1MiB", "1024GiB",
	  NULL, false, "Size of all bundles together; the oldest go first." },
	{ "state_max_age", CW_CONFIG_DURATION, KEY(state_max_age_ns), "duration", "30d", "1h",
	  "3650d", NULL, false, "Older bundles are removed." },
	{ "peers", CW_CONFIG_PEERS, KEY(peers), "", "", NULL, NULL, NULL, false,
	  "All daemons that watch jobs together, as \"name=address:port\", with commas between and "
	  "in braces or brackets; the address may be a "
	  "host "
	  "name, which is looked up again whenever that peer is not connected. The list may name "
	  "this node too, so that one file serves all. Empty: this daemon sees only its own "
	  "node." },
	{ "peers_from", CW_CONFIG_HOST, KEY(peers_from), "", "", NULL, NULL, NULL, false,
	  "Instead of peers: a host name and port, as \"collwatch.example.org:7411\". Every "
	  "address "
	  "of "
	  "that name is a daemon, as of a headless service in Kubernetes. It is looked up every 30 "
	  "s; who is new is met, who has been gone from there and not been connected for ten "
	  "minutes is "
	  "forgotten. Needs a key or certificates, which decide who is let in." },
	{ "listen", CW_CONFIG_ADDRESS, KEY(listen), "", "", NULL, NULL, NULL, false,
	  "Numeric address and port for peers. Default: this node's own entry in peers; where that "
	  "is "
	  "a host name, and with peers_from, its port on all addresses. Without key or "
	  "certificates, loopback only." },
	{ "peer_key_file", CW_CONFIG_PATH, KEY(peer_key_file), "", "", NULL, NULL, NULL, false,
	  "Key that all peers share, as `collwatch init-cluster` makes it: connections between "
	  "them "
	  "are TLS 1.3, and only who has the key is let in. The file must belong to root or the "
	  "daemon's user and be closed to all others. Without it or certificates, peers are "
	  "loopback only." },
	{ "peer_ca_file", CW_CONFIG_PATH, KEY(peer_ca_file), "", "", NULL, NULL, NULL, false,
	  "Instead of a shared key: the authority whose certificates are let in (PEM), as "
	  "`collwatch init-cluster --certificates` makes it. The next two keys belong to it." },
	{ "peer_cert_file", CW_CONFIG_PATH, KEY(peer_cert_file), "", "", NULL, NULL, NULL, false,
	  "This node's certificate (PEM). It must name node_name as a DNS subjectAltName; a peer "
	  "whose certificate names another node is turned away." },
	{ "peer_private_key_file", CW_CONFIG_PATH, KEY(peer_private_key_file), "", "", NULL, NULL,
	  NULL, false,
	  "Its private key (PEM, EC or Ed25519), closed to all but root and the daemon's user." },
	{ "webhook_url", CW_CONFIG_URL, KEY(webhook_url), "", "", NULL, NULL, NULL, true,
	  "Alerts are posted here as JSON. Empty: they go to the journal only." },
	{ "notice_webhook_url", CW_CONFIG_URL, KEY(notice_webhook_url), "", "", NULL, NULL, NULL,
	  true,
	  "Notices are posted here, in the same format, and none of the headers of "
	  "webhook_header_file with them: a channel that wakes nobody. Each is posted once and not "
	  "kept for later; what becomes a hang is posted to webhook_url. Empty: they are posted "
	  "nowhere." },
	{ "webhook_header_file", CW_CONFIG_PATH, KEY(webhook_header_file), "", "", NULL, NULL, NULL,
	  true,
	  "File with further HTTP headers, one a line, for example a token. It belongs to root or "
	  "to the daemon's user, mode 0600, or 0640 with root's or the daemon's group." },
	{ "webhook_format", CW_CONFIG_CHOICE, KEY(webhook_format), "", "generic", NULL, NULL,
	  "generic|slack", true,
	  "generic: the collwatch.incident/1 document. slack: a message for Slack's incoming "
	  "webhooks and those that understand the same." },
	{ "webhook_postmortems", CW_CONFIG_CHOICE, KEY(webhook_postmortems), "", "false", NULL,
	  NULL, "true|false", true,
	  "true: what a failed job died of (collwatch.postmortem/1) is posted, too, unless an alert "
	  "of that job went out before it. false: it stands in reports and the journal only." },
	{ "alert_burst", CW_CONFIG_COUNT, KEY(alert_burst), "", "5", "1", "1000", NULL, true,
	  "So many alerts of one user's jobs go out at once, and one more for each alert_fold that "
	  "has passed. Beyond that they are collected, and one alert tells how many there were, of "
	  "which jobs; reports have all of them." },
	{ "alert_fold", CW_CONFIG_DURATION, KEY(alert_fold_ns), "duration", "2min", "1s", "1h",
	  NULL, true,
	  "How long they are collected, and the longest that an alert waits for that." },
	{ "mode", CW_CONFIG_CHOICE, KEY(mode), "", "alert", NULL, NULL, "alert|shadow", true,
	  "shadow: detect and record incidents, but send no alerts. Status and journal say "
	  "\"would have alerted\"; nothing is posted, not later either." },
	{ "notices", CW_CONFIG_CHOICE, KEY(notices), "", "true", NULL, NULL, "true|false", true,
	  "A stall of which it is not known whether it is a hang stands in the journal, in status, "
	  "in metrics and among the reports before anybody is called for it: a notice. It is never "
	  "posted to webhook_url, but to notice_webhook_url. false: there are none; alerts come as "
	  "they would." },
	{ "metrics_socket", CW_CONFIG_PATH, KEY(metrics_socket), "", "", NULL, NULL, NULL, false,
	  "UNIX socket that answers Prometheus's GET /metrics, for root and control_group." },
	{ "metrics_textfile", CW_CONFIG_PATH, KEY(metrics_textfile), "", "", NULL, NULL, NULL,
	  false,
	  "File for node_exporter's textfile collector, replaced every 15 s; its name has to end "
	  "in .prom there." },
	{ "log_level", CW_CONFIG_LEVEL, KEY(log_level), "", "notice", NULL, NULL, NULL, true,
	  "err, warn, notice, info or debug." },
	{ "sample_interval", CW_CONFIG_DURATION, KEY(sample_interval_ns), "duration", "250ms",
	  "50ms", "1s", NULL, false, "How often the flight records are read." },
	{ "stall_min", CW_CONFIG_DURATION, KEY(stall_min_ns), "duration", "10s", "1s", "1h", NULL,
	  true, "A call that is pending for less is never a stall." },
	{ "stall_max", CW_CONFIG_DURATION, KEY(stall_max_ns), "duration", "120s", "1s", "24h", NULL,
	  true,
	  "A call that is pending for longer is always a stall, however slow its communicator's "
	  "rhythm." },
	{ "no_progress_after", CW_CONFIG_DURATION, KEY(no_progress_after_ns), "duration", "60s",
	  "1s", "24h", NULL, true,
	  "Alert when the rank that everybody waits for has used no CPU time and done no I/O for "
	  "this long." },
	{ "first_op_after", CW_CONFIG_DURATION, KEY(first_op_after_ns), "duration", "120s", "1s",
	  "24h", NULL, true,
	  "Patience with a communicator's first call and with its initialisation; 20 ms are added "
	  "for each rank." },
};

const unsigned cw_config_n_keys = sizeof(cw_config_keys) / sizeof(cw_config_keys[0]);
