/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/core/core_file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/evidence/stack_registers.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#error "which registers does this machine have?"
#endif

struct cw_core_segment {
	uint64_t start, len, offset; /* len: number of bytes in the file */
};

static bool read_at(const struct cw_core_file *core, uint64_t offset, void *buf, size_t len)
{
	return offset <= INT64_MAX && pread(core->fd, buf, len, (off_t)offset) == (ssize_t)len;
}

/* ---- notes ---- */

static void copy_registers(const elf_gregset_t *from, struct cw_core_thread *to)
{
	struct user_regs_struct u;

	_Static_assert(sizeof(u) == sizeof(*from), "the kernel's registers");
	memcpy(&u, from, sizeof(u));
	cw_stack_registers(&u, to->regs, &to->sp, &to->pc);
}

static void take_thread(struct cw_core_file *core, const char *desc, size_t len)
{
	struct elf_prstatus status;
	struct cw_core_thread *t = &core->threads[core->n_threads];

	if (len < sizeof(status))
		return;
	if (core->n_threads == CW_CORE_MAX_THREADS) {
		core->n_more_threads++;
		return;
	}
	memcpy(&status, desc, sizeof(status));
	if (core->n_threads++ == 0)
		core->signal = status.pr_cursig;
	t->tid = status.pr_pid;
	copy_registers(&status.pr_reg, t);
}

/*
 * Takes the list of mapped files: their number, the page size, three numbers for each, and then the
 * paths. The offset counts pages.
 */
static int take_files(struct cw_core_file *core, const char *desc, size_t len)
{
	uint64_t head[2], entry[3];
	const char *path, *end = desc + len;

	if (len < sizeof(head) || core->mappings)
		return 0;
	memcpy(head, desc, sizeof(head));
	if (head[0] > (len - sizeof(head)) / sizeof(entry) || head[1] == 0 || head[1] > 1u << 16)
		return 0;
	if (head[0] > CW_CORE_MAX_FILES)
		return 0;
	core->mappings = calloc(head[0] + 1, sizeof(*core->mappings));
	if (!core->mappings)
		return -ENOMEM;
	path = desc + sizeof(head) + head[0] * sizeof(entry);
	for (uint64_t i = 0; i < head[0]; i++) {
		const char *path_end = memchr(path, '\0', (size_t)(end - path));

		memcpy(entry, desc + sizeof(head) + i * sizeof(entry), sizeof(entry));
		if (!path_end || entry[0] >= entry[1] || entry[2] > UINT64_MAX / head[1] ||
		    (core->n_mappings && core->mappings[core->n_mappings - 1].end > entry[0]))
			break;
		core->mappings[core->n_mappings++] =
			(struct cw_core_mapping){ .start = entry[0],
						  .end = entry[1],
						  .offset = entry[2] * head[1],
						  .path = path };
		path = path_end + 1;
	}
	return 0;
}

static int take_notes(struct cw_core_file *core, const char *notes, size_t len)
{
	size_t at = 0;
	int r = 0;

	while (r == 0 && len - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr h;
		size_t name, desc, next;

		memcpy(&h, notes + at, sizeof(h));
		name = at + sizeof(h);
		desc = name + ((h.n_namesz + UINT64_C(3)) & ~UINT64_C(3));
		next = desc + ((h.n_descsz + UINT64_C(3)) & ~UINT64_C(3));
		if (desc > len || h.n_descsz > len - desc)
			break;
		if (h.n_namesz == 5 && memcmp(notes + name, "CORE", 5) == 0) {
			if (h.n_type == NT_PRSTATUS)
				take_thread(core, notes + desc, h.n_descsz);
			else if (h.n_type == NT_FILE)
				r = take_files(core, notes + desc, h.n_descsz);
			else if (h.n_type == NT_PRPSINFO &&
				 h.n_descsz >= sizeof(struct elf_prpsinfo))
				memcpy(&core->pid,
				       notes + desc + offsetof(struct elf_prpsinfo, pr_pid),
				       sizeof(core->pid));
		}
		at = next < len ? next : len;
	}
	return r;
}

static int read_notes(struct cw_core_file *core, const Elf64_Phdr *p)
{
	if (core->notes || p->p_filesz > CW_CORE_MAX_NOTES)
		return 0; /* the kernel writes one segment of notes */
	core->notes = malloc(p->p_filesz + 1);
	if (!core->notes)
		return -ENOMEM;
	if (!read_at(core, p->p_offset, core->notes, p->p_filesz)) {
		core->is_cut = true;
		return 0;
	}
	return take_notes(core, core->notes, p->p_filesz);
}

/* ---- segments ---- */

static int by_start(const void *a, const void *b)
{
	const struct cw_core_segment *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void take_segment(struct cw_core_file *core, const Elf64_Phdr *p)
{
	uint64_t len = p->p_filesz;

	if (len && (p->p_offset >= core->size || len > core->size - p->p_offset)) {
		core->is_cut = true;
		len = p->p_offset < core->size ? core->size - p->p_offset : 0;
	}
	if (len && p->p_vaddr <= UINT64_MAX - len)
		core->segments[core->n_segments++] = (struct cw_core_segment){
			.start = p->p_vaddr, .len = len, .offset = p->p_offset
		};
}

/*
 * Returns the number of program headers. If there are too many for the header, the first section
 * header has the number.
 */
static uint32_t count_headers(const struct cw_core_file *core, const Elf64_Ehdr *e)
{
	Elf64_Shdr first;

	if (e->e_phnum != PN_XNUM)
		return e->e_phnum;
	if (e->e_shoff == 0 || !read_at(core, e->e_shoff, &first, sizeof(first)))
		return 0;
	return first.sh_info;
}

static int read_tables(struct cw_core_file *core)
{
	_cleanup_(freep) Elf64_Phdr *headers = NULL;
	Elf64_Ehdr e;
	uint32_t n;
	int r = 0;

	if (!read_at(core, 0, &e, sizeof(e)) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_ident[EI_DATA] != ELFDATA2LSB ||
	    e.e_type != ET_CORE || e.e_machine != MACHINE || e.e_phentsize != sizeof(Elf64_Phdr))
		return -EBADMSG;
	n = count_headers(core, &e);
	if (n == 0 || n > CW_CORE_MAX_SEGMENTS)
		return -EBADMSG;
	headers = calloc(n, sizeof(*headers));
	core->segments = calloc(n, sizeof(*core->segments));
	if (!headers || !core->segments)
		return -ENOMEM;
	if (!read_at(core, e.e_phoff, headers, n * sizeof(*headers)))
		return -EBADMSG;
	for (uint32_t i = 0; i < n && r == 0; i++)
		if (headers[i].p_type == PT_NOTE)
			r = read_notes(core, &headers[i]);
		else if (headers[i].p_type == PT_LOAD)
			take_segment(core, &headers[i]);
	qsort(core->segments, core->n_segments, sizeof(*core->segments), by_start);
	if (r < 0)
		return r;
	return core->n_threads ? 0 : -EBADMSG;
}

int cw_core_file_open(int fd, struct cw_core_file *ret)
{
	struct stat st;
	int r;

	*ret = (struct cw_core_file){ .fd = fd };
	if (fstat(fd, &st) < 0)
		return -errno;
	ret->size = st.st_size > 0 ? (uint64_t)st.st_size : 0;
	r = read_tables(ret);
	if (r < 0)
		cw_core_file_fini(ret);
	return r;
}

void cw_core_file_fini(struct cw_core_file *core)
{
	free(core->segments);
	free(core->mappings);
	free(core->notes);
	*core = (struct cw_core_file){ .fd = -1 };
}

size_t cw_core_file_read(const struct cw_core_file *core, uint64_t addr, void *buf, size_t len)
{
	size_t low = 0, high = core->n_segments, done = 0;

	/* Find the first segment that begins after the address. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (core->segments[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	/* Segments of adjacent mappings follow each other without a gap. */
	for (size_t i = low ? low - 1 : 0; done < len && i < core->n_segments; i++) {
		const struct cw_core_segment *s = &core->segments[i];
		uint64_t at = addr + done - s->start, n;

		if (addr + done < s->start || at >= s->len)
			break;
		n = s->len - at < len - done ? s->len - at : len - done;
		if (!read_at(core, s->offset + at, (char *)buf + done, n))
			break;
		done += n;
	}
	return done;
}

const struct cw_core_mapping *cw_core_file_mapping(const struct cw_core_file *core, uint64_t addr)
{
	size_t low = 0, high = core->n_mappings;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct cw_core_mapping *m = &core->mappings[mid];

		if (addr < m->start)
			high = mid;
		else if (addr >= m->end)
			low = mid + 1;
		else
			return m;
	}
	return NULL;
}
