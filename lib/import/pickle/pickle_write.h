/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes plain data as a pickle of protocol 2, like PyTorch: dictionaries, lists, pairs, text,
 * integers, truth values, None. The function calls nest like the data:
 *
 * 	pickle_begin(out);
 * 	pickle_open_dict(out);
 * 	pickle_text(out, "key"); pickle_int(out, 1);
 * 	pickle_close_dict(out);
 * 	pickle_end(out);
 *
 * The stream records errors. The caller checks ferror() once at the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

void pickle_begin(FILE *out);
void pickle_end(FILE *out);
void pickle_open_dict(FILE *out);
void pickle_close_dict(FILE *out);
void pickle_open_list(FILE *out);
void pickle_close_list(FILE *out);
/* Combines the last two values into a pair. */
void pickle_pair(FILE *out);
/* Writes a text, which must be UTF-8. */
void pickle_text(FILE *out, const char *text);
void pickle_int(FILE *out, int64_t value);
void pickle_bool(FILE *out, bool value);
void pickle_none(FILE *out);
