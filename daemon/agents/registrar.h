/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a hello to a process in the table: identity, record, quotas, the probe of the mapping, and
 * what happens when the same process comes again.
 *
 * Happy path: hello → waits for its user's turn (agent_turns.h) → probe child takes the descriptor
 * and says "a memfd, mapped" → struct cw_process built from the kernel's word → into the table,
 * welcome. A process that is known already (its connection broke, or the agent made a new record)
 * keeps its place; its old connection is closed. Where it runs as another user now, it is one that
 * was not known.
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

/* What the agent of a rank is told that there is no place for; it comes again in a minute. */
#define CW_NO_PLACE                                                                                \
	"too many processes: this one is not watched for now, users share the places of a node"

struct cw_registrar_config {
	struct event_base *base;
	struct cw_fork_server *forks; /* borrowed for life */
	struct cw_process **table;    /* borrowed; entries are added and, for quotas, removed */
	struct cw_process_places places;
	/* A new process is in the table. It may refuse by returning a negative errno. */
	int (*on_registered)(struct cw_process *p, void *user);
	/* A process must go to make room: remove and free it. A living one is not watched then. */
	void (*on_evict)(struct cw_process *p, void *user);
	/* A living process is another user's than it was: remove and free what was known of it. */
	void (*on_other_user)(struct cw_process *p, void *user);
	/* There is no place for this one; it is freed afterwards. */
	void (*on_no_place)(struct cw_process *p, void *user);
	/* A known process came back, on a new connection; its old one is closed already. */
	void (*on_returned)(struct cw_process *p, void *user);
	/* Whether a record of this user's may be opened now; else its agent comes again. */
	bool (*may_read)(uid_t uid, void *user);
	/* What opening it took; negative in no case. */
	void (*on_read)(uid_t uid, int64_t cpu_ns, void *user);
	void *user;
};

/* 0 or -ENOMEM. */
int cw_registrar_new(const struct cw_registrar_config *config, struct cw_registrar **ret);
/* Takes NULL; returns NULL. Before the agents are freed; open registrations are dropped. */
struct cw_registrar *cw_registrar_free(struct cw_registrar *r);

/* For cw_agents_config.on_hello. */
void cw_registrar_hello(struct cw_registrar *r, struct cw_agent_conn *conn,
			const struct cw_msg_agent_hello *hello, size_t frame_len);
/* The connection went away while its registration was open; false when there was none. */
bool cw_registrar_forget(struct cw_registrar *r, struct cw_agent_conn *conn);

/* Refused because this daemon cannot read records of their version. */
uint64_t cw_registrar_unreadable(const struct cw_registrar *r);
/* Agents that could make no record, and the errno of the last one. */
uint64_t cw_registrar_no_record(const struct cw_registrar *r, int *ret_error);
/* Hellos that wait for their turn. */
uint32_t cw_registrar_waiting(const struct cw_registrar *r);
/* How often a child ended without having come to an agent, which was then looked at again. */
uint64_t cw_registrar_repeated(const struct cw_registrar *r);
/* Registrations ever completed, returns included. */
uint64_t cw_registrar_total(const struct cw_registrar *r);
