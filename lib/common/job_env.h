/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedulers and launchers describe a process in its environment: the job it belongs to and its
 * rank. The agent reads its own environment. The daemon reads that of processes without a flight
 * record. Both must derive the same label, so the rules are here.
 *
 * Pure; no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Agents register here unless COLLWATCH_SOCKET names another socket. */
#define CW_DEFAULT_AGENT_SOCKET "/run/collwatch/agent.sock"

struct cw_env {
	/* Returns the value of a variable, NULL = not set. */
	const char *(*get)(const char *name, const void *user);
	const void *user;
};

/* Returns the value of a variable; NULL if it is not set or empty. */
const char *cw_env_get(const struct cw_env *env, const char *name);

/*
 * Returns the namespace of the process's pod, borrowed from the environment. NULL if the process is
 * in no namespace, or if Kubernetes does not allow the name.
 */
const char *cw_job_env_namespace(const struct cw_env *env);

/*
 * Writes the label of the job: "slurm:4711.0", "name:…", and so on. In a pod we write
 * "name:NAMESPACE/…", because names and MASTER_ADDR repeat between namespaces. The label is empty
 * if no variable gives one. A label of more than len - 1 bytes ends in "~" and a hash of the
 * whole label.
 */
/* As in flight records, so that all programs truncate a label alike. */
#define CW_JOB_ENV_LABEL_BYTES 128
void cw_job_env_label(const struct cw_env *env, char *to, size_t len);

/*
 * Returns the part of a label that people know as their job. It is "4711.0" for "slurm:4711.0", and
 * the value of COLLWATCH_JOB for "name:…". Commands accept it as the name of a job, too. Borrowed
 * from label. If no rule made the label, returns all of it.
 */
const char *cw_job_env_shown(const char *label);
/* True if the label is from COLLWATCH_JOB, instead of a scheduler or a launcher. */
bool cw_job_env_is_given(const char *label);
/*
 * True if the ranks of the job rendezvous on loopback, as torchrun does on a single machine. Jobs
 * on different hosts can then have the same label.
 */
bool cw_job_env_is_of_one_host(const char *label);
/* True if name is the label, or the part of the label that cw_job_env_shown() returns. */
bool cw_job_env_is_named(const char *label, const char *name);

struct cw_job_env_rank {
	int32_t rank, world_size, local_rank; /* -1 = no variable gives it */
	const char *source;                   /* name of the variable with the rank; "" = none */
};
void cw_job_env_rank(const struct cw_env *env, struct cw_job_env_rank *ret);
