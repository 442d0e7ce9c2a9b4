/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AddressSanitizer's runtime refuses to start unless it is the first library. A preloaded agent
 * alone would precede it. So we also preload the runtime, ahead of the agent.
 */
#include "cli/run/run_asan.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/paths.h"
#include "common/cleanup.h"

static int open_program(const char *program)
{
	char path[PATH_MAX];

	if (cw_paths_find_program(program, path) < 0)
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int find_in_dynamic(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, char *soname,
			   size_t len)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Dyn dyn;

	for (int i = 0; data && gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
		const char *name;

		if (dyn.d_tag != DT_NEEDED)
			continue;
		name = elf_strptr(elf, header->sh_link, dyn.d_un.d_val);
		if (!name || strncmp(name, "libasan.so", strlen("libasan.so")) != 0)
			continue;
		snprintf(soname, len, "%s", name);
		return 1;
	}
	return 0;
}

int run_asan_needed(const char *program, char *soname, size_t len)
{
	_cleanup_(closep) int fd = open_program(program);
	Elf_Scn *section = NULL;
	int found = 0;
	Elf *elf;

	if (fd < 0 || elf_version(EV_CURRENT) == EV_NONE)
		return 0;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	while (elf && !found && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC)
			found = find_in_dynamic(elf, section, &header, soname, len);
	}
	(void)elf_end(elf); /* elf_end() accepts NULL, and a read-only handle has nothing to lose */
	return found;
}
