/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatchd's configuration: one commented file. Every key is a row of one table. The parser,
 * --help-config, the manual page and the test all use this table, so they cannot disagree.
 *
 * An unknown key, a missing unit or a value out of range rejects the whole file, with file:line.
 * Main thread only, because the lexer of libconfuse is not reentrant. Reads this file and the file
 * with the webhook's headers. Both reads may hang; nothing else blocks.
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
/*
 * Maximum number of peers in the list. Administrators write it by hand, so a longer list is a
 * mistake.
 */
#define CW_CONFIG_MAX_PEERS 4096u
#define CW_CONFIG_MAX_NAME CW_NODE_NAME_MAX

struct cw_config_peer {
	char *name;
	char *address; /* host and port, such as "127.0.0.1:7411" or "node-b.example.org:7411" */
};

/* The text of another file that the configuration names, or the reason why we have none. */
struct cw_config_text {
	char *text;        /* in memory hidden from children; NULL = the file was unreadable */
	int r;             /* 0, or -errno if the file was unreadable */
	struct cw_err err; /* the text for the error r */
};

struct cw_config {
	char *node_name;
	char *agent_socket;
	char *control_socket;
	char *control_group;
	char *state_dir;
	/* Where to discover peers, "collwatch.example.org:7411"; "" = we use the list of peers. */
	char *peers_from;
	char *listen;        /* our own address; "" = no peers */
	char *peer_key_file; /* "" = none */
	/* All three set, or all three "". */
	char *peer_ca_file, *peer_cert_file, *peer_private_key_file;
	char *webhook_url;        /* "" = none; in memory hidden from children */
	char *notice_webhook_url; /* like webhook_url, but for notices */
	char *webhook_header_file;
	char *webhook_format;      /* "generic" or "slack" */
	char *webhook_postmortems; /* "true" or "false" */
	char *metrics_socket;      /* "" = none */
	char *metrics_textfile;    /* "" = none */
	char *mode;                /* "alert" or "shadow" */
	char *notices;             /* "true" or "false" */
	int64_t alert_burst;       /* maximum number of alerts of one user that go out at once */
	int64_t alert_fold_ns;
	int64_t log_level; /* enum cw_log_level */
	int64_t state_max_bytes;
	int64_t state_max_age_ns;
	int64_t sample_interval_ns;
	int64_t stall_min_ns, stall_max_ns;
	int64_t no_progress_after_ns;
	int64_t first_op_after_ns;
	struct cw_config_peer *peers; /* the list of peers, without this node */
	unsigned n_peers;
	/* The text of webhook_header_file. Loaded only if webhook_url is set. */
	struct cw_config_text webhook_headers;
};

enum cw_config_type {
	CW_CONFIG_STRING,
	CW_CONFIG_NAME,     /* name of a node: letters, digits, '.', '-', '_' */
	CW_CONFIG_PATH,     /* absolute path */
	CW_CONFIG_DURATION, /* a number with a unit, "90s" */
	CW_CONFIG_BYTES,    /* a number with a unit, "1GiB" */
	CW_CONFIG_COUNT,    /* a number, "5" */
	CW_CONFIG_LEVEL,    /* a log level: err, warn, … */
	CW_CONFIG_ADDRESS,  /* numeric address and port: "127.0.0.1:7411", "[::1]:7411" */
	/* Host name and port, "collwatch.example.org:7411"; not a numeric address. */
	CW_CONFIG_HOST,
	CW_CONFIG_URL,    /* begins with http:// or https:// */
	CW_CONFIG_CHOICE, /* one of the words in `choices` */
	CW_CONFIG_PEERS,  /* a list of "name=address" */
	CW_CONFIG__MAX,
};

struct cw_config_key {
	const char *name;
	uint32_t type; /* enum cw_config_type */
	size_t offset; /* of the field in struct cw_config */
	const char *unit;
	const char *initial; /* default value, as one would write it in the file; "" = none */
	const char *min, *max;
	const char *choices; /* the words of a CW_CONFIG_CHOICE, "alert|shadow"; NULL = no choice */
	bool can_reload;     /* SIGHUP applies a change; a change of other keys needs a restart */
	const char *help;
};

extern const struct cw_config_key cw_config_keys[];
extern const unsigned cw_config_n_keys;

/*
 * Reads the file at path into a new configuration; path NULL = only defaults. A child reads the
 * file (daemon/config/config_reader.h), and this function waits for the child. Returns 0, or -errno
 * with err set. -EINVAL: the file is invalid, and err has "file:line: …". -ETIMEDOUT: the child
 * took longer than CW_CONFIG_READ_MS. -ENOENT and other values: we could not read the file.
 */
int cw_config_load(const char *path, struct cw_config **ret, struct cw_err *err);
/* Like cw_config_load(). If may_be_missing is true, a missing file means the defaults. */
int cw_config_load_from(const char *path, bool may_be_missing, struct cw_config **ret,
			struct cw_err *err);
/*
 * Like cw_config_load(), but reads the file in this process, without a child. Call it only if this
 * process has no secrets in memory, or will have no children. Does not read the files that the
 * configuration names, so webhook_headers.text is NULL.
 */
int cw_config_load_here(const char *path, struct cw_config **ret, struct cw_err *err);
/* Frees the string in the field of a string key. */
void cw_config_free_string(const struct cw_config_key *key, char **field);
/*
 * Checks that the keys about peers fit together. Loading a configuration includes this check.
 * Returns 0, or -EINVAL with err set.
 */
int cw_config_check_peers(const struct cw_config *config, const char *path, struct cw_err *err);
/* True if the configuration has peers, or finds them at run time. */
bool cw_config_has_peers(const struct cw_config *config);
/* Returns the names of the files that authenticate peers, borrowed from the configuration. */
struct cw_tls_files cw_config_tls_files(const struct cw_config *config);
/* Takes NULL; returns NULL. */
struct cw_config *cw_config_free(struct cw_config *config);

/*
 * Compares two configurations. Returns the name of the first key that differs and that only a
 * restart can change. NULL = there is none.
 */
const char *cw_config_needs_restart(const struct cw_config *a, const struct cw_config *b);

/*
 * Moves the values of all keys with can_reload from `from` to `to`. Afterwards use `from` only for
 * cw_config_free(). Moves no list, because no list has can_reload.
 */
void cw_config_take_reloadable(struct cw_config *to, struct cw_config *from);
/* True if the key's value is an int64_t. Otherwise it is a string or the list of peers. */
bool cw_config_key_is_number(const struct cw_config_key *key);

/* Prints all keys for users, each with its name, unit, default, range and help. */
void cw_config_print_help(FILE *out);
/* Prints the keys as the key section of collwatchd.conf(5), in scdoc. */
void cw_config_print_scdoc(FILE *out);
