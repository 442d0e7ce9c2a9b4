/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What schedulers and launchers say about a process in its environment: which job it belongs to and
 * which rank it is. The agent reads its own environment, the daemon that of processes that have no
 * agent's record yet; both must come to the same label, so the rules are here.
 *
 * Pure; no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where agents register unless COLLWATCH_SOCKET says otherwise. */
#define CW_DEFAULT_AGENT_SOCKET "/run/collwatch/agent.sock"

struct cw_env {
	/* The value of a variable, NULL = not set. */
	const char *(*get)(const char *name, const void *user);
	const void *user;
};

/* NULL also for a variable that is set to nothing. */
const char *cw_env_get(const struct cw_env *env, const char *name);

/*
 * The namespace of the process's pod, as its environment has it; NULL: it is in none, or the value
 * is no name that Kubernetes allows. Borrowed from the environment.
 */
const char *cw_job_env_namespace(const struct cw_env *env);

/*
 * "slurm:4711.0", "name:…", …; in a pod "name:NAMESPACE/…", because names and MASTER_ADDR repeat
 * between namespaces. Empty when nothing says it. A label of more than len - 1 bytes ends in "~"
 * and a hash of the whole.
 */
#define CW_JOB_ENV_LABEL_BYTES 128 /* of the flight record: others cut where the agent does */
void cw_job_env_label(const struct cw_env *env, char *to, size_t len);

/*
 * A label as people know their job: "4711.0" of "slurm:4711.0", what COLLWATCH_JOB says of
 * "name:…". The commands that take a job take this, too. Borrowed from label; no rule made it, then
 * all of it.
 */
const char *cw_job_env_shown(const char *label);
/* Whether COLLWATCH_JOB gave it, not a scheduler or a launcher. */
bool cw_job_env_is_given(const char *label);
/*
 * Of a job whose ranks meet on loopback, as torchrun has it on a single machine: on each host
 * another job has this label.
 */
bool cw_job_env_is_of_one_host(const char *label);
/* Whether people mean this job by name: its label, or what is shown of it. */
bool cw_job_env_is_named(const char *label, const char *name);

struct cw_job_env_rank {
	int32_t rank, world_size, local_rank; /* -1 = nothing says it */
	const char *source;                   /* name of the variable that says the rank; "" */
};
void cw_job_env_rank(const struct cw_env *env, struct cw_job_env_rank *ret);
