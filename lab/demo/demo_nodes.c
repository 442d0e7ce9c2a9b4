/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo's site: a private directory, one daemon per node with its own configuration, the
 * daemons' common key, and a socket for each daemon's readiness message. We plan all ports before
 * we start the daemons, because each daemon must know all of them. The end of a daemon is an error
 * unless the scenario ends it.
 */
#include "lab/demo/demo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cluster_key.h"
#include "cli/control.h"
#include "cli/paths.h"
#include "common/cleanup.h"
#include "lab/demo/demo_webhook.h"
#include "report/json_util.h"

#define READY_WITHIN_S 20
#define NO_PROGRESS_AFTER_S 5
#define LOOPBACK "127.0.0.1"
#define STATUS_TIMEOUT_MS 1000
#define CONFIG_FORMAT "%s/collwatchd.conf"
#define KEY_FORMAT "%s/peer.key"

int demo_free_port(int *ret_port, int *ret_fd)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	_cleanup_(closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(address);
	int on = 1;

	/*
	 * We bind the port without listening. Both sides use SO_REUSEADDR, so the daemon's own bind
	 * succeeds, too.
	 */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return -errno;
	*ret_port = ntohs(address.sin_port);
	*ret_fd = steal_fd(&fd);
	return 0;
}

static void name_node(struct demo_node *node, int i)
{
	if (i < 26)
		snprintf(node->name, sizeof(node->name), "node-%c", 'a' + i);
	else
		snprintf(node->name, sizeof(node->name), "node-%c%c", 'a' + i / 26 - 1,
			 'a' + i % 26);
}

static void write_config(FILE *out, const struct demo *demo, const struct demo_node *node)
{
	int no_progress_after_s = demo->opts.scenario->no_progress_after_s;

	if (!no_progress_after_s)
		no_progress_after_s = NO_PROGRESS_AFTER_S;
	/* A node in a network namespace has its name as host name, and needs no setting. */
	if (!demo->net)
		fprintf(out, "node_name = \"%s\"\n", node->name);
	else
		fprintf(out, "peer_key_file = \"" KEY_FORMAT "\"\n", demo->dir);
	fprintf(out, "agent_socket = \"%s/agent.sock\"\n", node->dir);
	fprintf(out, "control_socket = \"%s/control.sock\"\n", node->dir);
	fprintf(out, "state_dir = \"%s/state\"\n", node->dir);
	fprintf(out, "webhook_url = \"http://%s:%u/alert\"\n",
		demo->net ? demo_net_alert_address(demo->net) : LOOPBACK,
		demo_webhook_port(demo->webhook));
	if (demo->opts.run.nodes > 1) {
		fputs("peers = {", out);
		for (int i = 0; i < demo->opts.run.nodes; i++)
			fprintf(out, "%s\"%s=%s:%d\"", i ? ", " : "", demo->nodes[i].name,
				demo->nodes[i].address, demo->nodes[i].port);
		fputs("}\n", out);
	}
	/* These times are shorter than at a real site (docs/design/patience.md#patience). */
	fprintf(out, "no_progress_after = \"%ds\"\nfirst_op_after = \"30s\"\n",
		no_progress_after_s);
	fputs("log_level = \"info\"\n", out);
}

static int make_node_dir(const struct demo *demo, const struct demo_node *node, struct cw_err *err)
{
	char config[PATH_MAX];
	FILE *out;

	snprintf(config, sizeof(config), CONFIG_FORMAT, node->dir);
	if (mkdir(node->dir, 0700) < 0)
		return cw_err_set(err, errno, "%s: %s", node->dir, strerror(errno));
	out = fopen(config, "we");
	if (!out)
		return cw_err_set(err, errno, "%s: %s", config, strerror(errno));
	write_config(out, demo, node);
	if (ferror(out) | fclose(out))
		return cw_err_set(err, EIO, "cannot write %s", config);
	return 0;
}

static void on_notify(evutil_socket_t fd, short what, void *user)
{
	struct demo_node *node = user;
	struct demo *demo = node->demo;
	char buf[1024];
	int ready = 0;
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf) - 1, MSG_DONTWAIT)) > 0) {
		buf[n] = '\0';
		if (strncmp(buf, "READY=1", 7) == 0 || strstr(buf, "\nREADY=1"))
			node->is_ready = true;
	}
	for (int i = 0; i < demo->opts.run.nodes; i++)
		ready += demo->nodes[i].is_ready;
	if (ready < demo->opts.run.nodes || demo->site_is_up)
		return;
	demo->site_is_up = true;
	demo_say(demo, "%d daemon%s up, state in %s", ready, ready == 1 ? "" : "s", demo->dir);
	if (demo_job_start(demo, &demo->err) < 0)
		demo_end(demo, DEMO_FAILED);
}

/* Opens the socket for a daemon's readiness message (sd_notify(3)). */
static int listen_for_readiness(struct demo_node *node, struct cw_err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify.sock", node->dir);

	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return cw_err_set(err, ENAMETOOLONG,
				  "%s: too long for the name of a socket (set TMPDIR)", node->dir);
	node->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (node->notify_fd < 0 ||
	    bind(node->notify_fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return cw_err_set(err, errno, "%s: %s", address.sun_path, strerror(errno));
	node->on_notify =
		event_new(node->demo->base, node->notify_fd, EV_READ | EV_PERSIST, on_notify, node);
	if (!node->on_notify || event_add(node->on_notify, NULL) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int start_daemon(struct demo *demo, struct demo_node *node, struct cw_err *err)
{
	char program[PATH_MAX], config[PATH_MAX], log[PATH_MAX], notify[PATH_MAX];
	char *argv[] = { program, (char *)"--config", config, NULL };
	/* The site's proxy cannot reach the demo's receiver. */
	const char *env[] = { notify, "no_proxy=*", NULL };
	struct demo_proc_spec spec = {
		.name = node->name,
		.argv = argv,
		.env = env,
		.log_path = log,
		.net = demo->net,
		.node = (int)(node - demo->nodes),
	};
	int r;

	r = cw_paths_find(CW_PART_DAEMON, program, err);
	if (r < 0)
		return r;
	snprintf(config, sizeof(config), CONFIG_FORMAT, node->dir);
	snprintf(log, sizeof(log), "%s/collwatchd.log", node->dir);
	snprintf(notify, sizeof(notify), "NOTIFY_SOCKET=%s/notify.sock", node->dir);
	return demo_proc_start(&node->daemon, demo->base, &spec, err);
}

static int make_directory(struct demo *demo, struct cw_err *err)
{
	const char *tmp = getenv("TMPDIR");
	int n = snprintf(demo->dir, sizeof(demo->dir), "%s/collwatch-demo.XXXXXX",
			 tmp && *tmp ? tmp : "/tmp");

	if (n < 0 || (size_t)n >= sizeof(demo->dir) || !mkdtemp(demo->dir)) {
		int error = errno;

		demo->dir[0] = '\0';
		return cw_err_set(err, error, "cannot make a directory for the demo: %s",
				  strerror(error));
	}
	return 0;
}

/*
 * Makes the network, if possible, because the daemons of a real site run on separate machines. Says
 * whether it succeeded.
 */
static void make_net(struct demo *demo)
{
	const char *hosts[DEMO_MAX_RANKS];
	int n = demo->opts.run.nodes;
	struct cw_err why = { "" };

	for (int i = 0; i < n; i++)
		hosts[i] = demo->nodes[i].name;
	if (demo->opts.no_namespaces)
		demo_say(demo, "%d nodes, all on loopback (--no-namespaces)", n);
	else if (demo_net_make(hosts, n, &demo->net, &why) == 0)
		demo_say(demo, "%d nodes, each in a network namespace of its own", n);
	else
		demo_say(demo, "%d nodes, all on loopback: %s", n, why.text);
}

int demo_nodes_plan(struct demo *demo, struct cw_err *err)
{
	int r;

	for (int i = 0; i < demo->opts.run.nodes; i++) {
		demo->nodes[i].demo = demo;
		demo->nodes[i].notify_fd = demo->nodes[i].port_fd = -1;
		name_node(&demo->nodes[i], i);
	}
	if (demo->opts.run.nodes > 1)
		make_net(demo);
	for (int i = 0; i < demo->opts.run.nodes; i++) {
		struct demo_node *node = &demo->nodes[i];

		node->address = demo->net ? demo_net_address(demo->net, i) : LOOPBACK;
		node->port = DEMO_NET_PEER_PORT;
		r = demo->net ? 0 : demo_free_port(&node->port, &node->port_fd);
		if (r < 0)
			return cw_err_set(err, -r, "no free port: %s", strerror(-r));
	}
	return 0;
}

/*
 * Makes the key that the daemons share. On other addresses than loopback, daemons accept only peers
 * with the key.
 */
static int make_key(const struct demo *demo, struct cw_err *err)
{
	char path[PATH_MAX], text[CW_CLUSTER_KEY_TEXT];
	_cleanup_(closep) int fd = -1;
	size_t len = sizeof(text) - 1;
	ssize_t n = -1;

	snprintf(path, sizeof(path), KEY_FORMAT, demo->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && cw_cluster_key_make(text) == 0)
		n = write(fd, text, len);
	cw_cluster_key_wipe(text);
	return n == (ssize_t)len ? 0 : cw_err_set(err, EIO, "cannot write %s", path);
}

int demo_nodes_start(struct demo *demo, struct cw_err *err)
{
	int r = make_directory(demo, err);

	if (r == 0 && demo->net)
		r = make_key(demo, err);
	for (int i = 0; r == 0 && i < demo->opts.run.nodes; i++)
		snprintf(demo->nodes[i].dir, sizeof(demo->nodes[i].dir), "%s/%s", demo->dir,
			 demo->nodes[i].name);
	for (int i = 0; r == 0 && i < demo->opts.run.nodes; i++) {
		r = make_node_dir(demo, &demo->nodes[i], err);
		if (r == 0)
			r = listen_for_readiness(&demo->nodes[i], err);
		if (r == 0)
			r = start_daemon(demo, &demo->nodes[i], err);
	}
	if (r == 0)
		demo_expect(demo, READY_WITHIN_S, "the daemons did not get ready");
	return r;
}

static bool had_to_end(const struct demo_node *node)
{
	int status = node->daemon.wait_status;

	return node->is_lost ||
	       (node->is_restarting && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void demo_nodes_on_ended(struct demo *demo)
{
	char how[128];

	for (int i = 0; i < demo->opts.run.nodes; i++) {
		struct demo_node *node = &demo->nodes[i];

		if (!node->daemon.has_ended)
			continue;
		if (!had_to_end(node)) {
			(void)cw_err_set(&demo->err, ECHILD, "collwatchd of %s %s", node->name,
					 demo_proc_describe_end(&node->daemon, how, sizeof(how)));
			demo_end(demo, DEMO_FAILED);
			return;
		}
		if (node->is_lost)
			continue;
		node->is_restarting = false;
		demo_proc_fini(&node->daemon);
		if (start_daemon(demo, node, &demo->err) < 0)
			demo_end(demo, DEMO_FAILED);
	}
}

void demo_nodes_fini(struct demo *demo)
{
	for (int i = 0; i < demo->opts.run.nodes; i++) {
		struct demo_node *node = &demo->nodes[i];

		if (!node->demo)
			continue;
		if (node->on_notify)
			event_free(node->on_notify);
		closep(&node->notify_fd);
		closep(&node->port_fd);
		demo_proc_fini(&node->daemon);
		node->demo = NULL;
	}
}

static json_t *led_job(const json_t *status)
{
	const json_t *jobs = json_object_get(status, "jobs");
	json_t *job;
	size_t i;

	json_array_foreach (jobs, i, job)
		if (json_is_true(json_object_get(job, "led_here")))
			return json_incref(job);
	return NULL;
}

json_t *demo_nodes_job_status(struct demo *demo)
{
	json_t *job = NULL;

	for (int i = 0; i < demo->opts.run.nodes && !job; i++) {
		json_t *status = NULL;
		char path[PATH_MAX];
		uint32_t code;

		snprintf(path, sizeof(path), "%s/control.sock", demo->nodes[i].dir);
		if (cw_control_ask(path, "status", NULL, STATUS_TIMEOUT_MS, &status, &code, NULL) <
		    0)
			continue;
		job = led_job(status);
		json_decref(status);
	}
	return job;
}
