/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/kernel_bpf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "common/log.h"

/* Inode of the initial pid namespace (PROC_PID_INIT_INO). */
#define INIT_PID_NS 0xEFFFFFFCu

__attribute__((format(printf, 2, 0))) static int on_libbpf(enum libbpf_print_level level,
							   const char *format, va_list ap)
{
	char text[256];
	int n = vsnprintf(text, sizeof(text), format, ap);

	/*
	 * Log all of libbpf's messages as debug, because the verifier writes pages of them as
	 * warnings. Our caller logs the reason that matters.
	 */
	if (n > 0 && level != LIBBPF_DEBUG) {
		text[strcspn(text, "\n")] = '\0';
		log_debug("%s", text);
	}
	return n;
}

const char *cw_kernel_bpf_reason(int r)
{
	switch (-r) {
	case EPERM:
	case EACCES:
		return "not permitted (needs CAP_BPF and CAP_PERFMON)";
	case ESRCH:
	case ENOENT:
	case EOPNOTSUPP:
		return "the kernel lacks a tracepoint or BTF (needs Linux 5.8 with "
		       "CONFIG_DEBUG_INFO_BTF)";
	default:
		return strerror(-r);
	}
}

static int own_pid_ns(uint32_t *ret)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0)
		return -errno;
	*ret = (uint32_t)st.st_ino == INIT_PID_NS ? 0 : (uint32_t)st.st_ino;
	return 0;
}

int cw_kernel_bpf_prepare(uint32_t *ret_pid_ns, struct cw_err *err)
{
	int r;

	/* Returns the previous function, which we do not need. */
	(void)libbpf_set_print(on_libbpf);
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return cw_err_set(err, errno, "the kernel shows no type information (BTF)");
	r = own_pid_ns(ret_pid_ns);
	return r < 0 ? cw_err_set(err, -r, "own pid namespace: %s", strerror(-r)) : 0;
}
