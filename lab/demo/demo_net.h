/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo's network: each node is a network namespace with its own host name. Links connect all
 * nodes to a bridge in another namespace, which receives the alerts. The network has no names, and
 * is invisible outside: only descriptors and processes hold it, so it ends with the demo, even if
 * the demo crashes.
 *
 * One thread calls this; all functions except the getters block for some milliseconds per node.
 */
#pragma once

#include "common/err.h"

#define DEMO_NET_MAX_NODES 64

struct demo_net;

/* Ports of daemons and jobs: in its own namespace, a node has all ports for itself. */
#define DEMO_NET_PEER_PORT 7411
#define DEMO_NET_MASTER_PORT 29500
/* A node's interface to the other nodes. */
#define DEMO_NET_DEVICE "eth0"

/*
 * Makes a network of n nodes with these host names. It needs ip(8) and the right to make
 * namespaces, and simply tries: 0, or -errno, and err names the missing part; after an error
 * nothing of it is left.
 */
int demo_net_make(const char *const *hosts, int n, struct demo_net **ret, struct cw_err *err);
/* Releases the demo's references; processes in it keep theirs. Takes NULL; returns NULL. */
struct demo_net *demo_net_free(struct demo_net *net);

/* The address of a node, and the address for alerts; valid as long as net. */
const char *demo_net_address(const struct demo_net *net, int node);
const char *demo_net_alert_address(const struct demo_net *net);
/* The non-blocking socket that listens there; the caller owns it afterwards. */
int demo_net_take_alert_socket(struct demo_net *net);

/* Moves the calling thread into a node, permanently. 0 or -errno. */
int demo_net_enter(const struct demo_net *net, int node);
/* Takes a node's link down, like a pulled cable. 0 or -errno. */
int demo_net_cut(const struct demo_net *net, int node, struct cw_err *err);
