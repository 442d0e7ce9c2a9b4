/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extracts the settings of PyTorch's NCCL process group from the environment of a process. They say
 * whether its watchdog ends the job, and what its Flight Recorder keeps. Pure; any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * Returns a new reference to an array of "NAME=VALUE", printable, in the environment's order; NULL
 * = out of memory. It has at most CW_TORCH_SETTINGS_MAX entries. environment[len] is in the form of
 * /proc/PID/environ: NAME=VALUE, each with a NUL after it. If the last entry has no NUL, it is cut
 * off, and we omit it.
 */
#define CW_TORCH_SETTINGS_MAX 24u
json_t *cw_torch_settings(const char *environment, size_t len);
