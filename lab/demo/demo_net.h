/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo's network: each node is a network namespace with a host name of its own, and all are
 * linked to a bridge in one more, where the alerts arrive. Nothing of it has a name or is seen
 * where the demo was started: descriptors and processes hold it, so it goes with the demo, however
 * that ends.
 *
 * Called by one thread; all but the getters block for some milliseconds a node.
 */
#pragma once

#include "common/err.h"

#define DEMO_NET_MAX_NODES 64

struct demo_net;

/* Whom daemons listen for: in its namespace a node has all ports for itself. */
#define DEMO_NET_PEER_PORT 7411
#define DEMO_NET_MASTER_PORT 29500
/* The device of a node that leads to the others. */
#define DEMO_NET_DEVICE "eth0"

/*
 * A network of n nodes with these host names. Needs ip(8) and the right to make namespaces, which
 * is found out by trying: 0, or -errno with err saying what was missing, and nothing is left of it.
 */
int demo_net_make(const char *const *hosts, int n, struct demo_net **ret, struct cw_err *err);
/* Gives up what the demo holds; processes in it keep their own. Takes NULL; returns NULL. */
struct demo_net *demo_net_free(struct demo_net *net);

/* The address of a node, and the one for alerts; good as long as net. */
const char *demo_net_address(const struct demo_net *net, int node);
const char *demo_net_alert_address(const struct demo_net *net);
/* The socket that listens there, non-blocking; the caller's from now on. */
int demo_net_take_alert_socket(struct demo_net *net);

/* Moves the calling thread into a node, for good. 0 or -errno. */
int demo_net_enter(const struct demo_net *net, int node);
/* Takes a node's link down, as a cable that is pulled. 0 or -errno. */
int demo_net_cut(const struct demo_net *net, int node, struct cw_err *err);
