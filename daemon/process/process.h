/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank process on this node, from registration until we drop it. It outlives its connection, so
 * an agent that reconnects finds it again. It also outlives its own end, and so does its record,
 * because the other ranks may be waiting for a dead rank's last ops.
 *
 * Its identity comes from the kernel: SO_PEERCRED and the start time. No part of it comes from a
 * message or a record.
 *
 * Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/htable.h"
#include "common/unixsock.h"
#include "daemon/kernel/kernel_facts.h"
#include "daemon/kernel/liveness.h"
#include "daemon/kernel/oom.h"
#include "daemon/process/fdstore.h"
#include "daemon/process/host_activity.h"
#include "daemon/process/op_stats.h"
#include "daemon/process/proc_pod.h"
#include "digest/rank.h"
#include "identity/job_id.h"
#include "record/record_reader.h"

struct cw_agent_conn;
struct cw_clock;
struct cw_kernel_events;
struct cw_node;
struct event;

/*
 * We keep dead ranks this long, which is longer than any launcher waits before it restarts a job.
 */
#define CW_PROCESS_KEEP_DEAD_NS (600 * CW_NS_PER_S)

#define CW_PROCESS_COMMAND_BYTES 128

struct cw_process_key {
	uint64_t start_ticks;
	uint64_t pid;
};

struct cw_process {
	struct cw_process_key key;
	uid_t uid;
	gid_t gid;
	int pidfd, proc_fd; /* of the living process; -1 = we know its end */
	bool stat_permitted;
	int launcher_pidfd; /* of the parent at registration; -1 = none, or it has ended */
	int64_t launcher_gone_ns;
	char command[CW_PROCESS_COMMAND_BYTES];
	struct cw_proc_pod pod;

	struct cw_record *record;
	dev_t record_dev;
	ino_t record_ino;
	struct cw_sampler sampler;
	struct cw_op_stats ops;
	struct cw_nonfinite_input nonfinite_input;
	/* The process ended or registered while its user's budget was spent. */
	bool owes_sample;
	/* The job of the process has an urgent event, so we sample it first. */
	bool is_wanted;
	/* By the machine's clock; later than the next tick if sampling is costly. */
	int64_t next_sample_ns;

	struct cw_node *node;       /* for event callbacks; borrowed */
	struct cw_agent_conn *conn; /* NULL = not connected; borrowed */
	/* For the pidfd, which becomes readable; later a timer for the retries. */
	struct event *end_event;
	unsigned end_attempts;

	char label[CW_JOB_LABEL_BYTES];
	struct cw_job_key job_key; /* from uid and label; unset = no label yet */

	uint32_t liveness; /* enum cw_liveness */
	int64_t stat_ns;   /* time of the last read of /proc; 0 = none */
	/*
	 * Time when the pidfd became readable or, by the kernel's notes, when the process began to
	 * end.
	 */
	int64_t ending_ns;
	/* Time of the end, set once we know how it ended, or give up; 0 = alive. */
	int64_t ended_ns;
	struct cw_ending end;
	bool is_oom_killed;
	struct cw_oom oom;
	struct cw_kernel_events *kernel; /* set while the process lives and is watched; borrowed */
	bool has_kernel_end;             /* the kernel's notes give its end and the cause */
	struct cw_cause cause;           /* of its death or stop */
	uint32_t end_by;                 /* enum cw_end_by; valid if has_kernel_end */
	int32_t end_sender;
	struct cw_host_activity host_activity;

	/* Name under which it is stored; empty = not stored. */
	char fdstore_name[CW_FDSTORE_NAME_BYTES];
	ino_t fdstore_ino;

	uint64_t digest_round; /* last round that made a digest of it */
	bool is_urgent_seen;   /* all processes of its job are already marked is_wanted */
	bool is_urgent;        /* the process had an event that must not wait for the next second */
	UT_hash_handle hh;
};

/*
 * Builds a process from the peer's credentials and the record it sent. Takes record_fd and, on
 * success, cred->pidfd. 0; -ESRCH: the peer has ended; or an error of cw_record_open(). err has the
 * text for the agent.
 */
int cw_process_new(struct cw_peer_cred *cred, int record_fd, struct cw_process **ret,
		   struct cw_err *err);
/*
 * Builds a process that the previous daemon has stored. Takes the descriptors on success. We check
 * the record as strictly as a stranger's. If the process has ended, its end counts as not seen yet;
 * if entry->is_dead, the caller ends it. -EBADMSG: descriptors are missing, or belong to another
 * process.
 */
int cw_process_restore(struct cw_fdstore_entry *entry, struct cw_process **ret, struct cw_err *err);
/* p must not be in a table. Takes NULL; returns NULL. */
struct cw_process *cw_process_free(struct cw_process *p);

/* Moves the record and the sampler of `from` into p. Used if the process made a new record. */
void cw_process_take_record(struct cw_process *p, struct cw_process *from);

/* Formats a command for people: printable ASCII, shortened. raw has the NUL-separated arguments. */
void cw_command_text(const char *raw, size_t len, char ret[CW_PROCESS_COMMAND_BYTES]);
void cw_process_set_command(struct cw_process *p, const char *raw, size_t len);

static inline bool cw_process_is_dead(const struct cw_process *p)
{
	return p->ended_ns != 0;
}

static inline bool cw_process_has_job(const struct cw_process *p)
{
	return cw_job_key_is_set(&p->job_key);
}

/* Returns the job of p. Call it only if p has a job. */
struct cw_job_id cw_process_job_id(const struct cw_process *p);
bool cw_process_is_of(const struct cw_process *p, const struct cw_job_id *job);

/*
 * Returns the facts on p for digests and windows; borrowed until p changes. held_ns is the time
 * that this daemon did not run so far: now_ns minus its awake clock. We saw no process in that
 * time.
 */
struct cw_digest_rank cw_process_facts(const struct cw_process *p, int64_t now_ns, int64_t held_ns);
/* Writes the cause of its death or stop for people; "" = unknown. */
void cw_process_format_cause(const struct cw_process *p, char buf[CW_CAUSE_BYTES]);

static inline pid_t cw_process_pid(const struct cw_process *p)
{
	return (pid_t)p->key.pid;
}

/*
 * Reads state and host activity from /proc, and checks the launcher. True if the liveness has
 * changed. For is_rank and user, see struct cw_host_activity_process.
 */
bool cw_process_look(struct cw_process *p, bool (*is_rank)(pid_t, void *), void *user,
		     const struct cw_clock *clock);

/* Notes the end of p's launcher. Works for dead processes, too. Cheap. */
void cw_process_look_at_launcher(struct cw_process *p, int64_t now_ns);

/* Makes the kernel note p's end and its stops. `kernel` must outlive p; NULL = unavailable. */
void cw_process_watch(struct cw_process *p, struct cw_kernel_events *kernel);

/*
 * Finds out how and when p ended. Uses the kernel's notes first, then works like cw_liveness_end().
 * Call it once ending_ns is set. monotonic_ns is CLOCK_MONOTONIC; now_ns is the node's clock.
 */
int cw_process_ending(struct cw_process *p, int64_t now_ns, int64_t monotonic_ns,
		      struct cw_ending *ret);

/* Records the end, and closes the descriptors that only a living process needs. */
void cw_process_end(struct cw_process *p, const struct cw_ending *end, int64_t now_ns);

/* ---- the table of a node: a uthash keyed by cw_process.key ---- */

struct cw_process *cw_processes_find(struct cw_process *table, pid_t pid, uint64_t start_ticks);
/* True if any living process of the table has this pid. */
bool cw_processes_has_living(struct cw_process *table, pid_t pid);
/* The number of places, and the rule for processes that keep theirs. */
struct cw_process_quota {
	uint32_t max, max_per_uid;
	/* True if p's job has an open incident. Then p keeps its place. NULL = no job has one. */
	bool (*has_incident)(const struct cw_process *p, void *user);
	void *user;
};

/*
 * Chooses the process that must give its place to a new one of uid, by the quotas of
 * identity/quota.h. Of one user's processes, the one that has been dead for longest goes first,
 * then the youngest. A user at a limit may replace a dead process of his own. *ret NULL = there is
 * room. -EDQUOT: no place for uid. -ENOMEM.
 */
int cw_processes_make_room(struct cw_process *table, uid_t uid,
			   const struct cw_process_quota *quota, struct cw_process **ret);
