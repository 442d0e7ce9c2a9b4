/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of the agent's object files in this program. lab/recorder/meson.build redirects their
 * references to clock_gettime to this name, and changes nothing else in them.
 */
#pragma once

#include <time.h>

int recorder_clock_gettime(clockid_t id, struct timespec *ret);
