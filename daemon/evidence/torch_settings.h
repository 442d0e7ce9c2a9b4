/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the environment of a process tells PyTorch's process group of NCCL: whether its watchdog
 * ends the job, and what its Flight Recorder keeps. Pure; any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * environment[len] as /proc/PID/environ has it: NAME=VALUE, each with a NUL behind it; what has
 * none is cut off, and left out. New reference: an array of "NAME=VALUE", at most
 * CW_TORCH_SETTINGS_MAX, printable, in the environment's order. NULL = out of memory.
 */
#define CW_TORCH_SETTINGS_MAX 24u
json_t *cw_torch_settings(const char *environment, size_t len);
