/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store does to bundle directories besides reading and writing bundles. dir_fd is the
 * directory "incidents"; id is a valid incident id (leader/incident/incident_id.h). Symbolic links
 * are never followed.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Makes path 0750 and what is missing above it 0755: only the last holds what others must not read.
 */
int cw_store_dir_make(const char *path);

/* Removes a bundle with its files. 0 (also when there is none) or -errno. */
int cw_store_dir_remove(int dir_fd, const char *id);

/* Sum of the sizes of its files; what cannot be read counts 0. */
uint64_t cw_store_dir_bytes(int dir_fd, const char *id);

/* New reference to its incident.json; NULL when that cannot be read. */
json_t *cw_store_dir_incident(int dir_fd, const char *id);
/* Likewise its epitaph.json. */
json_t *cw_store_dir_epitaph(int dir_fd, const char *id);
/* Its stacks are there, and none were awaited any more when they were written. */
bool cw_store_dir_has_stacks(int dir_fd, const char *id);
/* The same of the document; NULL = there is none. */
bool cw_store_dir_has_all_stacks(const json_t *stacks);
