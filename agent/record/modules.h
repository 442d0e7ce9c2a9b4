/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call sites: the loaded file that called NCCL, and the offset in that file. The hot path only
 * compares addresses with the known ranges. The helper thread looks up new addresses in
 * /proc/self/maps. It does not use the loader's own iterator, which takes the loader's lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/state.h"

/*
 * The slow path of cw_module_of(), for an address that lies outside of the thread's last module.
 * Lock-free.
 */
void cw_module_find(const void *caller, uint16_t *ret_module, uint32_t *ret_offset);

/*
 * Finds the module and the offset of a return address. *ret_module is CW_REC_NO_SLOT while the
 * module is unknown. Lock-free.
 */
static inline void cw_module_of(const void *caller, uint16_t *ret_module, uint32_t *ret_offset)
{
	uintptr_t offset = (uintptr_t)caller - cw_tls.module_start;

	if (cw_unlikely(offset >= cw_tls.module_bytes)) {
		cw_module_find(caller, ret_module, ret_offset);
		return;
	}
	*ret_module = cw_tls.last_module;
	*ret_offset = (uint32_t)offset;
}

/*
 * Looks up the last address that cw_module_find() did not know. Only the helper thread calls this
 * function. Reads /proc.
 */
void cw_modules_resolve(void);

/*
 * Copies the kernel's name of the file that is mapped at addr. Returns false if no file is mapped
 * there, or if the name with its NUL is longer than len. Only the helper thread calls this
 * function. Reads /proc.
 */
bool cw_module_path(uintptr_t addr, char *ret, size_t len);
