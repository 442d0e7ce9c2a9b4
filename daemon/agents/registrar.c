/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A registration is in one of three states: in its user's queue, with a probe child, or judged. It
 * ends in one of three ways. The process enters the table and gets a welcome, or we refuse it with
 * a reason, or we defer it (close the connection without an answer).
 */
#include "daemon/agents/registrar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/htable.h"
#include "common/log.h"
#include "common/pidfd.h"
#include "daemon/agents/agent_probe.h"
#include "daemon/agents/agent_queue.h"
#include "loop/accept_pause.h"

/*
 * A probe child's deadline for each agent. A child can read a few thousand lines of maps in this
 * time, and the agent is willing to wait much longer.
 */
#define PROBE_TIMEOUT_MS 1500
/*
 * Maximum number of children of one user while other users wait. If both of them hang, six more
 * children can still start.
 */
#define MAX_PROBES_PER_USER 2
/*
 * Maximum number of children of one user while no other user waits. For a new user, two children
 * can still start.
 */
#define MAX_PROBES_ALONE (CW_PROBE_MAX - 2)
/*
 * Maximum number of children of all slow users together. A user is slow if we had to kill one of
 * its children.
 */
#define MAX_PROBES_SLOW (CW_PROBE_MAX / 2)
/*
 * If children end this often before they check the agent, as on an overloaded machine, we defer the
 * agent.
 */
#define MAX_ATTEMPTS 4
/*
 * Maximum number of children of one user that survived SIGKILL. At the limit we serve the user
 * again only when one of them has ended.
 */
#define MAX_ABANDONED_PER_UID 2
/* The largest error number that the kernel uses. */
#define MAX_ERRNO 4096u

/* Descriptors of a process besides its connection and its record; see CW_NODE_PROCESS_FDS. */
#define PROCESS_FDS 4u

struct probe;

struct registration {
	struct cw_queue_position position; /* must be first: we cast it to its registration */
	struct cw_registrar *registrar;
	struct cw_agent_conn *conn;
	size_t frame_len;
	unsigned attempts;
	struct cw_process *process; /* NULL = the probe has not delivered the record yet */
	struct probe *probe;        /* the probe that checks this agent; NULL = queued */
	unsigned agent;             /* index of the agent in the probe */
	UT_hash_handle hh;          /* key: pid; in the table while the agent is queued */
	pid_t pid;
	struct registration *prev, *next; /* neighbours in the list of all registrations */
};

/* One child that checks some agents of one user. */
struct probe {
	struct cw_registrar *registrar;
	struct cw_agent_probe *child;
	uid_t uid;
	/* NULL = already judged, or its connection has closed */
	struct registration *members[CW_PROBE_MAX_AGENTS];
	unsigned n;
	struct probe *prev, *next;
};

struct cw_registrar {
	struct cw_registrar_config config;
	struct registration *open;
	/* key: pid; the queued registrations, at most one per process */
	struct registration *by_pid;
	struct cw_agent_queue *queue;
	struct probe *probes;
	uint64_t total, unreadable, repeated, no_record;
	int no_record_error; /* errno of the last agent that could not make a record */
};

/* Frees the registration. The connection stays open. */
static void registration_free(struct registration *reg)
{
	struct cw_registrar *r = reg->registrar;

	cw_agent_conn_set_registration(reg->conn, NULL);
	DL_DELETE(r->open, reg);
	if (reg->position.user) {
		cw_agent_queue_leave(r->queue, &reg->position);
		HASH_DEL(r->by_pid, reg);
	}
	if (reg->probe)
		reg->probe->members[reg->agent] = NULL;
	(void)cw_process_free(reg->process); /* always NULL */
	free(reg);
}

static void defer(struct registration *reg, const char *reason)
{
	struct cw_agent_conn *conn = reg->conn;

	registration_free(reg);
	cw_agent_conn_defer(conn, reason);
}

static void refuse(struct registration *reg, const char *reason)
{
	struct cw_agent_conn *conn = reg->conn;

	registration_free(reg);
	cw_agent_conn_refuse(conn, reason);
}

/*
 * Queues reg. If another registration of this process is queued, reg takes its place and we defer
 * the older one. Its connection has gone, or the process makes very many connections. Returns 0 or
 * -ENOMEM; reg is then not queued.
 */
static int wait_in_line(struct registration *reg, bool is_first)
{
	struct cw_registrar *r = reg->registrar;
	struct registration *older;

	HASH_FIND(hh, r->by_pid, &reg->pid, sizeof(reg->pid), older);
	if (older) {
		HASH_DEL(r->by_pid, older);
		cw_agent_queue_replace(r->queue, &older->position, &reg->position);
		defer(older, "its process has opened another connection");
	} else if (cw_agent_queue_wait(r->queue, cw_agent_conn_cred(reg->conn)->uid, &reg->position,
				       is_first) < 0) {
		return -ENOMEM;
	}
	HASH_ADD(hh, r->by_pid, pid, sizeof(reg->pid), reg);
	if (cw_htable_added(reg))
		return 0;
	cw_agent_queue_leave(r->queue, &reg->position);
	return -ENOMEM;
}

/*
 * Gives a known process its new connection. If the agent has made a new record, the process gets
 * it, too.
 */
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

/*
 * Puts the process into the table. Returns 0 or -errno. -EDQUOT: the table of processes is full for
 * this user. Other values are reasons that will pass.
 */
static int enter_table(struct cw_registrar *r, struct registration *reg)
{
	const struct cw_registrar_config *config = &r->config;
	struct cw_process *p = reg->process, *displaced;
	int err = cw_processes_make_room(*config->table, p->uid, &config->quota, &displaced);

	if (err == -EDQUOT)
		config->on_over_quota(p, config->user);
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

/*
 * True if the process has changed its user, by sudo or a set-user-ID program. From now on, the user
 * that started it must see nothing of its activity.
 */
static bool is_other_users(const struct cw_process *known, const struct cw_process *now)
{
	return known->uid != now->uid;
}

static void complete(struct registration *reg)
{
	struct cw_registrar *r = reg->registrar;
	struct cw_process *known = cw_processes_find(*r->config.table, cw_process_pid(reg->process),
						     reg->process->key.start_ticks);
	struct cw_agent_conn *conn = reg->conn;
	int err = 0;

	if (known && cw_process_is_dead(known)) {
		err = -ESRCH;
	} else if (known && !is_other_users(known, reg->process)) {
		welcome_back(r, reg, known);
	} else {
		if (known)
			r->config.on_other_user(known, r->config.user);
		err = enter_table(r, reg);
	}
	registration_free(reg);
	if (err == -EDQUOT)
		cw_agent_conn_refuse(conn, CW_OVER_QUOTA);
	else if (err < 0)
		cw_agent_conn_defer(conn, strerror(-err));
}

/*
 * Checks the registration. Returns 0, or -errno with the text for the agent in err. A rank that
 * fails at once may have ended before the probe. The mappings then cannot prove that the record is
 * its own, so no other process may have this record.
 */
static int judge(struct registration *reg, const struct cw_agent_probe_result *result,
		 struct cw_err *err)
{
	const struct cw_process *p;
	int r;

	if (result->record_fd < 0)
		return cw_err_set(err, EPERM, "the hello has no sealed memfd");
	r = cw_process_new(cw_agent_conn_cred(reg->conn), result->record_fd, &reg->process, err);
	if (r < 0)
		return r;
	p = reg->process;
	if (cw_pidfd_has_ended(p->pidfd) &&
	    cw_processes_share_record(*reg->registrar->config.table, p))
		return cw_err_set(err, EPERM, "another process has this record");
	if (p->proc_fd < 0) /* the probe may have seen another process with this pid */
		return 0;
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

	/* Log only each power of two, because each agent reconnects every minute. */
	if ((n & (n - 1)) == 0)
		log_warn("rank process pid=%d is not watched: its record cannot be read: %s (%llu "
			 "so far)",
			 (int)cw_agent_conn_cred(reg->conn)->pid, err->text, (unsigned long long)n);
}

/*
 * Queues the agent again, because the child ended before it checked the agent. An earlier agent
 * held the child up, or time ran out.
 */
static void try_again(struct registration *reg)
{
	reg->registrar->repeated++;
	reg->position.is_alone = true;
	if (++reg->attempts == MAX_ATTEMPTS)
		defer(reg, "no child process was free to check it");
	else if (wait_in_line(reg, true) < 0)
		defer(reg, "out of memory");
}

static int judge_in_budget(struct registration *reg, const struct cw_agent_probe_result *result,
			   struct cw_err *err)
{
	const struct cw_registrar_config *config = &reg->registrar->config;
	uid_t uid = cw_agent_conn_cred(reg->conn)->uid;
	int64_t start_ns = cw_clock_cpu_ns();
	int r = 0;

	if (!config->may_read(uid, config->user))
		r = cw_err_set(err, EBUSY, "reading this user's records takes too long");
	else if (result->record_fd >= 0 && cw_accept_pause_is_scarce(PROCESS_FDS))
		r = cw_err_set(err, EMFILE, "descriptors are running out");
	if (r < 0) {
		int fd = result->record_fd;

		closep(&fd);
		return r;
	}
	r = judge(reg, result, err);
	config->on_read(uid, cw_clock_cpu_ns() - start_ns, config->user);
	return r;
}

static void on_result(unsigned agent, const struct cw_agent_probe_result *result, void *user)
{
	struct probe *probe = user;
	struct registration *reg = probe->members[agent];
	struct cw_err err;
	int bad;

	if (!reg) { /* the agent's connection has closed since */
		int fd = result->record_fd;

		closep(&fd);
		return;
	}
	probe->members[agent] = NULL;
	reg->probe = NULL;
	if (result->answer == CW_PROBE_NOT_TAKEN) {
		try_again(reg);
		return;
	}
	if (result->answer == CW_PROBE_LOST) {
		defer(reg, "its record was lost on the way");
		return;
	}
	bad = judge_in_budget(reg, result, &err);
	if (bad == 0) {
		complete(reg);
		return;
	}
	if (bad == -ENOTSUP)
		count_unreadable(reg, &err);
	if (bad == -ENOMEM || bad == -EMFILE || bad == -ENFILE || bad == -EBUSY)
		defer(reg, err.text);
	else
		refuse(reg, err.text);
}

static void start_probes(struct cw_registrar *r);

static void on_done(bool was_killed, void *user)
{
	struct probe *probe = user;
	struct cw_registrar *r = probe->registrar;

	cw_agent_queue_done(r->queue, probe->uid, was_killed);
	DL_DELETE(r->probes, probe);
	free(probe);
	start_probes(r);
}

/*
 * Takes the batch out of the queue. Makes a probe of its agents, except of those that closed their
 * connection and live. The hello of a process that has ended is still in its connection.
 */
static struct probe *make_probe(struct cw_registrar *r, struct cw_queue_position **positions,
				unsigned n)
{
	struct probe *probe = calloc(1, sizeof(*probe));

	for (unsigned i = 0; i < n; i++) {
		struct registration *reg = (struct registration *)positions[i];
		struct cw_agent_conn *conn = reg->conn;

		HASH_DEL(r->by_pid, reg);
		if (cw_agent_conn_is_gone(conn) &&
		    !cw_pidfd_has_ended(cw_agent_conn_cred(conn)->pidfd)) {
			registration_free(reg);
			cw_agent_conn_close(conn);
		} else if (!probe) {
			defer(reg, "out of memory");
		} else {
			reg->agent = probe->n;
			reg->probe = probe;
			probe->members[probe->n++] = reg;
		}
	}
	return probe;
}

static int start_child(struct probe *probe)
{
	struct cw_agent_probe_agent agents[CW_PROBE_MAX_AGENTS];
	struct cw_agent_probe_request request = {
		.base = probe->registrar->config.base,
		.forks = probe->registrar->config.forks,
		.agents = agents,
		.n = probe->n,
		.uid = probe->uid,
		.timeout_ms = PROBE_TIMEOUT_MS,
		.fn = on_result,
		.done = on_done,
		.user = probe,
	};

	for (unsigned i = 0; i < probe->n; i++)
		agents[i] = (struct cw_agent_probe_agent){
			.conn_fd = cw_agent_conn_fd(probe->members[i]->conn),
			.frame_len = probe->members[i]->frame_len,
			.pid = probe->members[i]->pid,
		};
	return cw_agent_probe_start(&request, &probe->child);
}

/* Ends a batch whose child did not start. Refuses or defers its agents. */
static void drop_probe(struct cw_registrar *r, struct probe *probe, uid_t uid, bool is_refused)
{
	cw_agent_queue_done(r->queue, uid, false);
	for (unsigned i = 0; probe && i < probe->n; i++) {
		struct registration *reg = probe->members[i];

		reg->probe = NULL;
		if (is_refused)
			refuse(reg, "close() hangs on descriptors of this user");
		else
			defer(reg, "cannot start a child process");
	}
	free(probe);
}

static void start_probes(struct cw_registrar *r)
{
	struct cw_queue_position *positions[CW_PROBE_MAX_AGENTS];
	unsigned n;

	while ((n = cw_agent_queue_take(r->queue, positions, CW_PROBE_MAX_AGENTS)) > 0) {
		uid_t uid = cw_agent_conn_cred(((struct registration *)positions[0])->conn)->uid;
		bool is_refused = cw_agent_probe_abandoned(uid) >= MAX_ABANDONED_PER_UID;
		struct probe *probe = make_probe(r, positions, n);

		if (!probe || !probe->n || is_refused) {
			drop_probe(r, probe, uid, is_refused);
			continue;
		}
		probe->registrar = r;
		probe->uid = uid;
		if (start_child(probe) < 0)
			drop_probe(r, probe, uid, false);
		else
			DL_APPEND(r->probes, probe);
	}
}

/*
 * Counts and refuses an agent that could not make a record. Without a record we can read nothing
 * about its process. The agent does not reconnect.
 */
static void note_no_record(struct cw_registrar *r, struct cw_agent_conn *conn, int error)
{
	const struct cw_peer_cred *cred = cw_agent_conn_cred(conn);
	uint64_t n = ++r->no_record;

	r->no_record_error = error;
	if ((n & (n - 1)) == 0) /* log rarely, because any process can send many such hellos */
		log_warn("rank process pid=%d uid=%u is not watched: its agent could not make a "
			 "flight record: %s (%llu so far)",
			 (int)cred->pid, (unsigned)cred->uid, strerror(error),
			 (unsigned long long)n);
	cw_agent_conn_refuse(conn, "there is no record");
}

void cw_registrar_hello(struct cw_registrar *r, struct cw_agent_conn *conn,
			const struct cw_msg_agent_hello *hello, size_t frame_len)
{
	struct registration *reg;

	if (hello->record_error) {
		note_no_record(r, conn,
			       hello->record_error < MAX_ERRNO ? (int)hello->record_error : EINVAL);
		return;
	}
	if (hello->record_bytes > 2 * CW_RECORD_MAX_BYTES) {
		cw_agent_conn_refuse(conn, "the record is too large");
		return;
	}
	if (cw_agent_probe_abandoned(cw_agent_conn_cred(conn)->uid) >= MAX_ABANDONED_PER_UID) {
		cw_agent_conn_refuse(conn, "close() hangs on descriptors of this user");
		return;
	}
	reg = calloc(1, sizeof(*reg));
	if (!reg) {
		cw_agent_conn_defer(conn, "out of memory");
		return;
	}
	reg->registrar = r;
	reg->conn = conn;
	reg->pid = cw_agent_conn_cred(conn)->pid;
	reg->frame_len = frame_len;
	cw_agent_conn_set_registration(conn, reg);
	DL_APPEND(r->open, reg);
	if (wait_in_line(reg, false) < 0)
		defer(reg, "out of memory");
	start_probes(r);
}

bool cw_registrar_forget(struct cw_registrar *r, struct cw_agent_conn *conn)
{
	struct registration *reg = cw_agent_conn_registration(conn);

	if (!reg)
		return false;
	registration_free(reg);
	return true;
}

uint64_t cw_registrar_unreadable(const struct cw_registrar *r)
{
	return r->unreadable;
}

uint64_t cw_registrar_no_record(const struct cw_registrar *r, int *ret_error)
{
	*ret_error = r->no_record_error;
	return r->no_record;
}

uint32_t cw_registrar_waiting(const struct cw_registrar *r)
{
	return cw_agent_queue_waiting(r->queue);
}

uint64_t cw_registrar_repeated(const struct cw_registrar *r)
{
	return r->repeated;
}

uint64_t cw_registrar_total(const struct cw_registrar *r)
{
	return r->total;
}

int cw_registrar_new(const struct cw_registrar_config *config, struct cw_registrar **ret)
{
	static const struct cw_agent_queue_limits limits = {
		.places = CW_PROBE_MAX,
		.per_user = MAX_PROBES_PER_USER,
		.per_user_alone = MAX_PROBES_ALONE,
		.slow = MAX_PROBES_SLOW,
	};
	struct cw_registrar *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->config = *config;
	if (cw_agent_queue_new(&limits, &r->queue) < 0) {
		free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

struct cw_registrar *cw_registrar_free(struct cw_registrar *r)
{
	struct probe *probe, *tmp;

	if (!r)
		return NULL;
	DL_FOREACH_SAFE (r->probes, probe, tmp) {
		DL_DELETE(r->probes, probe);
		(void)cw_agent_probe_cancel(probe->child); /* always NULL */
		for (unsigned i = 0; i < probe->n; i++)
			if (probe->members[i])
				registration_free(probe->members[i]);
		free(probe);
	}
	while (r->open)
		registration_free(r->open);
	r->queue = cw_agent_queue_free(r->queue);
	free(r);
	return NULL;
}
