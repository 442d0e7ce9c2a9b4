/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node/lock_owners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/kernel/procstat.h"
#include "daemon/process/lock_wait.h"
#include "daemon/process/process.h"
#include "daemon/system/children.h"

struct question {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t address;
	bool is_inherited;
};

struct cw_lock_owners {
	struct cw_children *children;
	struct cw_process **table;
	struct cw_child *child; /* NULL = nobody is asked about */
	struct question question;
};

int cw_lock_owners_new(struct event_base *base, struct cw_process **table,
		       struct cw_lock_owners **ret)
{
	struct cw_lock_owners *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->table = table;
	r = cw_children_new(base, &o->children);
	if (r < 0) {
		free(o);
		return r;
	}
	*ret = o;
	return 0;
}

struct cw_lock_owners *cw_lock_owners_free(struct cw_lock_owners *o)
{
	if (!o)
		return NULL;
	cw_children_free(o->children);
	free(o);
	return NULL;
}

static bool is_there(const struct question *q)
{
	_cleanup_(closep) int fd = cw_procstat_open(q->pid);
	struct cw_procstat st;

	return fd >= 0 && cw_procstat_read(fd, &st) == 0 && st.start_ticks == q->start_ticks;
}

/* In the child. It is the same process before and after, so it was in between. */
static int read_owner(int out_fd, const void *arg)
{
	const struct question *q = arg;
	pid_t owner = is_there(q) ? cw_lock_wait_read(q->pid, q->address, q->is_inherited) : 0;

	if (!owner || !is_there(q))
		return 0;
	return write(out_fd, &owner, sizeof(owner)) == (ssize_t)sizeof(owner) ? 0 : 1;
}

static void on_answer(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct cw_lock_owners *o = user;
	struct cw_process *p =
		cw_processes_find(*o->table, o->question.pid, o->question.start_ticks);
	pid_t owner;

	o->child = NULL;
	if (!p || end != CW_CHILD_EXITED || len != sizeof(owner))
		return;
	memcpy(&owner, output, sizeof(owner));
	cw_lock_wait_answer(&p->headway.lock, o->question.address, owner);
}

void cw_lock_owners_look(struct cw_lock_owners *o, struct cw_process *p, int64_t awake_ns)
{
	struct cw_lock_wait *w = &p->headway.lock;
	const struct cw_child_config config = {
		.main = read_owner,
		.arg = &o->question,
		.deadline_ms = CW_LOCK_OWNERS_MS,
		.max_output = 2 * sizeof(pid_t), /* a full buffer is an overflow */
		.fn = on_answer,
		.user = o,
	};

	/* One that hangs in a process's memory is abandoned; no other goes after it. */
	if (o->child || cw_children_abandoned(o->children) || !cw_lock_wait_must_ask(w, awake_ns))
		return;
	o->question = (struct question){ .pid = p->key.pid,
					 .start_ticks = p->key.start_ticks,
					 .address = w->address,
					 .is_inherited = w->is_inherited };
	w->asked_ns = awake_ns;
	(void)cw_child_start(o->children, &config, &o->child); /* or in ten seconds */
}
