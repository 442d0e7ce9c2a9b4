/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the machine's users. Names may come over the network (LDAP, a domain) from services
 * that hang. So a short-lived child looks them up, as in common/account.h. The first call returns
 * NULL, and a later call returns the name.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"

struct event_base;
struct cw_user_names;

/* Size of the cache. A new entry replaces the entry with the oldest query. */
#define CW_USER_NAMES_MAX 64u
/* A name is valid for this time. If a user has no name, we also keep that result so long. */
#define CW_USER_NAME_NS (3600 * CW_NS_PER_S)

/* Runs in the child; has the contract of cw_account_user(). */
typedef int (*cw_user_look_up_fn)(uid_t uid, char *buf);

struct cw_user_names_config {
	struct event_base *base;
	const struct cw_clock *clock;
	cw_user_look_up_fn look_up; /* NULL = the system's function */
};

/* Returns 0 or -errno. */
int cw_user_names_new(const struct cw_user_names_config *config, struct cw_user_names **ret);
/* Frees the cache. names may be NULL. Returns NULL. */
struct cw_user_names *cw_user_names_free(struct cw_user_names *names);

/*
 * Returns the user's name, borrowed until the next call. Returns NULL if the user has none, or if
 * the look-up is still running or timed out.
 */
const char *cw_user_names_get(struct cw_user_names *names, uint32_t uid);
