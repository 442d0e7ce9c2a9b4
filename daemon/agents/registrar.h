/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a hello into a process in the table: identity, record, quotas, the probe of the mapping,
 * and the return of a known process.
 *
 * Happy path: the hello waits for its user's turn (agent_queue.h). A probe child takes the
 * descriptor and reports "a memfd, mapped". We build a struct cw_process from the kernel's facts,
 * enter it in the table, and send the welcome.
 *
 * A process that we know already keeps its place, and we close its old connection. (The
 * connection broke, or the agent made a new record.) If it now runs as another user, we treat it
 * as a new process.
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

/* The reason that we send to an agent without a place. The agent retries later. */
#define CW_OVER_QUOTA                                                                              \
	"too many processes: this one is not watched for now, users share the places of a node"

struct cw_registrar_config {
	struct event_base *base;
	struct cw_fork_server *forks; /* borrowed for life */
	struct cw_process **table;    /* borrowed; entries are added and, for quotas, removed */
	struct cw_process_quota quota;
	/* A new process is in the table. If the callee returns -errno, we refuse the process. */
	int (*on_registered)(struct cw_process *p, void *user);
	/*
	 * The callee removes and frees this process to make room. If it lives, we no longer watch
	 * it.
	 */
	void (*on_evict)(struct cw_process *p, void *user);
	/*
	 * A living process changed its user. The callee removes and frees all that we know of it.
	 */
	void (*on_other_user)(struct cw_process *p, void *user);
	/* The process got no place. We free it after this call. */
	void (*on_over_quota)(struct cw_process *p, void *user);
	/* A known process came back on a new connection. We have already closed its old one. */
	void (*on_returned)(struct cw_process *p, void *user);
	/* True if we may now open a record of this user. Otherwise the agent must retry. */
	bool (*may_read)(uid_t uid, void *user);
	/* Reports the cost of opening a record. cpu_ns is never negative. */
	void (*on_read)(uid_t uid, int64_t cpu_ns, void *user);
	void *user;
};

/* 0 or -ENOMEM. */
int cw_registrar_new(const struct cw_registrar_config *config, struct cw_registrar **ret);
/* Drops open registrations. Call it before you free the agents. Takes NULL; returns NULL. */
struct cw_registrar *cw_registrar_free(struct cw_registrar *r);

/* The function for cw_agents_config.on_hello. */
void cw_registrar_hello(struct cw_registrar *r, struct cw_agent_conn *conn,
			const struct cw_msg_agent_hello *hello, size_t frame_len);
/* Call it when the connection closed. False if it had no open registration. */
bool cw_registrar_forget(struct cw_registrar *r, struct cw_agent_conn *conn);

/* Returns the number of records that we refused because this daemon cannot read their version. */
uint64_t cw_registrar_unreadable(const struct cw_registrar *r);
/*
 * Returns the number of agents that failed to make a record. *ret_error is the errno of the last
 * one.
 */
uint64_t cw_registrar_no_record(const struct cw_registrar *r, int *ret_error);
/* Returns the number of queued hellos. */
uint32_t cw_registrar_waiting(const struct cw_registrar *r);
/* Returns how often a child ended before it got to an agent, so that we checked the agent again. */
uint64_t cw_registrar_repeated(const struct cw_registrar *r);
/* Returns the number of completed registrations since the start, returns included. */
uint64_t cw_registrar_total(const struct cw_registrar *r);
