/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reports call a process group of torch's: "DESCRIPTION (NAME)", or "NAME" where it has no
 * description. A name is a number, or for a group without one a hash of its ranks in 40 digits, of
 * which eight are shown ("group 1a2b3c4d"). Pure.
 */
#pragma once

#include <stddef.h>

/* "undefined" is torch's word for no description. Returns ret; what has no room in it is cut off.
 */
char *cw_group_name(const char *desc, const char *name, char *ret, size_t len);

/*
 * The same of the name that torch gives a group's communicator, "DESCRIPTION:NAME"
 * (pytorch/pytorch#192487). Names that others give stay as they are.
 */
char *cw_group_name_of_comm(const char *comm_name, char *ret, size_t len);
