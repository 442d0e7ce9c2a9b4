/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We read the facts by pid. At the end we check that the pid still belongs to the same process, and
 * that its user may still see it. If not, we report only public facts, or only the status.
 */
#include "daemon/evidence/procfacts.h"

#include <errno.h>
#include <inttypes.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/evidence/blocked_on.h"
#include "daemon/evidence/evidence_text.h"
#include "daemon/evidence/torch_settings.h"
#include "daemon/kernel/kernel_threads.h"
#include "daemon/kernel/mapped_memory.h"
#include "daemon/kernel/procfs.h"

#define MAX_COMMAND_BYTES 256u
#define MAX_CGROUP_BYTES 256u
#define MAX_CPUS_BYTES 128u
#define MAX_NAME_BYTES 64u
#define MAX_ENVIRONMENT_BYTES (256u << 10)

static double cpu_seconds(const struct cw_procfs_stat *st)
{
	long hz = sysconf(_SC_CLK_TCK);

	return hz > 0 ? (double)(st->user_ticks + st->system_ticks) / (double)hz : 0;
}

static json_t *state_text(char state)
{
	return json_stringn(&state, 1);
}

/* The process that we examine, and the facts about it that we may report. */
struct subject {
	pid_t pid;
	int kernel_program; /* for cw_kernel_threads_read(); -1 = none */
	/* The facts that this program wrote, as text; NULL = not read yet. */
	const char *kernel;
	const struct cw_procfs_view *view; /* NULL = only public facts */
	unsigned max_threads;
	bool is_partial; /* true if we could not read some file */
	/* True if the process's arguments and environment are not on a remote server. */
	bool is_start_local;
};

/*
 * Returns the name of the thread's system call, such as "read" or "futex". If libseccomp does not
 * know its number, returns "syscall-N". If the thread is in no system call, or we cannot know it,
 * returns JSON null.
 */
static json_t *syscall_name(pid_t pid, pid_t tid, bool *is_partial)
{
	char text[256], number[32];
	struct cw_procfs_syscall sc;
	ssize_t n = cw_procfs_read_task(pid, tid, "syscall", text, sizeof(text));
	char *name;
	json_t *json;

	if (n < 0)
		*is_partial = true;
	if (n < 0 || cw_procfs_parse_syscall(text, &sc) != 0 || sc.number < 0)
		return json_null();
	name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)sc.number);
	(void)snprintf(number, sizeof(number), "syscall-%" PRId64, sc.number);
	json = cw_evidence_text_or_null(name ? name : number, MAX_NAME_BYTES);
	free(name);
	return json;
}

/*
 * Returns the kernel function in which the thread waits, or JSON null. The kernel shows "0" if the
 * thread does not wait, but also if we lack the right to see it.
 */
static json_t *wchan_name(pid_t pid, pid_t tid)
{
	char text[128];
	ssize_t n = cw_procfs_read_task(pid, tid, "wchan", text, sizeof(text));

	if (n <= 0 || strcmp(text, "0") == 0)
		return json_null();
	return cw_evidence_text_or_null(text, MAX_NAME_BYTES);
}

static json_t *or_null(json_t *value)
{
	return value ? value : json_null();
}

/*
 * Returns the kernel stack that BPF has read. Without BPF we read it from /proc, but only if the
 * thread hangs in the kernel. This needs more rights.
 */
static json_t *kernel_stack(pid_t pid, pid_t tid, char state, const char *kernel,
			    int64_t *ret_off_cpu_ns)
{
	json_t *stack = cw_kernel_threads_find(kernel, tid, ret_off_cpu_ns);
	char text[4096];
	ssize_t n;

	if (stack || state != 'D')
		return stack;
	n = cw_procfs_read_task(pid, tid, "stack", text, sizeof(text));
	return n > 0 ? cw_kernel_stack_parse(text, (size_t)n) : NULL;
}

/* Returns the public facts of a thread, from stat. Use this if its user may not see the thread. */
static json_t *public_facts(pid_t tid, const struct cw_procfs_stat *st)
{
	return json_pack("{s:i, s:o, s:o, s:n, s:n, s:f, s:n, s:n, s:n}", "tid", (int)tid, "name",
			 cw_evidence_text_or_null(st->name, MAX_NAME_BYTES), "state",
			 state_text(st->state), "wchan", "syscall", "cpu_s", cpu_seconds(st),
			 "off_cpu_s", "kernel_stack", "waits_for");
}

static json_t *thread_facts(struct subject *s, pid_t tid)
{
	struct cw_procfs_stat st;
	int64_t off_cpu_ns;
	pid_t pid = s->pid;
	json_t *stack;

	if (cw_procfs_stat(pid, tid, &st) < 0)
		return NULL; /* the thread has ended */
	if (!s->view || !cw_procfs_may_see(s->view->proc_fd, tid, s->view->uid)) {
		s->is_partial = true;
		return public_facts(tid, &st);
	}
	stack = kernel_stack(pid, tid, st.state, s->kernel, &off_cpu_ns);
	/*
	 * Keep the kernel stack only for the main thread and for threads in state D. Hundreds of
	 * other threads are idle helpers, and for them wchan is enough.
	 */
	if (tid != pid && st.state != 'D') {
		json_decref(stack);
		stack = NULL;
	}
	return json_pack(
		"{s:i, s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:o}", "tid", (int)tid, "name",
		cw_evidence_text_or_null(st.name, MAX_NAME_BYTES), "state", state_text(st.state),
		"wchan", wchan_name(pid, tid), "syscall", syscall_name(pid, tid, &s->is_partial),
		"cpu_s", cpu_seconds(&st), "off_cpu_s",
		off_cpu_ns < 0 ? json_null() : json_real((double)(off_cpu_ns / 1000000) / 1e3),
		"kernel_stack", or_null(stack), "waits_for",
		st.state == 'D' ? or_null(cw_blocked_on(pid, tid)) : json_null());
}

static json_t *threads_facts(struct subject *s, unsigned *ret_total)
{
	pid_t tids[CW_PROCFS_MAX_THREADS];
	int n = cw_procfs_threads(s->pid, tids, s->max_threads, ret_total);
	json_t *threads = json_array();

	for (int i = 0; i < n; i++) {
		json_t *facts = thread_facts(s, tids[i]);

		if (facts)
			/* If memory runs out, the list lacks this thread. */
			(void)json_array_append_new(threads, facts);
	}
	return threads;
}

/*
 * Returns the arguments with blanks between them. If there are none, as for a kernel thread or a
 * zombie, returns the process's name.
 */
static json_t *command_line(const struct subject *s, const char *name)
{
	char text[MAX_COMMAND_BYTES * 4];
	ssize_t n = s->is_start_local ? cw_procfs_read(s->pid, "cmdline", text, sizeof(text)) : 0;

	if (n <= 0)
		return cw_evidence_text_or_null(name, MAX_NAME_BYTES);
	while (n > 0 && text[n - 1] == '\0')
		n--;
	for (ssize_t i = 0; i < n; i++) {
		if (text[i] == '\0' || text[i] == '\n' || text[i] == '\t')
			text[i] = ' ';
	}
	return cw_evidence_text(text, (size_t)n, MAX_COMMAND_BYTES);
}

/* Returns the number in the line that begins with `key`. JSON null = there is no such line. */
static json_t *number_after(const char *text, const char *key)
{
	const char *line = text;
	int64_t value;

	while (line && *line) {
		if (strncmp(line, key, strlen(key)) == 0 &&
		    sscanf(line + strlen(key), "%" SCNd64, &value) == 1)
			return json_integer(value);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return json_null();
}

/* Returns the text in the line that begins with `key`. JSON null = there is no such line. */
static json_t *text_after(const char *text, const char *key)
{
	const char *line = strstr(text, key), *value;

	if (!line || line == text || line[-1] != '\n')
		return json_null();
	value = line + strlen(key);
	value += strspn(value, "\t ");
	return cw_evidence_text(value, strcspn(value, "\n"), MAX_CPUS_BYTES);
}

/*
 * Returns the path of the process's cgroup: that of version 2 ("0::/…"), or else that of the first
 * line.
 */
static json_t *cgroup_path(pid_t pid)
{
	char text[4096];
	const char *line, *path;

	if (cw_procfs_read(pid, "cgroup", text, sizeof(text)) <= 0)
		return json_null();
	line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	path = strchr(line ? line : text, '/');
	return path ? cw_evidence_text(path, strcspn(path, "\n"), MAX_CGROUP_BYTES) : json_null();
}

/*
 * Extracts the settings from the environment that the process started with. Later changes by the
 * program are not visible.
 */
static json_t *torch_settings(const struct subject *s)
{
	_cleanup_(freep) char *text = s->view ? malloc(MAX_ENVIRONMENT_BYTES) : NULL;
	ssize_t n = text && s->is_start_local
			    ? cw_procfs_read(s->pid, "environ", text, MAX_ENVIRONMENT_BYTES)
			    : -1;

	return n < 0 ? json_null() : cw_torch_settings(text, (size_t)n);
}

static json_t *status_only(const char *status, const char *reason)
{
	return json_pack("{s:s, s:s, s:n, s:n, s:n, s:[]}", "status", status, "reason", reason,
			 "state", "command", "cpu_s", "threads");
}

static json_t *facts_of(struct subject *s, const struct cw_procfs_stat *st)
{
	char status[8192] = "", io[1024] = "";
	unsigned total = 0;
	json_t *threads;
	const char *why;

	s->is_start_local = cw_mapped_memory_has_local_start(s->pid);
	if (cw_procfs_read(s->pid, "status", status, sizeof(status)) < 0 ||
	    (s->view && cw_procfs_read(s->pid, "io", io, sizeof(io)) < 0))
		s->is_partial = true;
	threads = threads_facts(s, &total);
	why = s->view ? "not allowed to read all of /proc" : CW_PROCFS_NOT_VISIBLE;
	return json_pack(
		"{s:s, s:s, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o}", "status",
		s->is_partial ? "partial" : "ok", "reason", s->is_partial ? why : "", "state",
		state_text(st->state), "command", command_line(s, st->name), "cpu_s",
		cpu_seconds(st), "cpus", text_after(status, "Cpus_allowed_list:"), "rss_kib",
		number_after(status, "VmRSS:"), "tracer", number_after(status, "TracerPid:"),
		"read_bytes", number_after(io, "read_bytes:"), "write_bytes",
		number_after(io, "write_bytes:"), "cgroup", cgroup_path(s->pid), "torch_settings",
		torch_settings(s), "thread_count", (int)total, "threads", threads);
}

/*
 * Reads stat, and checks that the pid belongs to the same process. The process may have started
 * another program.
 */
static int read_stat(pid_t pid, uint64_t start_ticks, struct cw_procfs_stat *ret)
{
	int r = cw_procfs_stat(pid, 0, ret);

	return r == 0 && ret->start_ticks != start_ticks ? -ENOENT : r;
}

/*
 * Returns the facts that the user may see. NULL = they may belong to another process, or to a
 * program that the user may not see.
 */
static json_t *facts_for_user(struct subject *s, uint64_t start_ticks, uid_t uid,
			      const struct cw_procfs_stat *st)
{
	_cleanup_(freep) char *text = NULL;
	struct cw_procfs_view view;
	json_t *facts;

	if (cw_procfs_view_open(s->pid, start_ticks, uid, &view) < 0)
		return NULL;
	s->view = &view;
	/* Read now, after the first check and before the last one. */
	text = s->kernel_program < 0 ? NULL : malloc(CW_KERNEL_THREADS_MAX_BYTES);
	if (text && cw_kernel_threads_read(s->kernel_program, s->pid, text,
					   CW_KERNEL_THREADS_MAX_BYTES) > 0)
		s->kernel = text;
	facts = facts_of(s, st);
	if (!cw_procfs_view_holds(&view)) {
		json_decref(facts);
		facts = NULL;
	}
	s->view = NULL;
	cw_procfs_view_close(&view);
	return facts;
}

json_t *cw_procfacts(pid_t pid, uint64_t start_ticks, uid_t uid, int kernel_program,
		     unsigned max_threads)
{
	struct subject for_user = { .pid = pid,
				    .kernel_program = kernel_program,
				    .max_threads = max_threads };
	struct subject for_all = { .pid = pid, .is_partial = true, .max_threads = max_threads };
	struct cw_procfs_stat st;
	json_t *facts = NULL;
	int r = read_stat(pid, start_ticks, &st);

	if (r == 0)
		facts = facts_for_user(&for_user, start_ticks, uid, &st);
	if (r == 0 && !facts) {
		facts = facts_of(&for_all, &st);
		r = read_stat(pid, start_ticks, &st);
		if (r < 0)
			json_decref(facts);
	}
	if (r == -ENOENT)
		return status_only("absent", "the process is gone");
	return r < 0 ? status_only("failed", strerror(-r)) : facts;
}
