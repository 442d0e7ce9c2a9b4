/* SPDX-License-Identifier: Apache-2.0 */
/* The build-id of a loaded ELF file, out of the process's own memory. */
#pragma once

#include <stdint.h>

#define CW_BUILD_ID_MAX 20

/*
 * Reads the GNU build-id of the file whose first page is mapped at start. Bounded, and never
 * faults: the file may be unmapped meanwhile. For the helper thread: a few system calls, no lock of
 * the loader. Keeps errno. Return: bytes stored in ret_id, 0 when there is none or it cannot be
 * read.
 */
unsigned cw_build_id_read(uintptr_t start, uint8_t ret_id[CW_BUILD_ID_MAX]);
