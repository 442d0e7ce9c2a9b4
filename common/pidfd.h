/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of processes (pidfd_open(2), SO_PEERPIDFD): they never come to mean another process.
 */
#pragma once

#include <stdbool.h>

/* True when the process has ended, reaped or not; false for -1. Does not block. */
bool cw_pidfd_has_ended(int pidfd);
