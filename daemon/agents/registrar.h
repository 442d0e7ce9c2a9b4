/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a hello into a process in the table. It handles identity, record, quotas, the probe of the
 * mapping, and the return of a known process.
 *
 * Normal path: the hello waits until its user is next (agent_queue.h). A probe child takes the
 * descriptor and reports "a memfd, mapped". We build a struct cw_process from the kernel's facts,
 * put it into the table, and send the welcome.
 *
 * A known process may connect again, because its connection broke or because its agent made a new
 * record. The process then keeps its place, and we close its old connection. If the process now
 * runs as another user, we treat it as a new process.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/agents/agents.h"
#include "daemon/process/process.h"

struct cw_fork_server;
struct cw_registrar;
struct event_base;

/*
 * The reason that we send to an agent if the table of processes is full for its user. The agent
 * retries later.
 */
#define CW_OVER_QUOTA                                                                              \
	"too many processes: this one is not watched for now, because users share the node's limit"

struct cw_registrar_config {
	struct event_base *base;
	struct cw_fork_server *forks; /* borrowed until cw_registrar_free() */
	/* Borrowed; we add processes, and on_evict may remove one. */
	struct cw_process **table;
	struct cw_process_quota quota;
	/*
	 * Called when a new process is in the table. If the callee returns -errno, we refuse the
	 * process.
	 */
	int (*on_registered)(struct cw_process *p, void *user);
	/*
	 * Called when this process must leave the table, so that another one can enter it. The
	 * callee removes and frees it. If the process lives, we no longer watch it.
	 */
	void (*on_evict)(struct cw_process *p, void *user);
	/*
	 * Called when a living process has changed its user. The callee removes and frees all that
	 * it knows about the process.
	 */
	void (*on_other_user)(struct cw_process *p, void *user);
	/*
	 * Called when the table of processes is full for the process's user. We free the process
	 * after this call.
	 */
	void (*on_over_quota)(struct cw_process *p, void *user);
	/* Called when a known process has a new connection. We have already closed the old one. */
	void (*on_returned)(struct cw_process *p, void *user);
	/* Returns true if we may now open a record of this user. If false, the agent must retry. */
	bool (*may_read)(uid_t uid, void *user);
	/* Reports the CPU time that opening a record took. cpu_ns is never negative. */
	void (*on_read)(uid_t uid, int64_t cpu_ns, void *user);
	void *user;
};

/* Returns 0 or -ENOMEM. */
int cw_registrar_new(const struct cw_registrar_config *config, struct cw_registrar **ret);
/* Drops open registrations. Call this before cw_agents_free(). Takes NULL; returns NULL. */
struct cw_registrar *cw_registrar_free(struct cw_registrar *r);

/* Starts a registration. Use this function as cw_agents_config.on_hello. */
void cw_registrar_hello(struct cw_registrar *r, struct cw_agent_conn *conn,
			const struct cw_msg_agent_hello *hello, size_t frame_len);
/*
 * Call this when the connection has closed. Returns false if the connection had no open
 * registration.
 */
bool cw_registrar_forget(struct cw_registrar *r, struct cw_agent_conn *conn);

/*
 * Returns the number of records that we refused because of a version that this daemon cannot read.
 */
uint64_t cw_registrar_unreadable(const struct cw_registrar *r);
/*
 * Returns the number of agents that could not make a record. *ret_error is the errno of the last
 * such agent.
 */
uint64_t cw_registrar_no_record(const struct cw_registrar *r, int *ret_error);
/* Returns the number of queued hellos. */
uint32_t cw_registrar_waiting(const struct cw_registrar *r);
/* Returns how often a child ended before it checked an agent, so that we queued the agent again. */
uint64_t cw_registrar_repeated(const struct cw_registrar *r);
/*
 * Returns the number of completed registrations since the start. A process that returned counts
 * each time.
 */
uint64_t cw_registrar_total(const struct cw_registrar *r);
