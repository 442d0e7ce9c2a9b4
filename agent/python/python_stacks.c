/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Armed by a pending call, with the GIL: faulthandler is registered for a free signal, and a thread
 * started, the only one that does not block it. When asked, this thread sends the signal to itself;
 * the handler walks all threads' frames without the GIL and writes text into a memfd. The walker
 * reads what running code changes, so nothing is asked for before the process has held still.
 */
#include "agent/python/python_stacks.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/descriptors.h"
#include "agent/base/log.h"
#include "agent/base/next_dlsym.h"
#include "agent/base/state.h"
#include "agent/base/thread.h"
#include "agent/cuda/driver_waits.h"
#include "agent/record/helper_threads.h"
#include "agent/record/open_calls.h"
#include "agent/record/record.h"
#include "common/parse.h"

#define DUMP_WAIT_NS 3000000000u
#define IDLE_WAIT_NS 200000000
/* Of IDLE_WAIT_NS, spent by threads that may run Python code: more is not a process that waits. */
#define QUIET_CPU_NS 10000000u

enum arm_state { ARM_NOT_TRIED, ARM_TRIED, ARM_NOT_PYTHON, ARM_ASKED, ARM_DONE, ARM_BROKEN };

static atomic_int state;

static struct {
	int (*is_initialized)(void);
	int (*is_finalizing)(void); /* NULL before 3.7 */
	int (*add_pending)(int (*fn)(void *), void *arg);
	void *(*import)(const char *name);
	void *(*call_method)(void *obj, const char *name, const char *format, ...);
	void (*clear_error)(void);
	void (*dec_ref)(void *obj);
} py;

struct linux_dirent64 { /* getdents64(2) */
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

static uint32_t main_tid; /* of the interpreter */
static int signal_number;
static void (*handler)(int); /* faulthandler's */
static int text_fd = -1;
static struct cw_fd_identity text_id;

/* Requests and answers are counted; both are futexes. */
static atomic_uint asked, answered;

static char text[CW_PYTHON_TEXT_MAX + 1];

static long futex(atomic_uint *word, int op, unsigned value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

/* The handler faulthandler installed is still there: else the signal would kill the process. */
static bool is_handler_there(void)
{
	struct sigaction sa;

	return sigaction(signal_number, NULL, &sa) == 0 && sa.sa_handler == handler;
}

/* The only thread in which the signal is not blocked: it interrupts nobody else. */
static void *run(void *arg)
{
	sigset_t set;
	unsigned seen = 0;

	(void)prctl(PR_SET_NAME, "collwatch-py");
	(void)sigemptyset(&set);
	(void)sigaddset(&set, signal_number);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	for (;;) {
		unsigned now = atomic_load(&asked);

		if (now == seen) {
			(void)futex(&asked, FUTEX_WAIT, now, NULL);
			continue;
		}
		seen = now;
		/* Returns after the handler ran. */
		if (is_handler_there())
			(void)syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid),
				      signal_number);
		atomic_store(&answered, seen);
		(void)futex(&answered, FUTEX_WAKE, 1, NULL);
	}
	return NULL;
}

/* A real-time signal nobody has touched, from the far end. */
static int free_signal(void)
{
	for (int sig = SIGRTMAX - 1; sig > SIGRTMIN; sig--) {
		struct sigaction sa;

		if (sigaction(sig, NULL, &sa) == 0 && !(sa.sa_flags & SA_SIGINFO) &&
		    sa.sa_handler == SIG_DFL)
			return sig;
	}
	return 0;
}

static bool open_text(void)
{
	text_fd = cw_memfd("collwatch-python");
	/* At its end, wherever another descriptor cut it. */
	if (text_fd < 0 || fcntl(text_fd, F_SETFL, O_APPEND) < 0)
		return false;
	return cw_fd_identify(text_fd, &text_id) == 0;
}

/* faulthandler.register(sig, file=fd, all_threads=True, chain=False) */
static bool register_signal(int sig)
{
	struct sigaction sa;
	void *module = py.import("faulthandler"), *result;

	result = module ? py.call_method(module, "register", "iiii", sig, text_fd, 1, 0) : NULL;
	if (!result)
		py.clear_error();
	else
		py.dec_ref(result);
	if (module)
		py.dec_ref(module);
	if (!result || sigaction(sig, NULL, &sa) < 0 || sa.sa_handler == SIG_DFL)
		return false;
	signal_number = sig;
	handler = sa.sa_handler;
	return true;
}

/* Called by the interpreter, with the GIL, between two instructions of its main thread. */
static int on_pending(void *arg)
{
	int saved_errno = errno;
	int sig = free_signal();
	bool ok = cw_agent_is_armed() && sig && open_text() && register_signal(sig) &&
		  cw_thread_start(run, NULL) == 0;

	if (ok) {
		main_tid = (uint32_t)syscall(SYS_gettid);
		(void)__atomic_fetch_or(&cw_record.header->has, CW_REC_HAS_PYTHON,
					__ATOMIC_RELAXED);
		cw_log("Python stacks are armed");
	}
	atomic_store(&state, ok ? ARM_DONE : ARM_BROKEN);
	errno = saved_errno;
	return 0;
}

static void *find(cw_dlsym_fn next, const char *name)
{
	return next(RTLD_DEFAULT, name);
}

/* False where there is no Python, or one without a GIL: its threads change what is walked. */
static bool find_python(void)
{
	cw_dlsym_fn next = cw_next_dlsym_get();

	if (!next)
		return false;
	py.is_initialized = (int (*)(void))find(next, "Py_IsInitialized");
	if (!py.is_initialized || find(next, "_Py_DecRefShared"))
		return false;
	py.is_finalizing = (int (*)(void))find(next, "Py_IsFinalizing");
	if (!py.is_finalizing)
		py.is_finalizing = (int (*)(void))find(next, "_Py_IsFinalizing");
	py.add_pending = (int (*)(int (*)(void *), void *))find(next, "Py_AddPendingCall");
	py.import = (void *(*)(const char *))find(next, "PyImport_ImportModule");
	py.call_method = (void *(*)(void *, const char *, const char *, ...))find(
		next, "PyObject_CallMethod");
	py.clear_error = (void (*)(void))find(next, "PyErr_Clear");
	py.dec_ref = (void (*)(void *))find(next, "Py_DecRef");
	return py.add_pending && py.import && py.call_method && py.clear_error && py.dec_ref;
}

static bool is_alive(void)
{
	return py.is_initialized() && !(py.is_finalizing && py.is_finalizing());
}

void cw_python_arm(void)
{
	int expected = ARM_NOT_TRIED;
	bool is_wanted;
	const char *value;

	if (atomic_load_explicit(&state, memory_order_relaxed) != ARM_NOT_TRIED ||
	    !atomic_compare_exchange_strong(&state, &expected, ARM_TRIED))
		return;
	value = getenv("COLLWATCH_PYTHON_STACKS");
	if (value && cw_parse_switch(value, &is_wanted) == 0 && !is_wanted) {
		atomic_store(&state, ARM_BROKEN);
		return;
	}
	if (!find_python() || !is_alive()) {
		atomic_store(&state, ARM_NOT_PYTHON);
		goto out;
	}
	atomic_store(&state, ARM_ASKED);
	if (py.add_pending(on_pending, NULL) != 0)
		atomic_store(&state, ARM_BROKEN);
out:
	(void)dlerror();
}

/* What faulthandler wrote, as a string; other bytes than ASCII would not be valid UTF-8 when cut.
 */
static enum cw_python_status read_text(int fd)
{
	ssize_t n = 0;
	size_t len = 0;

	while (len < CW_PYTHON_TEXT_MAX) {
		n = pread(fd, text + len, CW_PYTHON_TEXT_MAX - len, (off_t)len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	for (size_t i = 0; i < len; i++) {
		if (!text[i] || (unsigned char)text[i] >= 0x80)
			text[i] = '?';
	}
	return len ? CW_PYTHON_OK : CW_PYTHON_FAILED;
}

static bool wait_for(unsigned number, void (*idle)(void))
{
	const struct timespec slice = { .tv_nsec = IDLE_WAIT_NS };
	uint64_t until = cw_now_ns() + DUMP_WAIT_NS;
	unsigned seen;

	while ((seen = atomic_load(&answered)) != number) {
		if (cw_now_ns() >= until)
			return false;
		(void)futex(&answered, FUTEX_WAIT, seen, &slice);
		idle();
	}
	return true;
}

/* CPU time of another thread: the kernel's encoding of per-thread clocks (posix-timers.h). */
static uint64_t cpu_ns(uint32_t tid)
{
	struct timespec ts = { 0 };

	if (clock_gettime((clockid_t)(~tid << 3 | 6), &ts) != 0)
		return UINT64_MAX;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool is_on_cpu(uint32_t tid)
{
	char path[64], buf[64];
	const char *state_field;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%u/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	n = read(fd, buf, sizeof(buf) - 1);
	(void)close(fd);
	buf[n > 0 ? n : 0] = '\0';
	state_field = strrchr(buf, ')');
	return !state_field || !state_field[1] || state_field[2] == 'R';
}

/* ---- is anybody running? ---- */

/* Those past it are not looked at; ranks have up to a few hundred. */
#define MAX_THREADS 1024u

static struct {
	uint32_t tids[MAX_THREADS];
	uint64_t cpu_ns[MAX_THREADS];
	uint64_t still_in[MAX_THREADS]; /* as holds_still() says */
	unsigned n;
} others; /* the threads that may run Python code, as of the last look; the helper thread's alone */

/*
 * Which call of NCCL, else which wait in the driver, the thread is inside of, where both may poll;
 * 0 = none. While the number stays the same, so do the thread's frames. A call of NCCL waits in the
 * driver now and then.
 */
static uint64_t holds_still(uint32_t tid)
{
	uint64_t call = cw_open_calls_has(tid);

	return call ? call : cw_driver_wait_since(tid);
}

static void add_threads(const char *entries, long len)
{
	for (long at = 0; at < len;) {
		const struct linux_dirent64 *d = (const void *)(entries + at);
		uint64_t tid;

		at += d->len;
		if (cw_parse_u64(d->name, 1, UINT32_MAX, &tid) == 0 &&
		    !cw_helper_threads_has((uint32_t)tid) && others.n < MAX_THREADS)
			others.tids[others.n++] = (uint32_t)tid;
	}
}

/* Without opendir(): it allocates, and the allocator has locks. */
static bool list_threads(void)
{
	static uint64_t entries[512]; /* aligned */
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n = -1;

	others.n = 0;
	if (fd < 0)
		return false;
	while ((n = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
		add_threads((const char *)entries, n);
	(void)close(fd);
	cw_open_calls_step();
	for (unsigned i = 0; i < others.n; i++) {
		others.still_in[i] = holds_still(others.tids[i]);
		others.cpu_ns[i] = cpu_ns(others.tids[i]);
	}
	return n == 0;
}

/* What they have used since; one that has ended did not walk through anything by itself. */
static uint64_t used_ns(void)
{
	uint64_t sum = 0;

	cw_open_calls_step();
	for (unsigned i = 0; i < others.n; i++) {
		uint64_t now = cpu_ns(others.tids[i]);

		/* The same as before: its frames have held still. */
		if (others.still_in[i] && others.still_in[i] == holds_still(others.tids[i]))
			continue;
		if (now != UINT64_MAX && now > others.cpu_ns[i])
			sum += now - others.cpu_ns[i];
	}
	return sum;
}

/*
 * The walker reads what running Python code changes, and has crashed interpreters that were not
 * standing still, shutting down among them. The daemon asks only after two quiet seconds; this is
 * the second line. Threads of NCCL and the driver run no Python code: they may poll, and so may
 * those of the program that are inside of either.
 */
static bool is_quiet(void (*idle)(void))
{
	const struct timespec slice = { .tv_nsec = IDLE_WAIT_NS };

	if (cpu_ns(main_tid) == UINT64_MAX || !list_threads())
		return false;
	(void)futex(&answered, FUTEX_WAIT, atomic_load(&answered), &slice);
	idle();
	return used_ns() < QUIET_CPU_NS && (holds_still(main_tid) || !is_on_cpu(main_tid));
}

/* fd: of the text, open in this thread. */
static enum cw_python_status dump(int fd, void (*idle)(void))
{
	unsigned number;

	if (ftruncate(fd, 0) < 0)
		return CW_PYTHON_FAILED;
	number = atomic_load(&asked) + 1;
	atomic_store(&asked, number);
	(void)futex(&asked, FUTEX_WAKE, 1, NULL);
	if (!wait_for(number, idle)) {
		atomic_store(&state, ARM_BROKEN); /* that thread is stuck in the walker */
		return CW_PYTHON_FAILED;
	}
	return read_text(fd);
}

enum cw_python_status cw_python_stacks(const char **ret_text, void (*idle)(void))
{
	int now = atomic_load(&state), fd;
	enum cw_python_status status;

	if (now == ARM_NOT_PYTHON)
		return CW_PYTHON_NOT_PYTHON;
	if (now != ARM_DONE || !is_alive() || !is_handler_there())
		return CW_PYTHON_NOT_ARMED;
	if (!is_quiet(idle) || !is_alive() || !is_handler_there()) {
		*ret_text = "the interpreter is running";
		return CW_PYTHON_FAILED;
	}
	/* faulthandler writes to the number, whatever it is by now. */
	fd = cw_fd_reopen(text_fd, &text_id, O_RDWR);
	if (fd < 0)
		return CW_PYTHON_NOT_ARMED;
	/* Written by the interpreter, and read here. */
	cw_record_io_begin(2 * (uint64_t)CW_PYTHON_TEXT_MAX);
	status = dump(fd, idle);
	cw_record_io_end(2 * (uint64_t)CW_PYTHON_TEXT_MAX);
	cw_fd_release(fd);
	if (status == CW_PYTHON_OK)
		*ret_text = text;
	return status;
}
