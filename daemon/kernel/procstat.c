/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/procstat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "daemon/kernel/closed_files.h"

/*
 * Sizes of our buffers. A stat line has about 350 bytes, io about 120, and the list of children
 * 8 bytes per child.
 */
#define SMALL_FILE_BYTES 1024
#define CHILDREN_FILE_BYTES 4096
#define STATUS_FILE_BYTES 4096
#define MAX_THREADS_SCANNED 256

int64_t cw_procstat_age_ns(uint64_t start_ticks)
{
	const uint64_t tick_ns = (uint64_t)CW_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec t;
	int64_t now_ns, age_ns;

	if (clock_gettime(CLOCK_BOOTTIME, &t) < 0 || start_ticks > (uint64_t)CW_BOUND_NS / tick_ns)
		return 1;
	now_ns = t.tv_sec * CW_NS_PER_S + t.tv_nsec;
	age_ns = now_ns - (int64_t)(start_ticks * tick_ns);
	return age_ns > 0 ? age_ns : 1;
}

static int read_small(int dir_fd, const char *name, char *buf, size_t len)
{
	_cleanup_(closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, buf, len - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

/* Numbers of fields in proc(5). Spaces separate the fields from the state letter (3) on. */
enum stat_field {
	FIELD_STATE = 3,
	FIELD_PPID = 4,
	FIELD_UTIME = 14,
	FIELD_STIME = 15,
	FIELD_CUTIME = 16,
	FIELD_CSTIME = 17,
	FIELD_THREADS = 20,
	FIELD_START = 22,
	FIELD_STARTSTACK = 28,
	FIELD_EXIT_CODE = 52,
};

static void take_field(struct cw_procstat *st, unsigned field, const char *text)
{
	uint64_t v = strtoull(text, NULL, 10);

	switch (field) {
	case FIELD_PPID:
		st->ppid = (pid_t)v;
		break;
	case FIELD_UTIME:
	case FIELD_STIME:
		st->cpu_ticks += v;
		break;
	case FIELD_CUTIME:
	case FIELD_CSTIME:
		st->child_cpu_ticks += v;
		break;
	case FIELD_THREADS:
		st->threads = (uint32_t)v;
		break;
	case FIELD_START:
		st->start_ticks = v;
		break;
	case FIELD_STARTSTACK:
		/*
		 * The kernel shows 0 if we have no right to see it. No living program has its stack
		 * at 0.
		 */
		st->is_permitted = v != 0;
		st->start_stack = v;
		break;
	case FIELD_EXIT_CODE:
		st->exit_code = (int)v;
		break;
	default:
		break;
	}
}

int cw_procstat_parse(const char *text, struct cw_procstat *ret)
{
	/*
	 * The name is between the first '(' and the last ')'. The program chooses its name, which
	 * may even be ") R 1".
	 */
	const char *open = strchr(text, '(');
	const char *close = strrchr(text, ')');
	struct cw_procstat st = { 0 };
	unsigned field = FIELD_STATE;
	size_t len;

	if (!open || !close || close < open || close[1] != ' ' || !close[2])
		return -EBADMSG;
	len = (size_t)(close - open - 1);
	if (len >= sizeof(st.comm))
		len = sizeof(st.comm) - 1;
	memcpy(st.comm, open + 1, len);
	st.state = close[2];
	for (const char *p = close + 2; p; p = strchr(p, ' ')) {
		if (*p == ' ')
			p++;
		take_field(&st, field++, p);
	}
	if (field <= FIELD_START)
		return -EBADMSG;
	*ret = st;
	return 0;
}

int cw_procstat_open(pid_t pid)
{
	char path[32];
	int fd;

	/* Cannot be cut: a pid has at most 11 characters. */
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? (errno == ENOENT ? -ESRCH : -errno) : fd;
}

/*
 * True if the process is in the middle of execve(). The kernel then gives up the old memory and
 * closes descriptors, and slow file systems delay the close. A read of "stat", "io" or "syscall"
 * would wait for its end. A read of "statm" does not wait. During execve() it shows the new
 * memory, still without program text. A process without any memory has ended.
 */
static bool is_in_execve(int proc_fd)
{
	uint64_t size, text;
	char buf[SMALL_FILE_BYTES];

	return read_small(proc_fd, "statm", buf, sizeof(buf)) == 0 &&
	       sscanf(buf, "%" SCNu64 " %*u %*u %" SCNu64, &size, &text) == 2 && size && !text;
}

int cw_procstat_read(int proc_fd, struct cw_procstat *ret)
{
	char buf[SMALL_FILE_BYTES];
	int r = is_in_execve(proc_fd) ? -EBUSY : read_small(proc_fd, "stat", buf, sizeof(buf));

	return r < 0 ? r : cw_procstat_parse(buf, ret);
}

int cw_procstat_read_all(int proc_fd, struct cw_procstat *ret)
{
	char buf[SMALL_FILE_BYTES];
	ssize_t n = is_in_execve(proc_fd)
			    ? -EBUSY
			    : cw_closed_files_read(proc_fd, CW_CLOSED_STAT, 0, buf, sizeof(buf));

	return n < 0 ? (int)n : cw_procstat_parse(buf, ret);
}

int cw_procstat_read_thread(int proc_fd, pid_t tid, struct cw_procstat *ret)
{
	char name[32], buf[SMALL_FILE_BYTES];
	int r;

	(void)snprintf(name, sizeof(name), "task/%d/stat", (int)tid); /* the name always fits */
	r = read_small(proc_fd, name, buf, sizeof(buf));
	return r < 0 ? r : cw_procstat_parse(buf, ret);
}

static int read_sched(int proc_fd, const char *name, struct cw_procsched *ret)
{
	struct cw_procsched sched;
	char buf[SMALL_FILE_BYTES];
	int r = read_small(proc_fd, name, buf, sizeof(buf));

	if (r < 0)
		return r;
	if (sscanf(buf, "%" SCNu64 " %*u %" SCNu64, &sched.cpu_ns, &sched.runs) != 2)
		return -EBADMSG;
	*ret = sched;
	return 0;
}

int cw_procstat_main_sched(int proc_fd, struct cw_procsched *ret)
{
	return read_sched(proc_fd, "schedstat", ret);
}

int cw_procstat_thread_sched(int proc_fd, pid_t tid, struct cw_procsched *ret)
{
	char name[48];

	(void)snprintf(name, sizeof(name), "task/%d/schedstat", (int)tid);
	return read_sched(proc_fd, name, ret);
}

int cw_procstat_io_bytes(int proc_fd, uint64_t *ret_bytes)
{
	uint64_t rchar = 0, wchar = 0, read_bytes = 0, write_bytes = 0, v;
	char buf[SMALL_FILE_BYTES], key[32], *save = NULL;
	ssize_t n = cw_closed_files_read(proc_fd, CW_CLOSED_IO, 0, buf, sizeof(buf));

	if (n < 0)
		return n == -ENOENT ? -ESRCH : (int)n;
	for (char *line = strtok_r(buf, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "%31[^:]: %" SCNu64, key, &v) != 2)
			continue;
		if (!strcmp(key, "rchar"))
			rchar = v;
		else if (!strcmp(key, "wchar"))
			wchar = v;
		else if (!strcmp(key, "read_bytes"))
			read_bytes = v;
		else if (!strcmp(key, "write_bytes"))
			write_bytes = v;
	}
	*ret_bytes =
		rchar + wchar > read_bytes + write_bytes ? rchar + wchar : read_bytes + write_bytes;
	return 0;
}

int cw_procstat_threads(int proc_fd, pid_t *tids, size_t max, size_t *ret_n)
{
	int fd = openat(proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	size_t n = 0;
	DIR *dir;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	dir = fdopendir(fd);
	if (!dir) {
		(void)close(fd); /* harmless: we only read the directory */
		return -ENOMEM;
	}
	while (n < max && (entry = readdir(dir))) {
		long tid = strtol(entry->d_name, NULL, 10);

		if (tid > 0)
			tids[n++] = (pid_t)tid;
	}
	(void)closedir(dir); /* harmless: we only read the directory */
	*ret_n = n;
	return 0;
}

size_t cw_procstat_children_of(int proc_fd, pid_t tid, pid_t *pids, size_t max)
{
	char name[40], buf[CHILDREN_FILE_BYTES], *end;
	size_t n = 0;

	(void)snprintf(name, sizeof(name), "task/%d/children", (int)tid); /* the name always fits */
	if (read_small(proc_fd, name, buf, sizeof(buf)) < 0)
		return 0; /* the thread has ended, or the kernel has no such file */
	for (char *p = buf; n < max; p = end) {
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		if (*end == ' ' && pid > 0) /* without a blank, the end of buf has cut the number */
			pids[n++] = (pid_t)pid;
	}
	return n;
}

int cw_procstat_children(int proc_fd, pid_t *pids, size_t max, size_t *ret_n)
{
	pid_t tids[MAX_THREADS_SCANNED];
	size_t n_tids, n = 0;
	int r = cw_procstat_threads(proc_fd, tids, MAX_THREADS_SCANNED, &n_tids);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n_tids && n < max; i++)
		n += cw_procstat_children_of(proc_fd, tids[i], pids + n, max - n);
	*ret_n = n;
	return 0;
}

int cw_procstat_own_tid(int proc_fd, pid_t tid, pid_t *ret)
{
	char name[40], buf[STATUS_FILE_BYTES], *line, *end;
	int r;

	(void)snprintf(name, sizeof(name), "task/%d/status", (int)tid); /* the name always fits */
	r = read_small(proc_fd, name, buf, sizeof(buf));
	if (r < 0)
		return r;
	/*
	 * Search from the second line on. The first line has the thread's name, whose newlines are
	 * escaped.
	 */
	line = strstr(buf, "\nNSpid:");
	end = line ? strchr(line + 1, '\n') : NULL;
	if (!end)
		return -EBADMSG;
	*end = '\0';
	*ret = (pid_t)strtol(strrchr(line, '\t') ? strrchr(line, '\t') + 1 : "", NULL, 10);
	return *ret > 0 ? 0 : -EBADMSG;
}

int cw_procstat_tracer(int proc_fd, pid_t *ret)
{
	static const char key[] = "\nTracerPid:\t";
	char buf[STATUS_FILE_BYTES], *line;
	long pid;
	int r;

	r = read_small(proc_fd, "status", buf, sizeof(buf));
	if (r < 0)
		return r;
	line = strstr(buf, key);
	pid = line ? strtol(line + strlen(key), NULL, 10) : -1;
	if (pid < 0 || pid > INT32_MAX)
		return -EBADMSG;
	if (!pid)
		return -ESRCH;
	*ret = (pid_t)pid;
	return 0;
}

int64_t cw_procstat_tick_ns(void)
{
	long hz = sysconf(_SC_CLK_TCK);

	return CW_NS_PER_S / (hz > 0 ? hz : 100);
}
