/* SPDX-License-Identifier: Apache-2.0 */
#include "python/reader/python_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/parse.h"

/* Limit of the maps file. 16 MiB are more than a hundred thousand mappings. */
#define MAX_MAPS_BYTES (16u << 20)
/*
 * We search at most this many files. Files with the name of an interpreter come first, so we rarely
 * miss the interpreter.
 */
#define MAX_FILES 1024u
/*
 * We list at most this many of the process's threads. A rank has a few hundred. Stacks of further
 * threads lack the kernel's name and state.
 */
#define MAX_TASKS 1024u

struct cw_python_process {
	int memory_fd;
	const struct cw_python_memory *memory; /* NULL = memory_fd has the memory */
	cw_python_may_read_fn may_read;
	void *may_read_user;
	uint64_t bases[MAX_FILES]; /* addresses of program files, likely interpreters first */
	size_t n_bases;
	struct cw_python_task tasks[MAX_TASKS];
	size_t n_tasks;
};

/* ---- files of /proc ---- */

/* Reads a small file below dir_fd as a string. Returns its length; -1 on an error. */
static ssize_t read_small(int dir_fd, const char *name, char *text, size_t size)
{
	_cleanup_(closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (n >= 0)
		text[n] = '\0';
	return n;
}

/*
 * Reads the maps file below dir_fd as a string. The kernel returns only a part of the file per
 * read.
 */
static char *read_maps(int dir_fd, size_t *ret_len)
{
	_cleanup_(closep) int fd = openat(dir_fd, "maps", O_RDONLY | O_CLOEXEC);
	size_t size = 1u << 16, used = 0;
	_cleanup_(freep) char *text = malloc(size);
	ssize_t n = 0;

	if (fd < 0 || !text)
		return NULL;
	while ((n = read(fd, text + used, size - 1 - used)) > 0) {
		used += (size_t)n;
		if (used == size - 1 && size < MAX_MAPS_BYTES) {
			char *larger = realloc(text, size * 2);

			if (!larger)
				return NULL;
			text = larger;
			size *= 2;
		} else if (used == size - 1) {
			break;
		}
	}
	if (n < 0)
		return NULL;
	text[used] = '\0';
	*ret_len = used;
	return steal_ptr(&text);
}

/* ---- program files ---- */

static const char *skip_field(const char *at, const char *end)
{
	while (at < end && *at != ' ')
		at++;
	while (at < end && *at == ' ')
		at++;
	return at;
}

/*
 * Parses a line "start-end perms offset major:minor inode   path" of proc(5). Returns the path;
 * NULL if the line does not map the beginning of a file.
 */
static const char *parse_line(const char *line, const char *end, uint64_t *ret_start)
{
	const char *at = line;
	uint64_t offset;

	if (cw_parse_digits(&at, 16, ret_start) < 0)
		return NULL;
	at = skip_field(skip_field(at, end), end);
	if (cw_parse_digits(&at, 16, &offset) < 0 || offset)
		return NULL;
	at = skip_field(skip_field(skip_field(at, end), end), end);
	return at < end && *at == '/' ? at : NULL;
}

static bool is_likely(const char *path, const char *end)
{
	const char *name = (const char *)memrchr(path, '/', (size_t)(end - path)) + 1;
	size_t len = (size_t)(end - name);

	return (len > 6 && memcmp(name, "python", 6) == 0) ||
	       (len > 9 && memcmp(name, "libpython", 9) == 0);
}

/*
 * Adds the files of one pass. The first pass adds files with the name of an interpreter, and the
 * second adds all others. The interpreter thereby comes before some hundred libraries.
 */
static void add_files(struct cw_python_process *p, const char *text, size_t len, bool are_likely)
{
	const char *end = text + len, *next;

	for (const char *line = text; line < end && p->n_bases < MAX_FILES; line = next + 1) {
		const char *path;
		uint64_t start;

		next = memchr(line, '\n', (size_t)(end - line));
		if (!next)
			return;
		path = parse_line(line, next, &start);
		if (path && is_likely(path, next) == are_likely)
			p->bases[p->n_bases++] = start;
	}
}

/* ---- threads ---- */

/*
 * Returns the address of the futex that the thread waits for, from the text of the thread's syscall
 * file; 0 = it waits for none.
 */
static uint64_t futex_of(const char *text)
{
	const char *at = text, *end = text + strlen(text);
	uint64_t number, address;

	if (cw_parse_digits(&at, 10, &number) < 0 || number != SYS_futex || at + 3 >= end ||
	    memcmp(at, " 0x", 3) != 0)
		return 0;
	at += 3;
	return cw_parse_digits(&at, 16, &address) == 0 ? address : 0;
}

/*
 * Returns the thread's number in its own pid namespace: the last number in the line "NSpid:" of the
 * status file; 0 = none.
 */
static int32_t inner_of(const char *status)
{
	const char *at = strstr(status, "\nNSpid:");
	const char *end = at ? strchr(at + 1, '\n') : NULL;
	uint64_t number;

	if (!end)
		return 0;
	while (end > at && end[-1] >= '0' && end[-1] <= '9')
		end--;
	return cw_parse_digits(&end, 10, &number) == 0 && number <= INT32_MAX ? (int32_t)number : 0;
}

static int32_t read_inner(int dir_fd, const char *name)
{
	char status[4096];

	return read_small(dir_fd, name, status, sizeof(status)) < 0 ? 0 : inner_of(status);
}

static void add_task(struct cw_python_process *p, int tasks_fd, int32_t tid, bool is_inner_same)
{
	struct cw_python_task *task = &p->tasks[p->n_tasks];
	char name[64], text[256];
	ssize_t n;

	*task = (struct cw_python_task){ .tid = tid, .inner_tid = tid };
	if (!is_inner_same) {
		(void)snprintf(name, sizeof(name), "%d/status", tid);
		task->inner_tid = read_inner(tasks_fd, name);
	}
	(void)snprintf(name, sizeof(name), "%d/syscall", tid);
	if (read_small(tasks_fd, name, text, sizeof(text)) > 0)
		task->futex = futex_of(text);
	(void)snprintf(name, sizeof(name), "%d/schedstat", tid);
	if (read_small(tasks_fd, name, text, sizeof(text)) > 0) {
		const char *at = text;

		if (cw_parse_digits(&at, 10, &task->run_ns) < 0)
			task->run_ns = 0;
	}
	(void)snprintf(name, sizeof(name), "%d/comm", tid);
	n = read_small(tasks_fd, name, task->name, sizeof(task->name));
	if (n < 0)
		return; /* the thread has ended */
	if (n > 0 && task->name[n - 1] == '\n')
		task->name[n - 1] = '\0';
	p->n_tasks++;
}

static int list_tasks(struct cw_python_process *p, int proc_fd, pid_t pid)
{
	bool is_inner_same = read_inner(proc_fd, "status") == pid;
	int fd = openat(proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint64_t tid;

	if (!dir) {
		int r = -errno;

		if (fd >= 0)
			(void)close(fd);
		return r;
	}
	while (p->n_tasks < MAX_TASKS && (entry = readdir(dir)))
		if (cw_parse_u64(entry->d_name, 1, INT32_MAX, &tid) == 0)
			add_task(p, fd, (int32_t)tid, is_inner_same);
	(void)closedir(dir);
	return p->n_tasks ? 0 : -ESRCH;
}

/* ---- the process ---- */

static int open_process(struct cw_python_process *p, pid_t pid)
{
	_cleanup_(closep) int proc_fd = -1;
	_cleanup_(freep) char *maps = NULL;
	char path[32];
	size_t len;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0)
		return -errno;
	p->memory_fd = openat(proc_fd, "mem", O_RDONLY | O_CLOEXEC);
	if (p->memory_fd < 0)
		return -errno;
	maps = read_maps(proc_fd, &len);
	if (!maps)
		return -errno;
	if (!len)
		return -ESRCH; /* a zombie has no memory */
	add_files(p, maps, len, true);
	add_files(p, maps, len, false);
	return list_tasks(p, proc_fd, pid);
}

int cw_python_process_open(pid_t pid, struct cw_python_process **ret)
{
	struct cw_python_process *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->memory_fd = -1;
	r = open_process(p, pid);
	if (r < 0) {
		(void)cw_python_process_free(p); /* always NULL */
		return r;
	}
	*ret = p;
	return 0;
}

int cw_python_process_of(const struct cw_python_memory *memory, const uint64_t *bases,
			 size_t n_bases, const struct cw_python_task *tasks, size_t n_tasks,
			 struct cw_python_process **ret)
{
	struct cw_python_process *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->memory_fd = -1;
	p->memory = memory;
	p->n_bases = n_bases < MAX_FILES ? n_bases : MAX_FILES;
	p->n_tasks = n_tasks < MAX_TASKS ? n_tasks : MAX_TASKS;
	memcpy(p->bases, bases, p->n_bases * sizeof(*bases));
	memcpy(p->tasks, tasks, p->n_tasks * sizeof(*tasks));
	*ret = p;
	return 0;
}

struct cw_python_process *cw_python_process_free(struct cw_python_process *p)
{
	if (!p)
		return NULL;
	closep(&p->memory_fd);
	free(p);
	return NULL;
}

void cw_python_process_limit(struct cw_python_process *p, cw_python_may_read_fn may_read,
			     void *user)
{
	p->may_read = may_read;
	p->may_read_user = user;
}

static bool read_memory(void *user, uint64_t from, void *to, size_t len)
{
	struct cw_python_process *p = user;

	if (p->may_read && !p->may_read(p->may_read_user, from, len))
		return false;
	/* An address in the upper half is a negative offset, which pread() refuses. */
	return pread(p->memory_fd, to, len, (off_t)from) == (ssize_t)len;
}

enum cw_python_result cw_python_process_read(struct cw_python_process *p, cw_python_thread_fn fn,
					     void *user, struct cw_python_read_summary *ret)
{
	struct cw_python_memory own = { .read = read_memory, .user = p };
	const struct cw_python_memory *memory = p->memory ? p->memory : &own;
	struct cw_python_runtime runtime;
	struct cw_python_read_config config = {
		.memory = memory,
		.runtime = &runtime,
		.tasks = p->tasks,
		.n_tasks = p->n_tasks,
		.fn = fn,
		.user = user,
	};
	enum cw_python_result result;

	*ret = (struct cw_python_read_summary){ 0 };
	result = cw_python_runtime_find(memory, p->bases, p->n_bases, &runtime);
	return result == CW_PYTHON_READ ? cw_python_read_threads(&config, ret) : result;
}
