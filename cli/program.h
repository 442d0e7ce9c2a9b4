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
 * Fills path with the file that really runs, usually an ELF program. `program` is found as execvp()
 * does; if it is a script, path is its interpreter, also for "#!/usr/bin/env python3". -ENOENT.
 */
int cw_program_resolve(const char *program, char path[PATH_MAX]);

/* The loader that an ELF program open as fd names (PT_INTERP); "" = it is linked statically. */
void cw_program_loader(Elf *elf, int fd, char loader[CW_LOADER_LEN]);

/* As above, for a file; "" also if it is no ELF program or is unreadable. */
void cw_program_loader_of(const char *path, char loader[CW_LOADER_LEN]);

/* True for an ELF program without a loader: LD_PRELOAD has no effect on it. */
bool cw_program_is_static(const char *path);
