/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on the directories of bundles, except reading and writing whole bundles. dir_fd: the
 * directory "incidents". id: a valid incident id (leader/incident/incident_id.h). No function
 * follows symbolic links.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Creates the directory `path` with mode 0750. Creates missing parents with mode 0755, because only
 * the last directory has confidential files. Returns 0 or -errno.
 */
int cw_store_dir_make(const char *path);

/* Removes a bundle with all its files. Returns 0 or -errno; 0 also if there is no such bundle. */
int cw_store_dir_remove(int dir_fd, const char *id);

/* Returns the size of all files of the bundle together. An unreadable file counts as 0. */
uint64_t cw_store_dir_bytes(int dir_fd, const char *id);

/* Returns the bundle's incident.json as a new reference; NULL = missing or unreadable. */
json_t *cw_store_dir_incident(int dir_fd, const char *id);
/* True if the bundle has stacks, and no stack was missing when they were written. */
bool cw_store_dir_has_stacks(int dir_fd, const char *id);
/* Like cw_store_dir_has_stacks(), but for the document itself. stacks: NULL = there is none. */
bool cw_store_dir_has_all_stacks(const json_t *stacks);
