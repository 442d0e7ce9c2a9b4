/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/record/labels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/record/job_timeout.h"
#include "agent/record/record.h"
#include "common/job_env.h"
#include "common/parse.h"
#include "model/signature.h"
#include "record/nccl_variables.h"
#include "record/pod.h"

static bool comm_id_is_constant;
static uint64_t job_key;
static bool is_timeout_final; /* the user set COLLWATCH_JOB_TIMEOUT */

static const char *own_variable(const char *name, const void *user)
{
	return getenv(name);
}

static const struct cw_env own = { .get = own_variable };

static const char *env(const char *name)
{
	return cw_env_get(&own, name);
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	while (*text) {
		uint64_t word = 0;

		for (unsigned i = 0; i < sizeof(word) && *text; i++)
			word |= (uint64_t)(unsigned char)*text++ << (8 * i);
		h = cw_hash_step(h, word);
	}
	return cw_hash_step(h, 0);
}

static uint64_t env_hash(void)
{
	uint64_t h = CW_HASH_INIT;

	for (size_t i = 0; i < cw_n_nccl_variable_rules; i++) {
		const struct cw_nccl_variable_rule *rule = &cw_nccl_variable_rules[i];
		const char *value = rule->is_hashed ? env(rule->name) : NULL;

		if (value)
			h = hash_text(hash_text(h, rule->name), value);
	}
	return h == CW_HASH_INIT ? 0 : h;
}

/*
 * Returns the start time of the process: field 22 of /proc/self/stat. The command in field 2 may
 * contain spaces and brackets.
 */
static uint64_t start_ticks(void)
{
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	char buf[1024];
	const char *p;
	uint64_t ticks;
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, buf, sizeof(buf) - 1);
	(void)close(fd);
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	p = strrchr(buf, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return 0;
	p++;
	return cw_parse_digits(&p, 10, &ticks) < 0 ? 0 : ticks;
}

static uint64_t wall_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- timeouts of the job and of its network ---- */

static void read_job_timeout(struct cw_rec_header *h)
{
	struct cw_job_timeout timeout;

	cw_job_timeout_read(&own, &timeout);
	h->job_timeout_ns = timeout.ns;
	(void)snprintf(h->job_timeout_source, sizeof(h->job_timeout_source), "%s", timeout.source);
	is_timeout_final = strncmp(timeout.source, "COLLWATCH_", strlen("COLLWATCH_")) == 0;
}

void cw_labels_set_job_timeout(uint64_t timeout_ns)
{
	static const char source[] = "timeout of its process groups";
	struct cw_rec_header *h = cw_record.header;

	if (is_timeout_final)
		return;
	if (strcmp(h->job_timeout_source, source) != 0) {
		/*
		 * Clear the time first, so that no reader combines the old time with half of the
		 * new text.
		 */
		CW_STORE(h->job_timeout_ns, 0);
		__atomic_thread_fence(__ATOMIC_RELEASE);
		memcpy(h->job_timeout_source, source, sizeof(source));
		CW_STORE(h->is_timeout_assumed, 0);
		__atomic_thread_fence(__ATOMIC_RELEASE);
	}
	CW_STORE(h->job_timeout_ns, timeout_ns <= CW_JOB_TIMEOUT_LONGEST_NS ? timeout_ns : 0);
}

/*
 * Limits and defaults of InfiniBand. ibv_modify_qp(3) takes the timeout in 5 bits and the retries
 * in 3 bits. A timeout of 0 waits forever and therefore gives no limit. The defaults are those in
 * src/transport/net_ib.cc of NCCL 2.14 and later versions.
 */
#define IB_TIMEOUT_DEFAULT 20u
#define IB_TIMEOUT_MAX 31u
#define IB_RETRY_DEFAULT 7u
#define IB_RETRY_MAX 7u
#define IB_TIMEOUT_UNIT_NS 4096u

static uint64_t net_retry_ns(void)
{
	const char *timeout = env("NCCL_IB_TIMEOUT"), *retry = env("NCCL_IB_RETRY_CNT");
	uint64_t shift = IB_TIMEOUT_DEFAULT, retries = IB_RETRY_DEFAULT;

	if ((!timeout && !retry) ||
	    (timeout && cw_parse_u64(timeout, 1, IB_TIMEOUT_MAX, &shift) < 0) ||
	    (retry && cw_parse_u64(retry, 0, IB_RETRY_MAX, &retries) < 0))
		return 0;
	return ((uint64_t)IB_TIMEOUT_UNIT_NS << shift) * (retries + 1);
}

static void read_pod(struct cw_rec_header *h)
{
	struct cw_pod pod;

	cw_pod_of_environment(&own, &pod);
	(void)snprintf(h->pod, sizeof(h->pod), "%s", pod.name);
	(void)snprintf(h->pod_namespace, sizeof(h->pod_namespace), "%s", pod.ns);
	(void)snprintf(h->container, sizeof(h->container), "%s", pod.container);
}

void cw_labels_read_variables(struct cw_rec_variables *variables)
{
	variables->omitted =
		cw_nccl_variables_write(environ, variables->text, sizeof(variables->text));
}

void cw_labels_read(struct cw_rec_header *h)
{
	struct cw_job_env_rank rank;
	const char *master = env("MASTER_ADDR"), *policy = env("COLLWATCH_POLICY");

	cw_job_env_rank(&own, &rank);
	h->rank_label = rank.rank;
	h->world_size_label = rank.world_size;
	h->local_rank_label = rank.local_rank;
	(void)snprintf(h->rank_label_source, sizeof(h->rank_label_source), "%s", rank.source);
	_Static_assert(sizeof(h->job_label) == CW_JOB_ENV_LABEL_BYTES, "the daemon cuts there too");
	cw_job_env_label(&own, h->job_label, sizeof(h->job_label));
	if (master)
		(void)snprintf(h->master, sizeof(h->master), "%s:%s", master,
			       env("MASTER_PORT") ? env("MASTER_PORT") : "");
	if (policy)
		(void)snprintf(h->job_policy, sizeof(h->job_policy), "%s", policy);
	read_pod(h);
	h->env_hash = env_hash();
	read_job_timeout(h);
	h->net_retry_ns = net_retry_ns();
	h->process_start_ticks = start_ticks();
	h->created_wall_ns = wall_ns();
	comm_id_is_constant = env("NCCL_COMM_ID") != NULL;
	job_key = hash_text(cw_hash_mix64(getuid()), h->job_label);
}

bool cw_labels_comm_id_is_constant(void)
{
	return comm_id_is_constant;
}

uint64_t cw_labels_job_key(void)
{
	return job_key;
}
