/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/demo/demo_proc.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "lab/demo/demo_net.h"

/* We pass on a longer line in pieces. */
#define MAX_LINE 4096

/*
 * Removes environment variables of the site's own collwatch, service manager or launcher. They
 * would affect the demo's processes.
 */
static void forget_outer_environment(void)
{
	static const char *const names[] = {
		"LD_PRELOAD", "LD_LIBRARY_PATH", "NOTIFY_SOCKET",  "WATCHDOG_USEC",  "WATCHDOG_PID",
		"LISTEN_FDS", "LISTEN_PID",      "LISTEN_FDNAMES", "JOURNAL_STREAM",
	};
	bool again = true;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		(void)unsetenv(names[i]); /* fails only if the name is invalid */
	while (again) {
		again = false;
		for (char **var = environ; *var && !again; var++) {
			char name[128];

			if (strncmp(*var, "COLLWATCH_", 10) != 0 && strncmp(*var, "NCCL_", 5) != 0)
				continue;
			snprintf(name, sizeof(name), "%.*s", (int)strcspn(*var, "="), *var);
			again = unsetenv(name) == 0 && !getenv(name);
		}
	}
}

/* Joins the cgroup: writing 0 moves the calling process. */
static int join_cgroup(const char *procs)
{
	int fd = open(procs, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, "0", 1) != 1 ? -errno : 0;
}

/* Becomes the program in the child; does not return. */
static void become(const struct demo_proc_spec *spec, int out_fd, pid_t parent)
{
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	(void)setpgid(0, 0); /* the parent does this, too; the earlier of the two calls counts */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(126);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(out_fd, 2) < 0)
		_exit(126);
	forget_outer_environment();
	for (const char *const *var = spec->env; var && *var; var++)
		if (putenv((char *)*var) != 0)
			_exit(126);
	if (spec->net && demo_net_enter(spec->net, spec->node) < 0) {
		dprintf(2, "the node's namespaces: %s\n", strerror(errno));
		_exit(126);
	}
	if (spec->cgroup_procs && join_cgroup(spec->cgroup_procs) < 0) {
		dprintf(2, "%s: %s\n", spec->cgroup_procs, strerror(errno));
		_exit(126);
	}
	execvp(spec->argv[0], spec->argv);
	dprintf(2, "cannot run %s: %s\n", spec->argv[0], strerror(errno));
	_exit(127);
}

static void pass_line(struct demo_proc *proc, const char *line)
{
	/*
	 * We ignore errors: the log only helps after a failure, and a full disk must not stop the
	 * demo.
	 */
	(void)!write(proc->log_fd, line, strlen(line));
	(void)!write(proc->log_fd, "\n", 1);
	if (proc->on_line)
		proc->on_line(proc, line, proc->user);
}

static void on_output(struct bufferevent *output, void *user)
{
	struct evbuffer *in = bufferevent_get_input(output);
	struct demo_proc *proc = user;

	for (;;) {
		_cleanup_(freep) char *line = evbuffer_readln(in, NULL, EVBUFFER_EOL_LF);

		if (line) {
			pass_line(proc, line);
		} else if (evbuffer_get_length(in) >= MAX_LINE) {
			char piece[MAX_LINE + 1];
			int n = evbuffer_remove(in, piece, MAX_LINE);

			piece[n > 0 ? n : 0] = '\0';
			pass_line(proc, piece);
		} else {
			return;
		}
	}
}

static void on_output_end(struct bufferevent *output, short what, void *user)
{
	(void)bufferevent_disable(output, EV_READ);
}

int demo_proc_start(struct demo_proc *proc, struct event_base *base,
		    const struct demo_proc_spec *spec, struct cw_err *err)
{
	_cleanup_(closep) int log_fd = -1, read_fd = -1, write_fd = -1;
	pid_t parent = getpid(), pid;
	int fds[2];

	*proc = (struct demo_proc){ .on_line = spec->on_line, .user = spec->user, .log_fd = -1 };
	snprintf(proc->name, sizeof(proc->name), "%s", spec->name);
	log_fd = open(spec->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log_fd < 0 || pipe2(fds, O_CLOEXEC) < 0)
		return cw_err_set(err, errno, "%s: %s", spec->log_path, strerror(errno));
	read_fd = fds[0];
	write_fd = fds[1];
	if (fcntl(read_fd, F_SETFL, O_NONBLOCK) < 0)
		return cw_err_set(err, errno, "pipe: %s", strerror(errno));
	proc->output = bufferevent_socket_new(base, read_fd, BEV_OPT_CLOSE_ON_FREE);
	if (!proc->output)
		return cw_err_set(err, ENOMEM, "out of memory");
	(void)steal_fd(&read_fd);
	bufferevent_setcb(proc->output, on_output, NULL, on_output_end, proc);
	(void)bufferevent_enable(proc->output, EV_READ); /* cannot fail: the pipe is open */
	pid = fork();
	if (pid == 0)
		become(spec, write_fd, parent);
	if (pid < 0)
		return cw_err_set(err, errno, "cannot start %s: %s", spec->name, strerror(errno));
	/*
	 * This fails if the child already runs the program. Then the child has made the same call.
	 */
	(void)setpgid(pid, pid);
	proc->pid = pid;
	proc->log_fd = steal_fd(&log_fd);
	return 0;
}

unsigned demo_proc_reap(struct demo_proc *const *procs, unsigned n)
{
	unsigned ended = 0;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (unsigned i = 0; i < n; i++) {
			if (procs[i]->pid != pid || procs[i]->has_ended)
				continue;
			procs[i]->has_ended = true;
			procs[i]->wait_status = status;
			ended++;
		}
	}
	return ended;
}

bool demo_proc_may_look(void)
{
	pid_t other = fork(), looker = -1;
	char path[64], byte;
	int status = -1;

	if (other == 0)
		for (;;)
			(void)pause();
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)other);
	if (other > 0)
		looker = fork();
	if (looker == 0) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		_exit(fd < 0 || read(fd, &byte, 1) != 1);
	}
	if (looker > 0 && waitpid(looker, &status, 0) < 0)
		status = -1;
	if (other > 0) {
		(void)kill(other, SIGKILL);
		(void)waitpid(other, NULL, 0); /* this is our own child, which ends soon */
	}
	return status == 0;
}

void demo_proc_signal(const struct demo_proc *proc, int signo)
{
	if (proc->pid > 0)
		(void)kill(-proc->pid, signo); /* fails if the group is gone */
}

char *demo_proc_describe_end(const struct demo_proc *proc, char *buf, size_t len)
{
	int status = proc->wait_status;

	if (WIFSIGNALED(status))
		snprintf(buf, len, "was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(buf, len, "exited with status %d", WEXITSTATUS(status));
	return buf;
}

void demo_proc_fini(struct demo_proc *proc)
{
	if (proc->output)
		bufferevent_free(proc->output);
	if (proc->pid)
		closep(&proc->log_fd);
	*proc = (struct demo_proc){ 0 };
}

/* Kills the children that /proc lists. Returns false if there are none. */
static bool kill_children(void)
{
	_cleanup_(freep) char *line = NULL;
	char path[64];
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "re");
	if (!f)
		return false;
	if (getline(&line, &size, f) > 0)
		for (char *save, *word = strtok_r(line, " \n", &save); word;
		     word = strtok_r(NULL, " \n", &save))
			(void)kill((pid_t)strtol(word, NULL, 10), SIGKILL);
	fclose(f);
	return line && *line;
}

void demo_proc_kill_all_children(void)
{
	/* We are the subreaper, so each round may give us further orphans. */
	while (kill_children() && waitpid(-1, NULL, 0) > 0)
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
}
