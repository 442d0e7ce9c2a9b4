/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A leader's effects in the network of daemons. Messages go through the node's transport, bundles
 * to its store, and alerts to the network's list.
 */
#pragma once

#include "lab/vnet/network.h"

/* Returns the effects, with the node as their user pointer. */
struct cw_leader_effects network_driver_effects(struct network_node *n);
