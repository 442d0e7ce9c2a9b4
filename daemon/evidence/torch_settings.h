/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extracts the settings of PyTorch's NCCL process group from the environment of a process. They
 * tell whether its watchdog ends the job, and what its Flight Recorder records. Depends only on the
 * text; any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * Returns an array of "NAME=VALUE", printable and in the order of the environment, as a new
 * reference; NULL = out of memory. It has at most CW_TORCH_SETTINGS_MAX entries. environment[len]:
 * the text of /proc/PID/environ, which has a NUL after each NAME=VALUE. We omit a last entry
 * without a NUL, because it was cut.
 */
#define CW_TORCH_SETTINGS_MAX 24u
json_t *cw_torch_settings(const char *environment, size_t len);
