/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call sites: which loaded file called NCCL, and where in it. The hot path only compares addresses
 * with ranges known so far; the helper thread looks new ones up in /proc/self/maps, because the
 * loader's own iterator takes the loader's lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/state.h"

/* cw_module_of() for an address outside of the module of the thread's last call. */
void cw_module_find(const void *caller, uint16_t *ret_module, uint32_t *ret_offset);

/* Module index (CW_REC_NO_SLOT while not known) and offset of a return address. Lock-free. */
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

/* Looks up an address somebody asked for. The helper thread only; reads /proc. */
void cw_modules_resolve(void);

/*
 * The file that is mapped at an address, as the kernel names it; false: none, or its name is longer
 * than len. The helper thread only; reads /proc.
 */
bool cw_module_path(uintptr_t addr, char *ret, size_t len);
