/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that a message for users contains no words for programs: no prefix of a label, no name of
 * a class, a detail or a key, no "1 nodes". Names of calls are allowed, because they are NCCL's
 * own. Text in `…`, which the user types, is also allowed.
 */
#pragma once

#include <stddef.h>

/*
 * Finds the first word for programs. Writes it and the text around it to buf, cut to len. Returns
 * buf; NULL = none.
 */
const char *for_people_slip(const char *text, char *buf, size_t len);

/* Asserts that the text contains no word for programs. */
void for_people(const char *text);
