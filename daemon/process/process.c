/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a process from an agent's credentials or from the service manager's store, reads its state,
 * and notes its end. Chooses the process that leaves the full table for a new one.
 */
#include "daemon/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/pidfd.h"
#include "daemon/kernel/cgroup.h"
#include "daemon/kernel/closed_files.h"
#include "daemon/kernel/kernel_events.h"
#include "daemon/kernel/tracer.h"
#include "identity/quota.h"
#include "loop/events.h"
#include "model/op.h"
#include "model/snapshot.h"

static void process_freep(struct cw_process **p)
{
	(void)cw_process_free(*p); /* always NULL */
}

/* Notes the working directory. A longer path, or a directory that is gone, stays unknown. */
static void note_cwd(struct cw_process *p)
{
	char cwd[CW_CLOSED_MAX_BYTES];
	ssize_t n = cw_closed_files_read(p->proc_fd, CW_CLOSED_CWD, 0, cwd, sizeof(cwd));

	if (n > 0 && n < (ssize_t)sizeof(cwd) - 1 && *cwd == '/')
		p->cwd = strdup(cwd); /* out of memory: unknown */
}

/*
 * Reads the peer's identity. The pidfd proves that the pid did not pass to another process before
 * we read it.
 */
static int identify(struct cw_process *p, struct cw_peer_cred *cred, struct cw_err *err)
{
	struct cw_procstat st, all;
	int r;

	p->proc_fd = cw_procstat_open(cred->pid);
	if (p->proc_fd < 0)
		return cw_err_set(err, -p->proc_fd, "the daemon cannot see your process in /proc");
	r = cw_procstat_read(p->proc_fd, &st);
	if (r < 0)
		return cw_err_set(err, -r, "the daemon cannot read your process in /proc");
	if (cred->pidfd < 0 || cw_pidfd_has_ended(cred->pidfd))
		return cw_err_set(err, ESRCH, "the process has ended");
	p->key.pid = (uint64_t)cred->pid;
	p->key.start_ticks = st.start_ticks;
	p->uid = cred->uid;
	p->gid = cred->gid;
	p->stat_permitted = cw_procstat_read_all(p->proc_fd, &all) == 0 && all.is_permitted;
	if (st.ppid > 1) /* pid 1 never ends; 0 = the parent is outside of our pid namespace */
		p->launcher_pidfd = (int)syscall(SYS_pidfd_open, st.ppid, 0);
	p->liveness = cw_liveness_of_state(st.state);
	cw_process_set_command(p, st.comm, strlen(st.comm));
	p->pidfd = steal_fd(&cred->pidfd);
	cw_oom_open(&p->oom, p->proc_fd);
	cw_proc_pod_read(p->proc_fd, &p->pod);
	note_cwd(p);
	return 0;
}

static struct cw_process *process_alloc(void)
{
	struct cw_process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pidfd = p->proc_fd = p->launcher_pidfd = p->oom.fd = -1;
	cw_host_activity_init(&p->host_activity);
	cw_sampler_init(&p->sampler);
	return p;
}

/* Opens the record, and owns record_fd from now on. */
static int adopt_record(struct cw_process *p, int record_fd, struct cw_err *err)
{
	_cleanup_(closep) int fd = record_fd;
	struct stat st;

	/*
	 * Check first that this is a memfd, because F_GET_SEALS calls no file system. On a FUSE
	 * mount, fstat() would wait for the user's program that serves the mount.
	 */
	if (fcntl(fd, F_GET_SEALS) < 0)
		return cw_err_set(err, EPERM, "the record is not a sealed memfd");
	if (fstat(fd, &st) < 0)
		return cw_err_set(err, errno, "the record's descriptor cannot be examined");
	p->record_dev = st.st_dev;
	p->record_ino = st.st_ino;
	return cw_record_open(steal_fd(&fd), true, &p->record, err);
}

/*
 * Returns whether the ended process still has its pid. The pid passes to no other process before
 * the parent reaps it.
 */
static bool is_unreaped(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0 || errno != ESRCH;
}

/*
 * Takes the identity of a process that has ended since its hello. /proc has its start and its exit
 * status until its parent reaps it. Afterwards the start is unknown (0).
 */
static void identify_ended(struct cw_process *p, struct cw_peer_cred *cred)
{
	struct cw_procstat st;

	if (p->proc_fd >= 0 && cw_procstat_read_all(p->proc_fd, &st) == 0 &&
	    is_unreaped(cred->pidfd)) {
		p->key.start_ticks = st.start_ticks;
		/* A zombie has no stack. An exit status other than 0 is one that we may see. */
		p->stat_permitted = st.is_permitted || st.exit_code != 0;
		cw_process_set_command(p, st.comm, strlen(st.comm));
		cw_proc_pod_read(p->proc_fd, &p->pod);
	} else { /* the directory may be that of another process */
		closep(&p->proc_fd);
		p->proc_fd = -1;
	}
	p->key.pid = (uint64_t)cred->pid;
	p->uid = cred->uid;
	p->gid = cred->gid;
	p->liveness = CW_LIVE_ALIVE; /* the pidfd's event corrects this later */
	p->pidfd = steal_fd(&cred->pidfd);
}

int cw_process_new(struct cw_peer_cred *cred, int record_fd, struct cw_process **ret,
		   struct cw_err *err)
{
	_cleanup_(process_freep) struct cw_process *p = process_alloc();
	_cleanup_(closep) int fd = record_fd;
	int r;

	if (!p)
		return cw_err_set(err, ENOMEM, "out of memory");
	r = identify(p, cred, err);
	if (r < 0 && cw_pidfd_has_ended(cred->pidfd)) {
		identify_ended(p, cred);
		r = 0;
	}
	if (r == 0)
		r = adopt_record(p, steal_fd(&fd), err);
	if (r < 0)
		return r;
	*ret = steal_ptr(&p);
	return 0;
}

/* Takes the identity from the stored name, because the process has ended. */
static void identify_by_name(struct cw_process *p, struct cw_fdstore_entry *entry)
{
	closep(&p->proc_fd); /* the pid may belong to another process now */
	closep(&p->launcher_pidfd);
	p->proc_fd = p->launcher_pidfd = -1;
	p->key.pid = (uint64_t)entry->pid;
	p->key.start_ticks = entry->start_ticks;
	p->uid = entry->uid;
	p->gid = entry->gid;
	p->liveness = CW_LIVE_ALIVE; /* the pidfd or entry->end corrects this later */
	if (p->pidfd < 0)
		p->pidfd = steal_fd(&entry->pidfd);
}

static int identify_restored(struct cw_process *p, struct cw_fdstore_entry *entry,
			     struct cw_err *err)
{
	struct cw_peer_cred cred = { entry->pid, entry->uid, entry->gid, entry->pidfd };
	int r;

	if (entry->is_dead) {
		identify_by_name(p, entry);
		return 0;
	}
	if (entry->pidfd < 0)
		return cw_err_set(err, EBADMSG, "the service manager kept no pidfd for it");
	r = identify(p, &cred, err); /* identify() checks the pidfd last */
	if (r == 0) {
		entry->pidfd = -1;
		return p->key.start_ticks == entry->start_ticks
			       ? 0
			       : cw_err_set(err, EBADMSG, "it is another process");
	}
	if (!cw_pidfd_has_ended(entry->pidfd))
		return r; /* the process lives, and its agent will reconnect */
	identify_by_name(p, entry);
	return 0;
}

int cw_process_restore(struct cw_fdstore_entry *entry, struct cw_process **ret, struct cw_err *err)
{
	_cleanup_(process_freep) struct cw_process *p = process_alloc();
	int r;

	if (!p)
		return cw_err_set(err, ENOMEM, "out of memory");
	if (entry->record_fd < 0)
		return cw_err_set(err, EBADMSG, "the service manager kept no record for it");
	r = adopt_record(p, steal_fd(&entry->record_fd), err);
	if (r == 0)
		r = identify_restored(p, entry, err);
	if (r < 0)
		return r;
	strcpy(p->fdstore_name, entry->name);
	p->fdstore_ino = p->record_ino;
	*ret = steal_ptr(&p);
	return 0;
}

struct cw_process *cw_process_free(struct cw_process *p)
{
	if (!p)
		return NULL;
	event_freep(&p->end_event);
	closep(&p->pidfd);
	closep(&p->proc_fd);
	closep(&p->launcher_pidfd);
	cw_oom_close(&p->oom);
	cw_process_watch(p, NULL);
	(void)cw_record_close(p->record); /* always NULL */
	cw_host_activity_fini(&p->host_activity);
	cw_sampler_fini(&p->sampler);
	cw_op_stats_fini(&p->ops);
	free(p->cwd);
	free(p);
	return NULL;
}

struct cw_job_id cw_process_job_id(const struct cw_process *p)
{
	struct cw_job_id job = { .key = p->job_key, .uid = p->uid };

	/* Cannot be cut: both have the same size. */
	(void)snprintf(job.label, sizeof(job.label), "%s", p->label);
	return job;
}

bool cw_process_is_of(const struct cw_process *p, const struct cw_job_id *job)
{
	return cw_process_has_job(p) && cw_job_key_is_equal(&p->job_key, &job->key) &&
	       p->uid == job->uid && strcmp(p->label, job->label) == 0;
}

struct cw_digest_rank cw_process_facts(const struct cw_process *p, int64_t now_ns, int64_t held_ns)
{
	return (struct cw_digest_rank){
		.record = p->record,
		.sampler = &p->sampler,
		.nonfinite_input = &p->nonfinite_input,
		.now_ns = now_ns,
		.pid = (int32_t)p->key.pid,
		.own_pid = p->pod.own_pid,
		.pod = &p->pod.ids,
		.start_ticks = p->key.start_ticks,
		.started_age_ns = (uint64_t)cw_procstat_age_ns(p->key.start_ticks),
		.uid = p->uid,
		.liveness = p->liveness,
		.death = { .end = p->end,
			   .ended_ns = p->ended_ns,
			   .launcher_gone_ns = p->launcher_gone_ns },
		.is_oom_killed = p->is_oom_killed,
		.is_d_state = p->host_activity.is_d_state,
		.is_child_busy = p->host_activity.is_child_busy,
		.is_frozen = p->host_activity.is_frozen,
		.host_wait = p->host_activity.host_wait,
		/* Add held_ns to convert the awake clock to the machine's clock. */
		.host_activity_ns = p->host_activity.host_activity_ns
					    ? p->host_activity.host_activity_ns + held_ns
					    : 0,
		.host_activity_by = p->host_activity.by,
		.command = p->command,
		.cause = &p->cause,
		.end_by = p->end_by,
		.end_sender = p->end_sender,
	};
}

void cw_process_format_cause(const struct cw_process *p, char buf[CW_CAUSE_BYTES])
{
	cw_cause_text(&p->cause.facts, p->cause.command, p->cause.group, p->end.exit_code, buf,
		      CW_CAUSE_BYTES);
}

void cw_process_take_record(struct cw_process *p, struct cw_process *from)
{
	(void)cw_record_close(p->record); /* always NULL */
	cw_sampler_fini(&p->sampler);
	p->record = steal_ptr(&from->record);
	p->record_dev = from->record_dev;
	p->record_ino = from->record_ino;
	/* Start again at the beginning of the new record; the totals stay. */
	p->ops.op_cursor = p->ops.time_cursor = 0;
	cw_sampler_init(&p->sampler);
	p->job_key = (struct cw_job_key){ 0 }; /* the new record may have another label */
}

void cw_command_text(const char *raw, size_t len, char ret[CW_PROCESS_COMMAND_BYTES])
{
	const char *base = raw;
	size_t n = 0;

	/* Skip the directory of the program. Copy its name and the arguments. */
	for (const char *c = raw; c < raw + len && *c; c++)
		if (*c == '/' && c + 1 < raw + len && c[1])
			base = c + 1;
	for (const char *c = base; c < raw + len && n < CW_PROCESS_COMMAND_BYTES - 4; c++)
		ret[n++] = *c == '\0' ? ' ' : (*c < ' ' || *c > '~') ? '?' : *c;
	while (n && ret[n - 1] == ' ')
		n--;
	ret[n] = '\0';
	if (n == CW_PROCESS_COMMAND_BYTES - 4)
		memcpy(ret + n, "...", sizeof("..."));
}

void cw_process_set_command(struct cw_process *p, const char *raw, size_t len)
{
	cw_command_text(raw, len, p->command);
}

void cw_process_watch(struct cw_process *p, struct cw_kernel_events *kernel)
{
	if (p->kernel)
		cw_kernel_events_forget(p->kernel, cw_process_pid(p));
	p->kernel = kernel;
	if (!kernel)
		return;
	cw_kernel_events_watch(kernel, cw_process_pid(p));
	if (cw_pidfd_has_ended(p->pidfd)) /* the pid may belong to another process already */
		cw_process_watch(p, NULL);
}

/*
 * An end in the kernel's notes may precede our last read of /proc by at most this much. A process
 * takes long to release all memory and files, so it may have been dying at that read.
 */
#define ENDS_UNSEEN_NS (10 * CW_NS_PER_S)

int cw_process_ending(struct cw_process *p, int64_t now_ns, int64_t monotonic_ns,
		      struct cw_ending *ret)
{
	struct cw_facts_process facts;
	int64_t age_ns;

	if (cw_kernel_events_read(p->kernel, cw_process_pid(p), &facts) < 0 ||
	    cw_kernel_facts_ending(&facts, ret) != 0)
		return cw_liveness_end(p->pidfd, p->proc_fd, p->stat_permitted, ret);
	p->has_kernel_end = true;
	age_ns = cw_kernel_facts_ended_age_ns(&facts, monotonic_ns);
	/*
	 * In a time namespace the kernel's time may be wrong. We accept it only if it lies between
	 * our last read of the living process and the moment when the pidfd became readable.
	 */
	if (age_ns >= 0 && now_ns - age_ns < p->ending_ns &&
	    now_ns - age_ns >= p->stat_ns - ENDS_UNSEEN_NS)
		p->ending_ns = now_ns - age_ns;
	p->end_by = cw_kernel_facts_end_by(&facts, &p->end_sender);
	p->is_oom_killed = facts.is_oom_victim && ret->term_signal == SIGKILL;
	p->cause = cw_kernel_facts_cause(&facts, false, (uint64_t)sysconf(_SC_PAGESIZE));
	return 0;
}

/*
 * Notes a stop that the process's own agent made, as the user had configured it. Returns false if
 * another party stopped the process.
 */
static bool note_own_stop(struct cw_process *p)
{
	static const uint32_t kinds[CW_REC_STOP__MAX] = {
		[CW_REC_STOP_NONFINITE] = CW_CAUSE_STOPPED_NONFINITE,
		[CW_REC_STOP_HEADROOM] = CW_CAUSE_STOPPED_HEADROOM,
	};
	struct cw_rec_summary s;
	enum cw_rec_stop why = cw_record_stopped(p->record, &s);

	if (why == CW_REC_STOP_NONE)
		return false;
	p->cause.facts.cause_kind = kinds[why];
	if (s.publish) {
		p->cause.facts.cause_op_kind = s.kind;
		p->cause.facts.cause_is_output = s.is_output;
		p->cause.facts.cause_op_seq = s.seq;
	}
	return true;
}

/*
 * Notes the reason why the process is held, in the order of cw_rank_held_by(). If there are two
 * reasons, the user has to remove the one that we name first.
 */
static void note_hold(struct cw_process *p)
{
	struct cw_facts_process facts;

	p->cause = (struct cw_cause){ 0 };
	if (p->host_activity.is_frozen) {
		if (cw_cgroup_frozen(p->proc_fd, p->cause.group, sizeof(p->cause.group)))
			p->cause.facts.cause_kind = CW_CAUSE_FROZEN;
	} else if (p->liveness == CW_LIVE_TRACED) {
		/* If there is no tracer now, the cause stays unknown. */
		(void)cw_tracer_find(p->proc_fd, &p->cause);
	} else if (p->liveness == CW_LIVE_STOPPED && !note_own_stop(p) &&
		   cw_kernel_events_read(p->kernel, cw_process_pid(p), &facts) == 0) {
		p->cause = cw_kernel_facts_cause(&facts, true, (uint64_t)sysconf(_SC_PAGESIZE));
	}
}

/* Maximum number of threads inside NCCL calls. A rank calls NCCL from one or two threads. */
#define MAX_INSIDE 16u

#define MAX_INTERPRETER_BYTES (UINT64_C(16) << 20)

/*
 * Returns the memory range of the interpreter's lock. Ignores a range that is larger than any real
 * interpreter.
 */
static struct cw_host_interpreter interpreter_of(const struct cw_rec_header *h)
{
	struct cw_host_interpreter interpreter = { .address = h->interpreter_address,
						   .bytes = h->interpreter_bytes };

	return interpreter.bytes <= MAX_INTERPRETER_BYTES ? interpreter
							  : (struct cw_host_interpreter){ 0 };
}

bool cw_process_look(struct cw_process *p, bool (*is_rank)(pid_t, void *), void *user,
		     const struct cw_clock *clock)
{
	const struct cw_rec_header *header = cw_record_header(p->record);
	struct cw_rec_wait waits[CW_REC_WAITS + MAX_INSIDE];
	int64_t now_ns = cw_clock_now_ns(clock);
	struct cw_host_activity_process hp = {
		.proc_fd = p->proc_fd,
		.pid = cw_process_pid(p),
		.is_rank = is_rank,
		.user = user,
		.helpers = header->helper_tids,
		.n_helpers = CW_REC_HELPERS,
		.waits = waits,
		.n_waits = CW_REC_WAITS,
		.own_pid = (pid_t)header->pid,
		.interpreter = interpreter_of(header),
		.record = header->own_io_begun ? p->record : NULL,
	};
	bool was_frozen = p->host_activity.is_frozen;
	struct cw_procstat st;
	uint32_t liveness;
	bool has_changed;

	memcpy(waits, header->waits, sizeof(header->waits));
	hp.n_waits += cw_record_inside(p->record, waits + CW_REC_WAITS, MAX_INSIDE);
	p->stat_ns = now_ns;
	cw_process_look_at_launcher(p, now_ns);
	cw_oom_look(&p->oom, now_ns);
	if (p->ending_ns || p->proc_fd < 0 || cw_procstat_read(p->proc_fd, &st) < 0)
		return false; /* the process is ending, and its pidfd tells more */
	cw_host_activity_step(&p->host_activity, &hp, &st, cw_clock_awake_ns(clock));
	liveness = cw_liveness_of_state(st.state);
	has_changed = liveness != p->liveness || p->host_activity.is_frozen != was_frozen;
	p->liveness = liveness;
	/*
	 * Read the tracer again each time. A capture of stacks also traces the process for an
	 * instant, and another tracer may have followed it.
	 */
	if (has_changed || liveness == CW_LIVE_TRACED)
		note_hold(p);
	return has_changed;
}

void cw_process_look_at_launcher(struct cw_process *p, int64_t now_ns)
{
	if (p->launcher_pidfd < 0 || !cw_pidfd_has_ended(p->launcher_pidfd))
		return;
	p->launcher_gone_ns = now_ns;
	closep(&p->launcher_pidfd);
	p->launcher_pidfd = -1;
}

void cw_process_end(struct cw_process *p, const struct cw_ending *end, int64_t now_ns)
{
	p->end = *end;
	p->liveness = end->liveness;
	p->ended_ns = p->ending_ns ? p->ending_ns : now_ns;
	if (!p->has_kernel_end) {
		p->cause = (struct cw_cause){ 0 }; /* the cause so far was that of a stop */
		p->is_oom_killed = end->liveness == CW_LIVE_KILLED && end->term_signal == SIGKILL &&
				   cw_oom_has_killed(&p->oom, now_ns);
	}
	cw_process_watch(p, NULL);
	cw_oom_close(&p->oom);
	p->host_activity.is_d_state = p->host_activity.is_child_busy = p->host_activity.is_frozen =
		false;
	p->host_activity.host_wait = CW_HOST_WAIT_UNKNOWN;
	p->host_activity.lock = (struct cw_lock_wait){ 0 };
	event_freep(&p->end_event);
	closep(&p->pidfd);
	closep(&p->proc_fd);
	p->pidfd = p->proc_fd = -1;
}

struct cw_process *cw_processes_find(struct cw_process *table, pid_t pid, uint64_t start_ticks)
{
	struct cw_process_key key = { .pid = (uint64_t)pid, .start_ticks = start_ticks };
	struct cw_process *p;

	HASH_FIND(hh, table, &key, sizeof(key), p);
	return p;
}

bool cw_processes_has_living(struct cw_process *table, pid_t pid)
{
	for (struct cw_process *p = table; p; p = p->hh.next)
		if (cw_process_pid(p) == pid && !cw_process_is_dead(p))
			return true;
	return false;
}

bool cw_processes_share_record(struct cw_process *table, const struct cw_process *p)
{
	for (const struct cw_process *q = table; q; q = q->hh.next)
		if (q->record_ino == p->record_ino && q->record_dev == p->record_dev &&
		    (q->key.pid != p->key.pid || q->key.start_ticks != p->key.start_ticks))
			return true;
	return false;
}

static bool is_pinned(const struct cw_process_quota *quota, const struct cw_process *p)
{
	return quota->has_incident && quota->has_incident(p, quota->user);
}

static struct cw_process *longest_dead_of(struct cw_process *table, uid_t uid,
					  const struct cw_process_quota *quota)
{
	struct cw_process *oldest = NULL;

	for (struct cw_process *p = table; p; p = p->hh.next)
		if (p->uid == uid && cw_process_is_dead(p) && !is_pinned(quota, p) &&
		    (!oldest || p->ended_ns < oldest->ended_ns))
			oldest = p;
	return oldest;
}

/*
 * Chooses by the quotas, which remove the youngest process first. The table is in order of
 * registration. Dead processes should go first, so they count as younger than all living ones, and
 * the process that died first counts as the youngest.
 */
static int by_quota(struct cw_process *table, uid_t uid, const struct cw_process_quota *quota,
		    void **ret)
{
	_cleanup_(freep) struct cw_quota_charge *taken = calloc(HASH_COUNT(table), sizeof(*taken));
	size_t n = 0;

	if (!taken)
		return -ENOMEM;
	for (struct cw_process *p = table; p; p = p->hh.next, n++)
		taken[n] = (struct cw_quota_charge){
			.uid = p->uid,
			.is_pinned = is_pinned(quota, p),
			.since_ns = cw_process_is_dead(p) ? INT64_MAX - p->ended_ns : (int64_t)n,
			.holder = p,
		};
	return cw_quota_charge_for(uid, taken, n, quota->max, ret) == CW_QUOTA_REFUSE ? -EDQUOT : 0;
}

int cw_processes_make_room(struct cw_process *table, uid_t uid,
			   const struct cw_process_quota *quota, struct cw_process **ret)
{
	uint32_t n_own = 0;
	void *displaced = NULL;
	int r = 0;

	/*
	 * Count only if a limit is near, because thousands of processes may register after a
	 * restart.
	 */
	for (const struct cw_process *p = table; p && HASH_COUNT(table) >= quota->max_per_uid;
	     p = p->hh.next)
		n_own += p->uid == uid;
	*ret = NULL;
	if (n_own >= quota->max_per_uid)
		r = -EDQUOT;
	else if (HASH_COUNT(table) >= quota->max - quota->max / CW_QUOTA_RESERVE)
		r = by_quota(table, uid, quota, &displaced);
	*ret = displaced;
	if (r == -EDQUOT)
		*ret = longest_dead_of(table, uid, quota);
	return *ret ? 0 : r;
}
