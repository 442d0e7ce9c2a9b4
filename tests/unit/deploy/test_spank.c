/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's plugin, and the few functions of Slurm that it calls. The C library under another
 * name stands for the agent, because it loads without a word. A FIFO stands for a library
 * that hangs the loader.
 */
#include <criterion/criterion.h>
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/spank.h>

#define MOST_VARIABLES 8

static char *env[MOST_VARIABLES + 1];
static enum spank_context context;
static struct spank_option *registered;
static const char *asked; /* --collwatch=…; NULL: without the option */
static const char *unsettable;
static int n_errors;

static char dir[] = "/tmp/cw-spank-XXXXXX";
static char agent[64], agent_arg[80], socket_path[64], socket_arg[80];

spank_context_t spank_context(void)
{
	return context;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *opt)
{
	registered = opt;
	return ESPANK_SUCCESS;
}

spank_err_t spank_option_getopt(spank_t spank, struct spank_option *opt, char **ret_word)
{
	cr_assert_eq(opt, registered);
	if (!asked)
		return ESPANK_ERROR;
	*ret_word = (char *)asked;
	return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
	va_list args;

	cr_assert_eq(item, S_JOB_ENV);
	va_start(args, item);
	*va_arg(args, char ***) = env;
	va_end(args);
	return ESPANK_SUCCESS;
}

static size_t find(const char *name)
{
	size_t i = 0;

	while (env[i] && (strncmp(env[i], name, strlen(name)) != 0 || env[i][strlen(name)] != '='))
		i++;
	return i;
}

static const char *value(const char *name)
{
	size_t i = find(name);

	return env[i] ? env[i] + strlen(name) + 1 : NULL;
}

spank_err_t spank_unsetenv(spank_t spank, const char *var)
{
	size_t i = find(var);

	free(env[i]);
	for (; env[i]; i++)
		env[i] = env[i + 1];
	return ESPANK_SUCCESS;
}

/* Moves what is there, as Slurm's does. */
spank_err_t spank_setenv(spank_t spank, const char *var, const char *val, int overwrite)
{
	size_t i;

	if (unsettable && strcmp(unsettable, var) == 0)
		return ESPANK_ERROR;
	cr_assert_eq(overwrite, 1);
	for (i = 0; env[i]; i++) {
		char *moved = strdup(env[i]);

		memset(env[i], '?', strlen(env[i]));
		free(env[i]);
		env[i] = moved;
	}
	i = find(var);
	cr_assert_lt(i, MOST_VARIABLES);
	free(env[i]);
	cr_assert_gt(asprintf(&env[i], "%s=%s", var, val), 0);
	return ESPANK_SUCCESS;
}

const char *spank_strerror(spank_err_t err)
{
	return "failed";
}

void slurm_error(const char *format, ...)
{
	n_errors++;
}

void slurm_debug(const char *format, ...)
{
}

static void call_init(const char *word)
{
	char *args[] = { (char *)word };

	cr_assert_eq(slurm_spank_init(NULL, word ? 1 : 0, args), ESPANK_SUCCESS);
}

/*
 * In each state of the agent's files it reports no error, and leaves neither process nor
 * descriptor.
 */
static void start_task(const char *site_default)
{
	char *args[] = { agent_arg, socket_arg, (char *)site_default };
	int fd_before = open("/dev/null", O_RDONLY | O_CLOEXEC), fd_after;

	close(fd_before);
	call_init(NULL);
	cr_assert_eq(slurm_spank_task_init(NULL, site_default ? 3 : 2, args), ESPANK_SUCCESS);
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
	cr_assert_eq(errno, ECHILD);
	fd_after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(fd_after, fd_before);
	close(fd_after);
	cr_assert_eq(n_errors, 0);
}

static void have(const char *name, const char *val)
{
	spank_setenv(NULL, name, val, 1);
}

static void setup(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	Dl_info libc;
	int fd;

	context = S_CTX_REMOTE;
	cr_assert_not_null(mkdtemp(dir));
	snprintf(agent, sizeof(agent), "%s/libcollwatch.so", dir);
	snprintf(agent_arg, sizeof(agent_arg), "agent=%s", agent);
	snprintf(socket_path, sizeof(socket_path), "%s/agent.sock", dir);
	snprintf(socket_arg, sizeof(socket_arg), "socket=%s", socket_path);
	cr_assert_neq(dladdr((void *)&getppid, &libc), 0);
	cr_assert_eq(symlink(libc.dli_fname, agent), 0);
	memcpy(address.sun_path, socket_path, sizeof(socket_path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	have("PATH", "/bin");
}

static void teardown(void)
{
	while (env[0]) {
		*strchr(env[0], '=') = '\0';
		free(env[0]);
		for (size_t i = 0; env[i]; i++)
			env[i] = env[i + 1];
	}
	unlink(agent);
	unlink(socket_path);
	rmdir(dir);
}

static void expect_unchanged(void)
{
	cr_assert_str_eq(env[0], "PATH=/bin");
	cr_assert_null(env[1], "%s", env[1]);
}

/* Another file in the agent's place. */
static void write_agent(const char *text)
{
	FILE *f;

	unlink(agent);
	f = fopen(agent, "w");
	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

TestSuite(spank, .init = setup, .fini = teardown);

Test(spank, puts_the_agent_in_where_the_site_says_so)
{
	start_task("default=on");
	cr_assert_str_eq(value("LD_PRELOAD"), agent);
	cr_assert_str_eq(value("COLLWATCH_SOCKET"), socket_path);
}

Test(spank, changes_nothing_where_nobody_asks)
{
	start_task("default=off");
	expect_unchanged();
	start_task(NULL);
	expect_unchanged();
}

Test(spank, follows_the_option_before_the_site)
{
	asked = "on";
	start_task("default=off");
	cr_assert_str_eq(value("LD_PRELOAD"), agent);
	spank_unsetenv(NULL, "LD_PRELOAD");
	asked = "off";
	start_task("default=on");
	cr_assert_null(value("LD_PRELOAD"));
	cr_assert_str_eq(value("COLLWATCH"), "off"); /* for a TaskProlog */
}

Test(spank, goes_without_for_a_job_that_says_off)
{
	asked = "on";
	have("COLLWATCH", "off");
	start_task("default=on");
	cr_assert_null(value("LD_PRELOAD"));
	cr_assert_null(value("COLLWATCH_SOCKET"));
}

Test(spank, reads_both_switches_in_each_spelling)
{
	static const char *const off[] = { "0", "false", "no", "off" }, *const on[] = { "1", "true",
											"yes",
											"on" };

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		char upper[8] = "";

		for (size_t c = 0; off[i][c]; c++)
			upper[c] = (char)toupper((unsigned char)off[i][c]);
		have("COLLWATCH", upper);
		start_task("default=on");
		cr_assert_null(value("LD_PRELOAD"), "COLLWATCH=%s", upper);
		have("COLLWATCH", on[i]);
		have("COLLWATCH_DISABLE", on[i]);
		start_task("default=on");
		cr_assert_null(value("LD_PRELOAD"), "COLLWATCH_DISABLE=%s", on[i]);
		/* The plugin has told the TaskProlog by its own word. */
		spank_unsetenv(NULL, "COLLWATCH");
		have("COLLWATCH_DISABLE", off[i]);
		start_task("default=on");
		cr_assert_str_eq(value("LD_PRELOAD"), agent, "COLLWATCH_DISABLE=%s", off[i]);
		spank_unsetenv(NULL, "LD_PRELOAD");
		spank_unsetenv(NULL, "COLLWATCH_SOCKET");
		spank_unsetenv(NULL, "COLLWATCH_DISABLE");
	}
}

Test(spank, passes_over_words_that_only_an_environment_can_have)
{
	asked = "$(reboot)";
	start_task("default=on");
	cr_assert_str_eq(value("LD_PRELOAD"), agent);
}

Test(spank, keeps_what_else_is_preloaded)
{
	have("LD_PRELOAD", "libm.so.6");
	start_task("default=on");
	cr_assert_str_eq(value("LD_PRELOAD") + strlen("libm.so.6:"), agent);
	cr_assert_eq(strncmp(value("LD_PRELOAD"), "libm.so.6:", 10), 0);
}

Test(spank, puts_it_in_once)
{
	static const char *const before[] = { "/x/libcollwatch.so",
					      "libm.so.6 /x/libcollwatch.so:libdl.so.2" };

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		have("LD_PRELOAD", before[i]);
		start_task("default=on");
		cr_assert_str_eq(value("LD_PRELOAD"), before[i]);
	}
}

Test(spank, takes_out_what_an_outer_step_put_in)
{
	char both[256];

	snprintf(both, sizeof(both), "libm.so.6 %s:libdl.so.2", agent);
	have("LD_PRELOAD", both);
	asked = "off";
	start_task("default=on");
	cr_assert_str_eq(value("LD_PRELOAD"), "libm.so.6:libdl.so.2");
	have("LD_PRELOAD", agent);
	start_task("default=on");
	cr_assert_null(value("LD_PRELOAD"));
}

/* Handed on by srun from a node that has it: the loader would complain in the job's output. */
Test(spank, takes_out_an_agent_that_this_node_lacks)
{
	unlink(agent);
	have("LD_PRELOAD", agent);
	start_task("default=on");
	expect_unchanged();
}

Test(spank, changes_nothing_without_agent)
{
	unlink(agent);
	start_task("default=on");
	expect_unchanged();
}

Test(spank, changes_nothing_without_daemon)
{
	unlink(socket_path);
	start_task("default=on");
	expect_unchanged();
	cr_assert_eq(mkdir(socket_path, 0700), 0);
	start_task("default=on");
	rmdir(socket_path);
	expect_unchanged();
}

Test(spank, asks_for_the_daemon_that_the_job_names)
{
	have("COLLWATCH_SOCKET", "/nobody/agent.sock");
	start_task("default=on");
	cr_assert_null(value("LD_PRELOAD"));
	have("COLLWATCH_SOCKET", "");
	start_task("default=on");
	cr_assert_str_eq(value("LD_PRELOAD"), agent);
	cr_assert_str_eq(value("COLLWATCH_SOCKET"), socket_path);
}

Test(spank, changes_nothing_for_an_agent_that_does_not_load)
{
	write_agent("not a library\n");
	start_task("default=on");
	expect_unchanged();
}

Test(spank, does_not_wait_for_an_agent_that_hangs_the_loader)
{
	unlink(agent);
	cr_assert_eq(mkfifo(agent, 0600), 0);
	start_task("default=on");
	expect_unchanged();
}

/* The program's own loader would say it, too. */
Test(spank, tries_the_agent_in_the_environment_of_the_job)
{
	have("LD_TRACE_LOADED_OBJECTS", "1");
	start_task("default=on");
	cr_assert_null(value("LD_PRELOAD"));
}

Test(spank, passes_over_what_cannot_be_set)
{
	unsettable = "LD_PRELOAD";
	start_task("default=on");
	cr_assert_null(value("LD_PRELOAD"));
	unsettable = "COLLWATCH_SOCKET";
	spank_unsetenv(NULL, "COLLWATCH_SOCKET");
	start_task("default=on");
	expect_unchanged(); /* an agent that looks for its daemon elsewhere is of no use */
}

Test(spank, refuses_a_mistyped_word_where_it_is_typed_only)
{
	context = S_CTX_LOCAL;
	call_init(NULL);
	cr_assert_eq(registered->cb(0, "on", 0), ESPANK_SUCCESS);
	cr_assert_eq(registered->cb(0, "off", 0), ESPANK_SUCCESS);
	cr_assert_eq(n_errors, 0);
	cr_assert_neq(registered->cb(0, "yes", 0), ESPANK_SUCCESS);
	cr_assert_neq(registered->cb(0, NULL, 0), ESPANK_SUCCESS);
	cr_assert_eq(n_errors, 2);
	cr_assert_eq(registered->cb(0, "yes", 1), ESPANK_SUCCESS);
	cr_assert_eq(n_errors, 2);
}

Test(spank, has_the_option_wherever_jobs_are_submitted)
{
	static const enum spank_context with[] = { S_CTX_LOCAL, S_CTX_ALLOCATOR, S_CTX_REMOTE };

	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++) {
		registered = NULL;
		context = with[i];
		call_init(NULL);
		cr_assert_not_null(registered, "context %d", context);
	}
}

Test(spank, tells_slurmd_alone_of_a_site_that_is_mistyped)
{
	static const char *const wrong[] = { "default=maybe", "agent=relative.so", "agent=/a:/b",
					     "socket=x", "on" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		context = S_CTX_LOCAL;
		call_init(wrong[i]);
		context = S_CTX_REMOTE;
		call_init(wrong[i]);
		cr_assert_eq(n_errors, (int)i);
		context = S_CTX_SLURMD;
		call_init(wrong[i]);
		cr_assert_eq(n_errors, (int)i + 1, "%s", wrong[i]);
	}
}
