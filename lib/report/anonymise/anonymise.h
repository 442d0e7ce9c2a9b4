/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes documents safe to publish, for example in a public bug report. Names of hosts, users, jobs,
 * pods, files and functions, paths, command lines and addresses become placeholders such as
 * "node-1". Every occurrence of a name gets the same placeholder. Pure.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct cw_bundle;

/*
 * Changes the documents in place and skips NULL ones. Names are numbered in order of first
 * appearance. Returns 0 or -ENOMEM. After an error the caller must not show the documents.
 */
int cw_anonymise(json_t *const *docs, size_t n);
/* Anonymises all documents of a bundle in place. Returns 0 or -ENOMEM, like cw_anonymise(). */
int cw_anonymise_bundle(struct cw_bundle *bundle);
