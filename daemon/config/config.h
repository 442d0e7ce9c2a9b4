/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatchd's configuration: one commented file, every key a row of one table. The table drives
 * the parser, --help-config, the manual page and the test, so they cannot disagree.
 *
 * An unknown key, a missing unit or a value out of range refuses the whole file, with file:line.
 * Main thread only (the lexer below is not reentrant); reads that file and the one with the
 * webhook's headers, which may not come either, else does not block.
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
/* A cluster's peer list is configured by hand in this version; more is a mistake. */
#define CW_CONFIG_MAX_PEERS 4096u
#define CW_CONFIG_MAX_NAME CW_NODE_NAME_MAX

struct cw_config_peer {
	char *name;
	char *address; /* "127.0.0.1:7411", "node-b.example.org:7411" */
};

/* What a file says that the configuration names. */
struct cw_config_text {
	char *text;        /* in memory that children do not see; NULL = it could not be had */
	int r;             /* then -errno: why */
	struct cw_err err; /* the same in words */
};

struct cw_config {
	char *node_name;
	char *agent_socket;
	char *control_socket;
	char *control_group;
	char *state_dir;
	char *peers_from;    /* "collwatch.example.org:7411"; "" = peers are listed */
	char *listen;        /* "" = no peers */
	char *peer_key_file; /* "" = none */
	char *peer_ca_file, *peer_cert_file, *peer_private_key_file; /* all or none */
	char *webhook_url;        /* "" = none; in memory that children do not see */
	char *notice_webhook_url; /* likewise, of notices */
	char *webhook_header_file;
	char *webhook_format;   /* "generic" or "slack" */
	char *webhook_epitaphs; /* "true" or "false" */
	char *metrics_socket;   /* "" = none */
	char *metrics_textfile; /* "" = none */
	char *mode;             /* "alert" or "shadow" */
	char *notices;          /* "true" or "false" */
	int64_t alert_burst;    /* of one user, at once */
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
	struct cw_config_text webhook_headers; /* of webhook_header_file, with a webhook_url */
};

enum cw_config_type {
	CW_CONFIG_STRING,
	CW_CONFIG_NAME,     /* of a node: letters, digits, ".-_" */
	CW_CONFIG_PATH,     /* absolute */
	CW_CONFIG_DURATION, /* "90s" */
	CW_CONFIG_BYTES,    /* "1GiB" */
	CW_CONFIG_COUNT,    /* "5" */
	CW_CONFIG_LEVEL,    /* err, warn, … */
	CW_CONFIG_ADDRESS,  /* "127.0.0.1:7411", "[::1]:7411" */
	CW_CONFIG_HOST,     /* "collwatch.example.org:7411": no address */
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
	const char *initial; /* the default, as it would be written; "" = none */
	const char *min, *max;
	const char *choices; /* "alert|shadow"; NULL = no choice */
	bool can_reload;     /* taken over on SIGHUP; the others need a restart */
	const char *help;
};

extern const struct cw_config_key cw_config_keys[];
extern const unsigned cw_config_n_keys;

/*
 * Reads path (NULL: defaults only) into a fresh configuration. -EINVAL with "file:line: …" in err,
 * -ENOENT, or another -errno of reading. A child reads the file (daemon/config/config_reader.h);
 * waits for it, for CW_CONFIG_READ_MS at most (-ETIMEDOUT).
 */
int cw_config_load(const char *path, struct cw_config **ret, struct cw_err *err);
/* The same; where there is no such file it may be the defaults. */
int cw_config_load_from(const char *path, bool may_be_missing, struct cw_config **ret,
			struct cw_err *err);
/* The same without a child: where memory holds no secrets, or nobody inherits it. Does not read
 * what the configuration names: webhook_headers has none. */
int cw_config_load_here(const char *path, struct cw_config **ret, struct cw_err *err);
/* For the strings among the values. */
void cw_config_free_string(const struct cw_config_key *key, char **field);
/* Part of loading: keys about peers that do not go together. 0 or -EINVAL. */
int cw_config_check_peers(const struct cw_config *c, const char *path, struct cw_err *err);
/* Whether there are, or may be, other daemons. */
bool cw_config_has_peers(const struct cw_config *c);
/* How peers prove who they are; borrows from the config. */
struct cw_tls_files cw_config_tls_files(const struct cw_config *c);
/* Takes NULL; returns NULL. */
struct cw_config *cw_config_free(struct cw_config *config);

/* Name of the first key that differs and cannot be reloaded; NULL = all differences can be. */
const char *cw_config_needs_restart(const struct cw_config *a, const struct cw_config *b);

/*
 * Moves the values of all keys that can be reloaded; `from` is good for cw_config_free() only.
 * Never a list: none can be reloaded.
 */
void cw_config_take_reloadable(struct cw_config *to, struct cw_config *from);
/* Stored as an int64_t; else a string, or the list of peers. */
bool cw_config_key_is_number(const struct cw_config_key *key);

/* All keys for people: name, unit, default, range, help. */
void cw_config_print_help(FILE *out);
/* The same as the key section of collwatchd.conf(5), in scdoc. */
void cw_config_print_scdoc(FILE *out);
