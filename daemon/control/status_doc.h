/* SPDX-License-Identifier: Apache-2.0 */
/* collwatch.status/1: the state of this daemon for one caller. Loop thread only; does not block. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"
#include "daemon/node/node.h"
#include "daemon/store/store.h"
#include "identity/job_label.h"
#include "leader/election.h"
#include "leader/leader.h"
#include "loop/accept_pause.h"
#include "loop/reload_state.h"
#include "transport/transport.h"

struct cw_mutes;

/*
 * A caller and its rights, as the kernel reports them. sees_all: root, the daemon's own user or the
 * control group.
 */
struct cw_caller {
	uid_t uid;
	bool sees_all;
	/* Node that asks for the caller, known from its connection; NULL = this node. */
	const char *node;
};

static inline bool cw_caller_may_see(const struct cw_caller *c, uint32_t uid)
{
	return c->sees_all || c->uid == uid;
}

struct cw_status_source {
	const struct cw_clock *clock;
	const struct cw_transport *transport;
	const struct cw_election *members;
	const struct cw_leader *leader;
	struct cw_node_stats node;   /* filled by the caller */
	const struct cw_node *ranks; /* NULL = no facts about ops */
	struct cw_mutes *mutes;      /* NULL = none */
	bool is_shadow;
	struct cw_accept_pause_stats accept;
	int64_t started_ns;
	int64_t loop_max_ns;    /* daemon/loop_lag.h */
	uint64_t log_lost;      /* lines lost; see cw_log_lost() */
	struct cw_store *store; /* NULL = none */
	char peers_note[320];   /* from cw_tcp_note() */
	/* Why there is no kernel evidence; NULL = there is some. */
	const char *no_kernel_events;
	const struct cw_reload_state *reload; /* NULL = no reload yet */
};

/* Returns a new reference; NULL = out of memory. */
json_t *cw_status_doc(const struct cw_status_source *s, const struct cw_caller *caller);

/* The size of a job's key in a query to its leader: "UID LABEL". */
#define CW_STATUS_KEY_BYTES (CW_JOB_LABEL_BYTES + 16)
void cw_status_key(int64_t uid, const char *label, char key[CW_STATUS_KEY_BYTES]);

/*
 * Answers another node. Returns the wanted jobs that this node leads and that the caller may see,
 * in the form of cw_status_doc(). `wanted` is an object with the keys of the jobs. We add as many
 * jobs as fit into max_bytes. New reference; NULL = out of memory.
 */
json_t *cw_status_led_doc(const struct cw_status_source *s, const struct cw_caller *caller,
			  const json_t *wanted, size_t max_bytes);

/* We say at start, in status and in each verdict's coverage that a daemon has no peers. */
#define CW_STATUS_ALONE "no peers are configured: only the ranks of this node are seen"
#define CW_STATUS_FOUND_NOBODY "no peer has been found yet: only the ranks of this node are seen"
/* The reason follows these words at start and in status. */
#define CW_STATUS_NO_KERNEL "who or what ends a rank is not seen by BPF: "
/* The status shows this while connections wait, and for a minute longer. */
#define CW_STATUS_ACCEPT                                                                           \
	"descriptors or memory ran out within the last minute: new connections had to wait; see "  \
	"LimitNOFILE= of the unit and collwatch_open_fds"
#define CW_STATUS_SHADOW "mode = shadow: nobody is alerted"
