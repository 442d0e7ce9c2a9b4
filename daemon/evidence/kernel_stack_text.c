/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of kernel_threads.h that need no BPF. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/evidence/evidence_text.h"
#include "daemon/kernel/kernel_threads.h"

#define MAX_SYMBOL_BYTES 64u

/*
 * True for entry code of the kernel. All threads in the kernel have it, so it says nothing about
 * this one.
 */
static bool is_entry(const char *name, size_t len)
{
	static const char *const names[] = {
		"do_syscall_64",        "entry_SYSCALL_64_after_hwframe",
		"x64_sys_call",         "el0t_64_sync",
		"el0t_64_sync_handler", "el0_svc",
		"do_el0_svc",           "invoke_syscall",
		"el0_svc_common",       "ret_from_fork",
		"ret_from_fork_asm"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && memcmp(name, names[i], len) == 0)
			return true;
	return false;
}

json_t *cw_kernel_stack_parse(const char *text, size_t len)
{
	json_t *frames = json_array();

	while (frames && len > 0 && json_array_size(frames) < CW_KERNEL_STACK_MAX_FRAMES) {
		const char *newline = memchr(text, '\n', len);
		size_t line = newline ? (size_t)(newline - text) : len, n;
		const char *name = text, *space = memchr(text, ' ', line);

		if (line > 0 && *text == '[' && space) /* skip the "[<0>] " of /proc */
			name = space + 1;
		n = (size_t)(text + line - name);
		for (size_t i = 0; i < n; i++)
			if (name[i] == '+' || name[i] == ' ')
				n = i;
		if (n > 0 && !is_entry(name, n))
			(void)json_array_append_new(frames,
						    cw_evidence_text(name, n, MAX_SYMBOL_BYTES));
		line += newline ? 1 : 0;
		text += line;
		len -= line;
	}
	if (json_array_size(frames) > 0)
		return frames;
	json_decref(frames);
	return NULL;
}

json_t *cw_kernel_threads_find(const char *text, pid_t tid, int64_t *ret_off_cpu_ns)
{
	const char *at = text, *end;
	char head[32];
	uint64_t ns;
	int used;

	*ret_off_cpu_ns = -1;
	(void)snprintf(head, sizeof(head), "thread %d ", (int)tid);
	while (at && strncmp(at, head, strlen(head)) != 0) {
		at = strstr(at, "\nthread ");
		at = at ? at + 1 : NULL;
	}
	if (!at || sscanf(at + strlen(head), "%" SCNu64 " %*u%n", &ns, &used) != 1)
		return NULL;
	if (ns > 0 && ns <= INT64_MAX)
		*ret_off_cpu_ns = (int64_t)ns;
	at = strchr(at, '\n');
	if (!at)
		return NULL;
	at++;
	if (strncmp(at, "thread ", 7) == 0)
		return NULL;
	end = strstr(at, "\nthread ");
	return cw_kernel_stack_parse(at, end ? (size_t)(end - at) : strlen(at));
}
