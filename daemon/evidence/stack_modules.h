/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF files that a process has mapped, if the copied stacks point into them. /proc/<pid>/maps
 * lists them, and we open them in /proc/<pid>/map_files. An entry of this directory is the mapped
 * file itself, even if the file was deleted or is inside a container. If we cannot open it, we open
 * the path below /proc/<pid>/root. We use that file only if its inode or build-id shows that it is
 * the same file.
 *
 * Runs in a capture child, while it may still open files.
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
	/* From the start of the file's first mapping to the end of its last one. */
	uint64_t start, end;
	uint64_t exec_start, exec_end; /* range of the executable mapping; exec_end 0 = none */
	/* End of the first mapping, which is part of its name in map_files. */
	uint64_t first_end;
	uint64_t dev, inode;
	char *path; /* path of the file; "[vdso]" for the vdso */
	bool is_wanted, is_vdso;
	bool is_remote; /* true if the file is on a server, so that we must not open it */
	int fd;         /* descriptor of the file; -1 = not open */
	uint8_t *image;
	size_t image_len; /* size of image, the copy of the vdso */
};

struct cw_stack_modules {
	struct cw_stack_module *list; /* in ascending order of addresses */
	size_t n;
	bool is_cut;
};

/* Parses the text of a maps file. Returns 0 or -ENOMEM. Depends only on the text. */
int cw_stack_modules_parse(const char *text, size_t len, struct cw_stack_modules *ret);
/* Reads /proc/<pid>/maps, at most 16 MiB of it. Returns 0 or -errno. */
int cw_stack_modules_read(pid_t pid, struct cw_stack_modules *ret);
void cw_stack_modules_fini(struct cw_stack_modules *mods);

/* Marks the module that has code at this address, if there is one, as wanted. */
void cw_stack_modules_want(struct cw_stack_modules *mods, uint64_t addr);

/*
 * Opens all wanted modules that are regular files. A module stays closed if we cannot open it, or
 * if `memory` does not allow us to read it.
 */
void cw_stack_modules_open(pid_t pid, const struct cw_mapped_memory *memory,
			   struct cw_stack_modules *mods);

/*
 * Finds the build-id of an ELF image. Returns its length; 0 = it has none, or is not an ELF file.
 * read: reads exactly len bytes at an offset, and returns 0 or -errno. The offset counts from the
 * start of the file or, if is_memory, from the start of the image in memory. Depends only on what
 * read returns.
 */
typedef int (*cw_elf_read_fn)(void *user, uint64_t offset, void *buf, size_t len);
size_t cw_stack_build_id(cw_elf_read_fn read, void *user, bool is_memory,
			 uint8_t id[CW_BUILD_ID_MAX]);
