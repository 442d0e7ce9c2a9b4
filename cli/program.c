/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/paths.h"
#include "common/cleanup.h"

/*
 * Limit on scripts that are each other's interpreter. If there are more, we assume a loop and give
 * up.
 */
#define MAX_SCRIPTS 4

/*
 * Finds the interpreter of a script; for "#!/usr/bin/env python3" this is python3. Returns false if
 * the file is not a script.
 */
static bool script_interpreter(const char *path, char interpreter[PATH_MAX])
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char line[PATH_MAX], *rest = line + 2, *word;
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

	if (n < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	rest += strspn(rest, " \t");
	word = strsep(&rest, " \t");
	if (rest && strcmp(word + (strlen(word) > 4 ? strlen(word) - 4 : 0), "/env") == 0) {
		rest += strspn(rest, " \t");
		word = strsep(&rest, " \t");
	}
	return word && *word && cw_paths_find_program(word, interpreter) == 0;
}

int cw_program_resolve(const char *program, char path[PATH_MAX])
{
	int error = cw_paths_find_program(program, path);
	char next[PATH_MAX];

	for (int i = 0; error == 0 && i < MAX_SCRIPTS && script_interpreter(path, next); i++)
		(void)snprintf(path, PATH_MAX, "%s", next);
	return error;
}

void cw_program_loader(Elf *elf, int fd, char loader[CW_LOADER_LEN])
{
	size_t n = 0;

	loader[0] = '\0';
	(void)elf_getphdrnum(elf, &n);
	for (size_t i = 0; i < n && i < INT32_MAX; i++) {
		GElf_Phdr p;
		size_t len;

		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_INTERP)
			continue;
		len = p.p_filesz < CW_LOADER_LEN - 1 ? p.p_filesz : CW_LOADER_LEN - 1;
		if (pread(fd, loader, len, (off_t)p.p_offset) == (ssize_t)len)
			loader[len] = '\0';
		else
			loader[0] = '\0';
		return;
	}
}

void cw_program_loader_of(const char *path, char loader[CW_LOADER_LEN])
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	Elf *elf;

	loader[0] = '\0';
	if (fd < 0 || elf_version(EV_CURRENT) == EV_NONE)
		return;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF)
		cw_program_loader(elf, fd, loader);
	(void)elf_end(elf); /* takes NULL; a read-only handle has nothing to lose */
}

/*
 * True if the file has a DT_SONAME, as a loader that runs directly has. A loader names no other
 * loader, but it obeys LD_PRELOAD nevertheless.
 */
static bool has_soname(Elf *elf)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data = NULL;
		GElf_Shdr header;
		GElf_Dyn entry;

		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC)
			data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getdyn(data, i, &entry); i++)
			if (entry.d_tag == DT_SONAME)
				return true;
	}
	return false;
}

bool cw_program_is_static(const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char loader[CW_LOADER_LEN] = "";
	bool is_static = false;
	GElf_Ehdr header;
	Elf *elf;

	if (fd < 0 || elf_version(EV_CURRENT) == EV_NONE)
		return false;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) && header.e_phnum &&
	    (header.e_type == ET_EXEC || header.e_type == ET_DYN)) {
		cw_program_loader(elf, fd, loader);
		is_static = !*loader && !has_soname(elf);
	}
	(void)elf_end(elf); /* takes NULL; a read-only handle has nothing to lose */
	return is_static;
}
