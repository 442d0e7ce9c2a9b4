/* SPDX-License-Identifier: Apache-2.0 */
/* Checks ranks in containers: finds mounts that a container needs and does not have. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "common/cleanup.h"

/*
 * True if this process has its own namespaces, as a container has. The initial namespaces of a
 * machine have fixed numbers (include/uapi/linux/nsfs.h; in the kernel since 3.8), and a container
 * has at least one other namespace. A container's mark in the file system proves less: images of
 * virtual machines are made from containers and may still have the mark.
 */
static bool has_own_namespaces(void)
{
	static const struct {
		const char *path;
		ino_t first;
	} of[] = {
		{ "/proc/self/ns/pid", 0xeffffffc },
		{ "/proc/self/ns/uts", 0xeffffffe },
		{ "/proc/self/ns/ipc", 0xefffffff },
		{ "/proc/self/ns/cgroup", 0xeffffffb },
	};
	struct stat st;

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (stat(of[i].path, &st) == 0 && st.st_ino != of[i].first)
			return true;
	return false;
}

bool doctor_is_container(void)
{
	const char *set = getenv("container");              /* podman, LXC, systemd-nspawn */
	bool has_mark = access("/.dockerenv", F_OK) == 0 || /* Docker */
			access("/run/.containerenv", F_OK) == 0;

	return (set && *set) || getenv("KUBERNETES_SERVICE_HOST") ||
	       (has_mark && has_own_namespaces());
}

/*
 * Returns the value that an environment variable had when the process started. The caller releases
 * it with free(). NULL = the variable is unset or unreadable.
 */
static char *variable_of(int32_t pid, const char *name)
{
	size_t size = 0, len = strlen(name);
	char path[64], *entry = NULL, *value = NULL;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	f = fopen(path, "re");
	while (f && !value && getdelim(&entry, &size, '\0', f) >= 0)
		if (!strncmp(entry, name, len) && entry[len] == '=')
			value = strdup(entry + len + 1);
	if (f)
		(void)fclose(f); /* we only read the file */
	free(entry);
	return value;
}

/*
 * True if the path exists in the file system of the process. *ret_known becomes false if we have no
 * right to look.
 */
static bool is_there(int32_t pid, const char *path, mode_t type, bool *ret_known)
{
	char inside[2 * PATH_MAX];
	struct stat st;
	int r;

	(void)snprintf(inside, sizeof(inside), "/proc/%d/root%s", pid, path);
	r = stat(inside, &st);
	*ret_known = r == 0 || errno == ENOENT || errno == ENOTDIR;
	return r == 0 && (st.st_mode & S_IFMT) == type;
}

static void check_socket(struct doctor *d, int32_t pid)
{
	_cleanup_(freep) char *own = variable_of(pid, "COLLWATCH_SOCKET");
	const char *path = own && *own ? own : d->agent_socket;
	bool is_known;
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return; /* the socket is missing outside the container, too */
	if (!is_there(pid, path, S_IFSOCK, &is_known) && is_known)
		doctor_find(d, "socket-not-visible", NULL,
			    "process %d has its own file system, which does not contain the "
			    "agent's socket %s: mount the directory of the socket there (docker "
			    "run -v /run/collwatch:/run/collwatch, or a hostPath volume)",
			    pid, path);
}

/*
 * Checks whether the process sees its agent. If it does not, its loader has printed one line on
 * standard error and has started the program without the agent.
 */
static void check_agent(struct doctor *d, int32_t pid)
{
	_cleanup_(freep) char *list = variable_of(pid, "LD_PRELOAD");
	char *rest = list, *path;
	bool is_known;

	while ((path = strsep(&rest, ": ")))
		if (*path == '/' && strstr(path, "libcollwatch.so") &&
		    !is_there(pid, path, S_IFREG, &is_known) && is_known)
			doctor_find(d, "agent-not-visible", NULL,
				    "process %d is set to preload %s, which is not in its file "
				    "system: mount it there at the same path",
				    pid, path);
}

void doctor_check_mounts(struct doctor *d, int32_t pid)
{
	doctor_checked(d, "mounts");
	check_socket(d, pid);
	check_agent(d, pid);
}
