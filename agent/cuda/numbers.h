/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of any tensor, for a program that asks (python/collwatch/torch): the kernel that
 * summarises what collectives are fed, with what it finds written to where the program says.
 * Nothing of it is recorded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/state.h"

/* Whether somebody has asked: who makes a communicator ready loads the kernels then. */
bool cw_numbers_are_wanted(void);

/*
 * Exported. Loads the kernel into the context that is current; false: not there yet, and it is
 * loaded with the next communicator of the context (without COLLWATCH_PROGRESS=off). Loading can
 * block behind a kernel of NCCL that waits for its peers: call it where nothing runs on the device,
 * before training. Any thread; keeps errno.
 */
CW_EXPORT bool collwatch_numbers_load(void);

/*
 * Exported. Launches the kernel on the stream, of the current context: struct cw_sum_numbers of so
 * many elements of a dtype (enum ncclDataType_t; floating point alone, else false) from data on,
 * one behind the other, are in *out, memory of the device, for whatever comes later on the stream.
 * False: nothing was launched, as where the stream is captured. Both addresses must be the
 * device's: it does not look. Any thread, does not block, keeps errno.
 */
CW_EXPORT bool collwatch_numbers(uint64_t data, uint64_t elements, int dtype, void *stream,
				 uint64_t out);
