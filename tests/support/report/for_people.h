/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages for people contain no words for programs: no prefix of a label, no name of a class, a
 * detail or a key, no "1 nodes". The names of calls are NCCL's own words and stay. Text in `…`,
 * which the user types, stays too.
 */
#pragma once

#include <stddef.h>

/* The first such word with the text around it, cut to len; NULL = none. Returns buf. */
const char *for_people_slip(const char *text, char *buf, size_t len);

/* Asserts that there is none. */
void for_people(const char *text);
