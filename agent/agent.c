/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/base/features.h"
#include "agent/base/log.h"
#include "agent/cuda/progress.h"
#include "agent/cuda/stop_at.h"
#include "agent/link/link.h"
#include "agent/link/run_socket.h"
#include "agent/ops/graph.h"
#include "agent/python/call_stack.h"
#include "agent/python/interpreter.h"
#include "agent/python/python_stacks.h"
#include "agent/record/clock.h"
#include "agent/record/comms.h"
#include "agent/record/connections.h"
#include "agent/record/helper_threads.h"
#include "agent/record/labels.h"
#include "agent/record/modules.h"
#include "agent/record/open_calls.h"
#include "agent/record/record.h"
#include "agent/record/save.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* Values of start_state. Any other value is -pid: a thread of process pid is starting the agent. */
enum { START_NOT_YET, START_OVER };

static const struct cw_feature features[] = {
	{ .beat = cw_clock_step },
	{ .beat = cw_modules_resolve },
	{ .start = cw_helper_threads_start, .beat = cw_helper_threads_step },
	{ .start = cw_save_start, .beat = cw_save_step },
	{ .comm_forget = cw_connections_forget },
	{ .comm_ready = cw_graph_comm_ready },
	{ .comm_ready = cw_progress_comm_ready, .comm_forget = cw_progress_comm_forget },
	{ .armed = cw_interpreter_note },
	{ .armed = cw_python_arm, .beat = cw_open_calls_step },
	{ .start = cw_call_stacks_start, .armed = cw_call_stacks_arm },
	{ .start = cw_stop_at_start, .armed = cw_stop_at_arm },
};

static atomic_int start_state;

/*
 * Maps a page for the armed byte. The kernel zeroes the page in every child, even after raw clone.
 */
static unsigned char *armed_page(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (madvise(p, page, MADV_WIPEONFORK) < 0) {
		(void)munmap(p, page);
		return NULL;
	}
	return p;
}

/*
 * Reports that the agent has no record. We must not write to the program's output, so the daemon
 * and `collwatch run` tell the user.
 */
static void report_no_record(int error)
{
	cw_link_report_no_record(error);
	cw_run_socket_report(error);
}

static void arm(void)
{
	unsigned char *page;
	int r;

	if (cw_agent_is_disabled())
		return;
	page = armed_page();
	if (!page) {
		cw_log("no fork protection on this kernel: not recording");
		report_no_record(ENOTSUP);
		return;
	}
	r = cw_record_create(cw_call_stacks_wanted());
	if (r < 0) {
		cw_log("no flight record: %s", strerror(-r));
		report_no_record(-r);
		(void)munmap(page, (size_t)sysconf(_SC_PAGESIZE));
		return;
	}
	cw_labels_read(cw_record.header);
	cw_labels_read_variables(cw_record.variables);
	CW_STORE(cw_record.header->created_ns, cw_now_ns());
	cw_log_start();
	cw_features_set(features, sizeof(features) / sizeof(features[0]));
	cw_features_start();
	__atomic_store_n(&cw_record.header->state, 1, __ATOMIC_RELEASE);
	*page = 1;
	__atomic_store_n(&cw_armed, page, __ATOMIC_RELEASE);
	cw_link_start();
	cw_run_socket_report(0);
}

#define START_WAIT_NS 1000000000u

bool cw_agent_start(void)
{
	int state = START_NOT_YET, saved_errno = errno, self;
	uint64_t until;

	if (cw_likely(atomic_load_explicit(&start_state, memory_order_acquire) == START_OVER))
		return cw_agent_is_armed();
	self = -(int)syscall(SYS_getpid);
	if (atomic_compare_exchange_strong(&start_state, &state, self)) {
		arm();
		state = START_OVER;
	}
	/*
	 * Wait for the starting thread only if it is in our process. A child that the program
	 * forked meanwhile lacks that thread. The wait has a limit, because we may be a signal
	 * handler that interrupts the starting thread itself. After the wait we set START_OVER, so
	 * no thread waits twice.
	 */
	until = cw_now_ns() + START_WAIT_NS;
	while (state == self && cw_now_ns() < until) {
		(void)sched_yield();
		state = atomic_load_explicit(&start_state, memory_order_acquire);
	}
	atomic_store_explicit(&start_state, START_OVER, memory_order_release);
	errno = saved_errno;
	return cw_agent_is_armed();
}

/*
 * Programs find this function with dlsym and call it once a step, to see the step number in
 * reports. The function does nothing before the first communicator, or if the agent has no record.
 */
CW_EXPORT void collwatch_mark_step(int64_t step)
{
	if (!cw_agent_is_armed())
		return;
	CW_STORE(cw_record.header->step_mark_ns, cw_now_ns());
	CW_STORE(cw_record.header->step_mark, step);
}

CW_EXPORT bool collwatch_name_comm(const void *comm, const char *name)
{
	int saved_errno = errno;
	bool is_named = cw_agent_is_armed() && comm && name &&
			cw_comm_name((ncclComm_t)(uintptr_t)comm, name);

	errno = saved_errno;
	return is_named;
}

CW_EXPORT void collwatch_set_job_timeout(int64_t timeout_ns)
{
	if (cw_agent_is_armed() && timeout_ns > 0)
		cw_labels_set_job_timeout((uint64_t)timeout_ns);
}
