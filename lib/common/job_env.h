/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedulers and launchers describe a process in its environment: its job and its rank. The agent
 * reads its own environment. The daemon reads the environment of processes without a flight record.
 * Both must derive the same label of the job, so the rules are here.
 *
 * Pure; no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Path of the socket at which agents register. COLLWATCH_SOCKET can name another one. */
#define CW_DEFAULT_AGENT_SOCKET "/run/collwatch/agent.sock"

struct cw_env {
	/* Returns the value of a variable; NULL if it is not set. */
	const char *(*get)(const char *name, const void *user);
	const void *user;
};

/* Returns the value of a variable; NULL if it is not set or empty. */
const char *cw_env_get(const struct cw_env *env, const char *name);

/*
 * Returns the namespace of the process's pod, borrowed from the environment. Returns NULL if no
 * variable gives a namespace, or if Kubernetes does not allow the name.
 */
const char *cw_job_env_namespace(const struct cw_env *env);

/*
 * Writes the label of the job: "slurm:4711.0", "name:…", and so on. In a pod we write
 * "name:NAMESPACE/…", because names and MASTER_ADDR repeat between namespaces. The label is empty
 * if no variable gives one. A label of more than len - 1 bytes ends in "~" and a hash of the whole
 * label.
 */
/* Size of a label in flight records. All programs use it, so that they truncate a label alike. */
#define CW_JOB_ENV_LABEL_BYTES 128
void cw_job_env_label(const struct cw_env *env, char *to, size_t len);

/*
 * Returns the part of a label that people know as their job. It is "4711.0" for "slurm:4711.0", and
 * the value of COLLWATCH_JOB for "name:…". Commands also accept this part as the name of a job.
 * Borrowed from label. Returns the whole label if none of our rules made it.
 */
const char *cw_job_env_shown(const char *label);
/* Returns whether the label is from COLLWATCH_JOB, and not from a scheduler or a launcher. */
bool cw_job_env_is_given(const char *label);
/*
 * Returns whether the label is that of a job whose ranks rendezvous on loopback, as torchrun does
 * on a single machine. Such a label is unique only on its host: jobs on different hosts can have
 * the same one.
 */
bool cw_job_env_is_of_one_host(const char *label);
/* Returns whether name is the label, or the part of the label that cw_job_env_shown() returns. */
bool cw_job_env_is_named(const char *label, const char *name);

struct cw_job_env_rank {
	int32_t rank, world_size, local_rank; /* -1 = no variable gives it */
	const char *source;                   /* the variable that gives the rank; "" = none */
};
void cw_job_env_rank(const struct cw_env *env, struct cw_job_env_rank *ret);
