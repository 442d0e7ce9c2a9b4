/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other nodes put into a new bundle: the last tensor summaries of the job's ranks there
 * (summaries-N.json). The bundle is written at once with what its own node has, and an alert waits
 * for none of this; then all living peers are asked who has summaries of the job, and each of those
 * for them, page by page, this node once more among them: what all say is to be of one time
 * (numerics/cli/numerics_bundle.c). summaries-1.json says who has given nothing: at first that
 * nodes are still being asked, which stays where the daemon ends before it knows better.
 *
 * One bundle after the other, users taking turns. Loop thread only; nothing blocks but writes of up
 * to a megabyte to local disk.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/clock.h"
#include "daemon/store/store.h"
#include "transport/transport.h"

struct cw_bundle_nodes;

/* Bundles that wait for their turn, and of one user; the journal tells of those beyond. */
#define CW_BUNDLE_NODES_WAITING 64u
#define CW_BUNDLE_NODES_WAITING_OF_USER 16u
/* Of one bundle: nodes, bytes, and the time for all of it. */
#define CW_BUNDLE_NODES_MAX 512u
#define CW_BUNDLE_NODES_BYTES (32u << 20)
#define CW_BUNDLE_NODES_WITHIN_NS (300 * CW_NS_PER_S)
/* Who gives no answer or has too many questions is asked again behind the others, so often in all.
 */
#define CW_BUNDLE_NODES_TRIES 4u
/* Names of those who have given nothing, in the bundle and in the journal. */
#define CW_BUNDLE_NODES_NAMED 16u

struct cw_bundle_nodes_config {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	struct cw_store *store;
};

/* All borrowed. 0 or -ENOMEM. */
int cw_bundle_nodes_new(const struct cw_bundle_nodes_config *config, struct cw_bundle_nodes **ret);
/* Before transport and store. Takes NULL; returns NULL. */
struct cw_bundle_nodes *cw_bundle_nodes_free(struct cw_bundle_nodes *b);

/* head: incident or epitaph of the bundle, which is in the store before the next tick. */
void cw_bundle_nodes_want(struct cw_bundle_nodes *b, const json_t *head);
/* Call it several times a second while it is not idle. */
void cw_bundle_nodes_tick(struct cw_bundle_nodes *b);
bool cw_bundle_nodes_is_idle(const struct cw_bundle_nodes *b);
