/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_peers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cluster_key.h"
#include "cli/hostlist.h"
#include "common/cleanup.h"

#define MAX_NODES 4096u
/*
 * Range of the daemons' ports. It is below the ports that systems assign (ip_local_port_range), and
 * above well-known services.
 */
#define PORTS_FROM 16384u
#define N_PORTS 16384u
/* Limits for a key in hex digits. They are the daemon's limits of 32 to 64 bytes. */
#define MIN_KEY 64u
#define MAX_KEY 128u

struct peers {
	char **entries; /* each is NAME=ADDRESS:PORT */
	unsigned n;
};

static size_t name_len(const char *entry)
{
	return strcspn(entry, "=");
}

/* ---- the key ---- */

static bool is_key(const char *text)
{
	size_t len = strlen(text);

	for (const char *p = text; *p; p++)
		if (!isxdigit((unsigned char)*p))
			return false;
	return len >= MIN_KEY && len <= MAX_KEY && len % 2 == 0;
}

/*
 * Returns the port that belongs to a key. Each job has its own key, so jobs of two users do not
 * collide on a node.
 */
static unsigned port_of(const char *key)
{
	char digits[5] = { 0 };

	memcpy(digits, key, 4);
	return PORTS_FROM + (unsigned)strtoul(digits, NULL, 16) % N_PORTS;
}

static int write_key(const char *dir, const char *key, struct cw_err *err)
{
	char path[PATH_MAX + 16];
	_cleanup_(closep) int fd = -1;
	size_t len = strlen(key);

	(void)snprintf(path, sizeof(path), "%s/key", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, key, len) != (ssize_t)len)
		return cw_err_set(err, fd < 0 ? errno : EIO, "cannot write %s", path);
	return 0;
}

/* ---- the list ---- */

static void peers_fini(struct peers *p)
{
	p->entries = cw_hostlist_free(p->entries);
}

/* Reads "a=10.0.0.1:7411,b=10.0.0.2:7411". */
static int read_entries(char *list, struct peers *p, struct cw_err *err)
{
	char *rest = list, *entry;

	p->entries = calloc(MAX_NODES + 1, sizeof(*p->entries));
	if (!p->entries)
		return cw_err_set(err, ENOMEM, "out of memory");
	while ((entry = strsep(&rest, ","))) {
		if (!strchr(entry, '=') || !strchr(entry, ':'))
			return cw_err_set(err, EINVAL, "peers: \"%s\" is not NAME=ADDRESS:PORT",
					  entry);
		if (p->n >= MAX_NODES)
			return cw_err_set(err, EINVAL, "peers: more than %u", MAX_NODES);
		p->entries[p->n] = strdup(entry);
		if (!p->entries[p->n++])
			return cw_err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

/* Reads "gpu[1-4]" or "gpu[1-4]:7500". If there is no port, we use the key's port (port_of()). */
static int read_hosts(char *list, const char *key, struct peers *p, struct cw_err *err)
{
	char *port = strrchr(list, ':'), by_key[16];

	(void)snprintf(by_key, sizeof(by_key), "%u", port_of(key));
	if (port)
		*port++ = '\0';
	if (port && (!*port || port[strspn(port, "0123456789")]))
		return cw_err_set(err, EINVAL,
				  "peers: \"%s\" is not a port; give the port once, at the end",
				  port);
	if (cw_hostlist_expand(list, MAX_NODES, &p->entries, &p->n, err) < 0)
		return -EINVAL;
	for (unsigned i = 0; i < p->n; i++) {
		char *name = p->entries[i];

		if (asprintf(&p->entries[i], "%s=%s:%s", name, name, port ? port : by_key) < 0) {
			p->entries[i] = name;
			return cw_err_set(err, ENOMEM, "out of memory");
		}
		free(name);
	}
	return 0;
}

/*
 * Reads either form of the list. The entries go into a configuration, in quotes. So we refuse
 * characters that have a meaning inside quotes.
 */
static int read_list(const char *list, const char *key, struct peers *p, struct cw_err *err)
{
	_cleanup_(freep) char *copy = strdup(list);

	if (!copy)
		return cw_err_set(err, ENOMEM, "out of memory");
	if (strpbrk(list, "\"'\\$\n"))
		return cw_err_set(err, EINVAL, "peers: \"%s\" is not a list of hosts", list);
	return strchr(list, '=') ? read_entries(copy, p, err) : read_hosts(copy, key, p, err);
}

/* ---- this node ---- */

/* True if the entry names the host. "gpu1" and "gpu1.example.org" are the same host. */
static bool is_host(const char *entry, const char *host)
{
	size_t len = name_len(entry), host_len = strlen(host);

	if (len == host_len && !strncmp(entry, host, len))
		return true;
	if (memchr(entry, '.', len) && strchr(host, '.'))
		return false;
	len = strcspn(entry, ".=");
	return len == strcspn(host, ".") && !strncmp(entry, host, len);
}

/* Returns this node's entry; NULL = the list does not have it. */
static const char *own_entry(const struct peers *p, const char *node_name)
{
	char host[HOST_NAME_MAX + 1] = "";

	(void)gethostname(host, sizeof(host) - 1);
	for (unsigned i = 0; i < p->n; i++) {
		const char *entry = p->entries[i];

		if (node_name ? strlen(node_name) == name_len(entry) &&
					!strncmp(entry, node_name, name_len(entry))
			      : is_host(entry, host))
			return entry;
	}
	fprintf(stderr,
		"collwatch: this host (%s) is not among the peers; its daemon watches its own "
		"ranks only\n",
		node_name ? node_name : host);
	return NULL;
}

static int configure(FILE *conf, const char *dir, const char *key, const char *list,
		     const char *node_name, struct cw_err *err)
{
	_cleanup_(peers_fini) struct peers p = { 0 };
	const char *own;
	int r = read_list(list, key, &p, err);

	if (r < 0)
		return r;
	own = own_entry(&p, node_name);
	if (!own)
		return 0;
	r = write_key(dir, key, err);
	if (r < 0)
		return r;
	fprintf(conf, "node_name = \"%.*s\"\npeer_key_file = \"%s/key\"\npeers = {",
		(int)name_len(own), own, dir);
	for (unsigned i = 0; i < p.n; i++)
		fprintf(conf, "%s\n\t\"%s\"", i ? "," : "", p.entries[i]);
	fputs("\n}\n", conf);
	return 0;
}

int run_peers_configure(FILE *conf, const char *dir, const char *node_name, struct cw_err *err)
{
	const char *list = getenv(RUN_PEERS_LIST), *key = getenv(RUN_PEERS_KEY);

	if (!list || !*list)
		return 0;
	if (!key || !is_key(key))
		return cw_err_set(err, EINVAL,
				  key ? RUN_PEERS_KEY
					  " is not a key of 64 to 128 hexadecimal digits"
				      : RUN_PEERS_LIST " is set, and " RUN_PEERS_KEY " is not");
	return configure(conf, dir, key, list, node_name, err);
}

int run_peers_hand_on(const char *list, struct cw_err *err)
{
	const char *there = getenv(RUN_PEERS_KEY);
	_cleanup_(peers_fini) struct peers p = { 0 };
	char key[CW_CLUSTER_KEY_TEXT];
	int r;

	if (there && !is_key(there))
		return cw_err_set(err, EINVAL,
				  RUN_PEERS_KEY " is not a key of 64 to 128 hexadecimal digits");
	r = cw_cluster_key_make(key);
	if (r < 0)
		return cw_err_set(err, -r, "cannot get random numbers for a key");
	key[strcspn(key, "\n")] = '\0';
	r = read_list(list, there ? there : key, &p, err);
	if (r == 0 && (setenv(RUN_PEERS_LIST, list, 1) < 0 || setenv(RUN_PEERS_KEY, key, 0) < 0))
		r = cw_err_set(err, ENOMEM, "out of memory");
	cw_cluster_key_wipe(key);
	return r;
}
