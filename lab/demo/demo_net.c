/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and enters namespaces. unshare() and setns() move only the calling thread. So a separate
 * thread builds the network from inside and then ends. No thread has to return to its old
 * namespace.
 */
#include "lab/demo/demo_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"

/*
 * Addresses of the nodes; the network is invisible from outside. The hub has the address of the
 * last host.
 */
#define ADDRESS_FORMAT "10.77.0.%d"
#define HUB_HOST 254
#define MAC_FORMAT "02:00:00:00:00:%02x"
/*
 * Time limit for one run of ip(8), which takes some milliseconds. If ip(8) hangs, the demo goes on.
 */
#define IP_WITHIN_S 10
/* The descriptor by which ip(8) finds the hub's namespace. */
#define HUB_CHILD_FD 3
#define BACKLOG 64

struct net_node {
	char host[16], address[16];
	int net_fd, uts_fd;
};

struct demo_net {
	int n;
	struct net_node nodes[DEMO_NET_MAX_NODES];
	char alert_address[16];
	int hub_fd, alert_fd;
};

struct build {
	struct demo_net *net;
	struct cw_err *err;
	int r;
};

/* ---- ip(8) ---- */

/* Becomes ip(8) in the child; does not return. */
static void become_ip(int in_fd, int out_fd, int hub_fd)
{
	/*
	 * We move the descriptors above all targets of dup2(), so that no dup2() overwrites one of
	 * them.
	 */
	int in = fcntl(in_fd, F_DUPFD_CLOEXEC, HUB_CHILD_FD + 1);
	int out = fcntl(out_fd, F_DUPFD_CLOEXEC, HUB_CHILD_FD + 1);
	int hub = fcntl(hub_fd, F_DUPFD_CLOEXEC, HUB_CHILD_FD + 1);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGALRM, SIG_DFL);
	(void)alarm(IP_WITHIN_S);
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || dup2(hub, HUB_CHILD_FD) < 0)
		_exit(126);
	(void)execl("/bin/sh", "sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; exec ip -batch -",
		    (char *)NULL);
	_exit(127);
}

/* Reads the first line of an error text. Further lines only give the position of the error. */
static void read_line(int fd, char *line, size_t len)
{
	size_t n = 0;
	ssize_t got;

	while (n < len - 1 && (got = read(fd, line + n, len - 1 - n)) != 0) {
		if (got < 0 && errno != EINTR)
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

static int explain_ip(int status, const char *said, struct cw_err *err)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return cw_err_set(err, ENOENT, "there is no ip (package iproute2)");
	if (WIFSIGNALED(status))
		return cw_err_set(err, ETIMEDOUT, "ip was killed by signal %d", WTERMSIG(status));
	return cw_err_set(err, EPERM, "ip: %s", said);
}

static int batch_file(const char *batch)
{
	_cleanup_(closep) int fd = memfd_create("ip-batch", MFD_CLOEXEC);
	size_t len = strlen(batch);

	if (fd < 0 || write(fd, batch, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return steal_fd(&fd);
}

/* Runs the commands in the namespace of within_fd; -1 = in the calling thread's namespace. */
static int run_ip(const struct demo_net *net, const char *batch, int within_fd, struct cw_err *err)
{
	_cleanup_(closep) int in_fd = batch_file(batch), read_fd = -1, write_fd = -1;
	char said[128];
	int fds[2], status;
	pid_t pid;

	if (in_fd < 0 || pipe2(fds, O_CLOEXEC) < 0)
		return cw_err_set(err, errno, "ip: %s", strerror(errno));
	read_fd = fds[0];
	write_fd = fds[1];
	pid = fork();
	if (pid == 0) {
		if (within_fd >= 0 && setns(within_fd, CLONE_NEWNET) < 0)
			_exit(126);
		become_ip(in_fd, write_fd, net->hub_fd);
	}
	if (pid < 0)
		return cw_err_set(err, errno, "ip: %s", strerror(errno));
	(void)close(steal_fd(&write_fd));
	read_line(read_fd, said, sizeof(said));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return cw_err_set(err, errno, "ip: %s", strerror(errno));
	return explain_ip(status, said, err);
}

/* ---- building; all of it runs in the thread ---- */

static int open_own(const char *which)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/thread-self/ns/%s", which);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int make_namespaces(int flags, struct cw_err *err)
{
	return unshare(flags) < 0
		       ? cw_err_set(err, errno, "no namespace can be made: %s", strerror(errno))
		       : 0;
}

/*
 * Writes the commands that make one node. We enter the hardware addresses of all nodes in advance.
 * Learned entries would count towards a limit of the whole machine, and a demo of 64 nodes would
 * use up four times as many.
 */
static void write_node_batch(FILE *out, const struct demo_net *net, const struct net_node *node)
{
	fprintf(out,
		"link add " DEMO_NET_DEVICE " address " MAC_FORMAT
		" type veth peer name %s netns /proc/self/fd/%d\n"
		"address add %s/24 dev " DEMO_NET_DEVICE "\n"
		"link set lo up\n"
		"link set " DEMO_NET_DEVICE " up\n",
		(int)(node - net->nodes) + 1, node->host, HUB_CHILD_FD, node->address);
	for (int i = 0; i < net->n; i++)
		if (&net->nodes[i] != node)
			fprintf(out,
				"neighbour add %s lladdr " MAC_FORMAT " dev " DEMO_NET_DEVICE "\n",
				net->nodes[i].address, i + 1);
}

/* Writes the commands that make the hub, to which all links of nodes lead. */
static void write_hub_batch(FILE *out, const struct demo_net *net, const struct net_node *ignored)
{
	fprintf(out,
		"link add bridge type bridge\n"
		"address add %s/24 dev bridge\n"
		"link set bridge up\n",
		net->alert_address);
	for (int i = 0; i < net->n; i++)
		fprintf(out, "link set %s master bridge up\n", net->nodes[i].host);
}

static int set_up(const struct demo_net *net, const struct net_node *node,
		  void (*write_batch)(FILE *out, const struct demo_net *net,
				      const struct net_node *node),
		  struct cw_err *err)
{
	_cleanup_(freep) char *batch = NULL;
	size_t len;
	FILE *out = open_memstream(&batch, &len);

	if (!out)
		return cw_err_set(err, ENOMEM, "out of memory");
	write_batch(out, net, node);
	if (ferror(out) | fclose(out))
		return cw_err_set(err, ENOMEM, "out of memory");
	return run_ip(net, batch, -1, err);
}

static int make_node(const struct demo_net *net, struct net_node *node, struct cw_err *err)
{
	int r = make_namespaces(CLONE_NEWNET | CLONE_NEWUTS, err);

	if (r < 0)
		return r;
	node->net_fd = open_own("net");
	node->uts_fd = open_own("uts");
	if (node->net_fd < 0 || node->uts_fd < 0)
		return cw_err_set(err, ENOENT, "a namespace cannot be held: is /proc mounted?");
	if (sethostname(node->host, strlen(node->host)) < 0)
		return cw_err_set(err, errno, "no host name can be set: %s", strerror(errno));
	return set_up(net, node, write_node_batch, err);
}

/*
 * Opens the socket for alerts in the hub. A socket stays in the namespace in which it was made,
 * whichever process holds it.
 */
static int listen_in_hub(struct demo_net *net, struct cw_err *err)
{
	struct sockaddr_in address = { .sin_family = AF_INET };

	/* cannot fail: the address is valid */
	(void)inet_pton(AF_INET, net->alert_address, &address.sin_addr);
	net->alert_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (net->alert_fd < 0 ||
	    bind(net->alert_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(net->alert_fd, BACKLOG) < 0)
		return cw_err_set(err, errno, "cannot listen on the bridge: %s", strerror(errno));
	return 0;
}

static int build(struct demo_net *net, struct cw_err *err)
{
	int r = make_namespaces(CLONE_NEWNET, err);

	if (r < 0)
		return r;
	net->hub_fd = open_own("net");
	if (net->hub_fd < 0)
		return cw_err_set(err, ENOENT, "a namespace cannot be held: is /proc mounted?");
	for (int i = 0; r == 0 && i < net->n; i++)
		r = make_node(net, &net->nodes[i], err);
	if (r == 0 && setns(net->hub_fd, CLONE_NEWNET) < 0)
		r = cw_err_set(err, errno, "no namespace can be entered: %s", strerror(errno));
	if (r == 0)
		r = set_up(net, NULL, write_hub_batch, err);
	return r < 0 ? r : listen_in_hub(net, err);
}

static void *build_in_thread(void *user)
{
	struct build *b = user;

	b->r = build(b->net, b->err);
	return NULL;
}

static struct demo_net *new_net(const char *const *hosts, int n)
{
	struct demo_net *net = calloc(1, sizeof(*net));

	if (!net)
		return NULL;
	net->n = n;
	net->hub_fd = net->alert_fd = -1;
	snprintf(net->alert_address, sizeof(net->alert_address), ADDRESS_FORMAT, HUB_HOST);
	for (int i = 0; i < n; i++) {
		struct net_node *node = &net->nodes[i];

		node->net_fd = node->uts_fd = -1;
		snprintf(node->host, sizeof(node->host), "%s", hosts[i]);
		snprintf(node->address, sizeof(node->address), ADDRESS_FORMAT, i + 1);
	}
	return net;
}

int demo_net_make(const char *const *hosts, int n, struct demo_net **ret, struct cw_err *err)
{
	struct build b = { .err = err };
	pthread_t thread;
	int r;

	if (n < 1 || n > DEMO_NET_MAX_NODES)
		return cw_err_set(err, EINVAL, "a network has 1 to %d nodes", DEMO_NET_MAX_NODES);
	b.net = new_net(hosts, n);
	if (!b.net)
		return cw_err_set(err, ENOMEM, "out of memory");
	r = pthread_create(&thread, NULL, build_in_thread, &b);
	if (r != 0) {
		demo_net_free(b.net);
		return cw_err_set(err, r, "no thread can be made: %s", strerror(r));
	}
	(void)pthread_join(thread, NULL); /* cannot fail for a joinable thread */
	if (b.r < 0) {
		demo_net_free(b.net);
		return b.r;
	}
	*ret = b.net;
	return 0;
}

/* ---- use ---- */

struct demo_net *demo_net_free(struct demo_net *net)
{
	if (!net)
		return NULL;
	closep(&net->alert_fd);
	closep(&net->hub_fd);
	for (int i = 0; i < net->n; i++) {
		closep(&net->nodes[i].net_fd);
		closep(&net->nodes[i].uts_fd);
	}
	free(net);
	return NULL;
}

const char *demo_net_address(const struct demo_net *net, int node)
{
	return net->nodes[node].address;
}

const char *demo_net_alert_address(const struct demo_net *net)
{
	return net->alert_address;
}

int demo_net_take_alert_socket(struct demo_net *net)
{
	return steal_fd(&net->alert_fd);
}

int demo_net_enter(const struct demo_net *net, int node)
{
	return setns(net->nodes[node].net_fd, CLONE_NEWNET) < 0 ||
			       setns(net->nodes[node].uts_fd, CLONE_NEWUTS) < 0
		       ? -errno
		       : 0;
}

int demo_net_cut(const struct demo_net *net, int node, struct cw_err *err)
{
	char batch[64];

	snprintf(batch, sizeof(batch), "link set %s down\n", net->nodes[node].host);
	return run_ip(net, batch, net->hub_fd, err);
}
