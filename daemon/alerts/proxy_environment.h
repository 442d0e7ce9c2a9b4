/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which proxy the environment names for a URL. The rules are those of curl 7.86 and later, so that
 * what works with the curl command works here: <scheme>_proxy, then all_proxy; in upper case too,
 * but for HTTP_PROXY, which a web server may set from a request. no_proxy lists hosts, domains and
 * networks that are reached directly; "*" means all.
 *
 * Reads the environment at each call; blocks on nothing.
 */
#pragma once

#include <stdbool.h>

/* host: without brackets. Borrowed from the environment; "" = none. */
const char *cw_proxy_for(const char *scheme, const char *host);

/* One list against one host; for cw_proxy_for() and tests. */
bool cw_proxy_is_bypassed(const char *no_proxy, const char *host);
