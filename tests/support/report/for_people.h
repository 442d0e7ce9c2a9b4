/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said to people has no word in it that is for programs: no prefix of a label, no name of a
 * class, a detail or a key, no "1 nodes". The names of calls are NCCL's own words and stay; so does
 * what stands in `…`, to be typed.
 */
#pragma once

#include <stddef.h>

/* The first such word, cut to len, with what stands around it; NULL = none. Returns buf. */
const char *for_people_slip(const char *text, char *buf, size_t len);

/* Asserts that there is none. */
void for_people(const char *text);
