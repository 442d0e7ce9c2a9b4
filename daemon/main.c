/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatchd: reads the options, handles signals, and talks to the service manager. service.c does
 * the rest.
 */
#include <argp.h>
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/commit.h"
#include "common/log.h"
#include "daemon/config/config.h"
#include "daemon/config/config_reader.h"
#include "daemon/control/status_doc.h"
#include "daemon/metrics/metrics.h"
#include "daemon/rights.h"
#include "daemon/self_check.h"
#include "daemon/service.h"
#include "loop/events.h"
#include "loop/fork_server.h"
#include "loop/journal.h"
#include "loop/sd_notify.h"
#include "transport/peer_key_file.h"
#include "transport/tls.h"

/*
 * Exit statuses. 1 means an error of usage or configuration. We do not use 2, because the command
 * line uses it for "a hang was found".
 */
enum { EXIT_OK = 0, EXIT_CONFIG = 1, EXIT_START = 4 };

const char *argp_program_version = "collwatchd " CW_VERSION ", commit " CW_COMMIT;

/* Maximum number of file descriptors that we request, the same limit as in the unit file. */
#define MAX_DESCRIPTORS 65536u

static const char *arg_config;
static int arg_log_level = -1;
static bool arg_check, arg_findings, arg_help_config;

enum { OPT_CHECK = 256, OPT_FINDINGS, OPT_HELP_CONFIG, OPT_KEYS, OPT_SCDOC, OPT_SCDOC_METRICS };

static const struct argp_option options[] = {
	{ "config", 'c', "FILE", 0,
	  "Read FILE; without it " CW_CONFIG_DEFAULT_PATH " if it exists, else the defaults", 0 },
	{ "check-config", OPT_CHECK, NULL, 0, "Check the configuration and exit", 0 },
	{ "findings", OPT_FINDINGS, NULL, OPTION_HIDDEN,
	  "Print problems of the configured files, addresses and URLs as JSON, for collwatch "
	  "doctor",
	  0 },
	{ "help-config", OPT_HELP_CONFIG, NULL, 0, "List all keys of the configuration and exit",
	  0 },
	{ "keys", OPT_KEYS, NULL, OPTION_HIDDEN,
	  "Print the names of all keys, one per line, for collwatch run", 0 },
	{ "log-level", 'l', "LEVEL", 0, "err, warn, notice, info or debug; overrides the file", 0 },
	{ "scdoc-config", OPT_SCDOC, NULL, OPTION_HIDDEN,
	  "Print the keys as a section of the manual page", 0 },
	{ "scdoc-metrics", OPT_SCDOC_METRICS, NULL, OPTION_HIDDEN,
	  "Print the metrics as a section of the manual page", 0 },
	{ 0 },
};

static error_t on_option(int key, char *text, struct argp_state *state)
{
	switch (key) {
	case 'c':
		arg_config = text;
		return 0;
	case 'l':
		arg_log_level = cw_log_level_from_name(text);
		if (arg_log_level < 0)
			argp_error(state, "there is no log level \"%s\"", text);
		return 0;
	case OPT_CHECK:
		arg_check = true;
		return 0;
	case OPT_FINDINGS:
		arg_findings = true;
		return 0;
	case OPT_HELP_CONFIG:
		arg_help_config = true;
		return 0;
	case OPT_KEYS:
		for (unsigned i = 0; i < cw_config_n_keys; i++)
			printf("%s\n", cw_config_keys[i].name);
		exit(ferror(stdout) || fflush(stdout) ? EXIT_CONFIG : EXIT_OK);
	case OPT_SCDOC:
		cw_config_print_scdoc(stdout);
		exit(ferror(stdout) || fflush(stdout) ? EXIT_CONFIG : EXIT_OK);
	case OPT_SCDOC_METRICS:
		cw_metrics_print_scdoc(cw_service_extension, stdout);
		exit(ferror(stdout) || fflush(stdout) ? EXIT_CONFIG : EXIT_OK);
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument: %s", text);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = on_option,
	.doc = "Watches the NCCL calls of the ranks on this node, and says which rank hangs a "
	       "job.\v"
	       "Runs in the foreground, logs to stderr or the journal. SIGHUP reloads the "
	       "configuration, SIGTERM and SIGINT stop.",
};

struct daemon {
	struct event_base *base;
	struct cw_fork_server *forks;
	struct cw_rights *rights;
	bool has_lost_rights; /* the keeper of the fork server has ended */
	struct cw_service *service;
	struct cw_config_reader *reader;
	/*
	 * is_reading: a read of the file is in progress; wants_again: read it once more after that
	 */
	bool is_reading, wants_again;
};

static const char *config_path(void)
{
	return arg_config ? arg_config : CW_CONFIG_DEFAULT_PATH;
}

static int load_config(struct cw_config **ret, struct cw_err *err)
{
	int r = cw_config_load_from(config_path(), !arg_config, ret, err);

	if (r >= 0 && arg_log_level >= 0)
		(*ret)->log_level = arg_log_level;
	return r;
}

static void on_stop(evutil_socket_t sig, short what, void *user)
{
	struct daemon *d = user;

	log_notice("%s: stopping", strsignal((int)sig));
	cw_notify_stopping();
	(void)event_base_loopbreak(d->base);
}

static void start_reload(struct daemon *d);

/*
 * Logs the result of a reload. r and restart: from cw_service_reload(). why: the text of the error.
 */
static void note_reload(struct daemon *d, int r, const char *restart, const char *why)
{
	if (r < 0) {
		log_err("%s; the old configuration stays", why);
		cw_service_note_reload(d->service, CW_RELOAD_REFUSED, why);
	} else if (restart) {
		log_warn("%s changed, which needs a restart; the old configuration stays", restart);
		cw_service_note_reload(d->service, CW_RELOAD_NEEDS_RESTART, restart);
	} else {
		log_notice("configuration reloaded");
		cw_service_note_reload(d->service, CW_RELOAD_DONE, "");
	}
}

/*
 * Called when the child has read the configuration, which we then own. config: NULL = loading
 * failed.
 */
static void on_config(struct cw_config *config, int r, const struct cw_err *why, void *user)
{
	const char *restart = NULL;
	struct cw_err err = *why;
	struct daemon *d = user;

	d->is_reading = false;
	if (r >= 0) {
		if (arg_log_level >= 0)
			config->log_level = arg_log_level;
		r = cw_service_reload(d->service, config, &restart, &err);
		if (r < 0)
			cw_config_free(config);
	}
	note_reload(d, r, restart, err.text);
	if (d->wants_again)
		start_reload(d);
	else
		cw_notify_ready("running");
}

static void start_reload(struct daemon *d)
{
	const struct cw_config_source source = { .path = config_path(),
						 .may_be_missing = !arg_config,
						 .within_ms = CW_CONFIG_READ_MS };
	struct cw_err err = { "" };
	int r;

	d->wants_again = false;
	r = cw_config_reader_start(d->reader, &source, on_config, d, &err);
	d->is_reading = r == 0;
	if (r < 0) {
		note_reload(d, r, NULL, err.text);
		cw_notify_ready("running");
	}
}

/*
 * Reads the configuration again. If a read is in progress, repeats it afterwards, because the file
 * may have changed since it began.
 */
static void on_reload(evutil_socket_t sig, short what, void *user)
{
	struct daemon *d = user;

	if (d->is_reading) {
		d->wants_again = true;
		return;
	}
	cw_notify_reloading(cw_clock_now_ns(&cw_clock_system));
	start_reload(d);
}

static void on_watchdog(evutil_socket_t fd, short what, void *user)
{
	struct daemon *d = user;
	char status[128];

	cw_notify_alive();
	cw_service_status(d->service, status, sizeof(status));
	cw_notify_status(status);
}

/*
 * Raises the soft limit of descriptors. A rank takes up to six of them (CW_NODE_PROCESS_FDS), and
 * one user may have half of all ranks. With the usual soft limit of 1,024, a user could not have
 * 100 ranks.
 */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max < MAX_DESCRIPTORS ? limit.rlim_max : MAX_DESCRIPTORS;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warn("limit of descriptors not raised: %m, ignoring");
}

struct events {
	struct event *term, *intr, *hup, *watchdog;
};

static int add_events(struct daemon *d, struct events *e)
{
	int64_t period_ns = cw_notify_watchdog_ns() / 2;
	struct timeval period;

	if (period_ns <= 0 || period_ns > 30 * CW_NS_PER_S)
		period_ns = 30 * CW_NS_PER_S; /* often enough to update the status line */
	period.tv_sec = period_ns / CW_NS_PER_S;
	period.tv_usec = period_ns % CW_NS_PER_S / 1000;
	e->term = evsignal_new(d->base, SIGTERM, on_stop, d);
	e->intr = evsignal_new(d->base, SIGINT, on_stop, d);
	e->hup = evsignal_new(d->base, SIGHUP, on_reload, d);
	e->watchdog = event_new(d->base, -1, EV_PERSIST, on_watchdog, d);
	if (!e->term || !e->intr || !e->hup || !e->watchdog || event_add(e->term, NULL) < 0 ||
	    event_add(e->intr, NULL) < 0 || event_add(e->hup, NULL) < 0 ||
	    event_add(e->watchdog, &period) < 0)
		return -ENOMEM;
	return 0;
}

static void free_events(struct events *e)
{
	event_freep(&e->term);
	event_freep(&e->intr);
	event_freep(&e->hup);
	event_freep(&e->watchdog);
}

static int run_loop(struct daemon *d)
{
	while (!event_base_got_break(d->base)) {
		if (event_base_loop(d->base, EVLOOP_ONCE) < 0) {
			log_err("the event loop failed");
			return -EIO;
		}
		cw_service_end_iteration(d->service);
	}
	return 0;
}

static int check_certificates(const struct cw_config *config)
{
	const struct cw_tls_files files = cw_config_tls_files(config);
	struct cw_err err = { "" };
	struct cw_tls *tls = NULL;

	if (*config->peer_cert_file && cw_tls_new(&files, config->node_name, &tls, &err) < 0) {
		log_err("%s", err.text);
		return EXIT_CONFIG;
	}
	cw_tls_free(tls);
	return EXIT_OK;
}

/* Loads the files that the configuration names, as the daemon would. */
static int check_files(const struct cw_config *config)
{
	struct cw_peer_key *key = NULL;
	struct cw_err err = { "" };

	if (*config->peer_key_file && cw_peer_key_load(config->peer_key_file, &key, &err) < 0) {
		log_err("%s", err.text);
		return EXIT_CONFIG;
	}
	cw_peer_key_free(key);
	return check_certificates(config);
}

static int print_findings(const struct cw_config *config, const struct cw_err *err)
{
	json_t *list = cw_self_check(config, err);
	int r = list ? json_dumpf(list, stdout, JSON_COMPACT) : -1;

	json_decref(list);
	return r == 0 && fflush(stdout) == 0 ? EXIT_OK : EXIT_CONFIG;
}

/*
 * Called if the process that keeps the capabilities is lost. Only a new daemon gets them again, so
 * this one stops, and the service manager starts another one.
 */
static bool may_replace_fork_server(void *user)
{
	struct daemon *d = user;

	if (!d->rights || !cw_rights_are_dropped(d->rights))
		return true;
	log_err("the fork server is lost, and with it the capabilities: stopping");
	d->has_lost_rights = true;
	(void)event_base_loopbreak(d->base);
	return false;
}

static int start_fork_server(struct daemon *d)
{
	const struct cw_fork_server_config config = {
		.base = d->base,
		.clock = &cw_clock_system,
		.jobs = cw_service_jobs,
		.n_jobs = CW_SERVICE_JOBS,
		.program = "/proc/self/exe", /* works also after an upgrade has replaced the file */
		.may_replace = may_replace_fork_server,
		.user = d,
	};

	return cw_fork_server_new(&config, &d->forks);
}

static int run(struct daemon *d, struct cw_config *config)
{
	bool is_alone = !cw_config_has_peers(config);
	struct events events = { 0 };
	struct cw_err err = { "" };
	int r;

	r = start_fork_server(d);
	if (r < 0)
		(void)cw_err_set(&err, -r, "fork server: %s", strerror(-r));
	else
		r = cw_rights_new(d->base, d->forks, &d->rights, &err);
	if (r == 0)
		r = cw_service_new(d->base, &cw_clock_system, d->forks, config, &d->service, &err);
	if (r < 0) {
		log_err("%s", err.text);
		(void)cw_rights_free(d->rights);     /* always NULL */
		(void)cw_fork_server_free(d->forks); /* always NULL */
		cw_config_free(config);
		return EXIT_START;
	}
	r = cw_config_reader_new(d->base, d->forks, &d->reader);
	if (r == 0)
		r = add_events(d, &events);
	if (r < 0)
		(void)cw_err_set(&err, -r, "cannot watch signals: %s", strerror(-r));
	else
		r = cw_rights_drop(d->rights, &err);
	if (r < 0) {
		log_err("%s", err.text);
	} else {
		log_notice("collwatchd " CW_VERSION " runs%s%s", is_alone ? "; " : "",
			   is_alone ? CW_STATUS_ALONE : "");
		cw_notify_ready("running");
		r = run_loop(d);
	}
	free_events(&events);
	(void)cw_config_reader_free(d->reader); /* always NULL */
	cw_service_free(d->service);
	(void)cw_rights_free(d->rights);     /* always NULL */
	(void)cw_fork_server_free(d->forks); /* always NULL */
	return r < 0 || d->has_lost_rights ? EXIT_START : EXIT_OK;
}

int main(int argc, char **argv)
{
	struct daemon d = { 0 };
	struct cw_config *config = NULL;
	struct cw_err err = { "" };
	int r;

	if (cw_fork_server_is_wanted(argc, argv))
		return cw_fork_server_main(cw_service_jobs, CW_SERVICE_JOBS);
	argp_err_exit_status = EXIT_CONFIG;
	cw_log_set_journal(cw_journal_send);
	if (argp_parse(&argp, argc, argv, 0, NULL, NULL) != 0)
		return EXIT_CONFIG;
	if (arg_help_config) {
		cw_config_print_help(stdout);
		return fflush(stdout) == 0 ? EXIT_OK : EXIT_CONFIG;
	}
	r = load_config(&config, &err);
	if (arg_findings) {
		r = print_findings(config, &err);
		cw_config_free(config);
		return r;
	}
	if (r < 0) {
		log_err("%s", err.text);
		return EXIT_CONFIG;
	}
	if (arg_check) {
		r = check_files(config);
		cw_config_free(config);
		return r;
	}
	raise_descriptor_limit();
	/* Ignore SIGPIPE. Peers and the webhook's server may disconnect while we write. */
	(void)signal(SIGPIPE, SIG_IGN);
	d.base = event_base_new();
	if (!d.base) {
		log_err("cannot create the event loop");
		cw_config_free(config);
		return EXIT_START;
	}
	r = run(&d, config);
	event_base_free(d.base);
	libevent_global_shutdown();
	return r;
}
