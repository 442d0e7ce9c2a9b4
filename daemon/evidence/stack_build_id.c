/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <string.h>

#include "daemon/evidence/stack_modules.h"

/*
 * Maximum number of program headers, and maximum size of a note segment. No compiler makes a file
 * with more.
 */
#define MAX_PHDRS 128u
#define MAX_NOTES 4096u

static size_t align4(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static size_t find_in_notes(const uint8_t *notes, size_t len, uint8_t *id)
{
	size_t at = 0;

	while (at + sizeof(Elf64_Nhdr) <= len) {
		size_t name = at + sizeof(Elf64_Nhdr), desc;
		Elf64_Nhdr h;

		memcpy(&h, notes + at, sizeof(h));
		if (h.n_namesz > MAX_NOTES || h.n_descsz > MAX_NOTES)
			return 0;
		desc = name + align4(h.n_namesz);
		if (desc + h.n_descsz > len)
			return 0;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && h.n_descsz > 0 &&
		    h.n_descsz <= CW_BUILD_ID_MAX && memcmp(notes + name, "GNU", 4) == 0) {
			memcpy(id, notes + desc, h.n_descsz);
			return h.n_descsz;
		}
		at = desc + align4(h.n_descsz);
	}
	return 0;
}

size_t cw_stack_build_id(cw_elf_read_fn read, void *user, bool is_memory,
			 uint8_t id[CW_BUILD_ID_MAX])
{
	Elf64_Phdr phdrs[MAX_PHDRS];
	uint8_t notes[MAX_NOTES];
	uint64_t base = 0;
	Elf64_Ehdr e;

	if (read(user, 0, &e, sizeof(e)) < 0 || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof(Elf64_Phdr) ||
	    e.e_phnum == 0 || e.e_phnum > MAX_PHDRS ||
	    read(user, e.e_phoff, phdrs, e.e_phnum * sizeof(phdrs[0])) < 0)
		return 0;
	/* The addresses in memory count from the first segment that is loaded. */
	for (unsigned i = 0; i < e.e_phnum; i++) {
		if (phdrs[i].p_type == PT_LOAD) {
			base = phdrs[i].p_vaddr - phdrs[i].p_offset;
			break;
		}
	}
	for (unsigned i = 0; i < e.e_phnum; i++) {
		const Elf64_Phdr *p = &phdrs[i];
		uint64_t at = is_memory ? p->p_vaddr - base : p->p_offset;
		size_t len = p->p_filesz < MAX_NOTES ? p->p_filesz : MAX_NOTES;
		size_t n;

		if (p->p_type != PT_NOTE || len == 0 || read(user, at, notes, len) < 0)
			continue;
		n = find_in_notes(notes, len, id);
		if (n)
			return n;
	}
	return 0;
}
