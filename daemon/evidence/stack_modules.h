/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF files mapped into a process, as far as the copied stacks point into them. We find them in
 * /proc/<pid>/maps and open them through /proc/<pid>/map_files. Such an entry is the mapped file
 * itself, even if the file was deleted or is inside a container. Otherwise we use /proc/<pid>/root,
 * if inode or build-id show that it is the same file.
 *
 * Runs in a capture child, while the child may still open files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CW_STACK_MAX_MODULES 2048u
#define CW_BUILD_ID_MAX 64u

struct cw_mapped_memory;

struct cw_stack_module {
	uint64_t start, end;           /* from the file's first mapping to its last */
	uint64_t exec_start, exec_end; /* exec_end == 0: none */
	uint64_t first_end;            /* end of the first mapping; part of the name in map_files */
	uint64_t dev, inode;
	char *path; /* "[vdso]" for the vdso */
	bool is_wanted, is_vdso;
	bool is_remote; /* the file is on a server, so we do not open it */
	int fd;         /* -1 = not open */
	uint8_t *image;
	size_t image_len; /* size of the vdso's copy */
};

struct cw_stack_modules {
	struct cw_stack_module *list; /* in ascending order */
	size_t n;
	bool is_cut;
};

/* Parses the text of a maps file. 0 or -ENOMEM. Pure. */
int cw_stack_modules_parse(const char *text, size_t len, struct cw_stack_modules *ret);
/* Reads /proc/<pid>/maps (at most 16 MiB). 0 or -errno. */
int cw_stack_modules_read(pid_t pid, struct cw_stack_modules *ret);
void cw_stack_modules_fini(struct cw_stack_modules *mods);

/* Marks the module that has code at addr, if there is one. */
void cw_stack_modules_want(struct cw_stack_modules *mods, uint64_t addr);

/*
 * Opens all wanted modules that are regular files. A module stays closed if we cannot open it, or
 * if `memory` says that we must not read it.
 */
void cw_stack_modules_open(pid_t pid, const struct cw_mapped_memory *memory,
			   struct cw_stack_modules *mods);

/*
 * Finds the build-id of an ELF image. Returns its length; 0 = no build-id, or not an ELF file. The
 * callback reads exactly len bytes at an offset, and returns 0 or -errno. The offset counts from
 * the start of the file or, with is_memory, of the memory image. Pure.
 */
typedef int (*cw_elf_read_fn)(void *user, uint64_t offset, void *buf, size_t len);
size_t cw_stack_build_id(cw_elf_read_fn read, void *user, bool is_memory,
			 uint8_t id[CW_BUILD_ID_MAX]);
