/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a torch process group in reports: "DESCRIPTION (NAME)", or "NAME" for a group without
 * a description. NAME is usually a number. Otherwise it is a hash of the group's ranks in 40
 * digits, and we show eight of them ("group 1a2b3c4d"). Pure.
 */
#pragma once

#include <stddef.h>

/*
 * Writes the group's name to ret, truncated to len bytes, and returns ret. torch passes "undefined"
 * as desc if the group has no description.
 */
char *cw_group_name(const char *desc, const char *name, char *ret, size_t len);

/*
 * Writes the group's name to ret, from the name that torch gives to the group's communicator:
 * "DESCRIPTION:NAME" (pytorch/pytorch#192487). A name from another source stays as it is.
 */
char *cw_group_name_of_comm(const char *comm_name, char *ret, size_t len);
