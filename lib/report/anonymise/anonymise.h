/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents for people who must not know whose job it was, as in a public bug report: names of
 * hosts, users, jobs, pods, files and functions, paths, command lines and addresses become stable
 * placeholders, "node-1", the same one wherever the name stands. Pure.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct cw_bundle;

/*
 * Changes the documents in place, NULL ones are left out; names are counted in the order in which
 * they are met. 0 or -ENOMEM: then they must not be shown.
 */
int cw_anonymise(json_t *const *docs, size_t n);
/* The same of all that is in a bundle. */
int cw_anonymise_bundle(struct cw_bundle *bundle);
