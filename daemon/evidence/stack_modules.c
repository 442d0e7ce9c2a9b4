/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/stack_modules.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/kernel/mapped_memory.h"
#include "daemon/kernel/procfs.h"

#define MAX_MAPS_BYTES (16u << 20)
/* Largest vdso that we copy. It has two to four pages on every machine that we know. */
#define MAX_VDSO_BYTES (64u << 10)

/* ---- the list ---- */

struct mapping {
	uint64_t start, end, offset, dev, inode;
	bool is_exec;
	const char *path;
};

/*
 * Parses one line "start-end perms offset major:minor inode   path" of proc(5), which ends in NUL.
 */
static bool parse_line(const char *line, struct mapping *m)
{
	unsigned major, minor;
	char perms[5];
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &m->start,
		   &m->end, perms, &m->offset, &major, &minor, &m->inode, &at) != 7 ||
	    at == 0 || m->end <= m->start)
		return false;
	m->dev = makedev(major, minor);
	m->is_exec = perms[2] == 'x';
	m->path = line + at;
	return true;
}

static struct cw_stack_module *append(struct cw_stack_modules *mods)
{
	struct cw_stack_module *list;

	/* Double the capacity at each power of two, from 64 on. */
	if (mods->n >= 64 ? (mods->n & (mods->n - 1)) == 0 : mods->n == 0) {
		list = realloc(mods->list, (mods->n ? mods->n * 2 : 64) * sizeof(*list));
		if (!list)
			return NULL;
		mods->list = list;
	}
	return &mods->list[mods->n++];
}

static int add_mapping(struct cw_stack_modules *mods, const struct mapping *m)
{
	struct cw_stack_module *last = mods->n ? &mods->list[mods->n - 1] : NULL;
	bool is_vdso = strcmp(m->path, "[vdso]") == 0;

	if (!is_vdso && (m->inode == 0 || m->path[0] != '/'))
		return 0;
	/* If a file is mapped from its start a second time, this is another module (dlmopen). */
	if (!last || is_vdso || last->is_vdso || last->dev != m->dev || last->inode != m->inode ||
	    (m->offset == 0 && last->exec_end)) {
		if (mods->n == CW_STACK_MAX_MODULES) {
			mods->is_cut = true;
			return 0;
		}
		last = append(mods);
		if (!last)
			return -ENOMEM;
		*last = (struct cw_stack_module){ .start = m->start,
						  .first_end = m->end,
						  .dev = m->dev,
						  .inode = m->inode,
						  .is_vdso = is_vdso,
						  .fd = -1,
						  .path = strdup(m->path) };
		if (!last->path) {
			mods->n--;
			return -ENOMEM;
		}
	}
	last->end = m->end;
	if (m->is_exec) {
		if (!last->exec_end)
			last->exec_start = m->start;
		last->exec_end = m->end;
	}
	return 0;
}

int cw_stack_modules_parse(const char *text, size_t len, struct cw_stack_modules *ret)
{
	struct cw_stack_modules mods = { 0 };
	char line[PATH_MAX + 128];
	struct mapping m;
	int r = 0;

	while (r == 0 && len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		(void)snprintf(line, sizeof(line), "%.*s", (int)(n < sizeof(line) ? n : 0), text);
		if (parse_line(line, &m))
			r = add_mapping(&mods, &m);
		n += end ? 1 : 0;
		text += n;
		len -= n;
	}
	if (r < 0) {
		cw_stack_modules_fini(&mods);
		return r;
	}
	*ret = mods;
	return 0;
}

int cw_stack_modules_read(pid_t pid, struct cw_stack_modules *ret)
{
	_cleanup_(freep) char *text = malloc(MAX_MAPS_BYTES);
	ssize_t n;

	if (!text)
		return -ENOMEM;
	n = cw_procfs_read(pid, "maps", text, MAX_MAPS_BYTES);
	return n < 0 ? (int)n : cw_stack_modules_parse(text, (size_t)n, ret);
}

void cw_stack_modules_fini(struct cw_stack_modules *mods)
{
	for (size_t i = 0; i < mods->n; i++) {
		free(mods->list[i].path);
		free(mods->list[i].image);
		closep(&mods->list[i].fd);
	}
	free(mods->list);
	*mods = (struct cw_stack_modules){ 0 };
}

void cw_stack_modules_want(struct cw_stack_modules *mods, uint64_t addr)
{
	size_t low = 0, high = mods->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		struct cw_stack_module *m = &mods->list[mid];

		if (addr < m->start) {
			high = mid;
		} else if (addr >= m->end) {
			low = mid + 1;
		} else {
			/* A return address may be just after the last instruction. */
			if (addr >= m->exec_start && addr <= m->exec_end)
				m->is_wanted = true;
			return;
		}
	}
}

/* ---- the files ---- */

/*
 * Opens a regular file. Checks the type first, because opening a device or a FIFO may have effects.
 * Returns the descriptor; -1 = it is not a regular file.
 */
static int open_regular(const char *path, struct stat *st)
{
	_cleanup_(closep) int probe = open(path, O_PATH | O_CLOEXEC);
	char again[64];

	if (probe < 0 || fstat(probe, st) < 0 || !S_ISREG(st->st_mode))
		return -1;
	(void)snprintf(again, sizeof(again), "/proc/self/fd/%d", probe);
	return open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static int read_fd(void *user, uint64_t offset, void *buf, size_t len)
{
	ssize_t n = pread(*(int *)user, buf, len, (off_t)offset);

	return n == (ssize_t)len ? 0 : -EIO;
}

struct remote {
	pid_t pid;
	uint64_t start;
};

static int read_remote(void *user, uint64_t offset, void *buf, size_t len)
{
	struct remote *r = user;
	struct iovec local = { buf, len };
	struct iovec remote = { (void *)(uintptr_t)(r->start + offset), len };

	return process_vm_readv(r->pid, &local, 1, &remote, 1, 0) == (ssize_t)len ? 0 : -EIO;
}

static bool has_same_build_id(pid_t pid, const struct cw_stack_module *m, int fd)
{
	uint8_t of_file[CW_BUILD_ID_MAX], of_memory[CW_BUILD_ID_MAX];
	struct remote remote = { pid, m->start };
	size_t n = cw_stack_build_id(read_fd, &fd, false, of_file);

	return n > 0 && n == cw_stack_build_id(read_remote, &remote, true, of_memory) &&
	       memcmp(of_file, of_memory, n) == 0;
}

/*
 * Opens a file below the process's root, without following links. A link could lead to a mount that
 * we have not checked.
 */
static int open_of_root(pid_t pid, const char *path, struct stat *st)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS };
	_cleanup_(closep) int root = -1, probe = -1;
	char name[64];

	(void)snprintf(name, sizeof(name), "/proc/%d/root", (int)pid);
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	probe = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (probe < 0 || fstat(probe, st) < 0 || !S_ISREG(st->st_mode))
		return -1;
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", probe);
	return open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static int open_module(pid_t pid, const struct cw_mapped_memory *memory,
		       const struct cw_stack_module *m)
{
	_cleanup_(closep) int fd = -1;
	char path[PATH_MAX + 64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		       m->start, m->first_end);
	fd = open_regular(path, &st);
	if (fd >= 0)
		return steal_fd(&fd);
	if (!cw_mapped_memory_is_local_path(memory, m->path))
		return -1;
	fd = open_of_root(pid, m->path, &st);
	if (fd < 0)
		return -1;
	/*
	 * On overlayfs and btrfs, maps and stat() may show different devices for one file. In this
	 * case the build-id decides.
	 */
	if ((st.st_dev == m->dev && st.st_ino == m->inode) || has_same_build_id(pid, m, fd))
		return steal_fd(&fd);
	return -1;
}

static void copy_vdso(pid_t pid, struct cw_stack_module *m)
{
	struct remote remote = { pid, m->start };
	size_t len = m->end - m->start;

	if (len > MAX_VDSO_BYTES)
		return;
	m->image = malloc(len);
	if (m->image && read_remote(&remote, 0, m->image, len) == 0)
		m->image_len = len;
}

void cw_stack_modules_open(pid_t pid, const struct cw_mapped_memory *memory,
			   struct cw_stack_modules *mods)
{
	for (size_t i = 0; i < mods->n; i++) {
		struct cw_stack_module *m = &mods->list[i];

		if (!m->is_wanted)
			continue;
		m->is_remote = !m->is_vdso && !cw_mapped_memory_is_local(memory, m->dev);
		if (m->is_vdso)
			copy_vdso(pid, m);
		else if (!m->is_remote)
			m->fd = open_module(pid, memory, m);
	}
}
