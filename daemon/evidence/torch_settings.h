/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extracts the settings of PyTorch's NCCL process group from the environment of a process. They say
 * whether its watchdog ends the job, and what its Flight Recorder keeps. Pure; any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * environment[len] as in /proc/PID/environ: NAME=VALUE, each with a NUL after it. We omit a last
 * entry without NUL, because it is cut off. New reference: an array of "NAME=VALUE", at most
 * CW_TORCH_SETTINGS_MAX, printable, in the environment's order. NULL = out of memory.
 */
#define CW_TORCH_SETTINGS_MAX 24u
json_t *cw_torch_settings(const char *environment, size_t len);
