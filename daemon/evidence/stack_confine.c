/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwinder has no capability, and runs as the user of the process. It may make only the system
 * calls that it needs to read open files and to use memory. Its address space, CPU time and output
 * are limited.
 */
#include "daemon/evidence/stack_confine.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * Limits the address space, not the memory in use. We map the libraries of a training framework
 * whole, which takes some GiB (libtorch_cuda alone takes 1.5).
 */
#define MAX_ADDRESS_SPACE (UINT64_C(16) << 30)
#define MAX_CPU_S 10

static int drop_capabilities(void)
{
	capng_clear(CAPNG_SELECT_CAPS);
	return capng_apply(CAPNG_SELECT_CAPS) < 0 ? -EPERM : 0;
}

int cw_stack_confine_taker(void)
{
	bool may_read_files;

	/* Ignore failures, because the taker does the same work without these three settings. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/*
	 * Raise the priority. While we hold a rank's thread, another process on our processor would
	 * make the stop longer.
	 */
	(void)setpriority(PRIO_PROCESS, 0, -20);
	if (capng_get_caps_process() < 0)
		return -EPERM;
	if (!capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_PTRACE))
		return drop_capabilities();
	may_read_files = capng_have_capability(CAPNG_EFFECTIVE, CAP_DAC_READ_SEARCH);
	capng_clear(CAPNG_SELECT_CAPS);
	/* Neither call can fail: both capabilities exist. */
	(void)capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_SYS_PTRACE);
	if (may_read_files)
		(void)capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED,
				   CAP_DAC_READ_SEARCH);
	return capng_apply(CAPNG_SELECT_CAPS) < 0 ? -EPERM : 0;
}

static int become(uid_t uid, gid_t gid)
{
	/*
	 * Without the right to change users, the unwinder keeps the daemon's user. It can then open
	 * all files of that user, such as key files, the webhook's headers, and other users'
	 * bundles. A hostile program may take over the unwinder and write this content into the
	 * answer. The program's user would then see the content (docs/security.md).
	 */
	if (capng_get_caps_process() < 0 || !capng_have_capability(CAPNG_EFFECTIVE, CAP_SETUID) ||
	    !capng_have_capability(CAPNG_EFFECTIVE, CAP_SETGID))
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return 0;
}

/*
 * Limits the unwinder's resources. A build with sanitizers has no limit of the address space,
 * because their shadow memory alone takes 20 TiB.
 */
static int limit_resources(void)
{
	struct rlimit cpu = { MAX_CPU_S, MAX_CPU_S }, none = { 0, 0 };
#ifndef __SANITIZE_ADDRESS__
	struct rlimit as = { MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE };

	if (setrlimit(RLIMIT_AS, &as) < 0)
		return -errno;
#endif
	if (setrlimit(RLIMIT_CPU, &cpu) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 ||
	    setrlimit(RLIMIT_FSIZE, &none) < 0) /* pipes are not affected */
		return -errno;
	return 0;
}

/*
 * The system calls for reading open files, memory, time and exit. Only the sanitizers need those of
 * the last two lines.
 */
static const int allowed[] = {
	SCMP_SYS(read),          SCMP_SYS(pread64),      SCMP_SYS(readv),
	SCMP_SYS(lseek),         SCMP_SYS(fstat),        SCMP_SYS(newfstatat),
	SCMP_SYS(statx),         SCMP_SYS(write),        SCMP_SYS(close),
	SCMP_SYS(dup),           SCMP_SYS(munmap),       SCMP_SYS(mremap),
	SCMP_SYS(madvise),       SCMP_SYS(brk),          SCMP_SYS(futex),
	SCMP_SYS(clock_gettime), SCMP_SYS(getrandom),    SCMP_SYS(exit),
	SCMP_SYS(exit_group),    SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(sched_yield),   SCMP_SYS(getpid),       SCMP_SYS(gettid),
	SCMP_SYS(sigaltstack),   SCMP_SYS(rt_sigaction), SCMP_SYS(tgkill),
};

static int add_rules(scmp_filter_ctx ctx)
{
	int r;

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
		if (r < 0)
			return r;
	}
	/* Allow mappings that are not executable. */
	r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
			     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	/* Allow opening for reading, but not creating a file. */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, 0));
	/* libelf calls fcntl() to check that its descriptor is open and how it was opened. */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
				     SCMP_A1(SCMP_CMP_EQ, F_GETFD));
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
				     SCMP_A1(SCMP_CMP_EQ, F_GETFL));
	return r;
}

static int filter_syscalls(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r;

	if (!ctx)
		return -ENOMEM;
	r = add_rules(ctx);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r;
}

int cw_stack_confine_unwinder(uid_t uid, gid_t gid)
{
	int r = become(uid, gid);

	if (r == 0)
		r = drop_capabilities();
	if (r < 0)
		return r;
	/* Set the parent's death signal again, because the change of user has cleared it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0) < 0)
		return -errno;
	r = limit_resources();
	return r < 0 ? r : filter_syscalls();
}
