/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses NCCL and then treats it as programs treat libraries they do not know of. We
 * run it with and without the agent; its output and exit status must be the same.
 *
 *	agent_program MODE [dlopen|global|deepbind]
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <locale.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/agent/agent_program.h"

#define FD_SCAN 1100
/* tests/e2e/agent/test_agent_bursts.py counts on these. */
#define BURSTS 40
#define BURST_OPS 300

struct nccl nccl = { ncclGetUniqueId, ncclCommInitRank, ncclAllReduce,   ncclBcast,
		     ncclGroupStart,  ncclGroupEnd,     ncclCommDestroy, ncclCommCount };

CUstream stream;
CUdeviceptr buffer;
ncclComm_t comm;

void must(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "agent_program: %s failed: %s\n", what, strerror(errno));
		exit(1);
	}
}

static void open_nccl(int scope)
{
	void *lib = dlopen("libnccl.so.2", RTLD_NOW | scope);

	must(lib != NULL, "dlopen");
	*(void **)&nccl.unique_id = dlsym(lib, "ncclGetUniqueId");
	*(void **)&nccl.init = dlsym(lib, "ncclCommInitRank");
	*(void **)&nccl.all_reduce = dlsym(lib, "ncclAllReduce");
	*(void **)&nccl.bcast = dlsym(lib, "ncclBcast");
	*(void **)&nccl.group_start = dlsym(lib, "ncclGroupStart");
	*(void **)&nccl.group_end = dlsym(lib, "ncclGroupEnd");
	*(void **)&nccl.destroy = dlsym(lib, "ncclCommDestroy");
	*(void **)&nccl.count = dlsym(lib, "ncclCommCount");
	must(nccl.destroy != NULL, "dlsym");
	must(dlsym(lib, "ncclAllReduceInFuture") == NULL, "absence of an unknown function");
	must(dlerror() != NULL, "dlerror");
}

void set_up_device(void)
{
	CUcontext context;
	CUdevice device;

	must(cuInit(0) == CUDA_SUCCESS, "cuInit");
	must(cuDeviceGet(&device, 0) == CUDA_SUCCESS, "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS, "context");
	must(cuCtxSetCurrent(context) == CUDA_SUCCESS, "cuCtxSetCurrent");
	must(cuStreamCreate(&stream, 1) == CUDA_SUCCESS, "stream");
	must(cuMemAlloc(&buffer, COUNT * sizeof(float)) == CUDA_SUCCESS, "memory");
}

void set_up(int ranks, int rank, const ncclUniqueId *given)
{
	ncclUniqueId id;

	if (!stream)
		set_up_device();
	if (given)
		id = *given;
	else
		must(nccl.unique_id(&id) == ncclSuccess, "unique id");
	must(nccl.init(&comm, ranks, id, rank) == ncclSuccess, "init");
}

void work(int ops)
{
	void *p = (void *)(uintptr_t)buffer;

	for (int i = 0; i < ops; i++) {
		must(nccl.all_reduce(p, p, COUNT, ncclFloat, ncclSum, comm, stream) == ncclSuccess,
		     "all_reduce");
		must(nccl.bcast(p, COUNT, ncclFloat, 0, comm, stream) == ncclSuccess, "bcast");
	}
	must(nccl.group_start() == ncclSuccess, "group start");
	must(nccl.all_reduce(p, p, COUNT, ncclFloat, ncclSum, comm, stream) == ncclSuccess,
	     "all_reduce");
	must(nccl.all_reduce(p, p, COUNT, ncclFloat, ncclMax, comm, stream) == ncclSuccess,
	     "all_reduce");
	must(nccl.group_end() == ncclSuccess, "group end");
	must(cuStreamSynchronize(stream) == CUDA_SUCCESS, "synchronise");
}

void wait_for(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0) == pid, "waitpid");
	printf("child: %s %d\n", WIFEXITED(status) ? "exit" : "signal",
	       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* Two ranks, forked by a parent that asked for the unique id: as small launchers do. */
static void two_ranks(void (*do_work)(int rank))
{
	ncclUniqueId id;
	pid_t pids[2];

	must(nccl.unique_id(&id) == ncclSuccess, "unique id");
	for (int rank = 0; rank < 2; rank++) {
		pids[rank] = fork();
		must(pids[rank] >= 0, "fork");
		if (pids[rank] == 0) {
			set_up(2, rank, &id);
			do_work(rank);
			(void)getchar(); /* until the test has looked */
			must(nccl.destroy(comm) == ncclSuccess, "destroy");
			exit(0);
		}
	}
	for (int rank = 0; rank < 2; rank++)
		wait_for(pids[rank]);
}

static void work_a_little(int rank)
{
	(void)rank;
	work(100);
}

static void mode_ranks(void)
{
	two_ranks(work_a_little);
}

static void reduce(size_t count)
{
	void *p = (void *)(uintptr_t)buffer;

	must(nccl.all_reduce(p, p, count, ncclFloat, ncclSum, comm, stream) == ncclSuccess,
	     "all_reduce");
}

/* As fast as it gets, and at the end of each step one number, which the host waits for. */
static void work_in_bursts(int rank, bool one_is_missing)
{
	const struct timespec optimizer = { .tv_nsec = 4000000 };

	for (int step = 1; step <= BURSTS; step++) {
		for (int i = 0; i < BURST_OPS; i++)
			reduce(COUNT);
		if (one_is_missing && step == BURSTS && rank == 1)
			return;
		reduce(1);
		must(cuStreamSynchronize(stream) == CUDA_SUCCESS, "synchronise");
		(void)nanosleep(&optimizer, NULL);
	}
}

static void all_bursts(int rank)
{
	work_in_bursts(rank, false);
}

static void bursts_but_one(int rank)
{
	work_in_bursts(rank, true);
}

static void mode_bursts(void)
{
	two_ranks(all_bursts);
}

static void mode_bursts_hang(void)
{
	two_ranks(bursts_but_one);
}

static void in_child(void)
{
	void *p = (void *)(uintptr_t)buffer;

	/* Wrong, and done by real programs: a few calls on the parent's communicator. */
	for (int i = 0; i < 3; i++)
		(void)nccl.all_reduce(p, p, 0, ncclFloat, ncclSum, comm, stream);
	(void)nccl.group_start();
	(void)nccl.group_end();
	_exit(7);
}

static void mode_fork(void)
{
	static char name[] = "true";
	char *argv[] = { name, NULL };
	extern char **environ;
	pid_t pid;

	set_up(1, 0, NULL);
	work(10);
	pid = fork();
	if (pid == 0)
		in_child();
	wait_for(pid);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		in_child();
	wait_for(pid);
	pid = vfork();
	if (pid == 0) {
		execv("/bin/true", argv);
		_exit(1);
	}
	wait_for(pid);
	must(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0, "posix_spawn");
	wait_for(pid);
	work(10);
}

/*
 * Closes everything, opens files that get the numbers, and checks that no other code has
 * written to them.
 */
static void mode_closefrom(void)
{
	int fds[FD_SCAN];
	off_t size = 0;
	int n = 0;

	set_up(1, 0, NULL);
	work(10);
	for (int fd = 3; fd < FD_SCAN; fd++)
		(void)close(fd);
	for (int fd = open("/dev/null", O_RDONLY); fd >= 0 && n < FD_SCAN - 5; n++) {
		fds[n] = (int)syscall(SYS_memfd_create, "mine", 0);
		if (fds[n] < 0)
			break;
	}
	work(10);
	(void)getchar(); /* the agent's thread beats and reconnects meanwhile */
	for (int i = 0; i < n; i++) {
		size += lseek(fds[i], 0, SEEK_END);
		must(fcntl(fds[i], F_GETFD) >= 0, "still open");
	}
	printf("written by others: %ld\n", (long)size);
}

static void mode_limits(void)
{
	struct rlimit limit = { 64, 64 };

	must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
	set_up(1, 0, NULL);
	work(10);
}

/* Of files smaller than a flight record. The program's own SIGXFSZ would end it. */
static void mode_file_size(void)
{
	struct rlimit limit = { 65536, 65536 };
	sigset_t mask, pending;

	must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
	set_up(1, 0, NULL);
	work(10);
	must(sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && sigpending(&pending) == 0, "signals");
	printf("SIGXFSZ blocked %d, pending %d\n", sigismember(&mask, SIGXFSZ),
	       sigismember(&pending, SIGXFSZ));
}

static void mode_seccomp(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
	set_up(1, 0, NULL);
	work(10);
}

/* Signal handlers, mask, locale, environment and errno are as they were. */
static void mode_state(void)
{
	sigset_t before, after;
	int changed = 0;

	must(sigprocmask(SIG_BLOCK, NULL, &before) == 0, "mask");
	set_up(1, 0, NULL);
	errno = 12345;
	work(10);
	printf("errno %d\n", errno);
	must(sigprocmask(SIG_BLOCK, NULL, &after) == 0, "mask");
	for (int sig = 1; sig < 65; sig++) {
		struct sigaction sa = { .sa_handler = SIG_DFL };

		if (sigismember(&before, sig) != sigismember(&after, sig))
			changed++;
		if (sigaction(sig, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL &&
		    sa.sa_handler != SIG_IGN)
			changed++;
	}
	printf("signals changed %d, locale %s\n", changed, setlocale(LC_ALL, NULL));
	clearenv();
	work(10);
}

static void mode_wait(void)
{
	set_up(1, 0, NULL);
	work(10);
	(void)getchar();
	work(10);
}

static const struct mode modes[] = {
	{ "ranks", mode_ranks },
	{ "bursts", mode_bursts },
	{ "bursts-hang", mode_bursts_hang },
	{ "fork", mode_fork },
	{ "closefrom", mode_closefrom },
	{ "limits", mode_limits },
	{ "seccomp", mode_seccomp },
	{ "state", mode_state },
	{ "file-size", mode_file_size },
	{ "wait", mode_wait },
	{ NULL, NULL },
};

static const struct mode *find_mode(const struct mode *table, const char *name)
{
	while (table->name && strcmp(table->name, name) != 0)
		table++;
	return table->name ? table : NULL;
}

/* The agent's thread has a table of its own: at no time does it hold a number of the program. */
static int next_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)close(fd);
	return fd;
}

int main(int argc, char **argv)
{
	const struct mode *mode = argc > 1 ? find_mode(modes, argv[1]) : NULL;

	if (argc > 1 && !mode)
		mode = find_mode(habits, argv[1]);
	if (argc > 1 && !mode)
		mode = find_mode(children, argv[1]);
	if (!mode) {
		fprintf(stderr, "usage: agent_program MODE [dlopen|global|deepbind]\n");
		return 2;
	}
	if (argc > 2 && strcmp(argv[2], "dlopen") == 0)
		open_nccl(RTLD_LOCAL);
	else if (argc > 2 && strcmp(argv[2], "global") == 0)
		open_nccl(RTLD_GLOBAL);
	else if (argc > 2 && strcmp(argv[2], "deepbind") == 0)
		open_nccl(RTLD_LOCAL | RTLD_DEEPBIND);
	errno = 0;
	mode->run();
	printf("next descriptor %d\n", next_descriptor());
	puts("done");
	return 0;
}
