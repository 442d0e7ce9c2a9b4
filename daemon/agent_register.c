/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/agent_register.h"

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
/* Children that could not even be killed, until they end: their user is not served meanwhile. */
#define MAX_ABANDONED_PER_UID 2

struct registration {
	struct cw_registrar *registrar;
	struct cw_agent_conn *conn;
	size_t frame_len;
	struct cw_process *process; /* once the probe has brought the record */
	struct cw_probe *probe;     /* NULL = waits for its turn */
	struct registration *prev, *next;
};

struct cw_registrar {
	struct cw_registrar_config config;
	struct registration *open;
	unsigned probes;
	uint64_t total, unreadable;
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
	struct cw_process *p = reg->process, *displaced;
	int err = cw_processes_make_room(*config->table, p->uid, &config->places, &displaced);

	if (err == -EDQUOT)
		config->on_no_place(p, config->user);
	if (err < 0)
		return err;
	if (displaced)
		config->on_evict(displaced, config->user);
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
		cw_agent_conn_refuse(conn, CW_NO_PLACE);
	else if (err < 0)
		cw_agent_conn_put_off(conn, strerror(-err));
}

static void start_probes(struct cw_registrar *r);

/* 0, or -errno with err saying to the agent what is wrong with its registration. */
static int judge(struct registration *reg, const struct cw_probe_result *result, struct cw_err *err)
{
	int r;

	if (result->record_fd < 0)
		return cw_err_set(err, EPERM, "the hello came without a sealed memfd");
	r = cw_process_new(cw_agent_conn_cred(reg->conn), result->record_fd, &reg->process, err);
	if (r < 0)
		return r;
	if (result->answer == CW_PROBE_NOT_MAPPED)
		return cw_err_set(err, EPERM,
				  "the record is not mapped by the process that sent it");
	if (result->command_len)
		cw_process_set_command(reg->process, result->command, result->command_len);
	return 0;
}

static void count_unreadable(struct registration *reg, const struct cw_err *err)
{
	uint64_t n = ++reg->registrar->unreadable;

	/* Agents come back every minute: said ever more rarely. */
	if ((n & (n - 1)) == 0)
		log_warn("rank process pid=%d is not watched: its record cannot be read: %s (%llu "
			 "so far)",
			 (int)cw_agent_conn_cred(reg->conn)->pid, err->text, (unsigned long long)n);
}

static void on_probe(const struct cw_probe_result *result, void *user)
{
	struct registration *reg = user;
	struct cw_registrar *r = reg->registrar;
	struct cw_agent_conn *conn = reg->conn;
	struct cw_err err;
	int bad;

	reg->probe = NULL;
	r->probes--;
	bad = judge(reg, result, &err);
	if (bad == 0) {
		complete(reg);
	} else {
		if (bad == -ENOTSUP)
			count_unreadable(reg, &err);
		registration_free(reg);
		if (bad == -ENOMEM || bad == -EMFILE || bad == -ENFILE)
			cw_agent_conn_put_off(conn, err.text);
		else
			cw_agent_conn_refuse(conn, err.text);
	}
	start_probes(r);
}

static int start_probe(struct registration *reg)
{
	const struct cw_peer_cred *cred = cw_agent_conn_cred(reg->conn);
	struct cw_probe_request request = {
		.base = reg->registrar->config.base,
		.conn_fd = cw_agent_conn_fd(reg->conn),
		.frame_len = reg->frame_len,
		.pid = cred->pid,
		.uid = cred->uid,
		.timeout_ms = PROBE_TIMEOUT_MS,
		.fn = on_probe,
		.user = reg,
	};

	return cw_probe_start(&request, &reg->probe);
}

static void start_probes(struct cw_registrar *r)
{
	struct registration *reg, *tmp;

	DL_FOREACH_SAFE (r->open, reg, tmp) {
		struct cw_agent_conn *conn = reg->conn;

		if (reg->probe)
			continue;
		if (r->probes >= MAX_PROBES)
			return;
		if (start_probe(reg) == 0) {
			r->probes++;
			continue;
		}
		registration_free(reg);
		cw_agent_conn_put_off(conn, "no child process to be had");
	}
}

void cw_registrar_hello(struct cw_registrar *r, struct cw_agent_conn *conn,
			const struct cw_msg_agent_hello *hello, size_t frame_len)
{
	struct registration *reg;

	if (hello->record_bytes > 2 * CW_RECORD_MAX_BYTES) {
		cw_agent_conn_refuse(conn, "the record is too large");
		return;
	}
	if (cw_probe_abandoned(cw_agent_conn_cred(conn)->uid) >= MAX_ABANDONED_PER_UID) {
		cw_agent_conn_refuse(conn, "descriptors of this user hang when they are closed");
		return;
	}
	reg = calloc(1, sizeof(*reg));
	if (!reg) {
		cw_agent_conn_put_off(conn, "out of memory");
		return;
	}
	reg->registrar = r;
	reg->conn = conn;
	reg->frame_len = frame_len;
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

uint64_t cw_registrar_unreadable(const struct cw_registrar *r)
{
	return r->unreadable;
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
