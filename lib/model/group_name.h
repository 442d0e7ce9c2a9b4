/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a torch process group in reports: "DESCRIPTION (NAME)", or "NAME" for a group without
 * a description. NAME is a number. A group without a number has a hash of its ranks in 40 digits
 * instead, and we show eight of them ("group 1a2b3c4d"). Pure.
 */
#pragma once

#include <stddef.h>

/* torch writes "undefined" if there is no description. Returns ret, truncated to len bytes. */
char *cw_group_name(const char *desc, const char *name, char *ret, size_t len);

/*
 * The same for the name that torch gives a group's communicator, "DESCRIPTION:NAME"
 * (pytorch/pytorch#192487). Names from other sources stay as they are.
 */
char *cw_group_name_of_comm(const char *comm_name, char *ret, size_t len);
