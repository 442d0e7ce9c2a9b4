/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop macros of libraries' headers, in the detail that cppcheck needs. tools/lint gives cppcheck
 * this file and none of the system's headers, which would take it minutes.
 */
#pragma once

#define DL_FOREACH(head, at) for (at = head; at; at = at->next)
#define DL_FOREACH2(head, at, next_) for (at = head; at; at = at->next_)
#define DL_FOREACH_SAFE(head, at, tmp) for (at = head, tmp = 0; at && (tmp = at->next, 1); at = tmp)
#define LL_FOREACH(head, at) for (at = head; at; at = at->next)
#define LL_FOREACH_SAFE(head, at, tmp) for (at = head, tmp = 0; at && (tmp = at->next, 1); at = tmp)
#define HASH_ITER(hh, head, at, tmp) for (at = head, tmp = 0; at; at = tmp)
#define HASH_FIND(hh, head, key, len, found) (found = find_in(head, key, len))
#define HASH_FIND_STR(head, key, found) (found = find_in(head, key, 0))
#define HASH_FIND_INT(head, key, found) (found = find_in(head, key, 0))
#define HASH_FIND_PTR(head, key, found) (found = find_in(head, key, 0))
#define json_array_foreach(array, i, value)                                                        \
	for (i = 0; i < json_array_size(array) && (value = json_array_get(array, i)); i++)
#define json_object_foreach(object, key, value)                                                    \
	for (void *iter = next_of(object); iter && (value = value_of(iter, &key));)
#define LIBBPF_OPTS(type, name, ...) struct type name = { __VA_ARGS__ }
