/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF files mapped into a process, as far as the copied stacks point into them: found in
 * /proc/<pid>/maps, opened through /proc/<pid>/map_files (the very file that is mapped, also when
 * it was deleted or lies in a container), else through /proc/<pid>/root, if it is the same file by
 * inode or by build-id.
 *
 * Runs in a capture child, while it still has the right to open them.
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
	uint64_t exec_start, exec_end; /* start == end: none */
	uint64_t first_end;            /* end of the first mapping: names its map_files entry */
	uint64_t dev, inode;
	char *path; /* "[vdso]" for that one */
	bool is_wanted, is_vdso;
	bool is_remote; /* behind a server: not opened */
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

/* Marks the module whose code addr points into, if any. */
void cw_stack_modules_want(struct cw_stack_modules *mods, uint64_t addr);

/*
 * Opens all wanted ones; those that cannot be opened, or that memory says are not to be read, stay
 * closed. Never opens but regular files.
 */
void cw_stack_modules_open(pid_t pid, const struct cw_mapped_memory *memory,
			   struct cw_stack_modules *mods);

/*
 * The build-id of an ELF image, read through a callback (offset into file or from the start of the
 * memory image; 0 or -errno, all of len). Returns its length, 0 = none or not an ELF file. Pure.
 */
typedef int (*cw_elf_read_fn)(void *user, uint64_t offset, void *buf, size_t len);
size_t cw_stack_build_id(cw_elf_read_fn read, void *user, bool is_memory,
			 uint8_t id[CW_BUILD_ID_MAX]);
