/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the daemon from outside: its sockets, its configuration, and its own reports. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/blocking_child.h"
#include "cli/control.h"
#include "cli/doctor/doctor.h"
#include "cli/paths.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/commit.h"
#include "common/text.h"
#include "common/unixsock.h"
#include "model/peer.h"
#include "report/json_util.h"
#include "report/shared_comms.h"
#include "report/status_note.h"

/*
 * Deadline of `collwatchd --findings`. It reads the configuration for up to 10 s, and looks for the
 * webhook's server for as long.
 */
#define FINDINGS_NS (60 * CW_NS_PER_S)

#define TIMEOUT_MS 5000
#define CONNECT_MS 1000
/* The daemon first finishes other queries to other nodes, and then waits for the nodes' answers. */
#define COMMS_TIMEOUT_MS 8000
#define SYSTEMD_RUNS "/run/systemd/system"
/*
 * We read this much of the agent's library. With debugging information the library has 2 MiB, and
 * the text is near its start.
 */
#define AGENT_MAX_BYTES ((size_t)8 << 20)
/* This mark precedes the commit in the agent's file. agent/base/meson.build puts it there. */
#define AGENT_COMMIT "collwatch-agent-commit:"

/*
 * True if systemd can start a daemon on this machine, or if a package or an administrator has
 * configured one.
 */
static bool has_daemon_installed(void)
{
	static const char *const marks[] = {
		"/etc/collwatch/collwatchd.conf",
		"/etc/systemd/system/collwatchd.service",
		"/usr/local/lib/systemd/system/collwatchd.service",
		"/usr/lib/systemd/system/collwatchd.service",
		"/lib/systemd/system/collwatchd.service",
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (access(marks[i], F_OK) == 0)
			return true;
	return false;
}

bool doctor_check_workstation(struct doctor *d)
{
	bool is_default = !d->config && strcmp(d->control, CW_CONTROL_SOCKET) == 0 &&
			  strcmp(d->agent_socket, DOCTOR_AGENT_SOCKET) == 0;

	if (!is_default || doctor_is_container() || has_daemon_installed() ||
	    access(CW_CONTROL_SOCKET, F_OK) == 0 || access(DOCTOR_AGENT_SOCKET, F_OK) == 0)
		return false;
	doctor_checked(d, "daemon");
	doctor_find(d, "no-daemon", "collwatch run --standalone -- PROGRAM",
		    "this machine has no collwatchd. On a workstation, run the program with its "
		    "own daemon; on the nodes of a cluster, install and start collwatchd");
	return true;
}

/* Returns the command that starts the daemon on this machine. */
static char *start_command(const struct doctor *d)
{
	char path[PATH_MAX];
	_cleanup_(freep) char *program = NULL, *with_option = NULL;

	if (access(SYSTEMD_RUNS, F_OK) == 0 && !d->config)
		return strdup("systemctl restart collwatchd");
	program = cw_text_argument(cw_paths_find(CW_PART_DAEMON, path, NULL) == 0 ? path
										  : "collwatchd");
	if (!d->config || !program)
		return steal_ptr(&program);
	if (asprintf(&with_option, "%s --config", program) < 0)
		return NULL;
	return cw_text_command(with_option, d->config);
}

struct findings {
	char program[PATH_MAX];
	const char *config; /* NULL = the default */
};

static int run_daemon_program(int out_fd, const void *arg)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const struct findings *f = arg;

	(void)dup2(out_fd, STDOUT_FILENO);
	(void)dup2(null, STDERR_FILENO);
	execl(f->program, "collwatchd", "--findings", f->config ? "--config" : NULL, f->config,
	      (char *)NULL);
	return 1;
}

/* Runs `collwatchd --findings`. Returns NULL if the program gives no answer. */
static json_t *ask_daemon_program(const struct doctor *d)
{
	struct findings f = { .config = d->config };
	const struct cw_blocking_child child = { .main = run_daemon_program,
						 .arg = &f,
						 .timeout_ns = FINDINGS_NS };
	char text[65536];
	size_t len = 0;
	int status;

	if (cw_paths_find(CW_PART_DAEMON, f.program, NULL) < 0 ||
	    cw_blocking_child_run(&child, text, sizeof(text), &len, &status) < 0 || status != 0)
		return NULL;
	return json_loadb(text, len, 0, NULL);
}

/*
 * Lets the daemon's program check keys, certificates, disk space and webhook. Returns true if a
 * finding keeps the daemon from starting.
 */
static bool check_configuration(struct doctor *d)
{
	json_t *list = ask_daemon_program(d), *entry;
	bool stops = false;
	size_t i;

	doctor_checked(d, "configuration");
	json_array_foreach (list, i, entry) {
		if (json_is_true(json_object_get(entry, "note")))
			doctor_note(d, cw_json_str(entry, "what", "?"));
		else
			doctor_find(d, cw_json_str(entry, "name", "configuration"),
				    cw_json_str(entry, "fix", NULL), "%s",
				    cw_json_str(entry, "what", "?"));
		stops |= json_is_true(json_object_get(entry, "stops"));
	}
	json_decref(list);
	return stops;
}

static void find_down(struct doctor *d, const char *why)
{
	_cleanup_(freep) char *fix = NULL;

	if (check_configuration(d))
		return;
	fix = start_command(d);
	doctor_find(d, "daemon-down", fix, "no daemon answers on %s: %s", d->control, why);
}

/*
 * Reads at most len - 1 bytes of the commit from the agent's file. Returns false if there is no
 * file, or if the file contains no commit.
 */
static bool read_agent_commit(char *buf, size_t len)
{
	_cleanup_(freep) char *data = malloc(AGENT_MAX_BYTES);
	_cleanup_(closep) int fd = -1;
	char path[PATH_MAX];
	const char *at;
	ssize_t n;

	if (!data || cw_paths_find(CW_PART_AGENT, path, NULL) < 0)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	n = fd >= 0 ? read(fd, data, AGENT_MAX_BYTES) : -1;
	at = n > 0 ? memmem(data, (size_t)n, AGENT_COMMIT, strlen(AGENT_COMMIT)) : NULL;
	if (!at)
		return false;
	at += strlen(AGENT_COMMIT);
	for (; len > 1 && at < data + n && (isalnum((unsigned char)*at) || *at == '-'); at++, len--)
		*buf++ = *at;
	*buf = '\0';
	return true;
}

static bool is_commit(const char *text)
{
	return *text && strcmp(text, "unknown") != 0;
}

/*
 * Compares the versions of agent and daemon. Until a release, all builds have the same version, so
 * we compare commits, too.
 */
static void check_version(struct doctor *d, const json_t *status)
{
	const char *version = cw_json_str(status, "version", "?");
	const char *commit = cw_json_str(status, "commit", "");
	_cleanup_(freep) char *fix = start_command(d);
	char agent[64];

	doctor_checked(d, "versions");
	if (strcmp(version, CW_VERSION) != 0)
		doctor_find(d, "version-differs", fix,
			    "the daemon has version %s and this command has %s: restart the daemon "
			    "after an upgrade",
			    version, CW_VERSION);
	else if (is_commit(commit) && is_commit(CW_COMMIT) && strcmp(commit, CW_COMMIT) != 0)
		doctor_find(d, "version-differs", fix,
			    "the daemon is from commit %s and this command from %s, both of "
			    "version %s: restart the daemon after an upgrade",
			    commit, CW_COMMIT, CW_VERSION);
	if (is_commit(CW_COMMIT) && read_agent_commit(agent, sizeof(agent)) && is_commit(agent) &&
	    strcmp(agent, CW_COMMIT) != 0)
		doctor_find(d, "version-differs", NULL,
			    "the agent that \"collwatch run\" loads is from commit %s and this "
			    "command from %s: install both from one build",
			    agent, CW_COMMIT);
}

/* Translates the daemon's state of a peer for users. */
static const char *peer_words(const char *state)
{
	static const char *const words[][2] = {
		{ "never_seen", "has not been seen yet" },
		{ "said_goodbye", "has disconnected" },
		{ "lost", "has lost its connection" },
		{ "silent", "does not answer" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i][0], state))
			return words[i][1];
	return "is not connected";
}

/* Returns the words for a refusal. We may not know a refusal of a newer daemon. */
static const char *refusal_words(const char *name)
{
	int refusal = cw_peer_refusal_from_name(name);

	return refusal < 0 ? "for an unknown reason" : cw_peer_refusal_words((unsigned)refusal);
}

static void check_peers(struct doctor *d, const json_t *status)
{
	const json_t *entry;
	size_t i;

	doctor_checked(d, "peers");
	json_array_foreach (json_object_get(status, "peers"), i, entry) {
		const char *state = cw_json_str(entry, "state", "?");
		const char *node = cw_json_str(entry, "node", "?");
		const char *refusal = cw_json_str(entry, "refusal", NULL);

		if (strcmp(state, "connected") == 0)
			continue;
		if (refusal && cw_peer_refusal_from_name(refusal) == CW_PEER_KEY_DIFFERS)
			doctor_find(d, "peer-key-differs", NULL,
				    "%s has a different key: copy the key file of one node to all "
				    "others, then restart their daemons",
				    node);
		else if (refusal)
			doctor_find(d, "peer-unreachable", NULL,
				    "%s is refused (%s): check that its daemon runs and that no "
				    "firewall blocks the peer port",
				    node, refusal_words(refusal));
		else
			doctor_find(d, "peer-unreachable", NULL,
				    "%s %s: check that its daemon runs and that no firewall blocks "
				    "the peer port",
				    node, peer_words(state));
	}
}

static void check_note(struct doctor *d, int note, const char *text)
{
	switch (note) {
	case CW_NOTE_NO_KERNEL_EVENTS:
		doctor_find(d, "kernel-events", NULL, "%s", text);
		break;
	case CW_NOTE_STATE_NOT_WRITABLE:
	case CW_NOTE_BUNDLES_WAITING:
		doctor_find(d, "state-not-writable", NULL, "%s", text);
		break;
	case CW_NOTE_SHADOW:
		doctor_find(d, "shadow", NULL,
			    "%s: set mode = alert and reload the daemon (SIGHUP)", text);
		break;
	case CW_NOTE_AGENT_VERSION:
		doctor_find(d, "agent-version", NULL,
			    "%s. Running ranks keep their agent: they are watched after their next "
			    "start",
			    text);
		break;
	case CW_NOTE_PEERS_FROM:
		doctor_find(d, "peers-not-found", NULL, "%s", text);
		break;
	default: /* the note is no fault, or only a newer daemon knows it */
		break;
	}
}

static void check_notes(struct doctor *d, const json_t *status)
{
	const json_t *names = json_object_get(status, "note_names"), *entry;
	size_t i;

	doctor_checked(d, "notes");
	json_array_foreach (json_object_get(status, "notes"), i, entry) {
		const char *text = json_string_value(entry);
		const char *name = json_string_value(json_array_get(names, i));

		if (text && name)
			check_note(d, cw_status_note_from_name(name), text);
	}
}

static bool is_missing_directory(const char *path)
{
	char dir[PATH_MAX];
	char *slash;

	(void)snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return false;
	*slash = '\0';
	return access(dir, F_OK) < 0;
}

static void check_jobs(struct doctor *d)
{
	json_t *doc = NULL, *list, *entry;
	struct cw_err err;
	uint32_t code;
	size_t i;

	/* Another check reports a daemon that does not answer. */
	if (cw_control_ask(d->control, "communicators", NULL, COMMS_TIMEOUT_MS, &doc, &code, &err) <
	    0)
		return;
	doctor_checked(d, "jobs");
	list = cw_shared_comms_find(doc);
	json_array_foreach (list, i, entry) {
		char sentence[1024];

		cw_shared_comms_format(entry, sentence, sizeof(sentence));
		doctor_find(d, "jobs-share-communicator", NULL, "%s", sentence);
	}
	json_decref(list);
	json_decref(doc);
}

void doctor_check_daemon(struct doctor *d)
{
	json_t *status = NULL;
	struct cw_err err;
	uint32_t code;
	int r;

	/*
	 * A job's container contains only the agents' socket. The control socket belongs to the
	 * node, so we do not report it as missing.
	 */
	if (doctor_is_container() && is_missing_directory(d->control))
		return;
	doctor_checked(d, "daemon");
	r = cw_control_ask(d->control, "status", NULL, TIMEOUT_MS, &status, &code, &err);
	if (r == -EACCES) {
		doctor_find(
			d, "control-socket", NULL,
			"this user may not connect to %s. The daemon creates the socket for all "
			"users (mode 0666): check the socket and its directories with namei -l",
			d->control);
		return;
	}
	if (r < 0) {
		find_down(d, strerror(-r));
		return;
	}
	(void)check_configuration(d);
	check_version(d, status);
	check_peers(d, status);
	check_notes(d, status);
	check_jobs(d);
	json_decref(status);
}

void doctor_check_agent_socket(struct doctor *d)
{
	int fd = cw_unix_connect(d->agent_socket, CONNECT_MS);
	_cleanup_(freep) char *fix = NULL;

	doctor_checked(d, "agent-socket");
	if (fd >= 0) {
		closep(&fd);
		return;
	}
	if (fd == -EACCES) {
		doctor_find(d, "agent-socket", NULL,
			    "this user may not connect to %s, so its ranks cannot register. The "
			    "daemon creates the socket for all users (mode 0666): check the socket "
			    "and its directories with namei -l",
			    d->agent_socket);
		return;
	}
	if (doctor_is_container() && is_missing_directory(d->agent_socket)) {
		doctor_find(d, "socket-not-mounted", NULL,
			    "this container does not contain %s: mount the host's directory of "
			    "that socket here (docker run -v /run/collwatch:/run/collwatch, or a "
			    "hostPath volume)",
			    d->agent_socket);
		return;
	}
	fix = start_command(d);
	doctor_find(d, "agent-socket", fix, "no daemon listens on %s: %s", d->agent_socket,
		    strerror(-fd));
}
