/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds tensor summaries from other nodes to a new bundle: the last summaries of the job's ranks on
 * these nodes (summaries-N.json).
 *
 * The daemon first writes the bundle with the data of its own node. No alert waits for the other
 * nodes. We then ask all living peers whether they have summaries of the job, and fetch these from
 * each such node, page by page. We fetch from this node, too, so that all pages have about the same
 * age (numerics/cli/numerics_bundle.c). summaries-1.json lists the nodes that gave nothing. At
 * first it says that we are still asking. It keeps saying so if the daemon ends before it has asked
 * all nodes.
 *
 * We handle one bundle after the other, and users take turns. Loop thread only. Nothing blocks,
 * except writes of up to 1 MB to local disk.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/clock.h"
#include "daemon/store/store.h"
#include "digest/extension.h"
#include "transport/transport.h"

struct cw_bundle_nodes;

/*
 * Maximum number of bundles that wait, in all and per user. Beyond these limits a bundle gets no
 * summaries of other nodes, and we log that.
 */
#define CW_BUNDLE_NODES_WAITING 64u
#define CW_BUNDLE_NODES_WAITING_OF_USER 16u
/* Limits of one bundle: number of nodes, bytes, and total time. */
#define CW_BUNDLE_NODES_MAX 512u
#define CW_BUNDLE_NODES_BYTES (32u << 20)
#define CW_BUNDLE_NODES_WITHIN_NS (300 * CW_NS_PER_S)
/*
 * Number of failed queries in a row after which we give up a node. Before each retry we query the
 * other nodes.
 */
#define CW_BUNDLE_NODES_TRIES 4u
/*
 * Maximum number of silent nodes that the bundle and the log name. A silent node is one that gave
 * nothing.
 */
#define CW_BUNDLE_NODES_NAMED 16u

struct cw_bundle_nodes_config {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	struct cw_store *store;
	const struct cw_extension *extension;
};

/* Borrows all pointers of config. Returns 0 or -ENOMEM. */
int cw_bundle_nodes_new(const struct cw_bundle_nodes_config *config, struct cw_bundle_nodes **ret);
/* Call this before you free the transport and the store. Takes NULL; returns NULL. */
struct cw_bundle_nodes *cw_bundle_nodes_free(struct cw_bundle_nodes *b);

/*
 * Requests summaries of other nodes for a bundle. head: the bundle's incident or post-mortem. The
 * bundle must be in the store before the next tick.
 */
void cw_bundle_nodes_want(struct cw_bundle_nodes *b, const json_t *head);
/* Continues the work. Call this several times a second while cw_bundle_nodes_is_idle() is false. */
void cw_bundle_nodes_tick(struct cw_bundle_nodes *b);
bool cw_bundle_nodes_is_idle(const struct cw_bundle_nodes *b);
