/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pending call, with the GIL, does the setup. It registers faulthandler for a free signal, and
 * starts the only thread that does not block this signal. On a request this thread sends the signal
 * to itself. The handler walks all threads' frames without the GIL and writes text into a memfd.
 *
 * The handler's walk reads data that running code changes, and could crash the interpreter. We
 * therefore request nothing before the process has held still.
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
/*
 * Limit of the CPU time that threads with Python code may use within IDLE_WAIT_NS. If they use
 * more, the process is not waiting.
 */
#define QUIET_CPU_NS 10000000u

enum arm_state { ARM_NOT_TRIED, ARM_TRIED, ARM_NOT_PYTHON, ARM_ASKED, ARM_DONE, ARM_BROKEN };

static atomic_int state;

static struct {
	int (*is_initialized)(void);
	int (*is_finalizing)(void); /* NULL in Python before 3.7 */
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

static uint32_t main_tid; /* kernel id of the interpreter's main thread */
static int signal_number;
static void (*handler)(int); /* faulthandler's signal handler */
static int text_fd = -1;
static struct cw_fd_identity text_id;

/* Counters of requests and answers; both are futexes. */
static atomic_uint asked, answered;

static char text[CW_PYTHON_TEXT_MAX + 1];

static long futex(atomic_uint *word, int op, unsigned value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

/*
 * Returns whether faulthandler's handler is still installed. Without the handler the signal would
 * kill the process.
 */
static bool is_handler_there(void)
{
	struct sigaction sa;

	return sigaction(signal_number, NULL, &sa) == 0 && sa.sa_handler == handler;
}

/* Runs the only thread that does not block the signal, so the signal interrupts no other thread. */
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
		/* The system call returns only after the handler has run. */
		if (is_handler_there())
			(void)syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid),
				      signal_number);
		atomic_store(&answered, seen);
		(void)futex(&answered, FUTEX_WAKE, 1, NULL);
	}
	return NULL;
}

/* Returns the highest unused real-time signal; 0 = none. */
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
	/*
	 * With O_APPEND writes go to the end of the file, even if another descriptor has truncated
	 * it.
	 */
	if (text_fd < 0 || fcntl(text_fd, F_SETFL, O_APPEND) < 0)
		return false;
	return cw_fd_identify(text_fd, &text_id) == 0;
}

/* Calls faulthandler.register(sig, file=fd, all_threads=True, chain=False). */
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

/*
 * Does the setup. The interpreter calls this function, with the GIL, between two instructions of
 * its main thread.
 */
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

/*
 * Finds the interpreter's functions. Returns false if there is no Python, or a Python without a
 * GIL. Threads without a GIL would change the frames during a walk.
 */
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

/*
 * Reads faulthandler's output as a string. We replace bytes beyond ASCII, because after a cut they
 * might not be valid UTF-8.
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

/*
 * Returns the CPU time of another thread in ns. We build the id of its clock as the kernel does
 * (posix-timers.h).
 */
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

/* ---- do any threads run? ---- */

/* Limit of threads, beyond which we ignore them. Ranks have up to a few hundred. */
#define MAX_THREADS 1024u

static struct {
	uint32_t tids[MAX_THREADS];
	uint64_t cpu_ns[MAX_THREADS];
	uint64_t still_in[MAX_THREADS]; /* what holds_still() returned in list_threads() */
	unsigned n;
	/*
	 * The threads that may run Python code, at the time of list_threads(). Only the helper
	 * thread uses this struct.
	 */
} others;

/*
 * Returns a number for the NCCL call that the thread is in, or else for its wait in the driver; 0 =
 * the thread is in neither. The thread may poll in both. While the number stays the same, the
 * thread's frames do not change. The NCCL call takes precedence, because a call of NCCL waits in
 * the driver now and then.
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

/* Lists the threads. We avoid opendir(), because it allocates, and the allocator has locks. */
static bool list_threads(void)
{
	static uint64_t entries[512]; /* an array of uint64_t, so that the entries are aligned */
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

/*
 * Returns the CPU time that the threads have used since list_threads(). We ignore a thread that has
 * ended, because it changes no frames any more.
 */
static uint64_t used_ns(void)
{
	uint64_t sum = 0;

	cw_open_calls_step();
	for (unsigned i = 0; i < others.n; i++) {
		uint64_t now = cpu_ns(others.tids[i]);

		/* If the number is the same as before, the thread's frames have not changed. */
		if (others.still_in[i] && others.still_in[i] == holds_still(others.tids[i]))
			continue;
		if (now != UINT64_MAX && now > others.cpu_ns[i])
			sum += now - others.cpu_ns[i];
	}
	return sum;
}

/*
 * Returns whether the program stands still. The handler's walk reads data that running Python code
 * changes. It has crashed interpreters that did not stand still, also during shutdown. The daemon
 * requests stacks only after two quiet seconds, and this check is the second line of defence.
 * Threads of NCCL and of the driver run no Python code, so they may poll. A thread of the program
 * may poll while it is inside NCCL or the driver.
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

/* Requests the stacks and reads them. fd: the text's descriptor, open in this thread. */
static enum cw_python_status dump(int fd, void (*idle)(void))
{
	unsigned number;

	if (ftruncate(fd, 0) < 0)
		return CW_PYTHON_FAILED;
	number = atomic_load(&asked) + 1;
	atomic_store(&asked, number);
	(void)futex(&asked, FUTEX_WAKE, 1, NULL);
	if (!wait_for(number, idle)) {
		/* The thread is stuck in the walk, so we make no further request. */
		atomic_store(&state, ARM_BROKEN);
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
	/*
	 * faulthandler writes to the number text_fd, even if the program has given the number to
	 * another file. Check before we request anything.
	 */
	fd = cw_fd_reopen(text_fd, &text_id, O_RDWR);
	if (fd < 0)
		return CW_PYTHON_NOT_ARMED;
	/* The interpreter writes the text, and we read the text, so we announce twice its size. */
	cw_record_io_begin(2 * (uint64_t)CW_PYTHON_TEXT_MAX);
	status = dump(fd, idle);
	cw_record_io_end(2 * (uint64_t)CW_PYTHON_TEXT_MAX);
	cw_fd_release(fd);
	if (status == CW_PYTHON_OK)
		*ret_text = text;
	return status;
}
