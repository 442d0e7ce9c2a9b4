/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot path stores an address outside of all known files in `wanted`. The helper thread looks up
 * one such address a second; until then the ops have no call site. We never remove a file from the
 * table, because the record may hold addresses of an unloaded file for a long time.
 */
#include "agent/record/modules.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/state.h"
#include "agent/record/buildid.h"
#include "agent/record/record.h"
#include "common/parse.h"

/*
 * PyTorch's default timeout. It applies if the program passes no timeout to init_process_group().
 * PyTorch's watchdog then ends the job.
 */
#define TORCH_TIMEOUT_NS (UINT64_C(600) * 1000000000)

static struct {
	uintptr_t start, end; /* the whole file, from its load address on */
} ranges[CW_REC_MODULES];
static uint32_t range_count;
static uintptr_t wanted; /* address to look up, 0 = none */

void cw_module_find(const void *caller, uint16_t *ret_module, uint32_t *ret_offset)
{
	uint32_t count = __atomic_load_n(&range_count, __ATOMIC_ACQUIRE);
	uintptr_t addr = (uintptr_t)caller;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (addr - ranges[i].start < ranges[i].end - ranges[i].start)
			break;
	}
	if (i == count) {
		__atomic_store_n(&wanted, addr, __ATOMIC_RELAXED);
		*ret_module = CW_REC_NO_SLOT;
		*ret_offset = 0;
		return;
	}
	cw_tls.last_module = (uint16_t)i;
	cw_tls.module_start = ranges[i].start;
	cw_tls.module_bytes = ranges[i].end - ranges[i].start;
	*ret_module = (uint16_t)i;
	*ret_offset = (uint32_t)(addr - ranges[i].start);
}

struct mapping {
	uintptr_t start, end, offset;
	const char *path; /* "" = an anonymous mapping */
};

/* Parses a line "start-end perms offset dev inode   path". */
static bool parse(const char *line, struct mapping *m)
{
	const char *p = line;
	uint64_t start, end, offset;

	if (cw_parse_digits(&p, 16, &start) < 0 || *p++ != '-')
		return false;
	if (cw_parse_digits(&p, 16, &end) < 0 || *p++ != ' ')
		return false;
	p = strchr(p, ' ');
	if (!p++ || cw_parse_digits(&p, 16, &offset) < 0)
		return false;
	m->start = start;
	m->end = end;
	m->offset = offset;
	p = strchr(p, '/');
	m->path = p ? p : "";
	return true;
}

/*
 * Assumes PyTorch's default timeout if PyTorch's process group calls NCCL and no other setting is
 * known. `path` is a file that calls NCCL.
 */
static void assume_timeout(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (cw_record.header->job_timeout_ns || cw_record.header->job_timeout_source[0] ||
	    strncmp(slash ? slash + 1 : path, "libtorch_cuda", strlen("libtorch_cuda")) != 0)
		return;
	CW_STORE(cw_record.header->is_timeout_assumed, 1);
	CW_STORE(cw_record.header->job_timeout_ns, TORCH_TIMEOUT_NS);
}

static void add(uintptr_t start, uintptr_t end, const char *path)
{
	struct cw_rec_module *m;
	uint32_t i = range_count;
	size_t len = strlen(path);

	assume_timeout(path);
	if (i == CW_REC_MODULES) {
		cw_record_drop(CW_REC_DROP_MODULES);
		return;
	}
	m = &cw_record.modules[i];
	if (len >= sizeof(m->name))
		path += len - (sizeof(m->name) - 1);
	memcpy(m->name, path, strlen(path) + 1);
	m->build_id_bytes = (uint8_t)cw_build_id_read(start, m->build_id);
	CW_STORE(m->start, (uint64_t)start);
	ranges[i].start = start;
	ranges[i].end = end;
	__atomic_store_n(&range_count, i + 1, __ATOMIC_RELEASE);
}

/*
 * Searches the memory map for the file at an address. The mappings of a file are consecutive. The
 * first mapping, at offset 0, gives the load address.
 */
struct search {
	uintptr_t addr;
	uintptr_t file_start, file_end;
	char file[256];
	bool hit;
	/*
	 * True once another file has begun. Later lines of the first file then belong to another
	 * mapping of it.
	 */
	bool is_over;
};

static void on_line(struct search *s, char *line)
{
	struct mapping m;

	if (!parse(line, &m))
		return;
	if (s->is_over)
		return;
	if (m.path[0] && strcmp(m.path, s->file) == 0) {
		s->file_end = m.end;
	} else if (!s->hit) {
		strncpy(s->file, m.path, sizeof(s->file) - 1);
		s->file_start = m.start;
		s->file_end = m.end;
	} else {
		s->is_over = m.path[0] != '\0';
		return;
	}
	if (s->addr >= m.start && s->addr < m.end)
		s->hit = s->file[0] != '\0';
}

/* Passes lines of the memory map to on_line(), which stops the walk at the end of the file. */
static void read_maps(struct search *s)
{
	static char buf[16384]; /* only the helper thread uses it */
	size_t have = 0;
	ssize_t n;
	int fd;

	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (!s->is_over && (n = read(fd, buf + have, sizeof(buf) - 1 - have)) > 0) {
		char *line = buf, *end;

		have += (size_t)n;
		buf[have] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			on_line(s, line);
		}
		have = strlen(line);
		memmove(buf, line, have);
		if (have == sizeof(buf) - 1)
			break; /* no valid line is that long */
	}
	(void)close(fd);
}

void cw_modules_resolve(void)
{
	struct search s = { .addr = __atomic_exchange_n(&wanted, 0, __ATOMIC_RELAXED) };

	if (!s.addr || range_count == CW_REC_MODULES)
		return;
	read_maps(&s);
	if (s.hit)
		add(s.file_start, s.file_end, s.file);
}

bool cw_module_path(uintptr_t addr, char *ret, size_t len)
{
	struct search s = { .addr = addr };

	read_maps(&s);
	if (!s.hit || strlen(s.file) >= len)
		return false;
	memcpy(ret, s.file, strlen(s.file) + 1);
	return true;
}
