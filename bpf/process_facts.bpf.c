/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Records the end of each watched process, and the signals that may have caused it.
 *
 * The daemon enters the pids that it watches into a map. Any other process on the machine costs
 * only a lookup in the map per signal and per process exit. We store facts in the process's map
 * entry. The daemon reads them when the pidfd reports the exit. No buffer can therefore overflow,
 * and no event wakes the daemon needlessly.
 *
 * We note a signal when it is sent, because the sender is known only at that time. The daemon
 * decides on the cause when the process has ended, because the exit status contains the signal's
 * number.
 */
#include "bpf/kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/pids.h"
#include "bpf/process_facts.h"

/* The kernel offers several helpers only to programs under the GPL. */
char program_license[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CW_FACTS_MAX_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint32_t);
	__type(value, struct cw_facts_process);
} processes SEC(".maps");

/* Kernel constants, the same on all 64-bit machines that we support. */
enum {
	SIG_HUP = 1,
	SIG_INT = 2,
	SIG_QUIT = 3,
	SIG_KILL = 9,
	SIG_TERM = 15,
	SIG_CHLD = 17,
	SIG_CONT = 18,
	SIG_STOP = 19,
	SIG_TTOU = 22,
	SIG_URG = 23,
	SIG_WINCH = 28,
	SI_USER_CODE = 0,
	SI_QUEUE_CODE = -1,
	SI_TKILL_CODE = -6,
	SIGNAL_WAS_QUEUED = 0, /* TRACE_SIGNAL_DELIVERED */
	IS_GROUP_EXIT = 4,     /* SIGNAL_GROUP_EXIT */
	IS_EXITING = 4,        /* PF_EXITING */
	RSS_FILE = 0,
	RSS_ANON = 1,
	RSS_SHMEM = 3,
};

/*
 * The kernel may pass one of these values in place of a pointer to a signal's siginfo.
 * INFO_OF_USER: the current process sent the signal, as with kill(). INFO_OF_KERNEL: the kernel
 * sent it.
 */
#define INFO_OF_USER 0
#define INFO_OF_KERNEL 1

#define MAX_GROUP_DEPTH 16

/* Returns whether the task is pid 1 of a namespace below the initial one. */
static bool is_container_init(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, signal, pids[PIDTYPE_TGID]);
	unsigned int level;
	struct upid upid;

	if (!pid)
		return false;
	level = BPF_CORE_READ(pid, level);
	return level > 0 && level <= MAX_PID_LEVELS && upid_number(pid, level, &upid) == 0 &&
	       upid.nr == 1;
}

static struct cw_facts_process *find(struct task_struct *task)
{
	uint32_t pid = pid_of(task);

	return pid ? bpf_map_lookup_elem(&processes, &pid) : NULL;
}

/*
 * Between begin_change() and end_change() p->changes is odd. User space discards a copy with an odd
 * or changed number.
 */
static void begin_change(struct cw_facts_process *p)
{
	__sync_fetch_and_add(&p->changes, 1);
}

static void end_change(struct cw_facts_process *p)
{
	__sync_fetch_and_add(&p->changes, 1);
}

/* ---- signals ---- */

static bool is_handled(struct task_struct *task, int sig)
{
	const char *at = (const char *)BPF_CORE_READ(task, sighand);
	void *handler = NULL;

	at += bpf_core_field_offset(struct sighand_struct, action);
	at += (uint32_t)(sig - 1) * bpf_core_type_size(struct k_sigaction);
	/* A failed read leaves handler NULL, so the signal counts as one without a handler. */
	(void)bpf_probe_read_kernel(&handler, sizeof(handler), at);
	return handler != NULL;
}

/* Returns the field that stores this signal; NULL = we ignore the signal. */
static struct cw_facts_signal *place_for(struct cw_facts_process *p, struct task_struct *task,
					 int sig)
{
	if (sig < 1 || sig > 64 || sig == SIG_CHLD || sig == SIG_CONT || sig == SIG_URG ||
	    sig == SIG_WINCH)
		return NULL;
	if (!is_handled(task, sig))
		return sig >= SIG_STOP && sig <= SIG_TTOU ? &p->stop : &p->fatal;
	if (sig == SIG_TERM || sig == SIG_INT || sig == SIG_HUP || sig == SIG_QUIT)
		return &p->asked;
	return NULL;
}

static void note_sender(struct cw_facts_signal *s, struct task_struct *task)
{
	struct task_struct *sender = (struct task_struct *)bpf_get_current_task();

	if (BPF_CORE_READ(sender, tgid) == BPF_CORE_READ(task, tgid))
		s->flags |= CW_FACTS_BY_SELF;
	if (BPF_CORE_READ(sender, flags) & IS_EXITING) {
		s->flags |= CW_FACTS_SENDER_EXITS;
		if (is_container_init(sender))
			s->flags |= CW_FACTS_SENDER_IS_INIT;
	}
	s->sender_pid = pid_of(sender);
	s->sender_uid = (uint32_t)bpf_get_current_uid_gid();
	/* We store the name of the process instead of the name of one of its threads. */
	(void)BPF_CORE_READ_STR_INTO(&s->sender_comm, sender, group_leader, comm);
}

static int64_t rss_pages(struct mm_struct *mm)
{
	struct mm_struct___v61 *old = (void *)mm;

	if (!mm)
		return 0;
	if (bpf_core_field_exists(old->rss_stat.count))
		return BPF_CORE_READ(old, rss_stat.count[RSS_FILE].counter) +
		       BPF_CORE_READ(old, rss_stat.count[RSS_ANON].counter) +
		       BPF_CORE_READ(old, rss_stat.count[RSS_SHMEM].counter);
	return BPF_CORE_READ(mm, rss_stat[RSS_FILE].count) +
	       BPF_CORE_READ(mm, rss_stat[RSS_ANON].count) +
	       BPF_CORE_READ(mm, rss_stat[RSS_SHMEM].count);
}

/*
 * Notes the usage and limit of one of the process's memory cgroups. We choose the cgroup with the
 * least room left, because the process reached that cgroup's limit.
 */
static void note_group(struct cw_facts_process *p, struct task_struct *task)
{
	const char *at = (const char *)BPF_CORE_READ(task, cgroups);
	struct cgroup_subsys_state *css = NULL;
	uint64_t least = UINT64_MAX;
	unsigned int id;

	p->group_usage_pages = p->group_limit_pages = 0;
	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		return;
	id = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
	at += bpf_core_field_offset(struct css_set, subsys) + id * sizeof(css);
	/* A failed read leaves css NULL, so the process counts as one without a memory cgroup. */
	(void)bpf_probe_read_kernel(&css, sizeof(css), at);
	for (int i = 0; i < MAX_GROUP_DEPTH && css; i++) {
		/* css is the first member of struct mem_cgroup */
		struct mem_cgroup *group = (struct mem_cgroup *)css;
		uint64_t limit = BPF_CORE_READ(group, memory.max);
		int64_t usage = BPF_CORE_READ(group, memory.usage.counter);
		uint64_t room;

		css = BPF_CORE_READ(css, parent);
		if (usage < 0 || limit > INT64_MAX / 4096)
			/* No limit: the value is PAGE_COUNTER_MAX for any page size. */
			continue;
		room = (uint64_t)usage < limit ? limit - (uint64_t)usage : 0;
		if (room >= least)
			continue;
		least = room;
		p->group_usage_pages = (uint64_t)usage;
		p->group_limit_pages = limit;
	}
}

SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int sig, struct kernel_siginfo *info, struct task_struct *task, int group,
	     int result)
{
	struct cw_facts_process *p;
	struct cw_facts_signal *s;
	int code = 0;

	if (result != SIGNAL_WAS_QUEUED)
		return 0;
	p = find(task);
	/* Ignore a process that has ended: another process may have its pid by now. */
	if (!p || p->ended_ns)
		return 0;
	s = place_for(p, task, sig);
	if (!s)
		return 0;
	begin_change(p);
	__builtin_memset(s, 0, sizeof(*s));
	s->at_ns = bpf_ktime_get_ns();
	s->sig = sig;
	if ((uint64_t)info > INFO_OF_KERNEL)
		code = BPF_CORE_READ(info, si_code);
	s->code = code;
	if ((uint64_t)info == INFO_OF_KERNEL) {
		s->flags = CW_FACTS_BY_KERNEL;
		if (sig == SIG_KILL) {
			p->rss_pages = rss_pages(BPF_CORE_READ(task, mm));
			note_group(p, task);
		}
		note_sender(s, task); /* the current process is the sender only if it is exiting */
	} else if (code == SI_USER_CODE || code == SI_QUEUE_CODE || code == SI_TKILL_CODE) {
		note_sender(s, task);
	} else {
		/*
		 * The signal comes from a fault, a timer, a terminal or another source in the
		 * kernel.
		 */
		s->flags = CW_FACTS_BY_KERNEL;
	}
	end_change(p);
	return 0;
}

/* ---- ends ---- */

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct signal_struct *signal = task->signal;
	struct cw_facts_process *p;

	if (signal->live.counter != 0)
		return 0; /* only a thread has ended; other threads of the process live */
	p = find(task);
	if (!p || p->ended_ns)
		return 0;
	begin_change(p);
	p->status = signal->flags & IS_GROUP_EXIT ? signal->group_exit_code
						  : task->group_leader->exit_code;
	p->is_oom_victim = signal->oom_mm != NULL;
	p->ended_ns = bpf_ktime_get_ns();
	end_change(p);
	return 0;
}
