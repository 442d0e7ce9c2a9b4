/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/test_load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/blocking_child.h"
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

/* The argument of the child. */
struct program {
	const char *preload;
	const char *const *argv;
};

static int become_trial(int out, const void *arg)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const struct program *program = arg;

	(void)dup2(null, STDIN_FILENO);
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(out, STDERR_FILENO);
	/* LD_DEBUG would make the loader print all libraries to standard error */
	(void)unsetenv("LD_DEBUG");
	if (program->preload ? setenv("LD_PRELOAD", program->preload, 1) : unsetenv("LD_PRELOAD"))
		return 126;
	(void)execv(program->argv[0], (char *const *)program->argv);
	return 126;
}

static int try_loader(struct trial *t, int64_t until_ns, const char *preload,
		      const char *const argv[])
{
	const struct program program = { .preload = preload, .argv = argv };
	const struct cw_blocking_child child = { .main = become_trial,
						 .arg = &program,
						 .timeout_ns = until_ns -
							       cw_clock_now_ns(&cw_clock_system) };
	size_t len = 0;
	int r = cw_blocking_child_run(&child, t->output, OUTPUT_LEN - 1, &len, &t->status);

	t->output[len] = '\0';
	t->is_late = r == -ETIMEDOUT;
	return t->is_late ? 0 : r;
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
		return decline(why, "its loader did not finish within 10 s", NULL);
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
