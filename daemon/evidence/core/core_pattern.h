/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the kernel puts a core file: the pattern of core(5) in /proc/sys/kernel/core_pattern. We
 * know some parts of a name (the pid) and not others (the time, the thread). An unknown part of the
 * file's name fits any text; the content of the file then decides. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum cw_core_pattern_kind {
	CW_CORE_FILE,    /* the kernel writes a file into a directory that we know */
	CW_CORE_SYSTEMD, /* systemd-coredump gets the core */
	CW_CORE_PROGRAM, /* another program gets the core */
	CW_CORE_NONE,    /* the kernel writes no core file */
	CW_CORE_UNKNOWN, /* a file in a directory whose name we do not know */
};

/* The facts about the process that a pattern may contain. */
struct cw_core_subject {
	pid_t pid;     /* as the daemon sees it */
	pid_t own_pid; /* in the process's own pid namespace */
	uid_t uid;
	gid_t gid;
	const char *cwd;  /* working directory; "" = unknown */
	const char *host; /* name of the host */
};

#define CW_CORE_NAME_MAX 256u

/*
 * Expands a pattern. uses_pid: the value of core_uses_pid. Fills dir (4096 bytes) and the file's
 * name for CW_CORE_FILE; in the name, '\1' stands for any text.
 */
enum cw_core_pattern_kind cw_core_pattern_expand(const char *pattern, bool uses_pid,
						 const struct cw_core_subject *subject, char *dir,
						 char name[CW_CORE_NAME_MAX]);
/* True if the name of a file fits the expanded name. */
bool cw_core_pattern_fits(const char *name, const char *file);
