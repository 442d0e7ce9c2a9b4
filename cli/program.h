/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel and the loader make of a program's name. Programs are read, never run. Blocking,
 * any thread.
 */
#pragma once

#include <libelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define CW_LOADER_LEN 256

/*
 * Fills path with the ELF program, or whatever it is, that really runs: `program` looked up as
 * execvp() does, and where that is a script, its interpreter ("#!/usr/bin/env python3" as well).
 * -ENOENT.
 */
int cw_program_resolve(const char *program, char path[PATH_MAX]);

/* The loader that an ELF program open as fd names (PT_INTERP); "" = it is linked statically. */
void cw_program_loader(Elf *elf, int fd, char loader[CW_LOADER_LEN]);

/* The same of a file; "" also where it is no ELF program or cannot be read. */
void cw_program_loader_of(const char *path, char loader[CW_LOADER_LEN]);

/* An ELF program that no loader prepares, so that nothing is preloaded into it. */
bool cw_program_is_static(const char *path);
