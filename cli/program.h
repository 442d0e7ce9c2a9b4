/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out which file the kernel and the loader run for a program's name. Reads programs and never
 * runs them. Blocking, any thread.
 */
#pragma once

#include <libelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define CW_LOADER_LEN 256

/*
 * Fills path with the file that the kernel runs for `program`, usually an ELF program. We find
 * `program` as execvp() does. If it is a script, path is its interpreter; we also follow
 * "#!/usr/bin/env python3". Returns 0 or -ENOENT.
 */
int cw_program_resolve(const char *program, char path[PATH_MAX]);

/*
 * Finds the loader that an ELF program open as fd names (PT_INTERP). "" = the program is linked
 * statically.
 */
void cw_program_loader(Elf *elf, int fd, char loader[CW_LOADER_LEN]);

/*
 * Finds the loader of the ELF program at path. "" = the program is linked statically, or the file
 * is unreadable or no ELF program.
 */
void cw_program_loader_of(const char *path, char loader[CW_LOADER_LEN]);

/* True for an ELF program without a loader. LD_PRELOAD has no effect on such a program. */
bool cw_program_is_static(const char *path);
