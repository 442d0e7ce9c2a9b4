/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To hold a thread means to stop it as its tracer. Each fault that may happen during a hold has
 * something that ends the hold:
 *
 * - The taker crashes or is killed. The kernel detaches the thread, and the thread runs on.
 * - Copying blocks, because the stack is on a userfaultfd page. A timer in the kernel kills the
 *   taker.
 * - A page of the stack comes from FUSE, 9p or NFS. We do not copy it
 *   (daemon/kernel/mapped_memory.h), because we could not kill a taker that waits for it.
 * - The taker is stopped (SIGSTOP), or gets no processor. The same timer sends SIGKILL, which ends
 *   a stopped process, too. SIGALRM would wait for SIGCONT.
 * - The thread does not stop, because it went into state D in between. The taker gives up and
 *   exits. The kernel then cancels the pending interrupt.
 * - A signal arrives instead of our stop. PTRACE_DETACH passes it on.
 * - The user may no longer see the process, because it has started a set-user-ID program. We copy
 *   nothing. We check this during the hold, and a held thread cannot start a program.
 * - The process is stopped already (state T). PTRACE_SEIZE alone reports this stop, so we never
 *   interrupt the thread. It goes back to its group stop afterwards.
 *
 * A few system calls, such as epoll_wait, return EINTR after any stop, with or without a handler
 * (signal(7)). Not every program expects this, so we hold no thread in such a call. We copy its
 * stack while it sleeps, and take pc and sp from /proc.
 */
#include "daemon/evidence/stack_take.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/parse.h"
#include "daemon/evidence/stack_confine.h"
#include "daemon/evidence/stack_registers.h"
#include "daemon/kernel/mapped_memory.h"
#include "daemon/kernel/procfs.h"
#include "daemon/kernel/procstat.h"

#define PAGE 4096u
/* Time limit of one hold. After it we release the thread, even if the copy is incomplete. */
#define HOLD_LIMIT_MS 80u
/*
 * Longest wait for a thread to stop. A running thread stops within microseconds, at its next
 * interrupt or return to user space. On a busy machine it must first get a processor. This wait
 * does not delay the rank, because the thread is not stopped yet.
 */
#define STOP_LIMIT_MS 250u
/* Interval at which we check, while we wait for the stop, whether the thread still runs. */
#define STOP_LOOK_NS (CW_NS_PER_MS / 2)
/*
 * A taker is the child that stops a thread and copies its stack. If we kill a taker, it needs this
 * time to die. Until then the kernel does not release the stopped thread.
 */
#define DEATH_MS 10u
#define MAX_TAKERS 4u
/*
 * Bytes below sp that belong to the stack, too. A leaf function may use them without moving sp (the
 * red zone of the x86-64 ABI).
 */
#define RED_ZONE 128u
/* Beginning of the names of the agent's threads. */
#define AGENT_THREAD "collwatch"

/* System calls that fail with EINTR after a stop; see signal(7). */
static const long not_restarted[] = {
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
	SYS_epoll_pwait,
#ifdef SYS_epoll_pwait2
	SYS_epoll_pwait2,
#endif
	SYS_rt_sigtimedwait, SYS_semop, SYS_semtimedop, SYS_msgrcv, SYS_msgsnd, SYS_io_getevents,
};

static int64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail */
	return ts.tv_sec * CW_NS_PER_S + ts.tv_nsec;
}

struct cw_stack_copy *cw_stack_take_free(struct cw_stack_copy *copy)
{
	if (!copy)
		return NULL;
	(void)cw_mapped_memory_free(copy->memory);
	if (copy->proc_fd >= 0)
		(void)close(copy->proc_fd);
	(void)munmap(copy, sizeof(*copy));
	return NULL;
}

int cw_stack_take_copy(pid_t pid, uid_t uid, struct cw_stack_copy **ret)
{
	pid_t tids[CW_STACK_MAX_THREADS];
	struct cw_stack_copy *copy;
	struct cw_mapped_memory *memory;
	unsigned total = 0;
	int n, r;

	n = cw_procfs_threads(pid, tids, CW_STACK_MAX_THREADS, &total);
	if (n < 0)
		return n;
	copy = mmap(NULL, sizeof(*copy), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (copy == MAP_FAILED)
		return -errno;
	copy->pid = pid;
	copy->uid = uid;
	copy->proc_fd = cw_procstat_open(pid);
	copy->n_threads = (uint32_t)n;
	copy->n_total = total;
	r = cw_mapped_memory_new(pid, &memory);
	if (r == -ENOMEM) {
		(void)cw_stack_take_free(copy);
		return r;
	}
	/* We have no right to read the map; the hold will fail, too, with a clearer error. */
	if (r < 0)
		memory = NULL;
	copy->memory = memory;
	copy->budget_ns = (CW_STACK_HOLD_MS - DEATH_MS) * CW_NS_PER_MS;
	for (int i = 0; i < n; i++)
		copy->threads[i].tid = tids[i];
	*ret = copy;
	return 0;
}

/*
 * Copies the stack page by page. Ends at the end of the stack, or before a page that does not exist
 * or that we must not read.
 */
static void copy_stack(struct cw_stack_copy *copy, struct cw_stack_thread *t, uint8_t *buf)
{
	struct iovec remote[CW_STACK_MAX_BYTES / PAGE + 1];
	struct iovec local = { buf, CW_STACK_MAX_BYTES };
	uint64_t at = t->sp > RED_ZONE ? t->sp - RED_ZONE : 0;
	size_t left =
		copy->memory ? cw_mapped_memory_readable(copy->memory, at, CW_STACK_MAX_BYTES) : 0;
	unsigned n = 0;
	ssize_t got;

	t->stack_start = at;
	while (left > 0 && at < UINT64_MAX - PAGE) {
		size_t len = PAGE - at % PAGE;

		if (len > left)
			len = left;
		/* The address belongs to the other process. Do not dereference it. */
		remote[n].iov_base = (void *)(uintptr_t)at;
		remote[n++].iov_len = len;
		at += len;
		left -= len;
	}
	/*
	 * We read by tid. If the process has started another program, its old memory is gone, and
	 * we may read memory of the new program.
	 */
	got = n ? process_vm_readv(t->tid, &local, 1, remote, n, 0) : 0;
	t->stack_len = got > 0 ? (uint32_t)got : 0;
}

static int copy_registers(struct cw_stack_thread *t)
{
	struct user_regs_struct u;
	struct iovec iov = { &u, sizeof(u) };

	if (ptrace(PTRACE_GETREGSET, t->tid, (void *)(uintptr_t)NT_PRSTATUS, &iov) < 0)
		return -errno;
	if (iov.iov_len != sizeof(u))
		return -ENOTSUP; /* the process is a 32-bit one */
	cw_stack_registers(&u, t->regs, &t->sp, &t->pc);
	return 0;
}

/* The hold of one thread, with the timer that ends it. */
struct hold {
	timer_t killer;
	int64_t limit_ns;
	int64_t since_ns; /* last time at which the thread certainly was not stopped by us */
};

/* Sets the timer that kills this process at at_ns, even if the process is stopped. */
static int arm_killer(const struct hold *h, int64_t at_ns)
{
	struct itimerspec it = { .it_value = { at_ns / CW_NS_PER_S, at_ns % CW_NS_PER_S } };

	return timer_settime(h->killer, TIMER_ABSTIME, &it, NULL) < 0 ? -errno : 0;
}

static int not_held_at(struct hold *h, int64_t ns)
{
	h->since_ns = ns;
	return arm_killer(h, ns + h->limit_ns);
}

/*
 * Waits until the thread stops. Returns 0, -ETIMEDOUT, or -ESRCH if the thread has ended.
 * *ret_signal: the signal to pass on at the release; 0 = none. The time limit of the hold counts
 * from the last check that found the thread running. The exact time of the stop is unknown, above
 * all if the taker had no processor for a while.
 */
static int wait_for_stop(pid_t tid, struct hold *hold, int *ret_signal)
{
	const struct timespec look = { 0, STOP_LOOK_NS };
	int64_t deadline = now_ns() + STOP_LIMIT_MS * CW_NS_PER_MS;
	sigset_t chld;
	int status, r;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	for (;;) {
		int64_t before_ns = now_ns();
		pid_t pid = waitpid(tid, &status, __WALL | WNOHANG);

		if (pid < 0 || (pid > 0 && !WIFSTOPPED(status)))
			return -ESRCH;
		if (pid > 0) {
			/*
			 * If the status has an event, this is our stop or a group stop. Otherwise a
			 * signal has stopped the thread.
			 */
			*ret_signal = status >> 16 ? 0 : WSTOPSIG(status);
			return 0;
		}
		if (before_ns >= deadline)
			return -ETIMEDOUT;
		r = not_held_at(hold, before_ns);
		if (r < 0)
			return r;
		/*
		 * Sleep until SIGCHLD or the next check. cw_stack_take() has blocked SIGCHLD, and
		 * waitpid() gets the result.
		 */
		(void)sigtimedwait(&chld, NULL, &look);
	}
}

static uint8_t seize_failed(int error)
{
	if (error == ESRCH)
		return CW_STACK_GONE;
	return error == EPERM || error == EACCES ? CW_STACK_NOT_ALLOWED : CW_STACK_FAILED;
}

static bool may_be_seen(const struct cw_stack_copy *copy, const struct cw_stack_thread *t)
{
	return cw_procfs_may_see(copy->proc_fd, t->tid, copy->uid);
}

static int copy_held(struct cw_stack_copy *copy, struct cw_stack_thread *t, uint8_t *buf)
{
	int r;

	if (!may_be_seen(copy, t))
		return -EPERM;
	r = copy_registers(t);
	if (r == 0)
		copy_stack(copy, t, buf);
	return r;
}

static int take_held(struct cw_stack_copy *copy, struct cw_stack_thread *t, uint8_t *buf,
		     struct hold *hold)
{
	int sig = 0, r;

	/*
	 * Note the time before PTRACE_SEIZE. From then on any signal stops the thread, so the hold
	 * may begin at once.
	 */
	r = not_held_at(hold, now_ns());
	if (r < 0)
		return r;
	/* Count the full limit now, in case this process is killed. */
	copy->held_ns += hold->limit_ns;
	if (ptrace(PTRACE_SEIZE, t->tid, NULL, NULL) < 0) {
		t->error = errno;
		t->result = seize_failed(errno);
		copy->held_ns -= hold->limit_ns;
		return 0;
	}
	/* A thread that is stopped already reports to its new tracer without an interrupt. */
	if (t->state != 'T' && ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) < 0)
		r = -errno;
	if (r == 0)
		r = wait_for_stop(t->tid, hold, &sig);
	if (r == 0)
		r = copy_held(copy, t, buf);
	/* Fails if the thread has ended, or has not stopped. */
	(void)ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(uintptr_t)sig);
	t->held_ns = now_ns() - hold->since_ns;
	copy->held_ns += t->held_ns - hold->limit_ns;
	t->error = -r;
	t->result = r == 0            ? CW_STACK_TAKEN
		    : r == -ESRCH     ? CW_STACK_GONE
		    : r == -EPERM     ? CW_STACK_OTHER_USER
		    : r == -ETIMEDOUT ? CW_STACK_NOT_STOPPED
				      : CW_STACK_FAILED;
	return r == -ETIMEDOUT ? r : 0;
}

static bool is_restarted(int64_t number)
{
	for (size_t i = 0; i < sizeof(not_restarted) / sizeof(not_restarted[0]); i++) {
		if (number == not_restarted[i])
			return false;
	}
	return true;
}

static int read_syscall(struct cw_stack_copy *copy, pid_t tid, struct cw_procfs_syscall *ret)
{
	char text[256];
	ssize_t n = cw_procfs_read_task(copy->pid, tid, "syscall", text, sizeof(text));

	return n < 0 ? (int)n : cw_procfs_parse_syscall(text, ret);
}

/* Returns the time that the thread has run; 0 = not known. */
static uint64_t read_run_ns(const struct cw_stack_copy *copy, pid_t tid)
{
	const char *at;
	char text[64];
	uint64_t ns;

	if (cw_procfs_read_task(copy->pid, tid, "schedstat", text, sizeof(text)) <= 0)
		return 0;
	at = text;
	return cw_parse_digits(&at, 10, &ns) == 0 ? ns : 0;
}

/*
 * Copies the stack of a thread that sleeps in a system call that we must not interrupt. Does not
 * hold the thread. Returns false if the thread is in another call.
 */
static bool take_asleep(struct cw_stack_copy *copy, struct cw_stack_thread *t, uint8_t *buf)
{
	struct cw_procfs_syscall before, after;

	if (read_syscall(copy, t->tid, &before) != 0 || is_restarted(before.number))
		return false;
	t->sp = before.sp;
	t->pc = before.pc;
	copy_stack(copy, t, buf);
	/*
	 * Check after the copy that the user may still see the thread. If sp or pc has changed, the
	 * thread ran while we copied it, and the copy may be inconsistent.
	 */
	if (!may_be_seen(copy, t)) {
		t->stack_len = 0;
		t->result = CW_STACK_OTHER_USER;
		return true;
	}
	if (read_syscall(copy, t->tid, &after) != 0 || after.sp != before.sp ||
	    after.pc != before.pc) {
		t->result = CW_STACK_NOT_STOPPED;
		return true;
	}
	if (read_run_ns(copy, t->tid) != t->run_ns)
		t->run_ns = 0;
	t->result = t->stack_len ? CW_STACK_PEEKED : CW_STACK_NOT_ALLOWED;
	return true;
}

static int take_thread(struct cw_stack_copy *copy, uint32_t i, struct hold *hold)
{
	struct cw_stack_thread *t = &copy->threads[i];
	struct cw_procfs_stat st;

	if (cw_procfs_stat(copy->pid, t->tid, &st) < 0) {
		t->result = CW_STACK_GONE;
		return 0;
	}
	memcpy(t->name, st.name, sizeof(t->name));
	t->state = st.state;
	/*
	 * Only the time of a thread that sleeps is exact. A hold makes the thread run, so we read
	 * the time of a held thread as late as possible.
	 */
	if (st.state == 'S' || st.state == 'T')
		t->run_ns = read_run_ns(copy, t->tid);
	if (st.state == 'D')
		t->result = CW_STACK_UNINTERRUPTIBLE;
	else if (st.state == 'Z' || st.state == 'X')
		t->result = CW_STACK_GONE;
	else if (st.state == 't')
		t->result = CW_STACK_TRACED;
	else if (strncmp(st.name, AGENT_THREAD, strlen(AGENT_THREAD)) == 0)
		t->result = CW_STACK_OURS;
	else if (!may_be_seen(copy, t)) /* do not even hold it, because its user may not see it */
		t->result = CW_STACK_OTHER_USER;
	else if (!take_asleep(copy, t, copy->stacks[i]))
		return take_held(copy, t, copy->stacks[i], hold);
	return 0;
}

static int take_threads(struct cw_stack_copy *copy, struct hold *hold, int64_t limit_ns)
{
	int r = 0;

	while (r == 0 && copy->next < copy->n_threads) {
		uint32_t i = copy->next++;
		int64_t left_ns = copy->budget_ns - copy->held_ns;

		if (left_ns < CW_NS_PER_MS) {
			copy->threads[i].result = CW_STACK_SPENT;
			continue;
		}
		hold->limit_ns = left_ns < limit_ns ? left_ns : limit_ns;
		/*
		 * Before the hold the timer limits our work on this thread, too, with a longer
		 * time.
		 */
		r = arm_killer(hold, now_ns() + STOP_LIMIT_MS * CW_NS_PER_MS + hold->limit_ns);
		if (r == 0)
			r = take_thread(copy, i, hold);
	}
	return r;
}

int cw_stack_take(struct cw_stack_copy *copy, uint32_t limit_ms)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	struct hold hold = { 0 };
	sigset_t chld;
	int r;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &chld, NULL) < 0 ||
	    timer_create(CLOCK_MONOTONIC, &ev, &hold.killer) < 0)
		return -errno;
	r = take_threads(copy, &hold, limit_ms * CW_NS_PER_MS);
	(void)timer_delete(hold.killer); /* cannot fail */
	return r;
}

static int run_taker(struct cw_stack_copy *copy)
{
	if (cw_stack_confine_taker() < 0)
		return 1;
	return cw_stack_take(copy, HOLD_LIMIT_MS) == 0 ? 0 : 1;
}

int cw_stack_take_all(struct cw_stack_copy *copy)
{
	for (unsigned n = 0; n < MAX_TAKERS && copy->next < copy->n_threads; n++) {
		pid_t pid = fork();
		int status;

		if (pid < 0)
			return -errno;
		if (pid == 0)
			_exit(run_taker(copy));
		if (waitpid(pid, &status, 0) < 0)
			return -errno;
	}
	return 0;
}
