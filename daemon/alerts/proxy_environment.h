/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the proxy for a URL in the environment. We follow the rules of curl 7.86 and later, so an
 * environment that works for the curl command works here:
 *
 * - The variables are <scheme>_proxy, then all_proxy, each also in upper case. We ignore
 *   HTTP_PROXY, because a web server may set it from a request.
 * - no_proxy lists hosts, domains and networks that need no proxy; "*" means all.
 *
 * Reads the environment at each call; blocks on nothing.
 */
#pragma once

#include <stdbool.h>

/*
 * Returns the URL of the proxy for this host; "" = no proxy. Borrowed from the environment. host:
 * without brackets.
 */
const char *cw_proxy_for(const char *scheme, const char *host);

/* True if the list no_proxy contains the host. Used by cw_proxy_for() and tests. */
bool cw_proxy_is_bypassed(const char *no_proxy, const char *host);
