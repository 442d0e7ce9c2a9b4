/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the files for the daemons of a new cluster into one directory. They are the common key, or
 * an authority and a certificate per node, and the configuration that names the other nodes. The
 * verb checks the whole request before it writes the first file, and overwrites no file.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cluster_ca.h"
#include "cli/cluster_key.h"
#include "cli/hostlist.h"
#include "cli/options.h"
#include "cli/terminal/progress_bar.h"
#include "cli/verb.h"
#include "common/address.h"
#include "common/cleanup.h"
#include "common/or_exit/or_exit.h"
#include "common/parse.h"

#define KEY_NAME "peer.key"
#define KEY_PATH "/etc/collwatch/" KEY_NAME
/* Limit on the nodes, which is that of a daemon's peer list. */
#define MAX_NODES 4096u

/*
 * Validity of a certificate in days. It is long enough that renewal is rare, and short enough that
 * lost certificates expire some day.
 */
#define DEFAULT_DAYS 1825
#define MAX_DAYS 36500

enum {
	OPT_NODE = 256,
	OPT_HOSTS,
	OPT_PEERS_FROM,
	OPT_KEY_PATH,
	OPT_CERTIFICATES,
	OPT_CA,
	OPT_DAYS
};

struct init_args {
	const char *dir, *key_path, *ca_dir;
	bool has_certificates;
	int64_t days;
	const char *peers_from; /* "host:port"; NULL = the configuration lists the nodes */
	char **nodes;           /* "name=address:port", or "name" with peers_from; borrowed */
	unsigned n_nodes;
	const char *hosts; /* "gpu[001-500]" or "gpu[001-500]:7411"; NULL = none */
	char **named;      /* the nodes made from hosts; owned */
	unsigned n_named;
};

/* The daemons' default port. */
#define DEFAULT_PORT "7411"

/*
 * True if one configuration serves all nodes. It does if the nodes have no certificates and differ
 * at most in their host names.
 */
static bool has_one_config(const struct init_args *args)
{
	return args->n_nodes == args->n_named && !args->has_certificates;
}

/* ---- the request ---- */

static size_t name_len(const char *node)
{
	const char *eq = strchr(node, '=');

	return eq ? (size_t)(eq - node) : strlen(node);
}

static void check_address(struct argp_state *state, const char *node, const char *text)
{
	struct cw_address address;
	struct cw_err err = { "" };

	if (cw_address_parse(text, &address, &err) < 0)
		argp_error(state, "%s", err.text);
	if (cw_address_is_any(&address))
		argp_error(state, "\"%s\": other daemons cannot connect to that address", node);
}

static void check_node(struct argp_state *state, const struct init_args *args, const char *node)
{
	size_t len = name_len(node);

	if (!cw_node_name_is_valid(node, len) || node[0] == '.')
		argp_error(state, "\"%s\" is not of the form NAME=ADDRESS:PORT", node);
	if (node[len])
		check_address(state, node, node + len + 1);
	for (unsigned i = 0; i < args->n_nodes; i++)
		if (name_len(args->nodes[i]) == len && !strncmp(args->nodes[i], node, len))
			argp_error(state, "node \"%.*s\" is named twice", (int)len, node);
	if (args->n_nodes >= MAX_NODES)
		argp_error(state, "more than %u nodes", MAX_NODES);
}

static void check_peers_from(struct argp_state *state, const char *text)
{
	struct cw_address address;
	struct cw_err err = { "" };

	if (cw_address_parse(text, &address, &err) < 0)
		argp_error(state, "--peers-from: %s", err.text);
	if (address.len)
		argp_error(
			state,
			"--peers-from: \"%s\" is an address; give a host name that has the "
			"addresses of all daemons, or list the nodes with --node NAME=ADDRESS:PORT",
			text);
}

/* Makes "gpu001=gpu001:7411", or the name alone if addresses are discovered. */
static char *make_node(const struct init_args *args, const char *name, const char *port)
{
	return args->peers_from ? cw_or_exit_printf("%s", name)
				: cw_or_exit_printf("%s=%s:%s", name, name, port);
}

/*
 * Adds the nodes of --hosts. The caller must have parsed --peers-from, which decides about
 * addresses.
 */
static void add_hosts(struct argp_state *state, struct init_args *args)
{
	char *list = cw_or_exit(strdup(args->hosts)), *port = strrchr(list, ':'), **names = NULL;
	struct cw_err err;
	unsigned n = 0;

	if (port)
		*port++ = '\0';
	if (port && args->peers_from)
		argp_error(state, "--hosts: with --peers-from, give only names, without ports");
	if (cw_hostlist_expand(list, MAX_NODES, &names, &n, &err) < 0)
		argp_error(state, "--hosts: %s", err.text);
	args->named = names;
	for (unsigned i = 0; i < n; i++) {
		char *node = make_node(args, names[i], port ? port : DEFAULT_PORT);

		free(names[i]);
		names[i] = node;
		check_node(state, args, node);
		args->nodes[args->n_nodes++] = node;
	}
	args->n_named = n;
	free(list);
}

/* Checks options that depend on each other. */
static void check_all(struct argp_state *state, const struct init_args *args)
{
	bool is_found = args->peers_from;

	if (!args->dir)
		argp_error(state, "no directory given");
	if (!is_found && args->n_nodes < 2)
		argp_error(state, "a cluster needs at least two nodes (--node, --hosts), or a host "
				  "name with all their addresses (--peers-from)");
	if (is_found && args->has_certificates && !args->n_nodes)
		argp_error(state, "a certificate needs a node's name: give --node NAME for each "
				  "node, or --hosts");
	for (unsigned i = 0; i < args->n_nodes; i++)
		if (!!strchr(args->nodes[i], '=') == is_found)
			argp_error(state,
				   is_found ? "\"%s\": with --peers-from, give only the node's name"
					    : "\"%s\" is not of the form NAME=ADDRESS:PORT",
				   args->nodes[i]);
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct init_args *args = state->input;

	switch (key) {
	case OPT_NODE:
		check_node(state, args, arg);
		args->nodes[args->n_nodes++] = arg;
		return 0;
	case OPT_HOSTS:
		if (args->hosts)
			argp_error(state, "give --hosts once, with commas between names, for "
					  "example gpu[001-500],login1");
		args->hosts = arg;
		return 0;
	case OPT_PEERS_FROM:
		check_peers_from(state, arg);
		args->peers_from = arg;
		return 0;
	case OPT_KEY_PATH:
		if (arg[0] != '/' || strpbrk(arg, "\"\\\n$"))
			argp_error(state,
				   "\"%s\" is not an absolute path, or has a character that needs "
				   "quoting",
				   arg);
		args->key_path = arg;
		return 0;
	case OPT_CERTIFICATES:
		args->has_certificates = true;
		return 0;
	case OPT_CA:
		args->ca_dir = arg;
		args->has_certificates = true;
		return 0;
	case OPT_DAYS:
		if (cw_parse_i64(arg, 1, MAX_DAYS, &args->days) < 0)
			argp_error(state, "--days takes a number from 1 to %d", MAX_DAYS);
		return 0;
	case ARGP_KEY_ARG:
		if (args->dir)
			argp_error(state, "unexpected argument \"%s\"", arg);
		args->dir = arg;
		return 0;
	case ARGP_KEY_END:
		if (args->hosts)
			add_hosts(state, args);
		check_all(state, args);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_init_cluster = {
	.options =
		(const struct argp_option[]){
			{ "node", OPT_NODE, "NAME=ADDRESS:PORT", 0,
			  "Name of a node and address of its daemon; give it once per node", 0 },
			{ "hosts", OPT_HOSTS, "LIST[:PORT]", 0,
			  "Nodes whose names are their host names, as a Slurm host list: "
			  "gpu[001-500]; the port is " DEFAULT_PORT " unless given",
			  0 },
			{ "peers-from", OPT_PEERS_FROM, "HOST:PORT", 0,
			  "Instead of addresses: a host name with the addresses of all daemons, as "
			  "of a headless service. Give --node NAME for each node, or no --node at "
			  "all",
			  0 },
			{ "key-path", OPT_KEY_PATH, "FILE", 0,
			  "Path of the (private) key on the nodes (default: " KEY_PATH ")", 0 },
			{ "certificates", OPT_CERTIFICATES, NULL, 0,
			  "Make a certificate for each node instead of a shared key", 0 },
			{ "ca", OPT_CA, "DIR", 0,
			  "Sign them with the authority that an earlier run made in DIR", 0 },
			{ "days", OPT_DAYS, "N", 0, "Days for which they are valid (default: 1825)",
			  0 },
			{ 0 },
		},
	.parser = parse_opt,
	.args_doc = "DIR",
	.doc = "Make a shared key for the daemons of a cluster, and each node's "
	       "configuration.\vWrites DIR/" KEY_NAME
	       " and DIR/NAME/collwatchd.conf (without --node, one DIR/collwatchd.conf for all), "
	       "and prints the files to copy to each node. With --certificates an authority "
	       "(DIR/ca.crt, DIR/ca.key) and DIR/NAME/peer.{crt,key}. Existing files are never "
	       "overwritten.",
};

/* ---- files ---- */

static int complain(const char *dir, const char *name)
{
	int e = errno;

	fprintf(stderr, "collwatch: %s/%s: %s%s\n", dir, name, strerror(e),
		e == EEXIST ? "; no file is overwritten: give a new directory" : "");
	return -e;
}

static int put_file(const char *dir, int dir_fd, const char *name, mode_t mode, const char *text)
{
	_cleanup_(closep) int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	size_t len = strlen(text);

	if (fd < 0)
		return complain(dir, name);
	if (fchmod(fd, mode) < 0 || write(fd, text, len) != (ssize_t)len || fsync(fd) < 0)
		return complain(dir, name);
	return 0;
}

static int write_key(const char *dir, int dir_fd)
{
	char text[CW_CLUSTER_KEY_TEXT];
	int r = cw_cluster_key_make(text);

	if (r < 0) {
		fputs("collwatch: cannot get random numbers for a key\n", stderr);
		return r;
	}
	r = put_file(dir, dir_fd, KEY_NAME, 0600, text);
	cw_cluster_key_wipe(text);
	return r;
}

/*
 * Returns the length of the private key's directory in key_path. The certificates are in the same
 * directory.
 */
static int cert_dir_len(const struct init_args *args)
{
	return (int)(strrchr(args->key_path, '/') - args->key_path) + 1; /* the path is absolute */
}

/* Prints the lines of configuration with which this node proves its identity. */
static void print_secrets(FILE *f, const struct init_args *args)
{
	int len = cert_dir_len(args);

	if (args->has_certificates)
		fprintf(f,
			"# The authority that all peers trust, this node's certificate, and its "
			"private key. Only\n# root and the daemon's user may have access to the "
			"private key.\npeer_ca_file = \"%.*sca.crt\"\npeer_cert_file = "
			"\"%.*speer.crt\"\npeer_private_key_file = \"%s\"\n\n",
			len, args->key_path, len, args->key_path, args->key_path);
	else
		fprintf(f,
			"# The key that all peers share. Only root and the daemon's user may have "
			"access.\npeer_key_file = \"%s\"\n\n",
			args->key_path);
}

static void print_peers(FILE *f, const struct init_args *args)
{
	if (args->peers_from) {
		fprintf(f,
			"# Every address of this name is a daemon of the cluster.\n"
			"peers_from = \"%s\"\n\n",
			args->peers_from);
		return;
	}
	fputs("# All daemons that watch jobs together; the same list on every node. This node's "
	      "own\n# entry is the address on which its daemon listens.\npeers = {\n",
	      f);
	for (unsigned i = 0; i < args->n_nodes; i++)
		fprintf(f, "\t\"%s\"%s\n", args->nodes[i], i + 1 < args->n_nodes ? "," : "");
	fputs("}\n\n", f);
}

/* Makes the configuration of a node. node NULL: one configuration for all nodes. */
static char *make_config(const struct init_args *args, const char *node)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = cw_or_exit(open_memstream(&text, &len));

	fprintf(f,
		"# /etc/collwatch/collwatchd.conf of %.*s, see collwatchd.conf(5); made by\n"
		"# collwatch init-cluster. All other keys have good defaults: collwatchd "
		"--help-config.\n\n"
		"# Name of this node in reports and among the peers%s.\n",
		node ? (int)name_len(node) : 10, node ? node : "every node",
		node ? "" : "; default: its host name");
	if (node)
		fprintf(f, "node_name = \"%.*s\"\n\n", (int)name_len(node), node);
	else
		fputs("#node_name = \"\"\n\n", f);
	print_secrets(f, args);
	print_peers(f, args);
	fputs("# URL to which alerts are posted. Without it, alerts appear in the journal "
	      "only.\n#webhook_url = \"https://alerts.example.org/collwatch\"\n",
	      f);
	return cw_or_exit(fclose(f) == 0 ? text : NULL);
}

static int write_config(const struct init_args *args, int dir_fd, const char *node)
{
	_cleanup_(freep) char *text = make_config(args, node);
	char name[CW_NODE_NAME_MAX + 32];
	int len = node ? (int)name_len(node) : 0;

	(void)snprintf(name, sizeof(name), "%.*s", len, node ? node : "");
	if (node && mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
		return complain(args->dir, name);
	(void)snprintf(name, sizeof(name), "%.*s%scollwatchd.conf", len, node ? node : "",
		       node ? "/" : "");
	return put_file(args->dir, dir_fd, name, 0644, text);
}

static int write_configs(const struct init_args *args, int dir_fd)
{
	struct cw_progress_bar bar;
	int r = 0;

	if (has_one_config(args))
		return write_config(args, dir_fd, NULL);
	cw_progress_bar_begin(&bar, "configurations", args->n_nodes, false);
	for (unsigned i = 0; i < args->n_nodes && r == 0; i++) {
		r = write_config(args, dir_fd, args->nodes[i]);
		cw_progress_bar_at(&bar, i + 1, NULL);
	}
	cw_progress_bar_end(&bar);
	return r;
}

static int issue_to_all(const struct init_args *args, const struct cw_cluster_ca *ca, int dir_fd)
{
	struct cw_progress_bar bar;
	int r = 0;

	cw_progress_bar_begin(&bar, "certificates", args->n_nodes, false);
	for (unsigned i = 0; i < args->n_nodes && r == 0; i++) {
		char name[CW_NODE_NAME_MAX];

		(void)snprintf(name, sizeof(name), "%.*s", (int)name_len(args->nodes[i]),
			       args->nodes[i]);
		r = cw_cluster_ca_issue(ca, args->dir, dir_fd, name, (int)args->days);
		cw_progress_bar_at(&bar, i + 1, NULL);
	}
	cw_progress_bar_end(&bar);
	return r;
}

static int write_certificates(const struct init_args *args, int dir_fd)
{
	struct cw_cluster_ca *ca;
	int r = -1;

	ca = args->ca_dir ? cw_cluster_ca_load(args->ca_dir)
			  : cw_cluster_ca_make(args->dir, dir_fd, 2 * (int)args->days);
	if (ca && (!args->ca_dir || cw_cluster_ca_copy(ca, args->dir, dir_fd) == 0))
		r = issue_to_all(args, ca, dir_fd);
	(void)cw_cluster_ca_free(ca); /* always NULL */
	return r;
}

static void say_where_certificates_go(const struct init_args *args)
{
	printf("Copy to %.*s on every node:\n"
	       "  %s/ca.crt\n"
	       "and to each its own (the private key as %s, mode 0600, owner root or the\n"
	       "daemon's user; the configuration as /etc/collwatch/collwatchd.conf):\n",
	       cert_dir_len(args), args->key_path, args->dir, args->key_path);
	for (unsigned i = 0; i < args->n_nodes; i++)
		printf("  %.*s  %s/%.*s/{collwatchd.conf,peer.crt,peer.key}\n",
		       (int)name_len(args->nodes[i]), args->nodes[i], args->dir,
		       (int)name_len(args->nodes[i]), args->nodes[i]);
	printf("Then restart collwatchd everywhere; `collwatch status` lists the peers.\n"
	       "The certificates are valid for %d day%s. Keep %s/ca.key off the nodes: with it, and "
	       "--ca,\nfurther nodes and new certificates are made.\n",
	       (int)args->days, args->days == 1 ? "" : "s",
	       args->ca_dir ? args->ca_dir : args->dir);
}

static void say_what_next(const struct init_args *args)
{
	if (args->has_certificates) {
		say_where_certificates_go(args);
		return;
	}
	printf("Copy to every node:\n"
	       "  %s/" KEY_NAME "  to  %s  (mode 0600, owner root or the daemon's user)\n",
	       args->dir, args->key_path);
	if (!has_one_config(args))
		puts("and to each its own configuration, as /etc/collwatch/collwatchd.conf:");
	else
		printf("  %s/collwatchd.conf  to  /etc/collwatch/collwatchd.conf\n", args->dir);
	for (unsigned i = 0; i < args->n_nodes && !has_one_config(args); i++)
		printf("  %.*s  %s/%.*s/collwatchd.conf\n", (int)name_len(args->nodes[i]),
		       args->nodes[i], args->dir, (int)name_len(args->nodes[i]), args->nodes[i]);
	puts("Then restart collwatchd everywhere; `collwatch status` lists the peers.\nAny host "
	     "with the key can join the cluster: copy it over ssh, and keep no copy that you do "
	     "not need.");
}

static void free_named(struct init_args *args)
{
	args->named = cw_hostlist_free(args->named);
}

int cw_verb_init_cluster(int argc, char **argv)
{
	_cleanup_(freep) char **nodes = cw_or_exit(calloc(MAX_NODES + 1, sizeof(*nodes)));
	_cleanup_(free_named) struct init_args args = { .key_path = KEY_PATH,
							.nodes = nodes,
							.days = DEFAULT_DAYS };
	_cleanup_(closep) int dir_fd = -1;

	(void)cw_options_parse(&cw_argp_init_cluster, argc, argv, 0, &args);
	if (mkdir(args.dir, 0700) < 0 && errno != EEXIST) {
		(void)complain(args.dir, "");
		return CW_EXIT_ERROR;
	}
	dir_fd = open(args.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0) {
		(void)complain(args.dir, "");
		return CW_EXIT_ERROR;
	}
	if (!args.has_certificates && write_key(args.dir, dir_fd) < 0)
		return CW_EXIT_ERROR;
	if (write_configs(&args, dir_fd) < 0)
		return CW_EXIT_ERROR;
	if (args.has_certificates && write_certificates(&args, dir_fd) < 0)
		return CW_EXIT_ERROR;
	say_what_next(&args);
	return CW_EXIT_OK;
}
