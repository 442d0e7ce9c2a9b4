/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo's network. Each node is a network namespace with its own host name. Links connect all
 * nodes to a bridge in another namespace, the hub, where alerts arrive. The network has no name in
 * the system, and is invisible from outside. It exists only as long as descriptors and processes
 * refer to it. So it ends with the demo, even if the demo crashes.
 *
 * Call these functions from one thread. All but the getters block for some milliseconds per node.
 */
#pragma once

#include "common/err.h"

#define DEMO_NET_MAX_NODES 64

struct demo_net;

/*
 * Ports of daemons and jobs. All nodes can use the same port, because each has its own namespace.
 */
#define DEMO_NET_PEER_PORT 7411
#define DEMO_NET_MASTER_PORT 29500
/* A node's interface to the other nodes. */
#define DEMO_NET_DEVICE "eth0"

/*
 * Makes a network of n nodes with these host names. It needs ip(8) and the right to make
 * namespaces; we simply try. Returns 0, or -errno. After an error, err names the missing part, and
 * no part of the network is left.
 */
int demo_net_make(const char *const *hosts, int n, struct demo_net **ret, struct cw_err *err);
/*
 * Releases the demo's references to the network. Processes in the network keep theirs. Accepts NULL
 * and returns NULL.
 */
struct demo_net *demo_net_free(struct demo_net *net);

/* Return the address of a node, and the address for alerts. Both are valid until net is freed. */
const char *demo_net_address(const struct demo_net *net, int node);
const char *demo_net_alert_address(const struct demo_net *net);
/* Returns the non-blocking socket that listens at the address for alerts. The caller owns it. */
int demo_net_take_alert_socket(struct demo_net *net);

/* Moves the calling thread into a node permanently. Returns 0 or -errno. */
int demo_net_enter(const struct demo_net *net, int node);
/* Takes a node's link down, as if its cable were pulled. Returns 0 or -errno. */
int demo_net_cut(const struct demo_net *net, int node, struct cw_err *err);
