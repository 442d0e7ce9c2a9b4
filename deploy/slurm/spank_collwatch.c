/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's plugin. srun, sbatch and salloc get the option --collwatch=on|off. With "on" a task
 * starts with the agent in LD_PRELOAD. In plugstack.conf, on nodes and submit hosts:
 *
 *	optional spank_collwatch.so default=on|off agent=PATH socket=PATH
 *
 * The defaults are off, the agent that was installed with this plugin, and the daemon's default
 * socket. A job opts out with the option, or with COLLWATCH=off in its environment. "off" wins over
 * "on".
 *
 * All work is in slurm_spank_task_init(), in the process that becomes the task. This process
 * already runs as the job's user, in the task's control groups and limits. If an earlier plugin has
 * entered a container, it is in that container, too. The user controls the environment and the
 * socket, so we read both with this user's rights only. We use no shell, and the agent's path comes
 * from the site. We do nothing as root.
 *
 * The test load is also there, and not once per step. slurmstepd prepares a step with some or all
 * rights of root, and is not yet at the task's place. The tasks of a node make the test at the same
 * time. It costs a start of /bin/true per task, and follows the checks that need no process. A node
 * without a daemon has no such cost.
 *
 * We never fail a task, and print nothing to the job. slurmd's log has faults of the arguments, and
 * at level "debug" the reason why a task has no agent.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <slurm/spank.h>

#define AGENT_NAME "libcollwatch.so"
#define DEFAULT_SOCKET "/run/collwatch/agent.sock"
/*
 * Time for a test load from a slow file server. Without its file server the program itself could
 * not start either.
 */
#ifndef CW_SPANK_WAIT_MS
#define CW_SPANK_WAIT_MS 10000
#endif

/* Slurm searches for the names that this macro defines. */
SPANK_PLUGIN(collwatch, 1)

enum choice {
	CHOICE_NONE,
	CHOICE_ON,
	CHOICE_OFF,
};

/* The settings of plugstack.conf. Borrows from the plugin's arguments. */
struct site {
	enum choice choice;
	const char *agent;
	const char *socket; /* NULL: the default */
};

static enum choice choice_of(const char *word)
{
	if (word && strcmp(word, "on") == 0)
		return CHOICE_ON;
	return word && strcmp(word, "off") == 0 ? CHOICE_OFF : CHOICE_NONE;
}

/* Returns the value of a variable of the agent. Accepts the words of lib/common/parse.c. */
static enum choice switch_of(const char *word)
{
	static const char *const words[][2] = {
		{ "0", "1" }, { "false", "true" }, { "no", "yes" }, { "off", "on" }
	};

	for (size_t i = 0; word && i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(word, words[i][0]) == 0)
			return CHOICE_OFF;
		if (strcasecmp(word, words[i][1]) == 0)
			return CHOICE_ON;
	}
	return CHOICE_NONE;
}

/* The loader splits LD_PRELOAD at blanks and colons, and searches for names without a slash. */
static bool is_path(const char *path)
{
	return path[0] == '/' && !strpbrk(path, " :\t\n");
}

/* Reads the plugin's arguments. Returns the first unknown argument; NULL = there is none. */
static const char *site_read(int ac, char **av, struct site *ret_site)
{
	struct site site = { CHOICE_OFF, CW_SPANK_AGENT, NULL };
	const char *wrong = NULL;

	for (int i = 0; i < ac; i++) {
		if (strncmp(av[i], "default=", 8) == 0 && choice_of(av[i] + 8))
			site.choice = choice_of(av[i] + 8);
		else if (strncmp(av[i], "agent=", 6) == 0 && is_path(av[i] + 6))
			site.agent = av[i] + 6;
		else if (strncmp(av[i], "socket=", 7) == 0 && av[i][7] == '/')
			site.socket = av[i] + 7;
		else if (!wrong)
			wrong = av[i];
	}
	*ret_site = site;
	return wrong;
}

/*
 * In srun and the like, a wrong word ends the command before the job exists. On a node the word
 * comes from an environment of unknown origin, so the node ignores a wrong word.
 */
static int on_option(int val, const char *word, int remote)
{
	(void)val;
	if (remote || choice_of(word))
		return ESPANK_SUCCESS;
	slurm_error("--collwatch is \"on\" or \"off\", not \"%s\"", word ? word : "");
	return ESPANK_BAD_ARG;
}

static struct spank_option option = {
	.name = (char *)"collwatch",
	.arginfo = (char *)"on|off",
	.usage = (char *)"start tasks with collwatch's agent, or without",
	.has_arg = 1,
	.cb = on_option,
};

int slurm_spank_init(spank_t spank, int ac, char *argv[])
{
	struct site site;
	const char *wrong = site_read(ac, argv, &site);

	switch (spank_context()) {
	case S_CTX_LOCAL:
	case S_CTX_REMOTE:
	case S_CTX_ALLOCATOR:
		(void)spank_option_register(spank, &option); /* without it, the site's default */
		break;
	case S_CTX_SLURMD:
		if (wrong)
			slurm_error("collwatch: plugstack.conf: \"%s\" is not understood, "
				    "ignoring it",
				    wrong);
		break;
	default:
		break;
	}
	return ESPANK_SUCCESS;
}

/* Returns the value of the variable, borrowed from env; NULL = it is not set. */
static const char *env_get(char **env, const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++) {
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	}
	return NULL;
}

/*
 * Finds the next entry of LD_PRELOAD at or after *p, and moves *p behind the entry. Returns the
 * length of the entry; 0 = there is no further entry.
 */
static size_t next_entry(const char **p, const char **ret_entry)
{
	size_t len;

	*p += strspn(*p, " :");
	len = strcspn(*p, " :");
	*ret_entry = *p;
	*p += len;
	return len;
}

static bool is_exactly(const char *entry, size_t len, const char *agent)
{
	return len == strlen(agent) && memcmp(entry, agent, len) == 0;
}

static bool has_agent(const char *preload, const char *agent)
{
	const char *entry;
	size_t len;

	while ((len = next_entry(&preload, &entry)) > 0) {
		if (is_exactly(entry, len, agent) ||
		    memmem(entry, len, AGENT_NAME, strlen(AGENT_NAME)))
			return true;
	}
	return false;
}

/*
 * Removes the agent from LD_PRELOAD, and keeps other entries. srun passes the environment of an
 * outer step on, which may have set the agent on another node. If this node lacks the file, the
 * loader would print an error into the job's output.
 */
static void take_out(spank_t spank, const char *preload, const char *agent)
{
	const char *entry;
	char *rest;
	size_t len, n = 0;

	rest = malloc(strlen(preload) + 1);
	if (!rest)
		return;
	while ((len = next_entry(&preload, &entry)) > 0) {
		if (is_exactly(entry, len, agent))
			continue;
		if (n > 0)
			rest[n++] = ':';
		memcpy(rest + n, entry, len);
		n += len;
	}
	rest[n] = '\0';
	if (n > 0)
		(void)spank_setenv(spank, "LD_PRELOAD", rest, 1); /* else unchanged */
	else
		(void)spank_unsetenv(spank, "LD_PRELOAD"); /* likewise */
	free(rest);
}

static long now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* this clock is always there */
	return now.tv_sec * 1000L + now.tv_nsec / 1000000;
}

/* Waits for the end of fd's stream. Returns true if it ends in time and without any output. */
static bool is_silent(int fd)
{
	const long end_ms = now_ms() + CW_SPANK_WAIT_MS;

	for (;;) {
		struct pollfd one = { .fd = fd, .events = POLLIN };
		long left_ms = end_ms - now_ms();
		char byte;

		if (left_ms <= 0)
			return false;
		if (poll(&one, 1, (int)left_ms) > 0) {
			ssize_t n = read(fd, &byte, 1);

			if (n >= 0)
				return n == 0;
		}
		if (errno != EINTR && errno != EAGAIN)
			return false;
	}
}

/*
 * Runs /bin/true with only the agent in LD_PRELOAD. /bin/true closes its output before the agent's
 * destructors run. So it also gets the pipe as descriptor 3, which stays open until its end.
 */
static bool run_true(char **env, const int *pipe_fds)
{
	posix_spawn_file_actions_t actions;
	char *const words[] = { (char *)"true", NULL };
	bool is_started, is_right;
	int status = -1;
	pid_t pid, waited;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return false;
	is_started = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) == 0 &&
		     posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1) == 0 &&
		     posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 2) == 0 &&
		     posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 3) == 0 &&
		     posix_spawn(&pid, "/bin/true", &actions, NULL, words, env) == 0;
	(void)posix_spawn_file_actions_destroy(&actions); /* cannot fail */
	(void)close(pipe_fds[1]);                         /* only the child has it now */
	if (!is_started)
		return false;
	is_right = is_silent(pipe_fds[0]);
	if (!is_right)
		(void)kill(pid, SIGKILL); /* may have ended by itself */
	do
		waited = waitpid(pid, &status, 0);
	while (waited < 0 && errno == EINTR);
	return is_right && waited == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* True if a program with the agent prints nothing and exits with 0. */
static bool does_load(const char *agent, char **env)
{
	static const char name[] = "LD_PRELOAD=";
	char **with, *preload;
	bool is_right = false;
	size_t n = 0;
	int fds[2];

	while (env[n])
		n++;
	with = calloc(n + 2, sizeof(*with));
	preload = malloc(sizeof(name) + strlen(agent));
	if (with && preload && pipe2(fds, O_CLOEXEC) == 0) {
		(void)stpcpy(stpcpy(preload, name), agent); /* there is room */
		n = 0;
		for (; *env; env++) {
			if (strncmp(*env, name, strlen(name)) != 0)
				with[n++] = *env;
		}
		with[n] = preload;
		is_right = run_true(with, fds);
		(void)close(fds[0]); /* only read */
	}
	free(preload);
	free(with);
	return is_right;
}

static void put_in(spank_t spank, const char *preload, const char *agent)
{
	char *all = malloc(strlen(preload) + strlen(agent) + 2);
	spank_err_t r;

	if (!all)
		return;
	(void)stpcpy(stpcpy(stpcpy(all, preload), *preload ? ":" : ""), agent); /* there is room */
	r = spank_setenv(spank, "LD_PRELOAD", all, 1);
	free(all);
	if (r != ESPANK_SUCCESS)
		slurm_debug("collwatch: LD_PRELOAD: %s", spank_strerror(r));
}

static enum choice choose(spank_t spank, const struct site *site, char **env)
{
	char *word = NULL;
	enum choice asked = CHOICE_NONE;

	if (spank_option_getopt(spank, &option, &word) == ESPANK_SUCCESS)
		asked = choice_of(word);
	if (asked == CHOICE_OFF || switch_of(env_get(env, "COLLWATCH")) == CHOICE_OFF ||
	    switch_of(env_get(env, "COLLWATCH_DISABLE")) == CHOICE_ON)
		return CHOICE_OFF;
	if (asked == CHOICE_ON || site->choice == CHOICE_ON)
		return CHOICE_ON;
	return CHOICE_NONE; /* neither job nor site has chosen */
}

static bool is_socket(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Each spank_setenv() moves env, so we use borrowed values before the first call. */
static void prepare(spank_t spank, const struct site *site, char **env)
{
	const char *preload = env_get(env, "LD_PRELOAD");
	const char *socket = env_get(env, "COLLWATCH_SOCKET");
	const enum choice choice = choose(spank, site, env);
	const bool has_socket = socket && *socket; /* the job knows its daemon */
	char *before;

	if (!preload)
		preload = "";
	if (choice == CHOICE_NONE)
		return;
	if (choice == CHOICE_OFF || access(site->agent, R_OK) != 0) {
		slurm_debug("collwatch: %s", choice == CHOICE_OFF ? "off" : "no agent");
		take_out(spank, preload, site->agent);
		/* A TaskProlog runs after this plugin, and does not see the option. */
		if (choice == CHOICE_OFF)
			(void)spank_setenv(spank, "COLLWATCH", "off",
					   1); /* on failure it stays unset */
		return;
	}
	if (has_agent(preload, site->agent))
		return;
	if (!has_socket)
		socket = site->socket ? site->socket : DEFAULT_SOCKET;
	if (!is_socket(socket)) {
		slurm_debug("collwatch: no daemon");
		return;
	}
	if (!does_load(site->agent, env)) {
		slurm_debug("collwatch: %s does not load here", site->agent);
		return;
	}
	before = strdup(preload);
	if (!before)
		return;
	if (has_socket || !site->socket ||
	    spank_setenv(spank, "COLLWATCH_SOCKET", site->socket, 1) == ESPANK_SUCCESS)
		put_in(spank, before, site->agent);
	free(before);
}

int slurm_spank_task_init(spank_t spank, int ac, char *argv[])
{
	struct site site;
	char **env = NULL;

	(void)site_read(ac, argv, &site); /* slurmd logs wrong arguments */
	if (spank_get_item(spank, S_JOB_ENV, &env) == ESPANK_SUCCESS && env)
		prepare(spank, &site, env);
	return ESPANK_SUCCESS;
}
