/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the machine's users. Names may come over the network (LDAP, a domain) from services
 * that hang. A short-lived child therefore looks up each name, as in common/account.h. While it
 * runs, we return NULL; a later call returns the name.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"

struct event_base;
struct cw_user_names;

/* Size of the cache. A new user replaces the entry with the oldest query. */
#define CW_USER_NAMES_MAX 64u
/* A name is valid for this time. The fact that a user has no name is valid for the same time. */
#define CW_USER_NAME_NS (3600 * CW_NS_PER_S)

/* Looks up a name in the child, with the contract of cw_account_user(). */
typedef int (*cw_user_look_up_fn)(uid_t uid, char *buf);

struct cw_user_names_config {
	struct event_base *base;
	const struct cw_clock *clock;
	cw_user_look_up_fn look_up; /* for tests; NULL = cw_account_user() */
};

/* Returns 0 or -errno. */
int cw_user_names_new(const struct cw_user_names_config *config, struct cw_user_names **ret);
/* Frees the cache. names may be NULL. Returns NULL. */
struct cw_user_names *cw_user_names_free(struct cw_user_names *names);

/*
 * Returns the user's name, borrowed until the next call. Returns NULL if the user has no name, or
 * if the look-up is still running or timed out.
 */
const char *cw_user_names_get(struct cw_user_names *names, uint32_t uid);
