/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/evidence_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "daemon/kernel/kernel_threads.h"

#define MAX_REASON_BYTES 256u
#define MAX_SYMBOL_BYTES 64u
#define ELLIPSIS "\xe2\x80\xa6"

/* Returns the length of the printable UTF-8 character at text[0..len). 0 = there is none. */
static size_t printable(const unsigned char *text, size_t len)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = text[0] < 0x80   ? 1
		   : text[0] < 0xc0 ? 0
		   : text[0] < 0xe0 ? 2
		   : text[0] < 0xf0 ? 3
				    : 4;
	uint32_t c;

	if (n == 1)
		return text[0] >= 0x20 && text[0] != 0x7f;
	if (n == 0 || n > len || text[0] > 0xf4)
		return 0;
	c = text[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (text[i] & 0x3f);
	}
	/*
	 * Refuse overlong forms, surrogates, values beyond Unicode, C1 controls, and bidirectional
	 * overrides.
	 */
	if (c < smallest[n] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff || c < 0xa0 ||
	    (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
		return 0;
	return n;
}

json_t *cw_evidence_text(const char *text, size_t len, size_t max_bytes)
{
	_cleanup_(freep) char *buf = malloc(max_bytes + sizeof(ELLIPSIS));
	size_t used = 0, i = 0;

	if (!buf)
		return NULL;
	while (i < len) {
		size_t n = printable((const unsigned char *)text + i, len - i);
		size_t out = n ? n : 1;

		if (used + out > max_bytes) {
			/* Make room for the ellipsis, without cutting a character. */
			while (used > 0 && (used + 3 > max_bytes || (buf[used] & 0xc0) == 0x80))
				used--;
			memcpy(buf + used, ELLIPSIS, 3);
			used += 3;
			break;
		}
		if (n)
			memcpy(buf + used, text + i, n);
		else
			buf[used] = '?';
		used += out;
		buf[used] = '\0';
		i += out;
	}
	return json_stringn(buf, used);
}

json_t *cw_evidence_text_or_null(const char *text, size_t max_bytes)
{
	return text ? cw_evidence_text(text, strlen(text), max_bytes) : json_null();
}

json_t *cw_evidence_clean(const json_t *value, size_t max_bytes)
{
	if (!json_is_string(value))
		return json_null();
	return cw_evidence_text(json_string_value(value), json_string_length(value), max_bytes);
}

json_t *cw_evidence_part(const char *status, const char *reason)
{
	return json_pack("{s:s, s:o, s:[]}", "status", status, "reason",
			 cw_evidence_text(reason, strlen(reason), MAX_REASON_BYTES), "threads");
}

/* ---- functions of kernel_threads.h that need no BPF ---- */

/*
 * True for the entry code of the kernel. Each thread in the kernel has it on its stack, so we omit
 * it.
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

		if (line > 0 && *text == '[' && space) /* skip the "[<0>] " that /proc prints */
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
