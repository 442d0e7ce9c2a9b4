/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds programs into which the loader does not load the agent, and programs with an NCCL that the
 * agent cannot intercept.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "cli/paths.h"
#include "cli/program.h"
#include "cli/test_load.h"
#include "common/cleanup.h"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#endif

static bool has_file_capabilities(const char *path)
{
	return getxattr(path, "security.capability", NULL, 0) > 0;
}

static void check_rights(struct doctor *d, const char *path, const struct stat *st)
{
	if (st->st_mode & (S_ISUID | S_ISGID))
		doctor_find(
			d, "program-setuid", NULL,
			"%s is set-user-ID or set-group-ID: where this gives its caller more "
			"rights, the loader drops LD_PRELOAD, and the agent is not loaded. Leave it "
			"as it is, and start the ranks with another program",
			path);
	if (has_file_capabilities(path))
		doctor_find(
			d, "program-capabilities", NULL,
			"%s has file capabilities: where these give its caller more rights, the "
			"loader drops LD_PRELOAD, and the agent is not loaded. Leave it as it is, and "
			"start the ranks with another program",
			path);
}

static bool section_has_nccl(Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;

	for (size_t i = 0; data && i < n && i < INT32_MAX; i++) {
		const char *name;
		GElf_Sym sym;

		if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(elf, header->sh_link, sym.st_name);
		if (name && strcmp(name, "ncclAllReduce") == 0)
			return true;
	}
	return false;
}

static bool has_own_nccl(Elf *elf)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
		    section_has_nccl(elf, section, &header))
			return true;
	}
	return false;
}

static void check_elf(struct doctor *d, const char *path, Elf *elf, int fd)
{
	char loader[CW_LOADER_LEN];
	GElf_Ehdr header;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header)) {
		doctor_find(d, "program-unknown", NULL,
			    "%s is neither a script nor an ELF program: give the program that the "
			    "ranks run",
			    path);
		return;
	}
	cw_program_loader(elf, fd, loader);
	if (header.e_machine != OWN_MACHINE)
		doctor_find(d, "program-machine", NULL,
			    "%s is built for another processor than the agent: install collwatch "
			    "for the program's processor",
			    path);
	else if (!*loader)
		doctor_find(d, "program-static", NULL,
			    "%s is linked statically, so no loader can load the agent: link it "
			    "with -Wl,-Bdynamic against libc and libnccl.so",
			    path);
	else if (strstr(loader, "ld-musl"))
		doctor_find(d, "program-musl", NULL,
			    "%s uses musl (%s): the agent is built for glibc 2.17 and later", path,
			    loader);
	if (has_own_nccl(elf))
		doctor_find(d, "nccl-static", NULL,
			    "%s contains its own copy of NCCL, whose calls do not pass through the "
			    "agent: link it against libnccl.so, or, if that NCCL is 2.27 or newer, "
			    "set NCCL_PROFILER_PLUGIN to the path of libcollwatch.so",
			    path);
}

static void check_file(struct doctor *d, const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	Elf *elf;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		int error = fd < 0 ? errno : 0;

		doctor_find(d, "program-unreadable", NULL, "%s cannot be read: %s%s", path,
			    error ? strerror(error) : "it is not a file",
			    error == EACCES ? "; run collwatch doctor as its owner or as root"
					    : "");
		return;
	}
	check_rights(d, path, &st);
	(void)elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf)
		check_elf(d, path, elf, fd);
	(void)elf_end(elf);
}

/*
 * True if we may run the program's loader, which maps the program's libraries. A library may
 * contain code of another user. So as root, we do not run the loader of a program that other users
 * own or can write.
 */
static bool is_harmless(const char *path)
{
	struct stat st;

	return geteuid() != 0 ||
	       (stat(path, &st) == 0 && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)));
}

static void check_load(struct doctor *d, const char *program, const char *path)
{
	char agent[PATH_MAX], loader[CW_LOADER_LEN], why[CW_TEST_LOAD_WHY];
	struct cw_err err;

	cw_program_loader_of(path, loader);
	if (!*loader || strstr(loader, "ld-musl") || !is_harmless(path) ||
	    cw_paths_find(CW_PART_AGENT, agent, &err) < 0)
		return;
	doctor_checked(d, "agent-load");
	if (cw_test_load(program, agent, agent, why) < 0)
		doctor_find(d, "agent-not-loadable", NULL,
			    "the agent %s cannot be loaded into %s: %s; install the collwatch "
			    "that is built for the program's C library",
			    agent, path, why);
}

void doctor_check_program(struct doctor *d, const char *program)
{
	char path[PATH_MAX];

	doctor_checked(d, "program");
	if (cw_program_resolve(program, path) < 0) {
		doctor_find(d, "program-missing", NULL, "%s: no such program", program);
		return;
	}
	check_file(d, path);
	check_load(d, program, path);
}

/* ---- a process ---- */

/*
 * True if a line of /proc/PID/NAME contains the needle. If the file is unreadable, returns false
 * and sets *ret_error.
 */
static bool proc_contains(int32_t pid, const char *name, const char *needle, int *ret_error)
{
	char path[64];
	_cleanup_(freep) char *line = NULL;
	size_t size = 0;
	bool found = false;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	f = fopen(path, "re");
	*ret_error = f ? 0 : errno;
	while (f && !found && getdelim(&line, &size, *name == 'e' ? '\0' : '\n', f) >= 0)
		found = strstr(line, needle) != NULL;
	if (f)
		(void)fclose(f); /* we only read the file */
	return found;
}

void doctor_check_process(struct doctor *d, int32_t pid)
{
	char path[64], target[PATH_MAX];
	int error, ignored;
	ssize_t n;

	doctor_checked(d, "process");
	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0) {
		doctor_find(d, "process-unreadable", NULL, "process %d cannot be examined: %s%s",
			    pid, strerror(errno),
			    errno == EACCES || errno == EPERM
				    ? "; run collwatch doctor as its user, or as root"
				    : "; check that it still runs");
		return;
	}
	target[n] = '\0';
	if (!proc_contains(pid, "maps", "libcollwatch.so", &error) && error == 0) {
		if (proc_contains(pid, "environ", "LD_PRELOAD=", &ignored) &&
		    proc_contains(pid, "environ", "libcollwatch.so", &ignored))
			doctor_find(d, "agent-not-loaded", NULL,
				    "process %d has the agent in LD_PRELOAD, but the loader "
				    "ignored it: see the finding about its program",
				    pid);
		else
			doctor_find(d, "agent-not-loaded", "collwatch run -- PROGRAM",
				    "process %d was started without the agent", pid);
	}
	doctor_check_mounts(d, pid);
	check_file(d, path);
}
