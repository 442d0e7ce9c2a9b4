/* SPDX-License-Identifier: Apache-2.0 */
/* Build-ids of loaded libraries, and of files that only look like one. */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/record/buildid.h"

static uint8_t id[CW_BUILD_ID_MAX];

/* A file of one page: header, one note segment, the note. */
struct fake_file {
	ElfW(Ehdr) ehdr;
	ElfW(Phdr) phdrs[2];
	ElfW(Nhdr) note;
	char name[4];
	uint8_t desc[32];
};

static struct fake_file *file;
static size_t page;

static void make(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	/* Nothing lies behind it: a reader that goes too far gets an error. */
	file = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)file, MAP_FAILED);
	cr_assert_eq(munmap((char *)file + page, page), 0);
	memcpy(file->ehdr.e_ident, ELFMAG, SELFMAG);
	file->ehdr.e_phentsize = sizeof(file->phdrs[0]);
	file->ehdr.e_phnum = 2;
	file->ehdr.e_phoff = offsetof(struct fake_file, phdrs);
	file->phdrs[0] = (ElfW(Phdr)){ .p_type = PT_LOAD, .p_vaddr = 0x400000, .p_memsz = page };
	file->phdrs[1] = (ElfW(Phdr)){ .p_type = PT_NOTE,
				       .p_vaddr = 0x400000 + offsetof(struct fake_file, note),
				       .p_memsz = sizeof(file->note) + 4 + 20 };
	file->note = (ElfW(Nhdr)){ .n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID };
	memcpy(file->name, "GNU", 4);
	for (unsigned i = 0; i < sizeof(file->desc); i++)
		file->desc[i] = (uint8_t)(i + 1);
}

static unsigned read_it(void)
{
	unsigned n;

	errno = 4711;
	n = cw_build_id_read((uintptr_t)file, id);
	cr_assert_eq(errno, 4711);
	return n;
}

Test(agent_buildid, reads_it_at_the_load_bias, .init = make)
{
	cr_assert_eq(read_it(), 20);
	cr_assert_arr_eq(id, file->desc, 20);
}

Test(agent_buildid, finds_none_in_a_gap)
{
	cr_assert_eq(cw_build_id_read(0, id), 0);
	cr_assert_eq(cw_build_id_read(4096, id), 0);
}

Test(agent_buildid, takes_no_other_note_for_it, .init = make)
{
	file->note.n_type = NT_GNU_ABI_TAG;
	cr_assert_eq(read_it(), 0);
	file->note.n_type = NT_GNU_BUILD_ID;
	memcpy(file->name, "GNO", 4);
	cr_assert_eq(read_it(), 0);
}

Test(agent_buildid, survives_lengths_that_lie, .init = make)
{
	static const uint32_t lies[] = { 0, 21, 25, 0x7fffffff, 0xfffffffc, 0xffffffff };

	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		file->note.n_descsz = lies[i];
		cr_assert_eq(read_it(), 0, "description of %u bytes", lies[i]);
		file->note.n_descsz = 20;
		file->note.n_namesz = lies[i];
		cr_assert_eq(read_it(), 0, "name of %u bytes", lies[i]);
		file->note.n_namesz = 4;
	}
	file->phdrs[1].p_memsz = UINT64_MAX;
	cr_assert_eq(read_it(), 20, "what fits is looked at");
	file->phdrs[1].p_vaddr = 0x400000 + page - 4;
	cr_assert_eq(read_it(), 0, "the end of the mapping");
	file->phdrs[1].p_vaddr = UINT64_MAX;
	cr_assert_eq(read_it(), 0, "no address");
	file->ehdr.e_phnum = UINT16_MAX;
	cr_assert_eq(read_it(), 0, "too many headers");
	file->ehdr.e_phnum = 2;
	file->ehdr.e_phoff = UINT64_MAX - 8;
	cr_assert_eq(read_it(), 0, "headers nowhere");
}
