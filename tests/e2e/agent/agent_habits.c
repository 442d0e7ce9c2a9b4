/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tricks that real programs play on themselves and on the libraries in them. Each mode prints the
 * visible outcome; with the agent the output must be the same as without.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/close_from.h"

#include "tests/e2e/agent/agent_program.h"

#define NOBODY 65534
#define CLONE_THREAD_BIT 0x00010000

extern char **environ;

static void reduce(void)
{
	void *p = (void *)(uintptr_t)buffer;

	must(nccl.all_reduce(p, p, COUNT, ncclFloat, ncclSum, comm, stream) == ncclSuccess,
	     "all_reduce");
}

static void filter(struct sock_filter *code, unsigned short len)
{
	struct sock_fprog program = { len, code };

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
}

/* ---- things the agent asks for and does not get ---- */

/*
 * NCCL itself needs threads and descriptors. A group is the first call that brings the agent up:
 * an empty one, made while something is scarce, starts it under exactly that condition.
 */
static void start_agent(void)
{
	must(nccl.group_start() == ncclSuccess, "group start");
	must(nccl.group_end() == ncclSuccess, "group end");
}

static void start_agent_under(int resource, rlim_t limit)
{
	struct rlimit all, few;

	must(getrlimit(resource, &all) == 0, "getrlimit");
	few = (struct rlimit){ limit, all.rlim_max };
	must(setrlimit(resource, &few) == 0, "setrlimit");
	start_agent();
	must(setrlimit(resource, &all) == 0, "setrlimit");
}

static void on_stream(void *arg)
{
	(void)arg;
}

/* clone3's flags cannot be seen by a filter: the C library falls back to clone on ENOSYS. */
static void mode_no_threads(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD_BIT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	ncclUniqueId id;

	set_up_device();
	/* By then NCCL and the driver have started all the threads they need. */
	must(cuLaunchHostFunc(stream, on_stream, NULL) == CUDA_SUCCESS, "host function");
	must(nccl.unique_id(&id) == ncclSuccess, "unique id");
	filter(code, sizeof(code) / sizeof(code[0]));
	set_up(1, 0, &id);
	for (int i = 0; i < 10; i++)
		reduce();
}

/* The limit counts the user's threads; root has none. */
static void mode_few_threads(void)
{
	if (geteuid() == 0)
		must(setgid(NOBODY) == 0 && setuid(NOBODY) == 0, "setuid");
	set_up_device();
	start_agent_under(RLIMIT_NPROC, 1);
	set_up(1, 0, NULL);
	work(10);
}

/* UNIX sockets only: NCCL finds the other ranks over TCP. */
static void mode_no_sockets(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter(code, sizeof(code) / sizeof(code[0]));
	set_up(1, 0, NULL);
	work(10);
}

static void no_descriptors_but(int left)
{
	int fds[64], n = 0;

	set_up_device();
	for (int fd; n < 64 && (fd = open("/dev/null", O_RDONLY)) >= 0; n++)
		fds[n] = fd;
	must(n > left, "descriptors");
	while (left-- > 0)
		(void)close(fds[--n]);
	start_agent();
	while (n > 0)
		(void)close(fds[--n]);
	set_up(1, 0, NULL);
	work(10);
}

static void mode_no_descriptors(void)
{
	struct rlimit limit = { 40, 40 };

	must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
	no_descriptors_but(0);
}

/* Enough for the record, not for the socket. */
static void mode_one_descriptor(void)
{
	struct rlimit limit = { 40, 40 };

	must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
	no_descriptors_but(1);
}

static rlim_t mapped_bytes(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	must(f != NULL && fscanf(f, "%lu", &pages) == 1, "statm");
	(void)fclose(f);
	return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Room for neither the agent's record nor its thread. */
static void mode_no_memory(void)
{
	set_up_device();
	start_agent_under(RLIMIT_AS, mapped_bytes() + (64 << 10));
	set_up(1, 0, NULL);
	work(10);
}

/* Room for the record, not for the thread's stack. */
static void mode_little_memory(void)
{
	set_up_device();
	start_agent_under(RLIMIT_AS, mapped_bytes() + (2 << 20) + (64 << 10));
	set_up(1, 0, NULL);
	work(10);
}

/* ---- changing what a process is ---- */

static void mode_close_range(void)
{
	set_up(1, 0, NULL);
	work(10);
	must(syscall(SYS_close_range, 3, ~0U, 0) == 0, "close_range");
	printf("first: %d\n", open("/dev/null", O_RDONLY));
	printf("second: %d\n", open("/dev/null", O_RDONLY));
	work(10);
}

static void mode_move(void)
{
	char root[] = "/tmp/cw-root-XXXXXX";

	set_up(1, 0, NULL);
	work(10);
	must(mkdtemp(root) != NULL && chdir(root) == 0, "chdir");
	must(rmdir(root) == 0, "no process keeps the directory busy");
	if (geteuid() == 0) {
		must(chroot("/proc/self/fdinfo") == 0 || chroot("/proc") == 0, "chroot");
		must(setgid(NOBODY) == 0 && setuid(NOBODY) == 0, "setuid");
	}
	work(10);
	must(nccl.destroy(comm) == ncclSuccess, "destroy");
}

static void mode_daemonise(void)
{
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (pid) {
		wait_for(pid);
		return;
	}
	must(setsid() > 0, "setsid");
	pid = fork();
	must(pid >= 0, "fork");
	if (pid)
		_exit(0);
	must(chdir("/") == 0, "chdir");
	set_up(1, 0, NULL);
	work(10);
	/* The parent may be long gone: only standard output still connects to the test. */
	puts("daemon at work");
	(void)fflush(stdout);
	_exit(0);
}

/* A launcher that is a rank itself for a moment, then becomes another program. */
static void mode_exec(void)
{
	char self[] = "/proc/self/exe", name[] = "agent_program", next[] = "state";
	char *argv[] = { name, next, NULL };

	set_up(1, 0, NULL);
	work(10);
	(void)fflush(stdout);
	(void)execve(self, argv, environ);
	must(0, "execve");
}

static void mode_exec_while_threads(void)
{
	char path[] = "/bin/echo", word[] = "became echo";
	char *argv[] = { path, word, NULL };

	set_up(1, 0, NULL);
	reduce();
	(void)execve(path, argv, environ);
	must(0, "execve");
}

/* ---- ends ---- */

static void die(int signal_number)
{
	struct rlimit none = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &none);
	set_up(1, 0, NULL);
	work(10);
	puts("about to die");
	(void)fflush(stdout);
	(void)raise(signal_number);
}

static void mode_segv(void)
{
	die(SIGSEGV);
}

static void mode_term(void)
{
	die(SIGTERM);
}

static void mode_kill(void)
{
	die(SIGKILL);
}

static void mode_abort(void)
{
	die(SIGABRT);
}

static int wants_destructor;

static void at_exit(void)
{
	reduce();
	puts("reduced at exit");
}

__attribute__((destructor)) static void at_the_very_end(void)
{
	if (!wants_destructor)
		return;
	reduce();
	must(nccl.destroy(comm) == ncclSuccess, "destroy");
	puts("destroyed in a destructor");
}

static void mode_destructor(void)
{
	set_up(1, 0, NULL);
	work(10);
	wants_destructor = 1;
	must(atexit(at_exit) == 0, "atexit");
}

/* ---- signals ---- */

static volatile sig_atomic_t handled;

static void on_signal(int signal_number)
{
	(void)signal_number;
	reduce();
	handled = handled + 1;
}

static void mode_handler(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	must(sigaction(SIGUSR1, &sa, NULL) == 0, "sigaction");
	set_up(1, 0, NULL);
	for (int i = 0; i < 10; i++)
		(void)raise(SIGUSR1);
	work(10);
	printf("handled %d\n", (int)handled);
}

static void on_alarm(int signal_number)
{
	int ranks = 0, saved_errno = errno;

	(void)signal_number;
	if (nccl.count(comm, &ranks) != ncclSuccess || ranks != 1)
		_exit(3);
	handled = handled + 1;
	errno = saved_errno;
}

/* At any instant, also inside a wrapper: a call that NCCL answers without a lock. */
static void mode_alarm(void)
{
	struct itimerval every = { { 0, 200 }, { 0, 200 } }, off = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

	set_up(1, 0, NULL);
	must(sigaction(SIGALRM, &sa, NULL) == 0, "sigaction");
	must(setitimer(ITIMER_REAL, &every, NULL) == 0, "setitimer");
	while (handled < 50)
		work(20);
	must(setitimer(ITIMER_REAL, &off, NULL) == 0, "setitimer");
	puts("alarmed");
}

/* ---- the loader ---- */

static void mode_dlclose(void)
{
	for (int i = 0; i < 3; i++) {
		void *lib = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
		ncclResult_t (*version)(int *);
		int number = 0;

		must(lib != NULL, "dlopen");
		*(void **)&version = dlsym(lib, "ncclGetVersion");
		must(version != NULL && version(&number) == ncclSuccess, "ncclGetVersion");
		if (i == 0)
			set_up(1, 0, NULL);
		work(2);
		must(dlclose(lib) == 0, "dlclose");
	}
	work(2);
}

const struct mode habits[] = {
	{ "no-threads", mode_no_threads },
	{ "few-threads", mode_few_threads },
	{ "no-sockets", mode_no_sockets },
	{ "no-descriptors", mode_no_descriptors },
	{ "one-descriptor", mode_one_descriptor },
	{ "no-memory", mode_no_memory },
	{ "little-memory", mode_little_memory },
	{ "close-range", mode_close_range },
	{ "move", mode_move },
	{ "daemonise", mode_daemonise },
	{ "exec", mode_exec },
	{ "exec-echo", mode_exec_while_threads },
	{ "segv", mode_segv },
	{ "term", mode_term },
	{ "kill", mode_kill },
	{ "abort", mode_abort },
	{ "destructor", mode_destructor },
	{ "handler", mode_handler },
	{ "alarm", mode_alarm },
	{ "dlclose", mode_dlclose },
	{ NULL, NULL },
};
