/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job_env.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/parse.h"

const char *cw_env_get(const struct cw_env *env, const char *name)
{
	const char *value = env->get(name, env->user);

	return value && value[0] ? value : NULL;
}

/* First of a list of variables that holds a number in [0, 2^31), spaces before it allowed. */
static int32_t first_number(const struct cw_env *env, const char *const *vars,
			    const char **ret_name)
{
	for (; *vars; vars++) {
		const char *text = cw_env_get(env, *vars);
		uint64_t n;

		if (!text || cw_parse_u64(text + strspn(text, " \t"), 0, INT32_MAX, &n) < 0)
			continue;
		if (ret_name)
			*ret_name = *vars;
		return (int32_t)n;
	}
	return -1;
}

static const char *const rank_vars[] = { "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
					 "PMIX_RANK", NULL };
static const char *const size_vars[] = { "WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE",
					 NULL };
static const char *const local_vars[] = { "LOCAL_RANK", "SLURM_LOCALID",
					  "OMPI_COMM_WORLD_LOCAL_RANK", NULL };

/* The scheduler's own job id first: it is the one an operator types. */
void cw_job_env_label(const struct cw_env *env, char *to, size_t len)
{
	const char *a, *b;

	to[0] = '\0';
	if ((a = cw_env_get(env, "COLLWATCH_JOB")))
		(void)snprintf(to, len, "name:%s", a);
	else if ((a = cw_env_get(env, "SLURM_ARRAY_JOB_ID")) &&
		 (b = cw_env_get(env, "SLURM_ARRAY_TASK_ID")))
		(void)snprintf(to, len, "slurm:%s_%s.%s", a, b,
			       cw_env_get(env, "SLURM_STEP_ID") ? cw_env_get(env, "SLURM_STEP_ID")
								: "0");
	else if ((a = cw_env_get(env, "SLURM_JOB_ID")))
		(void)snprintf(to, len, "slurm:%s.%s", a,
			       cw_env_get(env, "SLURM_STEP_ID") ? cw_env_get(env, "SLURM_STEP_ID")
								: "0");
	else if ((a = cw_env_get(env, "PBS_JOBID")))
		(void)snprintf(to, len, "pbs:%s", a);
	else if ((a = cw_env_get(env, "LSB_JOBID")))
		(void)snprintf(to, len, "lsf:%s", a);
	else if ((a = cw_env_get(env, "TORCHELASTIC_RUN_ID")) && strcmp(a, "none") != 0)
		(void)snprintf(to, len, "torchelastic:%s#%s", a,
			       cw_env_get(env, "TORCHELASTIC_RESTART_COUNT")
				       ? cw_env_get(env, "TORCHELASTIC_RESTART_COUNT")
				       : "0");
	else if ((a = cw_env_get(env, "PMIX_NAMESPACE")))
		(void)snprintf(to, len, "pmix:%s", a);
	else if ((a = cw_env_get(env, "OMPI_MCA_ess_base_jobid")))
		(void)snprintf(to, len, "ompi:%s", a);
	else if ((a = cw_env_get(env, "MASTER_ADDR")))
		(void)snprintf(to, len, "master:%s:%s", a,
			       cw_env_get(env, "MASTER_PORT") ? cw_env_get(env, "MASTER_PORT")
							      : "");
}

const char *cw_job_env_shown(const char *label)
{
	static const char *const rules[] = { "name:", "slurm:", "pbs:",    "lsf:", "torchelastic:",
					     "pmix:", "ompi:",  "master:", "comm:" };

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		size_t n = strlen(rules[i]);

		if (strncmp(label, rules[i], n) == 0 && label[n])
			return label + n;
	}
	return label;
}

bool cw_job_env_is_of_one_host(const char *label)
{
	static const char *const names[] = { "localhost",     "localhost.localdomain",
					     "localhost4",    "localhost6",
					     "ip6-localhost", "ip6-loopback",
					     "::1",           "[::1]" };
	static const char rule[] = "master:";
	const char *host, *port;

	if (strncmp(label, rule, strlen(rule)) != 0)
		return false;
	/* The label of "::1" has more colons, and the last one is before the port. */
	host = label + strlen(rule);
	port = strrchr(host, ':');
	if (!port)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == (size_t)(port - host) &&
		    strncasecmp(host, names[i], (size_t)(port - host)) == 0)
			return true;
	return strncmp(host, "127.", 4) == 0 && host + strspn(host, "0123456789.") == port;
}

bool cw_job_env_is_named(const char *label, const char *name)
{
	return strcmp(label, name) == 0 || strcmp(cw_job_env_shown(label), name) == 0;
}

void cw_job_env_rank(const struct cw_env *env, struct cw_job_env_rank *ret)
{
	ret->source = "";
	ret->rank = first_number(env, rank_vars, &ret->source);
	ret->world_size = first_number(env, size_vars, NULL);
	ret->local_rank = first_number(env, local_vars, NULL);
}
