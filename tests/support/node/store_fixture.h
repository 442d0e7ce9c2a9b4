/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store in a new directory. Its clock moves by a second with each bundle and otherwise stands
 * still. Each test that uses it must run in its own process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/store.h"
#include "daemon/store/store_clock.h"

#define DAY_NS (INT64_C(86400) * CW_NS_PER_S)

extern char root[];          /* a directory; the store is in its subdirectory lib/state */
extern int64_t now_ns;       /* the monotonic clock */
extern int64_t wall_step_ns; /* error of the wall clock, in ns */

void store_setup(void);
void store_teardown(void);

struct cw_store *open_store(uint64_t max_bytes, int64_t max_age_ns);
/*
 * Puts a bundle into the store, for a job with label 4711 of this user (put(): user 1000). The text
 * of its snapshot has about pad bytes. ret_path: PATH_MAX bytes, or NULL. Returns the result of
 * cw_store_put().
 */
int put_for(int uid, struct cw_store *store, const char *id, size_t pad, char *ret_path);
int put_job(int uid, const char *job, struct cw_store *store, const char *id);
int put(struct cw_store *store, const char *id, size_t pad, char *ret_path);
extern const struct cw_store_query list_all;   /* a query without a limit */
const char *listed_id(json_t *list, size_t i); /* "" = the list has no such element */
bool is_listed(struct cw_store *store, const char *id);
size_t list_len(struct cw_store *store);
