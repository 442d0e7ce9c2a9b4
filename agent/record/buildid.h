/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the build-id of a loaded ELF file from the process's own memory. */
#pragma once

#include <stdint.h>

#define CW_BUILD_ID_MAX 20

/*
 * Reads the GNU build-id of the file whose first page is mapped at start. The read has a limit and
 * never faults, even if the program unmaps the file meanwhile. Meant for the helper thread: makes a
 * few system calls and takes no lock of the loader. Keeps errno. Returns the number of bytes stored
 * in ret_id; 0 if the file has no build-id or we cannot read it.
 */
unsigned cw_build_id_read(uintptr_t start, uint8_t ret_id[CW_BUILD_ID_MAX]);
