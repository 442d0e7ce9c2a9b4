/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/test_load.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/program.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"

/* We read at most this much of the loader's output. A program has a few hundred libraries. */
#define OUTPUT_LEN 65536
/*
 * Time for both trials together. A program with libraries on a slow network would wait for them
 * without us, too.
 */
#define PATIENCE_NS (10 * CW_NS_PER_S)
#define TRUE "/bin/true"

struct trial {
	char output[OUTPUT_LEN]; /* both streams, in order of arrival */
	int status;              /* the child's status from waitpid() */
	bool is_late;
};

static void become_trial(int out, const char *preload, const char *const argv[])
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)dup2(null, STDIN_FILENO);
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(out, STDERR_FILENO);
	/* LD_DEBUG would make the loader print all libraries to standard error */
	(void)unsetenv("LD_DEBUG");
	if (preload ? setenv("LD_PRELOAD", preload, 1) : unsetenv("LD_PRELOAD"))
		_exit(126);
	(void)execv(argv[0], (char *const *)argv);
	_exit(126);
}

/* Reads until the output ends. Returns false if it has not ended by until_ns. */
static bool read_output(int from, int64_t until_ns, char *output)
{
	size_t len = 0;

	for (;;) {
		struct pollfd p = { .fd = from, .events = POLLIN };
		int64_t left = until_ns - cw_clock_now_ns(&cw_clock_system);
		char rest[256];
		ssize_t n;

		if (left <= 0 || poll(&p, 1, (int)(left / CW_NS_PER_MS) + 1) <= 0)
			return false;
		if (len < OUTPUT_LEN - 1)
			n = read(from, output + len, OUTPUT_LEN - 1 - len);
		else
			n = read(from, rest, sizeof(rest));
		if (n <= 0)
			return n == 0;
		if (len < OUTPUT_LEN - 1)
			len += (size_t)n;
		output[len] = '\0';
	}
}

static int try_loader(struct trial *t, int64_t until_ns, const char *preload,
		      const char *const argv[])
{
	_cleanup_(closep) int from = -1;
	int ends[2];
	pid_t pid;

	t->output[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	from = ends[0];
	pid = fork();
	if (pid == 0)
		become_trial(ends[1], preload, argv);
	closep(&ends[1]);
	if (pid < 0)
		return -errno;
	t->is_late = !read_output(from, until_ns, t->output);
	if (t->is_late)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &t->status, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* Finds the first line with a complaint that names the agent. */
static const char *complaint(char *output, const char *agent)
{
	char *rest = output, *line;

	while ((line = strsep(&rest, "\n"))) {
		if (!strstr(line, agent))
			continue;
		if (strstr(line, "not found") || strstr(line, "rror") ||
		    strstr(line, "undefined") || strstr(line, "cannot"))
			return line;
	}
	return NULL;
}

static bool ended_well(const struct trial *t)
{
	return !t->is_late && WIFEXITED(t->status) && WEXITSTATUS(t->status) == 0;
}

static int decline(char why[CW_TEST_LOAD_WHY], const char *what, const char *words)
{
	(void)snprintf(why, CW_TEST_LOAD_WHY, "%s%s%s", what, words ? ": " : "",
		       words ? words : "");
	cw_text_sanitise_line(why);
	return -ENOEXEC;
}

/* Runs one trial. If the program also fails without the agent, the agent is not the cause. */
static int judge(struct trial *t, int64_t until_ns, const char *preload, const char *agent,
		 const char *const argv[], char why[CW_TEST_LOAD_WHY])
{
	const char *words;
	bool is_well;

	if (try_loader(t, until_ns, preload, argv) < 0)
		return 0;
	if (t->is_late)
		return decline(why, "its loader did not answer within 10 s", NULL);
	is_well = ended_well(t);
	words = complaint(t->output, agent);
	if (words)
		return decline(why, "its loader says", words);
	if (is_well)
		return 0;
	if (try_loader(t, until_ns, NULL, argv) < 0 || !ended_well(t))
		return 0;
	return decline(why, "its loader fails with the agent, and not without it", NULL);
}

int cw_test_load(const char *program, const char *preload, const char *agent,
		 char why[CW_TEST_LOAD_WHY])
{
	int64_t until_ns = cw_clock_now_ns(&cw_clock_system) + PATIENCE_NS;
	_cleanup_(freep) struct trial *t = malloc(sizeof(*t));
	char path[PATH_MAX], loader[CW_LOADER_LEN], own[CW_LOADER_LEN];
	int error;

	if (!t || cw_program_resolve(program, path) < 0)
		return 0;
	cw_program_loader_of(path, loader);
	if (loader[0] != '/' || access(loader, X_OK) < 0)
		return 0;
	error = judge(t, until_ns, preload, agent,
		      (const char *const[]){ loader, "--list", path, NULL }, why);
	cw_program_loader_of(TRUE, own);
	if (error == 0 && strcmp(loader, own) == 0)
		error = judge(t, until_ns, preload, agent, (const char *const[]){ TRUE, NULL },
			      why);
	return error;
}
