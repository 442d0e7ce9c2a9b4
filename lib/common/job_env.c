/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job_env.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/parse.h"

const char *cw_env_get(const struct cw_env *env, const char *name)
{
	const char *value = env->get(name, env->user);

	return value && value[0] ? value : NULL;
}

/*
 * Returns the number in the first variable of the list that has a number in [0, 2^31); -1 = none.
 * Leading spaces are allowed.
 */
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

/* The longest namespace. The API server demands the form of RFC 1123. */
#define NAMESPACE_BYTES 63u

static bool is_namespace(const char *text)
{
	size_t n = strnlen(text, NAMESPACE_BYTES + 1);

	return n && n <= NAMESPACE_BYTES && text[0] != '-' && text[n - 1] != '-' &&
	       text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

const char *cw_job_env_namespace(const struct cw_env *env)
{
	const char *ns = cw_env_get(env, "COLLWATCH_POD_NAMESPACE");

	if (!ns)
		ns = cw_env_get(env, "POD_NAMESPACE");
	return ns && is_namespace(ns) ? ns : NULL;
}

/*
 * FNV-1a, 64 bits. The hash only distinguishes two truncated labels; it is never the key of a job.
 */
#define FNV_START 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u
/* Bytes of the mark at the end of a truncated label: "~" and 16 digits. */
#define CUT_MARK_BYTES 17u

/*
 * A label while we write it. n counts all bytes of the label, even the bytes beyond the end of the
 * buffer.
 */
struct label {
	char *to;
	size_t len, n;
	uint64_t hash;
};

static void append(struct label *l, const char *text)
{
	for (; *text; text++) {
		if (l->n + 1 < l->len)
			l->to[l->n] = *text;
		l->n++;
		l->hash = (l->hash ^ (unsigned char)*text) * FNV_PRIME;
	}
}

/*
 * Ends the label. A hash of the whole label replaces the end of a truncated one. Otherwise a long
 * namespace could push out the end of the name, which distinguishes two jobs.
 */
static void finish(struct label *l)
{
	size_t end = l->n < l->len ? l->n : l->len - 1;

	l->to[end] = '\0';
	if (l->n >= l->len && l->len > CUT_MARK_BYTES + 1)
		(void)snprintf(l->to + end - CUT_MARK_BYTES, CUT_MARK_BYTES + 1, "~%016" PRIx64,
			       l->hash);
}

/*
 * Returns whether the name already begins with the namespace. Some names do, because they are
 * unique in the whole cluster.
 */
static bool begins_with(const char *name, const char *ns)
{
	size_t n = strlen(ns);

	return strncmp(name, ns, n) == 0 && name[n] == '/';
}

/* Writes "rule:", the pod's namespace if there is one, and the parts up to a NULL. */
static void make(struct label *l, const struct cw_env *env, const char *rule,
		 const char *const *parts)
{
	const char *ns = cw_job_env_namespace(env);

	append(l, rule);
	if (ns && !begins_with(parts[0], ns)) {
		append(l, ns);
		append(l, "/");
	}
	for (; *parts; parts++)
		append(l, *parts);
}

static const char *or_else(const struct cw_env *env, const char *name, const char *fallback)
{
	const char *value = cw_env_get(env, name);

	return value ? value : fallback;
}

#define MAKE(rule, ...) make(&l, env, rule, (const char *const[]){ __VA_ARGS__, NULL })

/* Prefer a scheduler's own job id to ids of launchers, because operators type it. */
void cw_job_env_label(const struct cw_env *env, char *to, size_t len)
{
	struct label l = { .to = to, .len = len, .hash = FNV_START };
	const char *a, *b;

	if ((a = cw_env_get(env, "COLLWATCH_JOB")))
		MAKE("name:", a);
	else if ((a = cw_env_get(env, "SLURM_ARRAY_JOB_ID")) &&
		 (b = cw_env_get(env, "SLURM_ARRAY_TASK_ID")))
		MAKE("slurm:", a, "_", b, ".", or_else(env, "SLURM_STEP_ID", "0"));
	else if ((a = cw_env_get(env, "SLURM_JOB_ID")))
		MAKE("slurm:", a, ".", or_else(env, "SLURM_STEP_ID", "0"));
	else if ((a = cw_env_get(env, "PBS_JOBID")))
		MAKE("pbs:", a);
	else if ((a = cw_env_get(env, "LSB_JOBID")))
		MAKE("lsf:", a);
	else if ((a = cw_env_get(env, "TORCHELASTIC_RUN_ID")) && strcmp(a, "none") != 0)
		MAKE("torchelastic:", a, "#", or_else(env, "TORCHELASTIC_RESTART_COUNT", "0"));
	else if ((a = cw_env_get(env, "PMIX_NAMESPACE")))
		MAKE("pmix:", a);
	else if ((a = cw_env_get(env, "OMPI_MCA_ess_base_jobid")))
		MAKE("ompi:", a);
	else if ((a = cw_env_get(env, "MASTER_ADDR")))
		MAKE("master:", a, ":", or_else(env, "MASTER_PORT", ""));
	finish(&l);
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

bool cw_job_env_is_given(const char *label)
{
	return strncmp(label, "name:", strlen("name:")) == 0;
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
	/* A label with "::1" contains further colons. The port follows the last colon. */
	host = label + strlen(rule);
	port = strrchr(host, '/'); /* the host follows a pod's namespace */
	host = port ? port + 1 : host;
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
