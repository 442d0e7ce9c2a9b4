/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store in a directory of the test's own, under a clock that moves by a second with each bundle
 * and otherwise stands still. For tests that run each in a process of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/store.h"
#include "daemon/store/store_clock.h"

#define DAY_NS (INT64_C(86400) * CW_NS_PER_S)

extern char root[];          /* the store is in lib/state below it */
extern int64_t now_ns;       /* the monotonic clock */
extern int64_t wall_step_ns; /* by so much the wall clock is wrong */

void store_setup(void);
void store_teardown(void);

struct cw_store *open_store(uint64_t max_bytes, int64_t max_age_ns);
/*
 * Puts a bundle for a job with label 4711 of this user (put(): 1000). Its snapshot, as text, is
 * about pad bytes long. ret_path: PATH_MAX, or NULL. Returns the result of cw_store_put().
 */
int put_for(int uid, struct cw_store *store, const char *id, size_t pad, char *ret_path);
int put_job(int uid, const char *job, struct cw_store *store, const char *id);
int put(struct cw_store *store, const char *id, size_t pad, char *ret_path);
extern const struct cw_store_query list_all;   /* without a limit */
const char *listed_id(json_t *list, size_t i); /* "" = there is none */
bool is_listed(struct cw_store *store, const char *id);
size_t list_len(struct cw_store *store);
