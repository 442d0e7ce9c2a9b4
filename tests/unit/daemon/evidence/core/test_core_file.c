/* SPDX-License-Identifier: Apache-2.0 */
/* A small core file: two threads, one mapped file, and two pages of memory. */
#include "daemon/evidence/core/core_file.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/user.h>
#include <unistd.h>

#include "common/cleanup.h"

#define PAGE 4096u
#define MEMORY_AT 0x10000u
#define HEADERS 3u
#define PATH "/usr/bin/python3"

static uint8_t file[64 << 10];
static size_t used;
static int fd = -1;

static void add(const void *data, size_t len)
{
	memcpy(file + used, data, len);
	used += (len + 3) & ~(size_t)3;
}

static void add_note(uint32_t type, const void *data, size_t len)
{
	const Elf64_Nhdr h = { .n_namesz = 5, .n_descsz = (uint32_t)len, .n_type = type };

	add(&h, sizeof(h));
	add("CORE", 5);
	add(data, len);
}

static void add_thread(pid_t tid, int signal, uint64_t sp)
{
	struct elf_prstatus status = { .pr_pid = tid, .pr_cursig = (short)signal };
	struct user_regs_struct regs = { 0 };

#if defined(__x86_64__)
	regs.rsp = sp;
	regs.rip = 0x1234;
#else
	regs.sp = sp;
	regs.pc = 0x1234;
#endif
	memcpy(&status.pr_reg, &regs, sizeof(regs));
	add_note(NT_PRSTATUS, &status, sizeof(status));
}

static void make(void)
{
	const uint64_t files[] = { 1, PAGE, 0x400000, 0x402000, 3 };
	const struct elf_prpsinfo info = { .pr_pid = 17 };
	Elf64_Ehdr e = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
		.e_type = ET_CORE,
#if defined(__x86_64__)
		.e_machine = EM_X86_64,
#else
		.e_machine = EM_AARCH64,
#endif
		.e_phoff = sizeof(e),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = HEADERS
	};
	Elf64_Phdr headers[HEADERS] = { { .p_type = PT_NOTE } };
	char mapped[sizeof(files) + sizeof(PATH)];
	size_t notes;

	used = sizeof(e) + sizeof(headers);
	notes = used;
	add_thread(18, 11, MEMORY_AT + 16);
	add_note(NT_PRPSINFO, &info, sizeof(info));
	add_thread(17, 0, MEMORY_AT);
	memcpy(mapped, files, sizeof(files));
	memcpy(mapped + sizeof(files), PATH, sizeof(PATH));
	add_note(NT_FILE, mapped, sizeof(mapped));
	headers[0].p_offset = notes;
	headers[0].p_filesz = used - notes;
	for (unsigned i = 0; i < 2; i++) {
		headers[i + 1] = (Elf64_Phdr){ .p_type = PT_LOAD,
					       .p_offset = used,
					       .p_vaddr = MEMORY_AT + i * PAGE,
					       .p_filesz = PAGE,
					       .p_memsz = PAGE };
		memset(file + used, 'a' + (int)i, PAGE);
		used += PAGE;
	}
	memcpy(file, &e, sizeof(e));
	memcpy(file + sizeof(e), headers, sizeof(headers));
}

static int open_it(size_t len, struct cw_core_file *ret)
{
	if (fd >= 0)
		(void)close(fd);
	fd = memfd_create("core", MFD_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, file, len), (ssize_t)len);
	return cw_core_file_open(fd, ret);
}

Test(core_file, has_threads_files_and_memory)
{
	struct cw_core_file core;
	char buf[64];

	make();
	cr_assert_eq(open_it(used, &core), 0);
	cr_expect_eq(core.pid, 17);
	cr_expect_eq(core.signal, 11);
	cr_assert_eq(core.n_threads, 2);
	cr_expect_eq(core.threads[0].tid, 18, "the thread that got the signal");
	cr_expect_eq(core.threads[0].sp, MEMORY_AT + 16);
	cr_expect_eq(core.threads[0].pc, 0x1234);
	cr_assert_not_null(cw_core_file_mapping(&core, 0x401fff));
	cr_expect_str_eq(cw_core_file_mapping(&core, 0x401fff)->path, PATH);
	cr_expect_eq(cw_core_file_mapping(&core, 0x400000)->offset, 3 * PAGE);
	cr_expect_null(cw_core_file_mapping(&core, 0x402000));
	cr_expect_eq(cw_core_file_read(&core, MEMORY_AT + PAGE - 8, buf, 16), 16, "both pages");
	cr_expect_arr_eq(buf, "aaaaaaaabbbbbbbb", 16);
	cr_expect_eq(cw_core_file_read(&core, MEMORY_AT + 2 * PAGE - 8, buf, 16), 8);
	cr_expect_eq(cw_core_file_read(&core, MEMORY_AT - 8, buf, 16), 0);
	cr_expect_eq(cw_core_file_read(&core, UINT64_MAX - 4, buf, 16), 0);
	cr_expect(!core.is_cut);
	cw_core_file_fini(&core);
}

Test(core_file, that_was_cut_has_the_rest)
{
	struct cw_core_file core;
	char buf[16];

	make();
	cr_assert_eq(open_it(used - PAGE - 8, &core), 0);
	cr_expect(core.is_cut);
	cr_expect_eq(core.n_threads, 2);
	cr_expect_eq(cw_core_file_read(&core, MEMORY_AT + PAGE - 16, buf, 16), 8);
	cw_core_file_fini(&core);
}

Test(core_file, of_another_kind_is_refused)
{
	struct cw_core_file core;

	make();
	file[16] = ET_EXEC;
	cr_expect_eq(open_it(used, &core), -EBADMSG);
	cr_expect_eq(open_it(0, &core), -EBADMSG);
	memset(file, 0, sizeof(file));
	cr_expect_eq(open_it(used, &core), -EBADMSG);
}

/* Every byte of the tables gets other values, and every use of the result stays in bounds. */
Test(core_file, that_is_hostile_stays_in_bounds, .timeout = 60)
{
	static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	static char buf[4 * PAGE];
	size_t tables;

	make();
	tables = used - 2 * PAGE;
	for (size_t i = 0; i < tables; i++)
		for (size_t k = 0; k < sizeof(values); k++) {
			uint8_t before = file[i];
			struct cw_core_file core;

			file[i] = values[k];
			if (open_it(used, &core) == 0) {
				for (uint32_t n = 0; n < core.n_mappings; n++)
					cr_assert_lt(strlen(core.mappings[n].path),
						     CW_CORE_MAX_NOTES);
				(void)cw_core_file_read(&core, MEMORY_AT, buf, sizeof(buf));
				(void)cw_core_file_mapping(&core, 0x400000);
				cw_core_file_fini(&core);
			}
			file[i] = before;
		}
}
