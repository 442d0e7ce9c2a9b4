/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call sites: which loaded file called NCCL, and where in it. The hot path only compares addresses
 * with ranges known so far; the helper thread looks new ones up in /proc/self/maps, because the
 * loader's own iterator takes the loader's lock.
 */
#pragma once

#include <stdint.h>

/* Module index (CW_REC_NO_SLOT while not known) and offset of a return address. Lock-free. */
void cw_module_of(const void *caller, uint16_t *ret_module, uint32_t *ret_offset);

/* Looks up an address somebody asked for. The helper thread only; reads /proc. */
void cw_modules_resolve(void);
