/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes documents safe to publish, as in a public bug report. Names of hosts, users, jobs, pods,
 * files and functions, paths, command lines and addresses become stable placeholders, "node-1":
 * every occurrence of a name gets the same one. Pure.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct cw_bundle;

/*
 * Changes the documents in place and skips NULL ones. Names are numbered in order of first
 * appearance. 0 or -ENOMEM; after an error the caller must not show the documents.
 */
int cw_anonymise(json_t *const *docs, size_t n);
/* The same for all documents of a bundle. */
int cw_anonymise_bundle(struct cw_bundle *bundle);
