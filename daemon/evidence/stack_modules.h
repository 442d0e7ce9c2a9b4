/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF files mapped into a process, as far as the copied stacks point into them. We find them in
 * /proc/<pid>/maps and open them through /proc/<pid>/map_files. That is the mapped file itself,
 * even if it was deleted or is inside a container. Otherwise we use /proc/<pid>/root, if inode or
 * build-id show that it is the same file.
 *
 * Runs in a capture child, as long as that may open them.
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
	uint64_t first_end;            /* end of the first mapping: part of its map_files name */
	uint64_t dev, inode;
	char *path; /* "[vdso]" for the vdso */
	bool is_wanted, is_vdso;
	bool is_remote; /* on a server: not opened */
	int fd;         /* -1 = not open */
	uint8_t *image;
	size_t image_len; /* of the vdso: copied from memory */
};

struct cw_stack_modules {
	struct cw_stack_module *list; /* ascending */
	size_t n;
	bool is_cut;
};

/* Parses the text of a maps file. 0 or -ENOMEM. Pure. */
int cw_stack_modules_parse(const char *text, size_t len, struct cw_stack_modules *ret);
/* Reads /proc/<pid>/maps (at most 16 MiB). 0 or -errno. */
int cw_stack_modules_read(pid_t pid, struct cw_stack_modules *ret);
void cw_stack_modules_fini(struct cw_stack_modules *mods);

/* Marks the module with code at addr, if any. */
void cw_stack_modules_want(struct cw_stack_modules *mods, uint64_t addr);

/*
 * Opens all wanted modules. A module stays closed if opening it fails, or if `memory` says that it
 * must not be read. Opens only regular files.
 */
void cw_stack_modules_open(pid_t pid, const struct cw_mapped_memory *memory,
			   struct cw_stack_modules *mods);

/*
 * Finds the build-id of an ELF image. The callback reads all of len at an offset into the file, or
 * from the start of the memory image; 0 or -errno. Returns its length, 0 = none or not an ELF
 * file. Pure.
 */
typedef int (*cw_elf_read_fn)(void *user, uint64_t offset, void *buf, size_t len);
size_t cw_stack_build_id(cw_elf_read_fn read, void *user, bool is_memory,
			 uint8_t id[CW_BUILD_ID_MAX]);
