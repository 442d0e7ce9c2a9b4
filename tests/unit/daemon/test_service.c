/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/service.h"
#include "tests/support/node/hung_fs.h"

static char dir[] = "/tmp/cw-service-XXXXXX";
static struct event_base *base;
static struct cw_fork_server *forks;

/* A configuration in the test's directory, with further lines. */
static struct cw_config *config_with(const char *more)
{
	struct cw_config *c = NULL;
	struct cw_err err = { "" };
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/conf", dir);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	cr_assert_gt(fprintf(f,
			     "node_name = n\nagent_socket = \"%s/agent.sock\"\n"
			     "control_socket = \"%s/control.sock\"\nstate_dir = \"%s/state\"\n%s",
			     dir, dir, dir, more),
		     0);
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(cw_config_load(path, &c, &err), 0, "%s", err.text);
	return c;
}

static void setup(void)
{
	struct cw_fork_server_config config = {
		.clock = &cw_clock_system,
		.jobs = cw_service_jobs,
		.n_jobs = CW_SERVICE_JOBS,
	};

	cr_assert_not_null(mkdtemp(dir));
	base = event_base_new();
	config.base = base;
	cr_assert_eq(cw_fork_server_new(&config, &forks), 0);
}

static void teardown(void)
{
	char command[128];

	forks = cw_fork_server_free(forks);
	event_base_free(base);
	(void)snprintf(command, sizeof(command), "rm -r '%s'", dir);
	cr_assert_eq(system(command), 0);
}

static mode_t mode_of(const char *name)
{
	char path[128];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return stat(path, &st) < 0 ? 0 : st.st_mode & 0777;
}

TestSuite(service, .init = setup, .fini = teardown);

Test(service, sockets_appear_with_their_modes_and_go_again)
{
	struct cw_service *s = NULL;
	struct cw_err err = { "" };
	char status[128];

	cr_assert_eq(cw_service_new(base, &cw_clock_system, forks, config_with(""), &s, &err), 0,
		     "%s", err.text);
	cr_assert_eq(mode_of("agent.sock"), 0666);
	cr_assert_eq(mode_of("control.sock"), 0666);
	cr_assert_eq(mode_of("state"), 0750);
	(void)event_base_loop(base, EVLOOP_ONCE);
	cw_service_status(s, status, sizeof(status));
	cr_assert_str_eq(status, "0 processes here, 0 jobs led, 0 peers alive");
	cw_service_free(s);
	cr_assert_eq(mode_of("control.sock"), 0);
}

Test(service, second_daemon_on_the_same_sockets_refuses_to_start)
{
	struct cw_service *s = NULL, *second = NULL;
	struct cw_config *c = config_with("");
	struct cw_err err = { "" };

	cr_assert_eq(cw_service_new(base, &cw_clock_system, forks, config_with(""), &s, &err), 0,
		     "%s", err.text);
	cr_assert_lt(cw_service_new(base, &cw_clock_system, forks, c, &second, &err), 0);
	cr_assert_not_null(strstr(err.text, dir), "%s", err.text);
	cr_assert_null(second);
	cw_config_free(c);
	/* The first one is still there. */
	cr_assert_eq(mode_of("control.sock"), 0666);
	cw_service_free(s);
}

Test(service, reload_takes_over_what_it_may_and_names_what_it_may_not)
{
	struct cw_service *s = NULL;
	const char *restart = NULL;
	struct cw_err err = { "" };

	cr_assert_eq(cw_service_new(base, &cw_clock_system, forks, config_with(""), &s, &err), 0,
		     "%s", err.text);
	cr_assert_eq(cw_service_reload(s,
				       config_with("no_progress_after = 5s\n"
						   "webhook_url = \"http://127.0.0.1:9/\"\n"),
				       &restart, &err),
		     0, "%s", err.text);
	cr_assert_null(restart);
	cr_assert_eq(cw_service_reload(s, config_with("state_max = 2GiB\n"), &restart, &err), 0);
	cr_assert_str_eq(restart, "state_max");
	/*
	 * We compare with the configuration in use, not with the previous file: the webhook
	 * may go again.
	 */
	cr_assert_eq(cw_service_reload(s, config_with(""), &restart, &err), 0);
	cr_assert_null(restart);
	cw_service_free(s);
}

Test(service, reload_that_fails_changes_nothing)
{
	struct cw_config *bad = config_with("webhook_url = \"http://127.0.0.1:9/\"\n"
					    "webhook_header_file = \"/nonexistent/headers\"\n");
	struct cw_service *s = NULL;
	const char *restart = NULL;
	struct cw_err err = { "" };

	cr_assert_eq(cw_service_new(base, &cw_clock_system, forks, config_with(""), &s, &err), 0,
		     "%s", err.text);
	cr_assert_lt(cw_service_reload(s, bad, &restart, &err), 0);
	cr_assert_neq(err.text[0], '\0');
	cw_config_free(bad);
	cr_assert_eq(cw_service_reload(s, config_with(""), &restart, &err), 0);
	cr_assert_null(restart);
	cw_service_free(s);
}

/* A child with a deadline has read the files that the configuration names. */
Test(service, reload_looks_at_no_file_itself, .timeout = 60)
{
	char where[64], path[96], lines[256];
	struct cw_service *s = NULL;
	const char *restart = NULL;
	struct cw_err err = { "" };
	struct cw_config *c;
	bool is_mounted;
	FILE *f;

	(void)snprintf(where, sizeof(where), "%s/headers.d", dir);
	(void)snprintf(path, sizeof(path), "%s/headers", where);
	(void)snprintf(lines, sizeof(lines),
		       "webhook_url = \"http://127.0.0.1:9/\"\nwebhook_header_file = \"%s\"\n",
		       path);
	(void)umask(077);
	cr_assert_eq(mkdir(where, 0700), 0);
	f = fopen(path, "w");
	cr_assert(f && fputs("X-A: 1\n", f) >= 0 && fclose(f) == 0);
	cr_assert_eq(cw_service_new(base, &cw_clock_system, forks, config_with(""), &s, &err), 0,
		     "%s", err.text);
	c = config_with(lines);
	is_mounted = hung_fs_mount(where);
	if (is_mounted) {
		cr_assert_eq(cw_service_reload(s, c, &restart, &err), 0, "%s", err.text);
		hung_fs_unmount(where);
	} else {
		(void)cw_config_free(c);
	}
	cw_service_free(s);
	if (!is_mounted)
		cr_skip_test("needs root and FUSE");
}
