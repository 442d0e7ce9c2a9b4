/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of the store on bundle directories, other than reading and writing bundles. dir_fd is
 * the directory "incidents". id is a valid incident id (leader/incident/incident_id.h). We never
 * follow symbolic links.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Creates path with mode 0750, and missing parents with 0755, because only the last directory holds
 * confidential files.
 */
int cw_store_dir_make(const char *path);

/* Removes a bundle with its files. 0 or -errno. Also 0 if there is no such bundle. */
int cw_store_dir_remove(int dir_fd, const char *id);

/* Returns the sum of the sizes of the bundle's files. An unreadable file counts as 0. */
uint64_t cw_store_dir_bytes(int dir_fd, const char *id);

/* Returns a new reference to the bundle's incident.json; NULL = unreadable. */
json_t *cw_store_dir_incident(int dir_fd, const char *id);
/* Returns a new reference to the bundle's postmortem.json; NULL = unreadable. */
json_t *cw_store_dir_postmortem(int dir_fd, const char *id);
/* True if the bundle has stacks, and none were missing when they were written. */
bool cw_store_dir_has_stacks(int dir_fd, const char *id);
/* Like cw_store_dir_has_stacks(), but for a document; NULL = there is no document. */
bool cw_store_dir_has_all_stacks(const json_t *stacks);
