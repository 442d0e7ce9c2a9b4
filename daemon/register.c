/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/register.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/agent_probe.h"

/* Long for reading a few thousand lines, short against the agent's patience. */
#define PROBE_TIMEOUT_MS 1500
/* Children at once: a daemon that restarts under 128 ranks must not fork 128 times in one turn. */
#define MAX_PROBES 8

struct registration {
	struct cw_registrar *registrar;
	struct cw_agent_conn *conn;
	struct cw_process *process;
	struct cw_probe *probe; /* NULL = waits for its turn */
	struct registration *prev, *next;
};

struct cw_registrar {
	struct cw_registrar_config config;
	struct registration *open;
	unsigned probes;
	uint64_t total;
};

static void registration_free(struct registration *reg)
{
	struct cw_registrar *r = reg->registrar;

	DL_DELETE(r->open, reg);
	if (reg->probe)
		r->probes--;
	(void)cw_probe_cancel(reg->probe);   /* always NULL */
	(void)cw_process_free(reg->process); /* always NULL */
	free(reg);
}

/* The process is known: it has a new connection, and perhaps a new record. */
static void welcome_back(struct cw_registrar *r, struct registration *reg, struct cw_process *p)
{
	if (p->conn)
		cw_agent_conn_close(p->conn);
	if (p->record_ino != reg->process->record_ino || p->record_dev != reg->process->record_dev)
		cw_process_take_record(p, reg->process);
	p->conn = reg->conn;
	cw_agent_conn_set_owner(reg->conn, p);
	cw_agent_conn_admit(reg->conn);
	r->total++;
	r->config.on_returned(p, r->config.user);
}

/* 0, -EDQUOT, or a negative errno for what will pass. */
static int enter_table(struct cw_registrar *r, struct registration *reg)
{
	const struct cw_registrar_config *config = &r->config;
	struct cw_process *p = reg->process, *victim;

	if (cw_processes_victim(*config->table, p->uid, config->max_processes,
				config->max_processes_per_uid, &victim) < 0)
		return -EDQUOT;
	if (victim)
		config->on_evict(victim, config->user);
	HASH_ADD(hh, *config->table, key, sizeof(p->key), p);
	if (!cw_htable_added(p))
		return -ENOMEM;
	if (config->on_registered(p, config->user) < 0) {
		HASH_DEL(*config->table, p);
		return -ENOMEM;
	}
	reg->process = NULL;
	p->conn = reg->conn;
	cw_agent_conn_set_owner(reg->conn, p);
	cw_agent_conn_admit(reg->conn);
	r->total++;
	log_debug("registered pid=%d uid=%u command=%s", (int)cw_process_pid(p), (unsigned)p->uid,
		  p->command);
	return 0;
}

static void complete(struct registration *reg)
{
	struct cw_registrar *r = reg->registrar;
	struct cw_process *known = cw_processes_find(*r->config.table, cw_process_pid(reg->process),
						     reg->process->key.start_ticks);
	struct cw_agent_conn *conn = reg->conn;
	int err = 0;

	if (known && cw_process_is_dead(known))
		err = -ESRCH;
	else if (known)
		welcome_back(r, reg, known);
	else
		err = enter_table(r, reg);
	registration_free(reg);
	if (err == -EDQUOT)
		cw_agent_conn_refuse(conn, "too many processes");
	else if (err < 0)
		cw_agent_conn_put_off(conn, strerror(-err));
}

static void start_probes(struct cw_registrar *r);

static void on_probe(enum cw_probe_answer answer, const char *command, size_t len, void *user)
{
	struct registration *reg = user;
	struct cw_registrar *r = reg->registrar;
	struct cw_agent_conn *conn = reg->conn;

	reg->probe = NULL;
	r->probes--;
	if (answer == CW_PROBE_NOT_MAPPED) {
		registration_free(reg);
		cw_agent_conn_refuse(conn, "the record is not mapped by the process that sent it");
	} else {
		if (len)
			cw_process_set_command(reg->process, command, len);
		complete(reg);
	}
	start_probes(r);
}

static void start_probes(struct cw_registrar *r)
{
	struct registration *reg, *tmp;

	DL_FOREACH_SAFE (r->open, reg, tmp) {
		const struct cw_process *p = reg->process;

		if (reg->probe)
			continue;
		if (r->probes >= MAX_PROBES)
			return;
		if (cw_probe_start(r->config.base, p->proc_fd, p->record_dev, p->record_ino,
				   PROBE_TIMEOUT_MS, on_probe, reg, &reg->probe) < 0)
			complete(reg); /* no child to be had: as if it could not tell */
		else
			r->probes++;
	}
}

void cw_registrar_hello(struct cw_registrar *r, struct cw_agent_conn *conn,
			const struct cw_msg_agent_hello *hello, int fd)
{
	struct registration *reg;
	struct cw_err err;
	int r_new;

	if (fd < 0) {
		cw_agent_conn_refuse(conn, "the hello came without a record");
		return;
	}
	if (hello->record_bytes > 2 * CW_RECORD_MAX_BYTES) {
		closep(&fd);
		cw_agent_conn_refuse(conn, "the record is too large");
		return;
	}
	reg = calloc(1, sizeof(*reg));
	if (!reg) {
		closep(&fd);
		cw_agent_conn_put_off(conn, "out of memory");
		return;
	}
	reg->registrar = r;
	reg->conn = conn;
	r_new = cw_process_new(cw_agent_conn_cred(conn), fd, &reg->process, &err);
	if (r_new < 0) {
		free(reg);
		if (r_new == -ENOMEM || r_new == -EMFILE || r_new == -ENFILE)
			cw_agent_conn_put_off(conn, err.text);
		else
			cw_agent_conn_refuse(conn, err.text);
		return;
	}
	DL_APPEND(r->open, reg);
	start_probes(r);
}

bool cw_registrar_forget(struct cw_registrar *r, struct cw_agent_conn *conn)
{
	struct registration *reg;

	DL_FOREACH (r->open, reg) {
		if (reg->conn != conn)
			continue;
		registration_free(reg);
		start_probes(r);
		return true;
	}
	return false;
}

uint64_t cw_registrar_total(const struct cw_registrar *r)
{
	return r->total;
}

int cw_registrar_new(const struct cw_registrar_config *config, struct cw_registrar **ret)
{
	struct cw_registrar *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->config = *config;
	*ret = r;
	return 0;
}

struct cw_registrar *cw_registrar_free(struct cw_registrar *r)
{
	if (!r)
		return NULL;
	while (r->open)
		registration_free(r->open);
	free(r);
	return NULL;
}
