/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the tensor summaries of other nodes to a new bundle: the last ones of the job's ranks there
 * (summaries-N.json).
 *
 * The daemon writes the bundle at once with the data of its own node, and no alert waits for this
 * room. Then we ask all living peers which of them have summaries of the job, and fetch these page
 * by page from each such node. We fetch from this node too, so that all pages are of one time
 * (numerics/cli/numerics_bundle.c). summaries-1.json lists the nodes that gave nothing. At first it
 * says that we are still asking; it stays so if the daemon ends before we know better.
 *
 * Bundles are handled one after the other, and users take turns. Loop thread only; nothing blocks
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

/* Bundles that may wait, in all and per user; the journal reports those beyond. */
#define CW_BUNDLE_NODES_WAITING 64u
#define CW_BUNDLE_NODES_WAITING_OF_USER 16u
/* Limits of one bundle: nodes, bytes, and the time for all of it. */
#define CW_BUNDLE_NODES_MAX 512u
#define CW_BUNDLE_NODES_BYTES (32u << 20)
#define CW_BUNDLE_NODES_WITHIN_NS (300 * CW_NS_PER_S)
/* Failed queries in a row before we give up a node. Before each retry we query the other nodes. */
#define CW_BUNDLE_NODES_TRIES 4u
/* How many silent nodes the bundle and the journal name. */
#define CW_BUNDLE_NODES_NAMED 16u

struct cw_bundle_nodes_config {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	struct cw_store *store;
	const struct cw_extension *extension;
};

/* All borrowed. 0 or -ENOMEM. */
int cw_bundle_nodes_new(const struct cw_bundle_nodes_config *config, struct cw_bundle_nodes **ret);
/* Call it before transport and store are freed. Takes NULL; returns NULL. */
struct cw_bundle_nodes *cw_bundle_nodes_free(struct cw_bundle_nodes *b);

/* head: incident or post-mortem of the bundle, which must be in the store before the next tick. */
void cw_bundle_nodes_want(struct cw_bundle_nodes *b, const json_t *head);
/* Call it several times a second while it is not idle. */
void cw_bundle_nodes_tick(struct cw_bundle_nodes *b);
bool cw_bundle_nodes_is_idle(const struct cw_bundle_nodes *b);
