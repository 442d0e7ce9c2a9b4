/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collwatch.status/1: the state of this daemon, as one caller may see it. Loop thread only; does
 * not block.
 */
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
 * A caller and its rights, as the kernel reports them. sees_all is true for root, the daemon's own
 * user and members of the control group.
 */
struct cw_caller {
	uid_t uid;
	bool sees_all;
	/*
	 * The node that asks for this caller, which we know from the connection; NULL = the caller
	 * is on this node.
	 */
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
	struct cw_node_stats node;   /* the caller of cw_status_doc() fills it */
	const struct cw_node *ranks; /* NULL = the document has no facts about ops */
	struct cw_mutes *mutes;      /* NULL = no job is muted */
	bool is_shadow;
	struct cw_accept_pause_stats accept;
	int64_t started_ns;
	int64_t loop_max_ns;    /* longest delay of the loop, from daemon/loop_lag.h */
	uint64_t log_lost;      /* log lines that were lost, from cw_log_lost() */
	struct cw_store *store; /* NULL = there is no store */
	char peers_note[320];   /* text from cw_tcp_note() */
	/* Reason why we have no evidence from BPF; NULL = we have it. */
	const char *no_kernel_events;
	const struct cw_reload_state *reload; /* NULL = no configuration was reloaded yet */
};

/* Returns the document as a new reference; NULL = out of memory. */
json_t *cw_status_doc(const struct cw_status_source *s, const struct cw_caller *caller);

/* Size of a job's key in a query to its leader, with the text "UID LABEL". */
#define CW_STATUS_KEY_BYTES (CW_JOB_LABEL_BYTES + 16)
void cw_status_key(int64_t uid, const char *label, char key[CW_STATUS_KEY_BYTES]);

/*
 * Answers a query of another node. Returns those wanted jobs that this node leads and the caller
 * may see, in the form of cw_status_doc(). wanted: an object with the keys of jobs. Adds as many
 * jobs as fit into max_bytes. New reference; NULL = out of memory.
 */
json_t *cw_status_led_doc(const struct cw_status_source *s, const struct cw_caller *caller,
			  const json_t *wanted, size_t max_bytes);

/*
 * Texts for a daemon without peers. The log at the start, the status and the coverage of each
 * verdict have them.
 */
#define CW_STATUS_ALONE "no peers are configured: only the ranks of this node are visible"
#define CW_STATUS_FOUND_NOBODY "no peer has been found yet: only the ranks of this node are visible"
/*
 * Begins the text for a daemon without BPF, in the log at the start and in the status. The reason
 * follows.
 */
#define CW_STATUS_NO_KERNEL "no BPF facts about the ends of ranks: "
/* Text of the status while connections have to wait, and for one minute afterwards. */
#define CW_STATUS_ACCEPT                                                                           \
	"descriptors or memory ran out within the last minute: new connections had to wait; see "  \
	"LimitNOFILE= of the unit and collwatch_open_fds"
#define CW_STATUS_SHADOW "mode = shadow: no alerts are sent"
