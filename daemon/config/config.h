/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatchd's configuration: one commented file, in which every key is a row of one table. The
 * table drives the parser, --help-config, the manual page and the test, so they cannot disagree.
 *
 * An unknown key, a missing unit or a value out of range rejects the whole file, with file:line.
 * Main thread only (the lexer below is not reentrant). Reads that file and the file with the
 * webhook's headers, which may both hang; blocks for nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/address.h"
#include "common/err.h"
#include "transport/tls.h"

#define CW_CONFIG_DEFAULT_PATH "/etc/collwatch/collwatchd.conf"
/* In this version administrators write the peer list by hand. A longer list is a mistake. */
#define CW_CONFIG_MAX_PEERS 4096u
#define CW_CONFIG_MAX_NAME CW_NODE_NAME_MAX

struct cw_config_peer {
	char *name;
	char *address; /* "127.0.0.1:7411", "node-b.example.org:7411" */
};

/* Contents of a file that the configuration names. */
struct cw_config_text {
	char *text;        /* in memory hidden from children; NULL = unreadable */
	int r;             /* -errno if the file was unreadable */
	struct cw_err err; /* the same error as text */
};

struct cw_config {
	char *node_name;
	char *agent_socket;
	char *control_socket;
	char *control_group;
	char *state_dir;
	char *peers_from;    /* "collwatch.example.org:7411"; "" = the list of peers is used */
	char *listen;        /* "" = no peers */
	char *peer_key_file; /* "" = none */
	char *peer_ca_file, *peer_cert_file, *peer_private_key_file; /* all set or none */
	char *webhook_url;        /* "" = none; in memory hidden from children */
	char *notice_webhook_url; /* the same for notices */
	char *webhook_header_file;
	char *webhook_format;      /* "generic" or "slack" */
	char *webhook_postmortems; /* "true" or "false" */
	char *metrics_socket;      /* "" = none */
	char *metrics_textfile;    /* "" = none */
	char *mode;                /* "alert" or "shadow" */
	char *notices;             /* "true" or "false" */
	int64_t alert_burst;       /* alerts of one user that go out at once */
	int64_t alert_fold_ns;
	int64_t log_level; /* enum cw_log_level */
	int64_t state_max_bytes;
	int64_t state_max_age_ns;
	int64_t sample_interval_ns;
	int64_t stall_min_ns, stall_max_ns;
	int64_t no_progress_after_ns;
	int64_t first_op_after_ns;
	struct cw_config_peer *peers; /* without this node */
	unsigned n_peers;
	/* Contents of webhook_header_file, if webhook_url is set. */
	struct cw_config_text webhook_headers;
};

enum cw_config_type {
	CW_CONFIG_STRING,
	CW_CONFIG_NAME,     /* name of a node: letters, digits, ".-_" */
	CW_CONFIG_PATH,     /* absolute */
	CW_CONFIG_DURATION, /* "90s" */
	CW_CONFIG_BYTES,    /* "1GiB" */
	CW_CONFIG_COUNT,    /* "5" */
	CW_CONFIG_LEVEL,    /* err, warn, … */
	CW_CONFIG_ADDRESS,  /* "127.0.0.1:7411", "[::1]:7411" */
	CW_CONFIG_HOST,     /* "collwatch.example.org:7411"; not a numeric address */
	CW_CONFIG_URL,      /* http:// or https:// */
	CW_CONFIG_CHOICE,   /* one of a few words */
	CW_CONFIG_PEERS,    /* list of "name=address" */
	CW_CONFIG__MAX,
};

struct cw_config_key {
	const char *name;
	uint32_t type; /* enum cw_config_type */
	size_t offset; /* into struct cw_config */
	const char *unit;
	const char *initial; /* the default, as in the file; "" = none */
	const char *min, *max;
	const char *choices; /* "alert|shadow"; NULL = not a choice */
	bool can_reload;     /* applied on SIGHUP; other keys need a restart */
	const char *help;
};

extern const struct cw_config_key cw_config_keys[];
extern const unsigned cw_config_n_keys;

/*
 * Reads the file at path into a new configuration; path NULL = defaults only. -EINVAL: err has
 * "file:line: …". -ENOENT or another -errno: we could not read the file. A child reads it
 * (daemon/config/config_reader.h), and this function waits for the child. After CW_CONFIG_READ_MS
 * it returns -ETIMEDOUT.
 */
int cw_config_load(const char *path, struct cw_config **ret, struct cw_err *err);
/* Like cw_config_load(). With may_be_missing, a missing file means the defaults. */
int cw_config_load_from(const char *path, bool may_be_missing, struct cw_config **ret,
			struct cw_err *err);
/*
 * Like cw_config_load(), but without a child. Use it in a process without secrets in memory, or
 * without later children. Does not read the files that the configuration names:
 * webhook_headers.text is NULL.
 */
int cw_config_load_here(const char *path, struct cw_config **ret, struct cw_err *err);
/* Frees the field of a string key. */
void cw_config_free_string(const struct cw_config_key *key, char **field);
/* Checks that the keys about peers are consistent; part of loading. 0 or -EINVAL. */
int cw_config_check_peers(const struct cw_config *config, const char *path, struct cw_err *err);
/* True if there are, or may be, other daemons. */
bool cw_config_has_peers(const struct cw_config *config);
/* Returns the files that authenticate peers. They are borrowed from the config. */
struct cw_tls_files cw_config_tls_files(const struct cw_config *config);
/* Takes NULL; returns NULL. */
struct cw_config *cw_config_free(struct cw_config *config);

/*
 * Returns the name of the first key that differs and that we cannot reload. NULL = we can reload
 * all differences.
 */
const char *cw_config_needs_restart(const struct cw_config *a, const struct cw_config *b);

/*
 * Moves the values of all reloadable keys from `from` to `to`. Afterwards use `from` only for
 * cw_config_free(). Never moves a list, because no list is reloadable.
 */
void cw_config_take_reloadable(struct cw_config *to, struct cw_config *from);
/* True if the key's value is an int64_t. Otherwise it is a string or the list of peers. */
bool cw_config_key_is_number(const struct cw_config_key *key);

/* Prints all keys for users, each with its name, unit, default, range and help. */
void cw_config_print_help(FILE *out);
/* Prints the keys as the key section of collwatchd.conf(5), in scdoc. */
void cw_config_print_scdoc(FILE *out);
