/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the proxy that the environment names for a URL. We follow the rules of curl 7.86 and later,
 * so an environment that works for the curl command works here. They are: <scheme>_proxy, then
 * all_proxy, each also in upper case. HTTP_PROXY is excepted, because a web server may set it from
 * a request. no_proxy lists hosts, domains and networks that are reached directly; "*" means all.
 *
 * Reads the environment at each call; blocks on nothing.
 */
#pragma once

#include <stdbool.h>

/* Returns the proxy's URL, borrowed from the environment; "" = none. host has no brackets. */
const char *cw_proxy_for(const char *scheme, const char *host);

/* Matches the list no_proxy against one host. For cw_proxy_for() and tests. */
bool cw_proxy_is_bypassed(const char *no_proxy, const char *host);
