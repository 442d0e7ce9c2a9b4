/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is one function per item that the configuration names. The function checks its item as the
 * daemon would. For each fault it adds a finding with a fixed name. If one command fixes the fault,
 * the finding includes the command.
 */
#include "daemon/self_check.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/text.h"
#include "daemon/alerts/webhook_probe.h"
#include "report/json_util.h"
#include "transport/peer_cert.h"
#include "transport/peer_key_file.h"
#include "transport/secret_file.h"
#include "transport/tls.h"

/* Below this much free space we warn. The bundles of a large job take a few MiB each. */
#define LOW_SPACE_BYTES (UINT64_C(64) << 20)
#define EXPIRES_SOON_DAYS 30

struct finding {
	/* fix: the command that fixes the fault; NULL = an administrator has to decide */
	const char *name, *fix;
	bool stops;
	bool is_note; /* true if this is no fault, but the administrator should know it */
};

static void __attribute__((format(printf, 3, 4)))
add(json_t *list, const struct finding *f, const char *fmt, ...)
{
	char what[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	/* If this fails, memory ran out, and the finding is missing. */
	(void)json_array_append_new(list,
				    json_pack("{s:s, s:o, s:o, s:b, s:b}", "name", f->name, "what",
					      cw_json_text(what), "fix", cw_json_text(f->fix),
					      "stops", f->stops, "note", f->is_note));
}

/* ---- keys ---- */

/*
 * Adds a finding if the file is missing, or if other users can read it. Returns true if we can read
 * the file and check more.
 */
static bool check_secret(json_t *list, const char *key, const char *path)
{
	struct finding f = { .name = "key-missing", .stops = true };
	_cleanup_(freep) char *fix = NULL;
	struct stat st;

	if (stat(path, &st) < 0) {
		if (errno != EACCES) /* with EACCES we cannot tell whether the file exists */
			add(list, &f,
			    "%s: %s: %m. Copy it from another node (mode 0600, owner root or the "
			    "daemon's user), or make new ones for all with `collwatch "
			    "init-cluster`",
			    key, path);
		return false;
	}
	/*
	 * Ignore read access of the group, because the service manager may give it to a credential.
	 * Only the daemon can tell whether this file is a credential.
	 */
	if (cw_secret_file_is_open(CW_SECRET_FILE_KEY, st.st_mode & ~S_IRGRP)) {
		fix = cw_text_command("chmod 600", path);
		f = (struct finding){ .name = "key-permissions", .fix = fix, .stops = true };
		add(list, &f,
		    "%s has mode %04o: users other than its owner can read the key. Make a new key "
		    "if another user may have read it",
		    path, st.st_mode & 07777);
		return false;
	}
	/*
	 * No other user can read the file. We can check more only if root owns the file or we own
	 * it. This process does not know the daemon's user.
	 */
	return access(path, R_OK) == 0 && (st.st_uid == 0 || st.st_uid == geteuid());
}

static void check_key(json_t *list, const struct cw_config *config)
{
	const struct finding f = { .name = "key-malformed", .stops = true };
	struct cw_peer_key *key = NULL;
	struct cw_err err = { "" };

	if (*config->peer_key_file && check_secret(list, "peer_key_file", config->peer_key_file) &&
	    cw_peer_key_load(config->peer_key_file, &key, &err) < 0)
		add(list, &f, "%s", err.text);
	cw_peer_key_free(key);
}

/* ---- certificates ---- */

static void check_expiry(json_t *list, const struct cw_config *config)
{
	const struct finding f = { .name = "certificate-expires" };
	int days;

	if (cw_peer_cert_days_left(config->peer_cert_file, &days) == 0 && days < EXPIRES_SOON_DAYS)
		add(list, &f,
		    "%s expires in %d day%s, and then all peers refuse this node: make a new one "
		    "with `collwatch init-cluster DIR --ca OLD-DIR --node …`",
		    config->peer_cert_file, days, days == 1 ? "" : "s");
}

static void check_certificates(json_t *list, const struct cw_config *config)
{
	const struct finding f = { .name = "certificate", .stops = true };
	const struct cw_tls_files files = cw_config_tls_files(config);
	struct cw_tls *tls = NULL;
	struct cw_err err = { "" };

	if (!*config->peer_cert_file ||
	    !check_secret(list, "peer_private_key_file", config->peer_private_key_file))
		return;
	if (cw_tls_new(&files, config->node_name, &tls, &err) < 0)
		add(list, &f, "%s", err.text);
	else
		check_expiry(list, config);
	cw_tls_free(tls);
}

/* ---- the state directory ---- */

static void check_space(json_t *list, const struct cw_config *config)
{
	const struct finding f = { .name = "state-space" };
	struct statvfs fs;
	uint64_t left;

	if (statvfs(config->state_dir, &fs) < 0)
		return; /* the daemon makes this directory when it starts first */
	left = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (left < LOW_SPACE_BYTES)
		add(list, &f,
		    "%s has %llu MiB left: bundles of incidents will be kept in memory only. Make "
		    "room on that file system, or move state_dir",
		    config->state_dir, (unsigned long long)(left >> 20));
}

/* ---- the webhook ---- */

static void check_header_file(json_t *list, const char *path)
{
	struct finding f = { .name = "webhook-header", .stops = true };
	_cleanup_(freep) char *fix = NULL;
	struct stat st;

	if (stat(path, &st) < 0) {
		/* With EACCES we cannot tell whether the file exists. */
		if (errno != EACCES || geteuid() == 0)
			add(list, &f,
			    "webhook_header_file: %s: %m: the daemon does not start without it",
			    path);
		return;
	}
	if (!cw_secret_file_is_open(CW_SECRET_FILE_HEADER, st.st_mode))
		return;
	fix = cw_text_command("chmod 640", path);
	f.fix = fix;
	add(list, &f,
	    "%s has mode %04o: other users can read the webhook's headers. Make a new token if "
	    "another user may have read it",
	    path, st.st_mode & 07777);
}

static void check_webhook(json_t *list, const struct cw_config *config)
{
	struct finding f = { 0 };
	struct cw_err err = { "" };

	if (!*config->webhook_url) {
		f = (struct finding){ .name = "webhook-none", .is_note = true };
		add(list, &f, "alerts go to the journal only: webhook_url is not set");
		return;
	}
	if (*config->webhook_header_file)
		check_header_file(list, config->webhook_header_file);
	switch (cw_webhook_probe(config->webhook_url, &err)) {
	case CW_WEBHOOK_PROBE_OK:
		return;
	case CW_WEBHOOK_PROBE_TLS:
		f.name = "webhook-tls";
		add(list, &f,
		    "the webhook's server is there, but TLS with it fails: %s. Is its authority "
		    "among this machine's (update-ca-certificates)?",
		    err.text);
		return;
	case CW_WEBHOOK_PROBE_UNREACHABLE:
		f.name = "webhook-unreachable";
		add(list, &f,
		    "the webhook's server cannot be reached from this node: %s. Alerts are kept "
		    "and tried again; check webhook_url, the server, and firewalls between",
		    err.text);
		return;
	}
}

json_t *cw_self_check(const struct cw_config *config, const struct cw_err *err)
{
	const struct finding bad = { .name = "configuration", .stops = true };
	json_t *list = json_array();

	if (list && !config)
		add(list, &bad, "%s", err->text);
	if (!list || !config)
		return list;
	check_key(list, config);
	check_certificates(list, config);
	check_space(list, config);
	check_webhook(list, config);
	return list;
}
