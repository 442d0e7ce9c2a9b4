/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/mapped_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/kernel/procfs.h"

/*
 * Maximum size of a maps file, as in daemon/evidence/stack_modules.c. More than a hundred thousand
 * mappings fit into 16 MiB.
 */
#define MAX_MAPS_BYTES (16u << 20)
/* Maximum size of mountinfo. A node with a thousand mounts has some 150 KiB. */
#define MAX_MOUNTINFO_BYTES (1u << 20)
#define MAX_SWAPS_BYTES 16384u
/*
 * Longest line. The options of a mount take up to a page, and so do its root and its mount point.
 */
#define MAX_MOUNT_BYTES 16384u
/*
 * Maximum number of devices per process that we cache. Each further device costs a walk through the
 * mounts.
 */
#define MAX_DEVICES 64u
#define PAGE 4096u
/* Bit of a pagemap entry: the page is swapped out. */
#define PAGEMAP_SWAPPED (UINT64_C(1) << 62)

struct range {
	uint64_t start, end;
	bool is_anonymous;
};

struct device {
	uint64_t dev;
	bool is_local;
};

struct cw_mapped_memory {
	/*
	 * Texts of mountinfo: of the daemon, of process 1, and of the process; NULL = not
	 * available.
	 */
	char *own_mounts, *root_mounts, *its_mounts;
	/* Devices of the kernel's memory files, which are in no mount; 0 = none. */
	uint64_t kernel_devs[2];
	struct device devices[MAX_DEVICES];
	unsigned n_devices;
	struct range *ranges; /* readable ranges in ascending order; neighbours are merged */
	size_t n_ranges;
	int pagemap_fd; /* -1 = we do not check whether a page is swapped out */
};

/* ---- mounts ---- */

/* One line of mountinfo, "36 35 98:0 /root /mount options … - type source options"; see proc(5). */
struct mount {
	unsigned major, minor;
	/*
	 * A copy of the line, because sscanf() on the whole text would measure the whole text each
	 * time.
	 */
	char line[MAX_MOUNT_BYTES];
	char point[PATH_MAX];
	char type[64];
	const char *options; /* options of the file system, up to the end of the line */
};

static const char *next_line(const char *line)
{
	line = strchr(line, '\n');
	return line ? line + 1 : NULL;
}

static void copy_line(const char *line, char *ret, size_t size)
{
	size_t n = strcspn(line, "\n");

	n = n < size ? n : size - 1;
	memcpy(ret, line, n);
	ret[n] = '\0';
}

/* Replaces the kernel's "\040" and the like by the characters. */
static void unescape(char *text)
{
	char *to = text;

	while (*text) {
		if (text[0] == '\\' && strspn(text + 1, "01234567") >= 3) {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
				       (text[3] - '0'));
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

static bool parse_mount(const char *line, struct mount *m)
{
	const char *dash;
	int at = 0;

	copy_line(line, m->line, sizeof(m->line));
	dash = strstr(m->line, " - ");
	if (!dash ||
	    sscanf(m->line, "%*d %*d %u:%u %*s %4095s", &m->major, &m->minor, m->point) != 3 ||
	    sscanf(dash + 3, "%63s %*s %n", m->type, &at) != 1)
		return false;
	unescape(m->point);
	m->options = dash + 3 + at;
	return true;
}

static bool is_remote_type(const char *type)
{
	return strncmp(type, "fuse", 4) == 0 || strcmp(type, "9p") == 0 ||
	       strcmp(type, "nfs") == 0 || strcmp(type, "nfs4") == 0;
}

static bool holds(const char *point, const char *path, size_t len)
{
	size_t n = strlen(point);

	if (n == 1)
		return true; /* the mount point is "/", which holds every path */
	return n <= len && strncmp(point, path, n) == 0 && (n == len || path[n] == '/');
}

/* Maximum number of overlays on overlays. A deeper overlay counts as remote. */
#define MAX_DEPTH 4u

static enum cw_mount_kind kind_of(const char *mountinfo, const struct mount *m, unsigned depth);

/*
 * Returns the kind of the mount that holds the path. above: the overlay that has this path as a
 * layer; NULL = the path is no layer. An overlay is never its own layer, so we skip its mount. The
 * root of a container may be an overlay. Its layers then have paths of the host, and the
 * container's table lacks these paths.
 */
static enum cw_mount_kind kind_of_path(const char *mountinfo, const char *path, size_t len,
				       const struct mount *above, unsigned depth)
{
	enum cw_mount_kind kind = CW_MOUNT_UNKNOWN;
	struct mount m;
	size_t best = 0;

	if (!depth)
		return CW_MOUNT_REMOTE;
	for (const char *line = mountinfo; line && *line; line = next_line(line)) {
		/* Among mounts with the same mount point, the last one hides the others. */
		if (!parse_mount(line, &m) || !holds(m.point, path, len) || strlen(m.point) < best)
			continue;
		if (above && m.major == above->major && m.minor == above->minor)
			continue;
		best = strlen(m.point);
		kind = kind_of(mountinfo, &m, depth - 1);
	}
	return kind;
}

/*
 * True if the layer is remote. We cannot know the mount of a relative path, because no table has
 * the directory that the path starts from.
 */
static bool is_remote_layer(const char *mountinfo, const struct mount *m, const char *path,
			    size_t len, unsigned depth)
{
	return len && *path == '/' &&
	       kind_of_path(mountinfo, path, len, m, depth) == CW_MOUNT_REMOTE;
}

/*
 * True if one of the overlay's layers is remote. Options such as "lowerdir=/a:/b", "upperdir=/c",
 * "lowerdir+=/d" or "datadir+=/e" name the layers.
 */
static bool has_remote_layer(const char *mountinfo, const struct mount *m, unsigned depth)
{
	for (const char *option = m->options; *option;) {
		size_t len = strcspn(option, ",");
		const char *value = memchr(option, '=', len), *end = option + len;
		bool is_layer = strncmp(option, "lowerdir", 8) == 0 ||
				strncmp(option, "upperdir", 8) == 0 ||
				strncmp(option, "datadir", 7) == 0;

		while (is_layer && value && value < end) {
			size_t n = strcspn(value + 1, ":,");

			if (is_remote_layer(mountinfo, m, value + 1, n, depth))
				return true;
			value += 1 + n;
		}
		option = *end ? end + 1 : end;
	}
	return false;
}

static enum cw_mount_kind kind_of(const char *mountinfo, const struct mount *m, unsigned depth)
{
	if (is_remote_type(m->type))
		return CW_MOUNT_REMOTE;
	if (strcmp(m->type, "overlay") == 0 && has_remote_layer(mountinfo, m, depth))
		return CW_MOUNT_REMOTE;
	return CW_MOUNT_LOCAL;
}

enum cw_mount_kind cw_mapped_memory_kind(const char *mountinfo, uint64_t dev, bool is_trusted)
{
	enum cw_mount_kind kind = CW_MOUNT_UNKNOWN;
	struct mount m;

	for (const char *line = mountinfo; line && *line && kind != CW_MOUNT_REMOTE;
	     line = next_line(line)) {
		if (!parse_mount(line, &m) || makedev(m.major, m.minor) != dev)
			continue;
		kind = !is_trusted && strcmp(m.type, "overlay") == 0
			       ? CW_MOUNT_REMOTE
			       : kind_of(mountinfo, &m, MAX_DEPTH);
	}
	return kind;
}

enum cw_mount_kind cw_mapped_memory_kind_of_path(const char *mountinfo, const char *path)
{
	return kind_of_path(mountinfo, path, strlen(path), NULL, MAX_DEPTH);
}

bool cw_mapped_memory_swaps_remotely(const char *swaps, const char *mountinfo)
{
	char path[PATH_MAX], type[16];

	/* Skip the first line, which has the titles of the columns. */
	for (const char *line = next_line(swaps); line && *line; line = next_line(line))
		if (sscanf(line, "%4095s %15s", path, type) == 2 && strcmp(type, "file") == 0 &&
		    cw_mapped_memory_kind_of_path(mountinfo, path) != CW_MOUNT_LOCAL)
			return true;
	return false;
}

/* Returns the text of the file; NULL = it is unreadable, or we are out of memory. */
static char *read_mounts(const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(freep) char *text = fd < 0 ? NULL : malloc(MAX_MOUNTINFO_BYTES);

	if (!text || cw_procfs_read_fd(fd, text, MAX_MOUNTINFO_BYTES) < 0)
		return NULL;
	return steal_ptr(&text);
}

static uint64_t device_of_memfd(unsigned flags)
{
	_cleanup_(closep) int fd = memfd_create("collwatch-device", MFD_CLOEXEC | flags);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_dev : 0;
}

static bool find_out(const struct cw_mapped_memory *m, uint64_t dev)
{
	/*
	 * Search these two tables before the process's own. Only root made the mounts in them, and
	 * they name the real layers of an overlay.
	 */
	const char *const trusted[] = { m->own_mounts, m->root_mounts };
	enum cw_mount_kind kind;

	if (dev && (dev == m->kernel_devs[0] || dev == m->kernel_devs[1]))
		return true;
	for (size_t i = 0; i < sizeof(trusted) / sizeof(trusted[0]); i++) {
		kind = trusted[i] ? cw_mapped_memory_kind(trusted[i], dev, true) : CW_MOUNT_UNKNOWN;
		if (kind != CW_MOUNT_UNKNOWN)
			return kind == CW_MOUNT_LOCAL;
	}
	kind = m->its_mounts ? cw_mapped_memory_kind(m->its_mounts, dev, false) : CW_MOUNT_UNKNOWN;
	/*
	 * Inside a container, no table has the file system below the container's overlay. We then
	 * judge by the device. FUSE, 9p and NFS have no block device, so a file on a block device
	 * is local. FUSE can have a block device, too, but only root can mount it so.
	 */
	return kind == CW_MOUNT_UNKNOWN ? major(dev) != 0 : kind == CW_MOUNT_LOCAL;
}

bool cw_mapped_memory_is_local(const struct cw_mapped_memory *m, uint64_t dev)
{
	for (unsigned i = 0; i < m->n_devices; i++)
		if (m->devices[i].dev == dev)
			return m->devices[i].is_local;
	return find_out(m, dev);
}

static bool is_local_noted(struct cw_mapped_memory *m, uint64_t dev)
{
	bool is_local = cw_mapped_memory_is_local(m, dev);

	for (unsigned i = 0; i < m->n_devices; i++)
		if (m->devices[i].dev == dev)
			return is_local;
	if (m->n_devices < MAX_DEVICES)
		m->devices[m->n_devices++] = (struct device){ dev, is_local };
	return is_local;
}

bool cw_mapped_memory_is_local_path(const struct cw_mapped_memory *m, const char *path)
{
	return m->its_mounts &&
	       cw_mapped_memory_kind_of_path(m->its_mounts, path) == CW_MOUNT_LOCAL;
}

/* ---- mappings ---- */

static int add_range(struct cw_mapped_memory *m, const struct range *range)
{
	struct range *last = m->n_ranges ? &m->ranges[m->n_ranges - 1] : NULL;

	if (last && last->end == range->start && last->is_anonymous == range->is_anonymous) {
		last->end = range->end;
		return 0;
	}
	/* Double the capacity at each power of two, from 64 on. */
	if (m->n_ranges >= 64 ? (m->n_ranges & (m->n_ranges - 1)) == 0 : m->n_ranges == 0) {
		last = realloc(m->ranges, (m->n_ranges ? m->n_ranges * 2 : 64) * sizeof(*last));
		if (!last)
			return -ENOMEM;
		m->ranges = last;
	}
	m->ranges[m->n_ranges++] = *range;
	return 0;
}

/*
 * Adds the mappings in the text of a maps file. A line is "start-end perms offset major:minor inode
 * path"; see proc(5).
 */
static int add_mappings(struct cw_mapped_memory *m, const char *text)
{
	unsigned major, minor;
	struct range range;
	char line[256]; /* the line, without the end of a long path */
	uint64_t inode;
	int r = 0;

	for (const char *at = text; r == 0 && at && *at; at = next_line(at)) {
		copy_line(at, line, sizeof(line));
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %*x %x:%x %" SCNu64, &range.start,
			   &range.end, &major, &minor, &inode) != 5)
			continue;
		range.is_anonymous = !inode && !major && !minor;
		if (range.is_anonymous || is_local_noted(m, makedev(major, minor)))
			r = add_range(m, &range);
	}
	return r;
}

static int read_mappings(struct cw_mapped_memory *m, pid_t pid)
{
	_cleanup_(freep) char *text = malloc(MAX_MAPS_BYTES);
	ssize_t n = text ? cw_procfs_read(pid, "maps", text, MAX_MAPS_BYTES) : -ENOMEM;

	return n < 0 ? (int)n : add_mappings(m, text);
}

static void look_at_swap(struct cw_mapped_memory *m, pid_t pid)
{
	_cleanup_(closep) int fd = open("/proc/swaps", O_RDONLY | O_CLOEXEC);
	char swaps[MAX_SWAPS_BYTES], path[64];
	const char *mounts = m->root_mounts ? m->root_mounts : m->own_mounts;

	if (fd < 0 || cw_procfs_read_fd(fd, swaps, sizeof(swaps)) <= 0 ||
	    !cw_mapped_memory_swaps_remotely(swaps, mounts))
		return;
	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	m->pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (m->pagemap_fd < 0)
		m->n_ranges = 0; /* we cannot tell which pages are swapped out, so read none */
}

int cw_mapped_memory_new(pid_t pid, struct cw_mapped_memory **ret)
{
	struct cw_mapped_memory *m = calloc(1, sizeof(*m));
	char path[64];
	int r;

	if (!m)
		return -ENOMEM;
	m->pagemap_fd = -1;
	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	m->own_mounts = read_mounts("/proc/self/mountinfo");
	m->root_mounts = read_mounts("/proc/1/mountinfo");
	m->its_mounts = read_mounts(path);
	m->kernel_devs[0] = device_of_memfd(0);
	m->kernel_devs[1] = device_of_memfd(MFD_HUGETLB);
	r = m->own_mounts ? read_mappings(m, pid) : -ENOENT;
	if (r < 0) {
		(void)cw_mapped_memory_free(m); /* always NULL */
		return r;
	}
	look_at_swap(m, pid);
	*ret = m;
	return 0;
}

struct cw_mapped_memory *cw_mapped_memory_free(struct cw_mapped_memory *m)
{
	if (!m)
		return NULL;
	free(m->own_mounts);
	free(m->root_mounts);
	free(m->its_mounts);
	free(m->ranges);
	closep(&m->pagemap_fd);
	free(m);
	return NULL;
}

/*
 * Shortens len so that the range ends before the first page that is swapped out. pagemap does not
 * show swapped-out pages of shared memory, so we read no shared page at all.
 */
static size_t without_swapped(const struct cw_mapped_memory *m, const struct range *range,
			      uint64_t addr, size_t len)
{
	uint64_t first = addr / PAGE, end = (addr + len + PAGE - 1) / PAGE, entry;

	if (!range->is_anonymous)
		return 0;
	for (uint64_t page = first; page < end; page++)
		if (pread(m->pagemap_fd, &entry, sizeof(entry), (off_t)(page * sizeof(entry))) !=
			    sizeof(entry) ||
		    (entry & PAGEMAP_SWAPPED))
			return page == first ? 0 : (size_t)(page * PAGE - addr);
	return len;
}

static const struct range *range_of(const struct cw_mapped_memory *m, uint64_t addr)
{
	size_t low = 0, high = m->n_ranges;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (addr < m->ranges[mid].start)
			high = mid;
		else if (addr >= m->ranges[mid].end)
			low = mid + 1;
		else
			return &m->ranges[mid];
	}
	return NULL;
}

size_t cw_mapped_memory_readable(const struct cw_mapped_memory *m, uint64_t addr, size_t len)
{
	const struct range *range;
	size_t done = 0;

	while (done < len && (range = range_of(m, addr + done))) {
		uint64_t left = range->end - (addr + done);
		size_t here = left < len - done ? (size_t)left : len - done, ok = here;

		if (m->pagemap_fd >= 0)
			ok = without_swapped(m, range, addr + done, here);
		done += ok;
		if (ok < here)
			break;
	}
	return done;
}

/*
 * Reads fields 48 to 51 of stat: the addresses of the arguments and of the environment; see
 * proc(5). Without the right to trace the process, the kernel shows zeros.
 */
static bool read_start(pid_t pid, uint64_t at[4])
{
	char text[2048], *field;
	int n = 2;

	if (cw_procfs_read(pid, "stat", text, sizeof(text)) < 0 || !(field = strrchr(text, ')')))
		return false;
	while (n < 48 && (field = strchr(field + 1, ' ')))
		n++;
	return field && sscanf(field, " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &at[0],
			       &at[1], &at[2], &at[3]) == 4;
}

bool cw_mapped_memory_has_local_start(pid_t pid)
{
	struct cw_mapped_memory *m = NULL;
	uint64_t at[4];
	bool ok = true;

	/*
	 * If the kernel hides the addresses from us, we read the arguments without this check. Any
	 * user may read them.
	 */
	if (!read_start(pid, at) || !at[0] || cw_mapped_memory_new(pid, &m) < 0)
		return true;
	for (unsigned i = 0; i < 4 && ok; i += 2)
		ok = at[i + 1] < at[i] ||
		     cw_mapped_memory_readable(m, at[i], at[i + 1] - at[i]) == at[i + 1] - at[i];
	(void)cw_mapped_memory_free(m); /* always NULL */
	return ok;
}
