/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_standalone.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/paths.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"
#include "common/unixsock.h"
#include "report/bundle.h"
#include "report/json_util.h"

#define READY_WITHIN_NS (10 * CW_NS_PER_S)
#define POLL_NS (20 * CW_NS_PER_MS)
#define MAX_TOLD 64u /* a job that hangs so often is known to */

static int make_dir(struct run_standalone *s, struct cw_err *err)
{
	const char *tmp = getenv("TMPDIR");

	/* Not $XDG_RUNTIME_DIR: it goes when the user logs out, and the report with it. */
	if (snprintf(s->dir, sizeof(s->dir), "%s/collwatch-XXXXXX", tmp && *tmp ? tmp : "/tmp") >=
	    (int)sizeof(s->dir))
		return cw_err_set(err, ENAMETOOLONG, "TMPDIR is too long");
	if (!mkdtemp(s->dir))
		return cw_err_set(err, errno, "%s: %s", s->dir, strerror(errno));
	return 0;
}

static int write_config(const struct run_standalone *s, struct cw_err *err)
{
	char path[PATH_MAX + 16];
	FILE *f;

	snprintf(path, sizeof(path), "%s/conf", s->dir);
	f = fopen(path, "we");
	if (!f)
		return cw_err_set(err, errno, "%s: %s", path, strerror(errno));
	fprintf(f,
		"agent_socket = \"%s/agent.sock\"\ncontrol_socket = \"%s/control.sock\"\n"
		"state_dir = \"%s/state\"\n",
		s->dir, s->dir, s->dir);
	if (ferror(f) | fclose(f))
		return cw_err_set(err, EIO, "cannot write %s", path);
	return 0;
}

static void become_daemon(const struct run_standalone *s, const char *program, pid_t parent)
{
	char path[PATH_MAX + 16];
	int fd;

	/* It ends with us, however we end; and Ctrl-C is for the program. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || setpgid(0, 0) < 0)
		_exit(1);
	snprintf(path, sizeof(path), "%s/log", s->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(1);
	snprintf(path, sizeof(path), "%s/conf", s->dir);
	execl(program, "collwatchd", "--config", path, (char *)NULL);
	dprintf(STDERR_FILENO, "%s: %s\n", program, strerror(errno));
	_exit(1);
}

static void wait_a_moment(void)
{
	const struct timespec t = { .tv_nsec = POLL_NS };

	(void)nanosleep(&t, NULL); /* a signal only shortens it */
}

static int wait_until_ready(struct run_standalone *s, struct cw_err *err)
{
	int64_t deadline = cw_clock_now_ns(&cw_clock_system) + READY_WITHIN_NS;
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/control.sock", s->dir);
	while (cw_clock_now_ns(&cw_clock_system) < deadline) {
		int fd = cw_unix_connect(path, 100);

		if (fd >= 0) {
			closep(&fd);
			return 0;
		}
		if (waitpid(s->daemon, NULL, WNOHANG) == s->daemon) {
			s->daemon = 0;
			return cw_err_set(err, ECHILD, "its own daemon does not start: see %s/log",
					  s->dir);
		}
		wait_a_moment();
	}
	return cw_err_set(err, ETIMEDOUT, "its own daemon does not answer: see %s/log", s->dir);
}

int run_standalone_start(struct run_standalone *s, struct cw_err *err)
{
	char program[PATH_MAX];
	pid_t self = getpid();
	int r;

	*s = (struct run_standalone){ 0 };
	r = cw_paths_find(CW_PART_DAEMON, program, err);
	if (r == 0)
		r = make_dir(s, err);
	if (r == 0)
		r = write_config(s, err);
	if (r < 0)
		return r;
	s->daemon = fork();
	if (s->daemon == 0)
		become_daemon(s, program, self);
	if (s->daemon < 0)
		return cw_err_set(err, errno, "fork: %s", strerror(errno));
	return wait_until_ready(s, err);
}

/* ---- what it found ---- */

static void tell_one(const char *path)
{
	struct cw_bundle bundle = { 0 };

	if (cw_bundle_read(path, &bundle, NULL) == 0) {
		const char *summary =
			cw_json_str(cw_bundle_head(&bundle), "summary", "a hang was found");
		_cleanup_(freep) char *command = cw_text_command("collwatch report", path);

		fprintf(stderr, "collwatch: %s\ncollwatch: more: %s\n", summary,
			command ? command : path);
	}
	cw_bundle_fini(&bundle);
}

static int is_bundle(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Bundles appear by rename, whole; nobody else writes here. Oldest first by change of the directory
 * is not needed: there is hardly ever more than one. */
static unsigned each_bundle(const struct run_standalone *s, unsigned from, void (*fn)(const char *))
{
	char dir[PATH_MAX + 32], path[PATH_MAX + 320];
	struct dirent **names;
	int n;

	snprintf(dir, sizeof(dir), "%s/state/incidents", s->dir);
	n = scandir(dir, &names, is_bundle, NULL);
	if (n < 0)
		return 0;
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		if (fn && (unsigned)i >= from)
			fn(path);
		free(names[i]);
	}
	free(names);
	return (unsigned)n;
}

void run_standalone_tell(struct run_standalone *s)
{
	unsigned n = each_bundle(s, 0, NULL);

	if (n <= s->n_told || n > MAX_TOLD)
		return;
	(void)each_bundle(s, s->n_told, tell_one);
	s->n_told = n;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)remove(path); /* what stays is seen in the temporary directory */
	return 0;
}

void run_standalone_stop(struct run_standalone *s)
{
	if (s->daemon > 0) {
		(void)kill(s->daemon, SIGTERM);
		(void)waitpid(s->daemon, NULL, 0);
	}
	if (!*s->dir)
		return;
	run_standalone_tell(s);
	if (s->n_told)
		fprintf(stderr, "collwatch: %u hang%s found, kept in %s\n", s->n_told,
			s->n_told == 1 ? "" : "s", s->dir);
	else
		(void)nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
