/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/cgroup.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"

/* Room for cgroup.events, which has two lines, or freezer.state, which has one word. */
#define STATE_BYTES 128

/* True if the controller is in the comma-separated list. */
static bool has_controller(const char *list, const char *controller)
{
	size_t len = strlen(controller);

	for (const char *name = list; name; name = strchr(name, ',')) {
		name += *name == ',';
		if (strncmp(name, controller, len) == 0 && (name[len] == '\0' || name[len] == ','))
			return true;
	}
	return false;
}

static int open_unified(const char *group, const char *file)
{
	char path[PATH_MAX + 64];
	int fd;

	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/unified%s/%s", group, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/*
 * Opens a file in the group that one line of /proc/PID/cgroup names. The line is "0::/path" in
 * version 2, and "4:memory:/path" in version 1.
 */
static int open_of_line(char *line, const char *controller, const char *file)
{
	char path[PATH_MAX + 64], *controllers = strchr(line, ':'), *group;

	group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!group)
		return -1;
	*controllers++ = *group++ = '\0';
	if (*group != '/' || strstr(group, "/.."))
		return -1; /* the group is outside our cgroup namespace */
	if (strcmp(line, "0") == 0)
		return controller ? -1 : open_unified(group, file);
	if (!controller || !has_controller(controllers, controller))
		return -1;
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%s%s/%s", controller, group, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Reads /proc/PID/cgroup. Returns false if the file is empty or unreadable. */
static bool read_groups(int proc_fd, char *buf, size_t size)
{
	_cleanup_(closep) int fd = openat(proc_fd, "cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (n <= 0)
		return false;
	buf[n] = '\0';
	return true;
}

static int open_in(const char *groups, const char *controller, const char *file)
{
	char copy[PATH_MAX], *line = copy, *end;
	int found = -1;

	(void)snprintf(copy, sizeof(copy), "%s", groups);
	/* Ignore a last line without '\n', because its path may be cut. */
	for (; found < 0 && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		found = open_of_line(line, controller, file);
	}
	return found;
}

int cw_cgroup_open(int proc_fd, const char *controller, const char *file)
{
	char groups[PATH_MAX];

	return read_groups(proc_fd, groups, sizeof(groups)) ? open_in(groups, controller, file)
							    : -1;
}

/* True if one line of the file equals `wanted`. */
static bool says(const char *groups, const char *controller, const char *file, const char *wanted)
{
	_cleanup_(closep) int fd = open_in(groups, controller, file);
	char buf[STATE_BYTES], *save, *line;
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);

	if (n <= 0)
		return false;
	buf[n] = '\0';
	for (line = strtok_r(buf, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strcmp(line, wanted) == 0)
			return true;
	return false;
}

/* Copies the path of the group that open_in() opens for this controller. */
static void copy_group(const char *groups, const char *controller, char *buf, size_t len)
{
	char copy[PATH_MAX], *line = copy, *end;

	(void)snprintf(copy, sizeof(copy), "%s", groups);
	for (; (end = strchr(line, '\n')); line = end + 1) {
		char *controllers = strchr(line, ':'), *group;

		*end = '\0';
		group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group)
			continue;
		*controllers++ = *group++ = '\0';
		if (controller ? has_controller(controllers, controller) : strcmp(line, "0") == 0) {
			(void)snprintf(buf, len, "%s", group);
			return;
		}
	}
}

/*
 * Finds the frozen group. *ret_controller: its controller; NULL = it is the group of version 2.
 * Returns false if no group is frozen.
 */
static bool find_frozen(const char *groups, const char **ret_controller)
{
	*ret_controller = says(groups, NULL, "cgroup.events", "frozen 1") ? NULL : "freezer";
	return !*ret_controller || says(groups, *ret_controller, "freezer.state", "FROZEN");
}

bool cw_cgroup_is_frozen(int proc_fd)
{
	char groups[PATH_MAX];
	const char *controller;

	return read_groups(proc_fd, groups, sizeof(groups)) && find_frozen(groups, &controller);
}

bool cw_cgroup_frozen(int proc_fd, char *ret_group, size_t len)
{
	char groups[PATH_MAX], group[PATH_MAX] = "";
	const char *controller;

	if (!read_groups(proc_fd, groups, sizeof(groups)) || !find_frozen(groups, &controller))
		return false;
	copy_group(groups, controller, group, sizeof(group));
	for (char *c = group; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	(void)snprintf(ret_group, len, "%s", group);
	return true;
}
