/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys, with type, default, range and help of each. */
#include "daemon/config/config.h"

#define KEY(field) offsetof(struct cw_config, field)

const struct cw_config_key cw_config_keys[] = {
	{ "node_name", CW_CONFIG_NAME, KEY(node_name), "", "", NULL, NULL, NULL, false,
	  "Name of this node in reports and among the peers. Default: the host name." },
	{ "agent_socket", CW_CONFIG_PATH, KEY(agent_socket), "", "/run/collwatch/agent.sock", NULL,
	  NULL, NULL, false,
	  "Socket on which the agents in the ranks register. Containers of jobs mount its "
	  "directory, so put no other socket there." },
	{ "control_socket", CW_CONFIG_PATH, KEY(control_socket), "",
	  "/run/collwatch-control/control.sock", NULL, NULL, NULL, false,
	  "Socket on which the collwatch command requests status and reports. uid 0 sees all jobs "
	  "there, so no container of a job may mount its directory." },
	{ "control_group", CW_CONFIG_STRING, KEY(control_group), "", "collwatch", NULL, NULL, NULL,
	  false,
	  "Group whose members see the jobs of all users. Ignored if the group does not exist." },
	{ "state_dir", CW_CONFIG_PATH, KEY(state_dir), "", "/var/lib/collwatch", NULL, NULL, NULL,
	  false, "Directory of the incident bundles and of the list of delivered alerts." },
	{ "state_max", CW_CONFIG_BYTES, KEY(state_max_bytes), "bytes", "1GiB", "1MiB", "1024GiB",
	  NULL, false,
	  "Maximum size of all bundles together. The daemon removes the oldest first." },
	{ "state_max_age", CW_CONFIG_DURATION, KEY(state_max_age_ns), "duration", "30d", "1h",
	  "3650d", NULL, false, "Maximum age of a bundle. The daemon removes older ones." },
	{ "peers", CW_CONFIG_PEERS, KEY(peers), "", "", NULL, NULL, NULL, false,
	  "All daemons that watch jobs together, as \"name=address:port\", separated by commas, in "
	  "braces or brackets. The address may be a host name; the daemon looks it up again "
	  "whenever that peer is not connected. The list may name this node too, so that all nodes "
	  "can have the same file. Empty: this daemon sees only its own node." },
	{ "peers_from", CW_CONFIG_HOST, KEY(peers_from), "", "", NULL, NULL, NULL, false,
	  "Instead of peers: a host name and port, as \"collwatch.example.org:7411\". Every "
	  "address of that name is a daemon, as with a headless service in Kubernetes. The daemon "
	  "looks the name up every 30 s and connects to new addresses. It forgets an address that "
	  "the name no longer has and that has not been connected for ten minutes. Needs a shared "
	  "key or certificates, which decide which peers may join." },
	{ "listen", CW_CONFIG_ADDRESS, KEY(listen), "", "", NULL, NULL, NULL, false,
	  "Numeric address and port for peers. Default: this node's own entry in peers. If that "
	  "entry has a host name, and with peers_from: its port on all addresses. Without key or "
	  "certificates, loopback only." },
	{ "peer_key_file", CW_CONFIG_PATH, KEY(peer_key_file), "", "", NULL, NULL, NULL, false,
	  "Key that all peers share, made by `collwatch init-cluster`. Connections between peers "
	  "are TLS 1.3, and only peers with the key may join. The file must belong to root or the "
	  "daemon's user, and no other user may have access. Without a key or certificates, peers "
	  "are loopback only." },
	{ "peer_ca_file", CW_CONFIG_PATH, KEY(peer_ca_file), "", "", NULL, NULL, NULL, false,
	  "Instead of a shared key: certificate of the authority that signs the peers' "
	  "certificates (PEM), made by `collwatch init-cluster --certificates`. Set peer_cert_file "
	  "and peer_private_key_file, too." },
	{ "peer_cert_file", CW_CONFIG_PATH, KEY(peer_cert_file), "", "", NULL, NULL, NULL, false,
	  "This node's certificate (PEM). It must name node_name as a DNS subjectAltName; a peer "
	  "is refused if its certificate names another node." },
	{ "peer_private_key_file", CW_CONFIG_PATH, KEY(peer_private_key_file), "", "", NULL, NULL,
	  NULL, false,
	  "Private key of the certificate (PEM, EC or Ed25519). Only root and the daemon's user "
	  "may have access." },
	{ "webhook_url", CW_CONFIG_URL, KEY(webhook_url), "", "", NULL, NULL, NULL, true,
	  "URL to which alerts are posted as JSON. Empty: alerts appear in the journal only." },
	{ "notice_webhook_url", CW_CONFIG_URL, KEY(notice_webhook_url), "", "", NULL, NULL, NULL,
	  true,
	  "URL to which notices are posted, for a channel that does not page people. The format is "
	  "that of webhook_url, without the headers of webhook_header_file. Each notice is posted "
	  "once and not kept for later. If the stall becomes a hang, the alert goes to "
	  "webhook_url. Empty: notices are not posted." },
	{ "webhook_header_file", CW_CONFIG_PATH, KEY(webhook_header_file), "", "", NULL, NULL, NULL,
	  true,
	  "File with further HTTP headers, one per line, for example a token. It must belong to "
	  "root or the daemon's user, with mode 0600, or 0640 with root's or the daemon's group." },
	{ "webhook_format", CW_CONFIG_CHOICE, KEY(webhook_format), "", "generic", NULL, NULL,
	  "generic|slack", true,
	  "generic: the collwatch.incident/1 document. slack: a message for Slack's incoming "
	  "webhooks and for compatible receivers." },
	{ "webhook_postmortems", CW_CONFIG_CHOICE, KEY(webhook_postmortems), "", "false", NULL,
	  NULL, "true|false", true,
	  "true: post-mortems of failed jobs (incidents of severity failed) are posted, too, unless an "
	  "alert of that job was sent before. false: post-mortems appear in reports and the "
	  "journal only." },
	{ "alert_burst", CW_CONFIG_COUNT, KEY(alert_burst), "", "5", "1", "1000", NULL, true,
	  "At most this many alerts per user are sent at once, plus one per alert_fold. The daemon "
	  "collects further alerts and sends one folded alert with their number and their jobs. "
	  "Reports show all of them." },
	{ "alert_fold", CW_CONFIG_DURATION, KEY(alert_fold_ns), "duration", "2min", "1s", "1h",
	  NULL, true,
	  "How long the daemon collects alerts for a folded alert. No alert waits longer than this "
	  "for it." },
	{ "mode", CW_CONFIG_CHOICE, KEY(mode), "", "alert", NULL, NULL, "alert|shadow", true,
	  "shadow: detect and record incidents, but send no alerts. Status and journal say \"would "
	  "have alerted\". These alerts are not sent later either." },
	{ "notices", CW_CONFIG_CHOICE, KEY(notices), "", "true", NULL, NULL, "true|false", true,
	  "true: if a stall may be a hang but is not confirmed yet, the daemon writes a notice to "
	  "journal, status, metrics and reports before it alerts. Notices are posted to "
	  "notice_webhook_url, never to webhook_url. false: no notices. Alerts do not change." },
	{ "metrics_socket", CW_CONFIG_PATH, KEY(metrics_socket), "", "", NULL, NULL, NULL, false,
	  "UNIX socket that answers GET /metrics for Prometheus. Root and control_group have "
	  "access." },
	{ "metrics_textfile", CW_CONFIG_PATH, KEY(metrics_textfile), "", "", NULL, NULL, NULL,
	  false,
	  "File for node_exporter's textfile collector, replaced every 15 s. The collector "
	  "requires a name that ends in .prom." },
	{ "log_level", CW_CONFIG_LEVEL, KEY(log_level), "", "notice", NULL, NULL, NULL, true,
	  "Lowest level that is logged: err, warn, notice, info or debug." },
	{ "sample_interval", CW_CONFIG_DURATION, KEY(sample_interval_ns), "duration", "250ms",
	  "50ms", "1s", NULL, false, "Time between two readings of a flight record." },
	{ "stall_min", CW_CONFIG_DURATION, KEY(stall_min_ns), "duration", "10s", "1s", "1h", NULL,
	  true, "A call that has been pending for less than this is never a stall." },
	{ "stall_max", CW_CONFIG_DURATION, KEY(stall_max_ns), "duration", "120s", "1s", "24h", NULL,
	  true,
	  "A call that has been pending for longer than this is always a stall, even if its "
	  "communicator is usually slow." },
	{ "no_progress_after", CW_CONFIG_DURATION, KEY(no_progress_after_ns), "duration", "60s",
	  "1s", "24h", NULL, true,
	  "Alert when the rank that the others wait for has used no CPU time and done no I/O for "
	  "this long." },
	{ "first_op_after", CW_CONFIG_DURATION, KEY(first_op_after_ns), "duration", "120s", "1s",
	  "24h", NULL, true,
	  "How long a communicator's initialisation and its first call may take before they are a "
	  "stall, plus 20 ms per rank." },
};

const unsigned cw_config_n_keys = sizeof(cw_config_keys) / sizeof(cw_config_keys[0]);
