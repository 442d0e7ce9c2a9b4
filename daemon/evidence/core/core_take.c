/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwinder works on a copy of the stacks. We make this copy from the core file instead of the
 * living process, and let the reader of interpreters read the same file. The kernel leaves out
 * pages that equal a mapped file. We read these from the mapped file, if its build-id is the one in
 * the core file.
 */
#include "daemon/evidence/core/core_take.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json/json_whole.h"
#include "daemon/evidence/core/core_file.h"
#include "daemon/evidence/core/core_pattern.h"
#include "daemon/evidence/evidence_text.h"
#include "daemon/evidence/python_part.h"
#include "daemon/evidence/stack.h"
#include "daemon/evidence/stack_confine.h"
#include "daemon/evidence/stack_modules.h"
#include "daemon/evidence/stack_take.h"
#include "daemon/evidence/unwinder.h"
#include "daemon/kernel/mapped_memory.h"
#include "loop/children.h"
#include "python/reader/python_doc.h"

/* Of several files that fit the pattern, we open the newest ones. */
#define MAX_CANDIDATES 4u
/* We read at most this many names of the directory. */
#define MAX_NAMES 65536u
/* A file that was last written this long before the process's end is an older process's. */
#define OLD_NS (600 * CW_NS_PER_S)
#define MAX_MOUNTINFO (1u << 20)
#define MAX_REASON 256u
/* Room for the line at the end of the native stacks. */
#define END_BYTES 1024u

struct candidate {
	int fd;
	int64_t written_ns;
};

struct take {
	const struct cw_capture_ended *target;
	int out_fd;
	char dir[PATH_MAX], name[CW_CORE_NAME_MAX];
	char *mounts; /* text of our mountinfo; NULL = not readable */
	struct candidate candidates[MAX_CANDIDATES];
	uint32_t n_candidates;
	struct cw_core_file core;
	struct cw_stack_modules modules;
	struct cw_stack_copy *copy;
};

static bool read_text(const char *path, char *text, size_t size)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = 0;

	while (fd >= 0 && used < size - 1 && (n = read(fd, text + used, size - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	return fd >= 0 && n >= 0;
}

static int write_line(int fd, json_t *line)
{
	_cleanup_(freep) char *text = line ? cw_json_write(line, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0, at = 0;

	json_decref(line);
	if (!text)
		return -ENOMEM;
	text[len++] = '\n'; /* replace the NUL at the end */
	while (at < len) {
		ssize_t n = write(fd, text + at, len - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Returns the thread's number for the daemon, which knows the main thread by its own pid. */
static int tid_of(const struct take *t, pid_t tid)
{
	return tid == t->target->own_pid ? t->target->pid : tid;
}

static int write_core(const struct take *t, const char *status, const char *reason)
{
	const struct cw_core_file *core = &t->core;

	return write_line(t->out_fd,
			  json_pack("{s:{s:s, s:s, s:i, s:i}}", "core", "status", status, "reason",
				    reason, "signal", core->signal, "tid",
				    core->n_threads ? tid_of(t, core->threads[0].tid) : 0)) < 0;
}

/* ---- finding the file ---- */

/* Returns a static reason why there is no file; NULL = the directory and the name are set. */
static const char *expand_pattern(struct take *t)
{
	char pattern[256], uses_pid[16], host[256] = "";
	const struct cw_capture_ended *target = t->target;
	struct cw_core_subject subject = { .pid = target->pid,
					   .own_pid = target->own_pid,
					   .uid = target->uid,
					   .gid = target->gid,
					   .cwd = target->cwd,
					   .host = host };

	(void)gethostname(host, sizeof(host) - 1);
	if (!read_text("/proc/sys/kernel/core_pattern", pattern, sizeof(pattern)) ||
	    !read_text("/proc/sys/kernel/core_uses_pid", uses_pid, sizeof(uses_pid)))
		return "the core pattern cannot be read";
	switch (cw_core_pattern_expand(pattern, *uses_pid == '1', &subject, t->dir, t->name)) {
	case CW_CORE_FILE:
		return NULL;
	case CW_CORE_SYSTEMD:
		return "systemd-coredump has the core file: coredumpctl info";
	case CW_CORE_PROGRAM:
		return "the core pattern passes core files to a program";
	case CW_CORE_NONE:
		return "the core pattern is empty, so the kernel writes no core files";
	case CW_CORE_UNKNOWN:
		break;
	}
	return "the directory of its core file is not known";
}

static bool is_local(const struct take *t, const char *path)
{
	return t->mounts && cw_mapped_memory_kind_of_path(t->mounts, path) == CW_MOUNT_LOCAL;
}

/* Keeps the newest files. Owns fd. */
static void add_candidate(struct take *t, int fd, int64_t written_ns)
{
	struct candidate *oldest = &t->candidates[0];

	if (t->n_candidates < MAX_CANDIDATES) {
		t->candidates[t->n_candidates++] = (struct candidate){ fd, written_ns };
		return;
	}
	for (uint32_t i = 1; i < t->n_candidates; i++)
		if (t->candidates[i].written_ns < oldest->written_ns)
			oldest = &t->candidates[i];
	if (oldest->written_ns < written_ns) {
		(void)close(oldest->fd);
		*oldest = (struct candidate){ fd, written_ns };
	} else {
		(void)close(fd);
	}
}

/*
 * Opens a file of the directory if it is a regular one of the process's user. We check before we
 * open it for reading, because opening a device or a FIFO may have effects.
 */
static void consider(struct take *t, int dir_fd, const char *name)
{
	_cleanup_(closep) int probe = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char again[64];
	struct stat st;
	int64_t written_ns;
	int fd;

	if (probe < 0 || fstat(probe, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_uid != t->target->uid)
		return;
	if (st.st_mtim.tv_sec < 0 || st.st_mtim.tv_sec >= INT64_MAX / CW_NS_PER_S)
		return; /* no kernel has written the file at such a time */
	written_ns = st.st_mtim.tv_sec * CW_NS_PER_S + st.st_mtim.tv_nsec;
	if (t->target->ended_wall_ns && written_ns < t->target->ended_wall_ns - OLD_NS)
		return;
	(void)snprintf(again, sizeof(again), "/proc/self/fd/%d", probe);
	fd = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		add_candidate(t, fd, written_ns);
}

static int open_directory(const char *path)
{
	const struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS };

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* Returns a static reason why there is no file; NULL = there are candidates. */
static const char *find_files(struct take *t)
{
	const char *why = expand_pattern(t);
	struct dirent *entry;
	uint32_t n = 0;
	DIR *dir;
	int fd;

	if (why)
		return why;
	/*
	 * The path and the pid are those of the container. The host's root may have a core file
	 * with this path and this pid, too.
	 */
	if (t->target->uid == 0 && t->target->own_pid != t->target->pid)
		return "the core files of a container's root are not read";
	if (!is_local(t, t->dir))
		return "its core file would lie on FUSE, 9p, NFS or an unknown file system, where a "
		       "reader may hang";
	fd = open_directory(t->dir);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			(void)close(fd);
		return "the directory of its core file cannot be read";
	}
	while (n++ < MAX_NAMES && (entry = readdir(dir)))
		if (cw_core_pattern_fits(t->name, entry->d_name))
			consider(t, dirfd(dir), entry->d_name);
	(void)closedir(dir);
	return t->n_candidates ? NULL
			       : "it left no core file (see ulimit -c and "
				 "/proc/sys/kernel/core_pattern)";
}

/* ---- the confined part ---- */

static int newest_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return (x->written_ns < y->written_ns) - (x->written_ns > y->written_ns);
}

/* Opens the candidate that is the core file of the process. */
static const char *open_core(struct take *t)
{
	/* A container that crashes repeatedly may leave several files of the same pid. */
	qsort(t->candidates, t->n_candidates, sizeof(t->candidates[0]), newest_first);
	for (uint32_t i = 0; i < t->n_candidates; i++) {
		if (cw_core_file_open(t->candidates[i].fd, &t->core) < 0)
			continue;
		if (t->core.pid == t->target->own_pid)
			return NULL;
		cw_core_file_fini(&t->core);
	}
	return "the core file there is of another process, or damaged";
}

static int read_core(void *user, uint64_t offset, void *buf, size_t len)
{
	const struct take *t = user;

	return cw_core_file_read(&t->core, offset, buf, len) == len ? 0 : -EIO;
}

struct image {
	const struct take *take;
	uint64_t start;
};

static int read_image(void *user, uint64_t offset, void *buf, size_t len)
{
	const struct image *image = user;

	return read_core((void *)image->take, image->start + offset, buf, len);
}

static int read_file(void *user, uint64_t offset, void *buf, size_t len)
{
	return pread(*(int *)user, buf, len, (off_t)offset) == (ssize_t)len ? 0 : -EIO;
}

/*
 * Opens a path without following links, because a link may lead to a file system that answers
 * late or never. The filter of this process does not allow openat2().
 */
static int open_without_links(const char *path)
{
	int fd = *path == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	while (fd >= 0 && *(path += strspn(path, "/"))) {
		size_t len = strcspn(path, "/");
		char name[NAME_MAX + 1] = "";
		int next = -1;

		if (len < sizeof(name)) {
			memcpy(name, path, len);
			if (strcmp(name, "..") != 0)
				next = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		}
		(void)close(fd);
		fd = next;
		path += len;
	}
	return fd;
}

/* Opens the file of a module, if it is the one that the process had mapped. */
static void open_module(const struct take *t, struct cw_stack_module *m)
{
	_cleanup_(closep) int probe = -1, fd = -1;
	uint8_t of_file[CW_BUILD_ID_MAX], of_core[CW_BUILD_ID_MAX];
	struct image image = { t, m->start };
	char again[64];
	struct stat st;
	size_t n;

	m->is_remote = !is_local(t, m->path);
	if (m->fd >= 0 || m->is_remote)
		return;
	probe = open_without_links(m->path);
	if (probe < 0 || fstat(probe, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	(void)snprintf(again, sizeof(again), "/proc/self/fd/%d", probe);
	fd = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	n = fd < 0 ? 0 : cw_stack_build_id(read_file, &fd, false, of_file);
	if (n > 0 && n == cw_stack_build_id(read_image, &image, true, of_core) &&
	    memcmp(of_file, of_core, n) == 0)
		m->fd = steal_fd(&fd);
}

/* Makes a module of each file: its mappings follow each other. */
static int make_modules(struct take *t)
{
	const struct cw_core_file *core = &t->core;
	struct cw_stack_modules *mods = &t->modules;

	mods->list = calloc(core->n_mappings + 1u, sizeof(*mods->list));
	if (!mods->list)
		return -ENOMEM;
	for (uint32_t i = 0; i < core->n_mappings; i++) {
		const struct cw_core_mapping *m = &core->mappings[i];
		struct cw_stack_module *last = mods->n ? &mods->list[mods->n - 1] : NULL;

		if (m->path[0] != '/')
			continue;
		if (!last || m->offset == 0 || strcmp(last->path, m->path) != 0) {
			if (mods->n == CW_STACK_MAX_MODULES) {
				mods->is_cut = true;
				return 0;
			}
			last = &mods->list[mods->n];
			*last = (struct cw_stack_module){ .start = m->start,
							  .fd = -1,
							  .path = strdup(m->path) };
			if (!last->path)
				return -ENOMEM;
			last->exec_start = m->start;
			mods->n++;
		}
		last->end = last->exec_end = m->end;
	}
	return 0;
}

/* Copies the stacks, and marks and opens the files that they point to. */
static int copy_stacks(struct take *t)
{
	struct cw_stack_copy *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	t->copy = copy;
	copy->pid = t->target->own_pid;
	copy->n_threads = copy->n_total = t->core.n_threads;
	copy->n_total += t->core.n_more_threads;
	for (uint32_t i = 0; i < copy->n_threads; i++) {
		const struct cw_core_thread *from = &t->core.threads[i];
		struct cw_stack_thread *to = &copy->threads[i];

		*to = (struct cw_stack_thread){ .tid = from->tid,
						.result = CW_STACK_TAKEN,
						.pc = from->pc,
						.sp = from->sp,
						.stack_start = from->sp };
		memcpy(to->regs, from->regs, sizeof(to->regs));
		to->stack_len = (uint32_t)cw_core_file_read(&t->core, from->sp, copy->stacks[i],
							    CW_STACK_MAX_BYTES);
		cw_stack_modules_want(&t->modules, from->pc);
		for (size_t at = 0; at + sizeof(uint64_t) <= to->stack_len;
		     at += sizeof(uint64_t)) {
			uint64_t word;

			memcpy(&word, copy->stacks[i] + at, sizeof(word));
			cw_stack_modules_want(&t->modules, word);
		}
	}
	for (size_t i = 0; i < t->modules.n; i++)
		if (t->modules.list[i].is_wanted)
			open_module(t, &t->modules.list[i]);
	return 0;
}

static void write_native(const struct take *t)
{
	struct cw_unwinder *u = NULL;
	int r = cw_unwinder_new(t->copy, (struct cw_stack_modules *)&t->modules, &u);
	char reason[MAX_REASON] = "";
	bool is_over_limit = false;
	size_t used = 0;

	for (uint32_t i = 0; i < t->copy->n_threads && r == 0 && !is_over_limit; i++) {
		json_t *line =
			json_pack("{s:i, s:n, s:i, s:o}", "tid", tid_of(t, t->copy->threads[i].tid),
				  "name", "run_ns", 1, "frames", cw_unwinder_frames(u, i));

		used += json_dumpb(line, NULL, 0, JSON_COMPACT) + 1;
		is_over_limit = used + END_BYTES > CW_STACK_MAX_OUTPUT;
		if (is_over_limit)
			json_decref(line);
		else
			r = write_line(t->out_fd, line);
	}
	if (is_over_limit)
		(void)snprintf(reason, sizeof(reason), "the stacks are too large to send");
	else if (t->core.is_cut)
		(void)snprintf(reason, sizeof(reason), "the core file is incomplete");
	else if (t->core.n_more_threads)
		(void)snprintf(reason, sizeof(reason), "%u of %u threads examined",
			       t->copy->n_threads, t->copy->n_total);
	(void)write_line(t->out_fd,
			 json_pack("{s:b, s:s, s:s, s:n}", "end", 1, "status",
				   r < 0     ? "failed"
				   : *reason ? "partial"
					     : "ok",
				   "reason",
				   r < 0 ? "no program file of the process can be read" : reason,
				   "held_ms"));
}

/* ---- Python ---- */

static struct cw_stack_module *module_at(const struct take *t, uint64_t addr)
{
	for (size_t i = 0; i < t->modules.n; i++)
		if (addr >= t->modules.list[i].start && addr < t->modules.list[i].end)
			return &t->modules.list[i];
	return NULL;
}

/* Reads memory from the core file, and pages that it lacks from the mapped file. */
static bool read_memory(void *user, uint64_t from, void *to, size_t len)
{
	const struct take *t = user;
	size_t done = cw_core_file_read(&t->core, from, to, len);
	const struct cw_core_mapping *m;
	struct cw_stack_module *module;

	if (done == len)
		return true;
	m = cw_core_file_mapping(&t->core, from + done);
	module = m ? module_at(t, m->start) : NULL;
	if (!module || len - done > m->end - (from + done))
		return false;
	open_module(t, module);
	return module->fd >= 0 && read_file(&module->fd, m->offset + (from + done - m->start),
					    (char *)to + done, len - done) == 0;
}

static bool is_likely(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && (strncmp(name, "/python", 7) == 0 || strncmp(name, "/libpython", 10) == 0);
}

static json_t *read_python(struct take *t)
{
	_cleanup_(freep) uint64_t *bases = calloc(t->modules.n + 1, sizeof(*bases));
	struct cw_python_memory memory = { .read = read_memory, .user = t };
	struct cw_python_task tasks[CW_CORE_MAX_THREADS];
	struct cw_python_process *process = NULL;
	json_t *part = NULL;
	size_t n = 0;

	if (!bases)
		return NULL;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < t->modules.n; i++)
			if (is_likely(t->modules.list[i].path) == (pass == 0))
				bases[n++] = t->modules.list[i].start;
	for (uint32_t i = 0; i < t->core.n_threads; i++)
		tasks[i] = (struct cw_python_task){ .tid = tid_of(t, t->core.threads[i].tid),
						    .inner_tid = t->core.threads[i].tid,
						    .run_ns = 1 };
	if (cw_python_process_of(&memory, bases, n, tasks, t->core.n_threads, &process) == 0)
		part = cw_python_doc(process, t->target->pid);
	(void)cw_python_process_free(process); /* always NULL */
	return part;
}

/* Writes the reason instead of stacks. */
static int write_nothing(const struct take *t, const char *why)
{
	return write_core(t, "absent", why);
}

int cw_core_take(int out_fd, const struct cw_capture_ended *target)
{
	/* We free nothing, because the child exits. */
	struct take *t = calloc(1, sizeof(*t));
	const char *why;

	if (!t)
		return 1;
	t->target = target;
	t->out_fd = out_fd;
	t->core.fd = -1;
	t->mounts = malloc(MAX_MOUNTINFO);
	if (t->mounts && !read_text("/proc/self/mountinfo", t->mounts, MAX_MOUNTINFO))
		t->mounts = NULL;
	why = find_files(t);
	if (why)
		return write_nothing(t, why);
	if (cw_stack_confine_unwinder(target->uid, target->gid) < 0)
		return write_core(t, "failed",
				  "the process that reads core files cannot be confined");
	why = open_core(t);
	if (why)
		return write_nothing(t, why);
	if (make_modules(t) < 0 || copy_stacks(t) < 0)
		return 1;
	if (write_core(t, "ok", "") != 0)
		return 1;
	write_native(t);
	return write_line(out_fd, json_pack("{s:o}", "python", read_python(t))) < 0;
}

/* ---- the output ---- */

static json_t *clean_core(const json_t *core)
{
	static const char *const known[] = { "ok", "absent" };
	const char *status = json_string_value(json_object_get(core, "status"));
	const json_t *reason = json_object_get(core, "reason");
	json_int_t tid = json_integer_value(json_object_get(core, "tid"));
	const char *kept = "failed";

	for (size_t i = 0; status && i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(status, known[i]) == 0)
			kept = known[i];
	return json_pack("{s:s, s:o, s:I, s:I}", "status", kept, "reason",
			 json_is_string(reason)
				 ? cw_evidence_clean(reason, MAX_REASON)
				 : json_string("the process that reads core files failed"),
			 "signal", json_integer_value(json_object_get(core, "signal")), "tid", tid);
}

void cw_core_read(const char *output, size_t len, bool is_whole, struct cw_capture_ended_parts *ret)
{
	const char *newline = memchr(output, '\n', len), *last = NULL;
	json_t *line = newline ? cw_json_parse(output, (size_t)(newline - output),
					       JSON_REJECT_DUPLICATES, NULL)
			       : NULL;
	json_t *python;

	*ret = (struct cw_capture_ended_parts){ .core = clean_core(json_object_get(line, "core")) };
	json_decref(line);
	if (!newline || !ret->core ||
	    strcmp(json_string_value(json_object_get(ret->core, "status")), "ok") != 0)
		return;
	len -= (size_t)(newline + 1 - output);
	output = newline + 1;
	ret->native = cw_stack_output_read(output, len, is_whole);
	if (len > 0 && output[len - 1] == '\n')
		last = memrchr(output, '\n', len - 1);
	if (!last)
		return;
	line = cw_json_parse(last + 1, len - (size_t)(last + 1 - output) - 1,
			     JSON_REJECT_DUPLICATES, NULL);
	python = json_object_get(line, "python");
	ret->python = json_is_object(python) ? cw_python_take_clean(python) : NULL;
	json_decref(line);
}

/* ---- captures ---- */

static int core_main(int out_fd, const void *arg)
{
	return cw_core_take(out_fd, arg);
}

int cw_core_child(int fd)
{
	return cw_child_run(fd, core_main);
}

const struct cw_capture_core cw_core_captures = {
	.main = core_main,
	.job = cw_core_child,
	.max_output = CW_CORE_MAX_OUTPUT,
	.read = cw_core_read,
};
