/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Shows where in the kernel the threads of one process sleep, and how long they have not run. Each
 * read makes one pass over the threads. We attach to no hook, so other processes cost nothing.
 *
 * The output has a line "thread TID OFF_CPU_NS STATE" for each thread. One line per frame of the
 * thread's kernel stack follows, innermost first, "symbol+0x1a/0x200 [module]". The kernel itself
 * writes the symbols, so the daemon needs no right to read /proc/kallsyms.
 */
#include "bpf/pids.h"

#include <bpf/bpf_tracing.h>

/* The kernel offers several helpers only to programs under the GPL. */
char program_license[] SEC("license") = "GPL";

#define MAX_FRAMES 24

/*
 * The process whose threads we dump; 0 = the kernel iterates only over the threads of that process.
 * Kernels before 6.1 iterate over all threads of the machine. The daemon then sets this pid before
 * each read.
 */
uint32_t wanted_pid;

static uint32_t state_of(struct task_struct *task)
{
	struct task_struct___v513 *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return (uint32_t)BPF_CORE_READ(old, state);
}

/*
 * Returns how long the thread has not run, in ns. The scheduler notes when a thread last got a CPU,
 * and how long it then ran. Both times are on the scheduler's own clock, which we cannot read. Our
 * "now" is therefore the time when the reader itself last got a CPU, a moment ago.
 */
static uint64_t off_cpu_ns(struct task_struct *task)
{
	struct task_struct *reader = (struct task_struct *)bpf_get_current_task();
	uint64_t now, since, ran;

	if (!bpf_core_field_exists(task->sched_info.last_arrival))
		return 0;
	now = BPF_CORE_READ(reader, sched_info.last_arrival);
	since = BPF_CORE_READ(task, sched_info.last_arrival);
	ran = BPF_CORE_READ(task, se.sum_exec_runtime) -
	      BPF_CORE_READ(task, se.prev_sum_exec_runtime);
	return since && now > since + ran ? now - since - ran : 0;
}

SEC("iter/task")
int dump_thread(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	uint64_t frames[MAX_FRAMES] = {};
	uint32_t state, tid;
	long n;

	if (!task || (wanted_pid && pid_of(task) != wanted_pid))
		return 0;
	state = state_of(task);
	tid = own_pid_ns ? own_number(BPF_CORE_READ(task, thread_pid))
			 : (uint32_t)BPF_CORE_READ(task, pid);
	BPF_SEQ_PRINTF(seq, "thread %u %llu %u\n", tid, state ? off_cpu_ns(task) : 0, state);
	if (!state) /* the thread runs, so its stack changes while we read */
		return 0;
	n = bpf_get_task_stack(task, frames, sizeof(frames), 0);
	for (int i = 0; i < MAX_FRAMES; i++) {
		if (n <= (long)(i * sizeof(frames[0])) || !frames[i])
			break;
		BPF_SEQ_PRINTF(seq, "%pB\n", (void *)frames[i]);
	}
	return 0;
}
