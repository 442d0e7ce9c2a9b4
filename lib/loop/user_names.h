/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machine calls its users. Names may come over the network (LDAP, a domain), from services
 * that hang: a short-lived child asks, as common/account.h does, and the answer is there when it is
 * asked for again.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"

struct event_base;
struct cw_user_names;

/* Names kept; the one asked for longest ago makes room. */
#define CW_USER_NAMES_MAX 64u
/* A name, and that there is none, is believed for so long. */
#define CW_USER_NAME_NS (3600 * CW_NS_PER_S)

/* Runs in the child; as cw_account_user(). */
typedef int (*cw_user_look_up_fn)(uid_t uid, char *buf);

struct cw_user_names_config {
	struct event_base *base;
	const struct cw_clock *clock;
	cw_user_look_up_fn look_up; /* NULL = the system's */
};

/* 0 or -errno. */
int cw_user_names_new(const struct cw_user_names_config *config, struct cw_user_names **ret);
/* Takes NULL; returns NULL. */
struct cw_user_names *cw_user_names_free(struct cw_user_names *names);

/*
 * The user's name, or NULL: there is none, or it is being looked up, or nobody says it in time.
 * Borrowed until the next call.
 */
const char *cw_user_names_get(struct cw_user_names *names, uint32_t uid);
