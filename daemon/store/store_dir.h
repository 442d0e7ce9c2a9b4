/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of the store on bundle directories, other than reading and writing bundles. dir_fd is
 * the directory "incidents"; id is a valid incident id (leader/incident/incident_id.h). Never
 * follows symbolic links.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Creates path with 0750, and missing parents with 0755: only the last directory holds
 * confidential files.
 */
int cw_store_dir_make(const char *path);

/* Removes a bundle with its files. 0 (also if there is none) or -errno. */
int cw_store_dir_remove(int dir_fd, const char *id);

/* Sum of the sizes of its files; an unreadable file counts 0. */
uint64_t cw_store_dir_bytes(int dir_fd, const char *id);

/* New reference to its incident.json; NULL if unreadable. */
json_t *cw_store_dir_incident(int dir_fd, const char *id);
/* Likewise its postmortem.json. */
json_t *cw_store_dir_postmortem(int dir_fd, const char *id);
/* True if it has stacks, and none were outstanding when they were written. */
bool cw_store_dir_has_stacks(int dir_fd, const char *id);
/* The same for the document; NULL = no document. */
bool cw_store_dir_has_all_stacks(const json_t *stacks);
