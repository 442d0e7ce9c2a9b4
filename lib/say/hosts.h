/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds the names of hosts into a list for people, as cluster tools write it: "node-[a-d]",
 * "gpu[01-04,7]". Pure; any thread; nothing blocks or allocates.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Writes the names, in this order, into buf and ends it with a NUL. Successive names fold if they
 * differ only in a number or in one letter at the same place. A list that does not fit ends with
 * "… (64 hosts)". Returns buf.
 */
char *cw_say_hosts(const char *const *names, uint32_t n, char *buf, size_t len);
