/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/record/buildid.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PHDRS_MAX 64
#define NOTES_MAX 2048 /* size of a file's first notes, which hold its build-id */

/* Copies memory through the kernel. An unmapped address then gives an error instead of a signal. */
static bool copy(void *to, uintptr_t from, size_t len)
{
	struct iovec local = { to, len };
	struct iovec remote = { (void *)from, len };

	return syscall(SYS_process_vm_readv, syscall(SYS_getpid), &local, 1UL, &remote, 1UL, 0UL) ==
	       (long)len;
}

static size_t padded(uint32_t n)
{
	return ((size_t)n + 3) & ~(size_t)3;
}

/* Searches one note segment. Returns the length of the build-id; 0 if the segment has none. */
static unsigned find(const uint8_t *notes, size_t len, uint8_t *ret_id)
{
	size_t at = 0;

	while (len - at >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) note;
		size_t name, desc;

		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		if (note.n_namesz > len - name)
			return 0;
		desc = name + padded(note.n_namesz);
		if (desc > len || note.n_descsz > len - desc)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    memcmp(notes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 &&
		    note.n_descsz > 0 && note.n_descsz <= CW_BUILD_ID_MAX) {
			memcpy(ret_id, notes + desc, note.n_descsz);
			return note.n_descsz;
		}
		at = desc + padded(note.n_descsz);
		if (at > len)
			return 0;
	}
	return 0;
}

static unsigned read_id(uintptr_t start, uint8_t *ret_id)
{
	ElfW(Phdr) phdrs[PHDRS_MAX];
	uint8_t notes[NOTES_MAX];
	uintptr_t bias = start;
	ElfW(Ehdr) ehdr;

	if (!copy(&ehdr, start, sizeof(ehdr)) || memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 ||
	    ehdr.e_phentsize != sizeof(phdrs[0]) || ehdr.e_phnum > PHDRS_MAX ||
	    !copy(phdrs, start + ehdr.e_phoff, ehdr.e_phnum * sizeof(phdrs[0])))
		return 0;
	for (unsigned i = 0; i < ehdr.e_phnum; i++) {
		if (phdrs[i].p_type == PT_LOAD && phdrs[i].p_offset == 0)
			bias = start - phdrs[i].p_vaddr;
	}
	for (unsigned i = 0; i < ehdr.e_phnum; i++) {
		size_t len = phdrs[i].p_memsz < NOTES_MAX ? phdrs[i].p_memsz : NOTES_MAX;
		unsigned n = 0;

		if (phdrs[i].p_type == PT_NOTE && copy(notes, bias + phdrs[i].p_vaddr, len))
			n = find(notes, len, ret_id);
		if (n)
			return n;
	}
	return 0;
}

unsigned cw_build_id_read(uintptr_t start, uint8_t ret_id[CW_BUILD_ID_MAX])
{
	int saved_errno = errno;
	unsigned n = read_id(start, ret_id);

	errno = saved_errno;
	return n;
}
