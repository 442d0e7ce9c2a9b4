/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank process on this node, from its registration until we drop it. It outlives its
 * connection, so an agent that reconnects finds it again. It also outlives its own end. We keep its
 * record, because the other ranks may be waiting for a dead rank's last ops.
 *
 * The kernel provides its identity: SO_PEERCRED and the start time. No part of the identity comes
 * from a message or a record.
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

/* Time that we keep a dead rank. No launcher waits that long before it restarts a job. */
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
	/* Descriptors of the living process; -1 = the process has ended, and we know how. */
	int pidfd, proc_fd;
	bool stat_permitted;
	/* Pidfd of the parent at registration; -1 = none, or the parent has ended. */
	int launcher_pidfd;
	int64_t launcher_gone_ns;
	char command[CW_PROCESS_COMMAND_BYTES];
	struct cw_proc_pod pod;
	char *cwd; /* working directory at registration, for its core file; NULL = unknown */

	struct cw_record *record;
	dev_t record_dev;
	ino_t record_ino;
	struct cw_sampler sampler;
	struct cw_op_stats ops;
	struct cw_nonfinite_input nonfinite_input;
	/*
	 * True if the process ended or registered while its user's budget was spent. We must still
	 * sample its record.
	 */
	bool owes_sample;
	/* True if the process's job has an urgent event, so that we sample the process first. */
	bool is_wanted;
	/*
	 * Time of the next sample, by the machine's clock. If sampling is costly, this is later
	 * than the next tick.
	 */
	int64_t next_sample_ns;

	struct cw_node *node; /* node for the event callbacks; borrowed */
	/* Connection of the process's agent; NULL = not connected; borrowed. */
	struct cw_agent_conn *conn;
	/*
	 * Event for the pidfd, which becomes readable at the end; later a timer for repeated tries.
	 */
	struct event *end_event;
	unsigned end_attempts;

	char label[CW_JOB_LABEL_BYTES];
	/* Key of the process's job, from uid and label; unset = the label is not known yet. */
	struct cw_job_key job_key;

	uint32_t liveness; /* enum cw_liveness */
	int64_t stat_ns;   /* time of our last read of /proc; 0 = never */
	/*
	 * Time when the process began to end, from the kernel's notes. Without such a note, the time
	 * when its pidfd became readable.
	 */
	int64_t ending_ns;
	/*
	 * Time of the end. Set when we know how the process ended, or no longer try to find out;
	 * 0 = alive.
	 */
	int64_t ended_ns;
	struct cw_ending end;
	bool is_oom_killed;
	struct cw_oom oom;
	struct cw_kernel_events *kernel; /* NULL = BPF does not watch the process; borrowed */
	/* True if the kernel's notes tell the end of the process and its cause. */
	bool has_kernel_end;
	struct cw_cause cause; /* cause of the process's death or stop */
	uint32_t end_by;       /* enum cw_end_by; valid only with has_kernel_end */
	int32_t end_sender;
	struct cw_host_activity host_activity;

	/* Name of the process in the service manager's store; "" = not stored. */
	char fdstore_name[CW_FDSTORE_NAME_BYTES];
	ino_t fdstore_ino;

	uint64_t digest_round; /* last round of digests that included the process */
	bool is_urgent_seen;   /* true if we have marked all processes of the job as is_wanted */
	/* True if the process had an event that must be in a digest at once. */
	bool is_urgent;
	UT_hash_handle hh;
};

/*
 * Makes a process from the peer's credentials and the record that the peer sent. Owns record_fd
 * from now on and, on success, cred->pidfd. Returns 0 or -errno, with the text for the agent in
 * err. -ESRCH: cred has no pidfd. Other values are those of cw_record_open().
 *
 * The peer may have ended since its hello. Its record is then the last trace of it, so we make the
 * process, too. If its parent has reaped it, proc_fd is -1 and its start is unknown (0).
 */
int cw_process_new(struct cw_peer_cred *cred, int record_fd, struct cw_process **ret,
		   struct cw_err *err);
/*
 * Makes a process that the previous daemon has stored. On success, owns the descriptors of the
 * entry. Checks the record as strictly as that of an unknown agent. If the process has ended, the
 * caller still has to handle its end: by the pidfd, or at once if entry->is_dead. Returns 0 or
 * -errno. -EBADMSG: descriptors are missing, or belong to another process.
 */
int cw_process_restore(struct cw_fdstore_entry *entry, struct cw_process **ret, struct cw_err *err);
/* Frees the process, which must be in no table. Takes NULL; returns NULL. */
struct cw_process *cw_process_free(struct cw_process *p);

/*
 * Moves the record and the sampler from `from` to p, because the agent of p has made a new record.
 */
void cw_process_take_record(struct cw_process *p, struct cw_process *from);

/* Formats a command as short printable ASCII. raw: its arguments, each with a NUL after it. */
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

/* Returns the job of p. Call this only if p has a job. */
struct cw_job_id cw_process_job_id(const struct cw_process *p);
bool cw_process_is_of(const struct cw_process *p, const struct cw_job_id *job);

/*
 * Returns the facts about p for digests and windows, borrowed until p changes. The facts cannot
 * cover the time when this daemon did not run. held_ns: the total of that time, which is now_ns
 * minus the daemon's awake clock.
 */
struct cw_digest_rank cw_process_facts(const struct cw_process *p, int64_t now_ns, int64_t held_ns);
/* Formats the cause of p's death or stop for users. "" = unknown. */
void cw_process_format_cause(const struct cw_process *p, char buf[CW_CAUSE_BYTES]);

static inline pid_t cw_process_pid(const struct cw_process *p)
{
	return (pid_t)p->key.pid;
}

/*
 * Reads liveness and host activity from /proc, and checks the launcher. Returns true if the
 * liveness has changed. is_rank, user: see struct cw_host_activity_process.
 */
bool cw_process_look(struct cw_process *p, bool (*is_rank)(pid_t, void *), void *user,
		     const struct cw_clock *clock);

/* Notes whether p's launcher has ended. Also for dead processes. Costs little. */
void cw_process_look_at_launcher(struct cw_process *p, int64_t now_ns);

/*
 * Starts the kernel's notes about p's end and its stops. kernel: must outlive p; NULL = not
 * available.
 */
void cw_process_watch(struct cw_process *p, struct cw_kernel_events *kernel);

/*
 * Finds out how and when p ended. Uses the kernel's notes if there are any; otherwise works like
 * cw_liveness_end(), and returns its values. Call this only when ending_ns is set. monotonic_ns:
 * CLOCK_MONOTONIC; now_ns: the node's clock.
 */
int cw_process_ending(struct cw_process *p, int64_t now_ns, int64_t monotonic_ns,
		      struct cw_ending *ret);

/* Records the end of p, and closes the descriptors that only a living process needs. */
void cw_process_end(struct cw_process *p, const struct cw_ending *end, int64_t now_ns);

/* ---- the table of a node: a uthash keyed by cw_process.key ---- */

struct cw_process *cw_processes_find(struct cw_process *table, pid_t pid, uint64_t start_ticks);
/* True if a living process of the table has this pid. */
bool cw_processes_has_living(struct cw_process *table, pid_t pid);
/* Returns whether another process of the table has the record of p. */
bool cw_processes_share_record(struct cw_process *table, const struct cw_process *p);
/*
 * The limits of the table, and the processes that stay in it when a limit is reached. Other
 * comments say that a process in the table has a place.
 */
struct cw_process_quota {
	uint32_t max, max_per_uid;
	/*
	 * Returns true if p's job has an open incident; p then stays in the table. NULL = no job
	 * has one.
	 */
	bool (*has_incident)(const struct cw_process *p, void *user);
	void *user;
};

/*
 * Chooses the process that must leave the table for a new process of uid. The quotas of
 * identity/quota.h choose the user. Of this user's processes, the longest dead process goes first.
 * If none is dead, the youngest goes. A user at a limit may replace a dead process of its
 * own. Returns 0 or -errno. *ret: the process; NULL = the table is not full. -EDQUOT: the table is
 * full, and no process has to leave it for uid. -ENOMEM: out of memory.
 */
int cw_processes_make_room(struct cw_process *table, uid_t uid,
			   const struct cw_process_quota *quota, struct cw_process **ret);
