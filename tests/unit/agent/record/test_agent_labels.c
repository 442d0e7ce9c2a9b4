/* SPDX-License-Identifier: Apache-2.0 */
/* Job labels taken from the environment of a rank. Every test runs in a process of its own. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "agent/record/comms.h"
#include "agent/record/labels.h"

static struct cw_rec_header h;

static void read_with(const char *const *env)
{
	memset(&h, 0, sizeof(h));
	(void)clearenv();
	for (; env[0]; env += 2)
		(void)setenv(env[0], env[1], 1);
	cw_labels_read(&h);
}

Test(agent_labels, takes_the_rank_from_the_first_launcher_that_names_one)
{
	read_with((const char *[]){ "PMIX_RANK", "9", "SLURM_PROCID", "5", NULL });
	cr_assert_eq(h.rank_label, 5);
	cr_assert_str_eq(h.rank_label_source, "SLURM_PROCID");
	read_with((const char *[]){ "RANK", "x7", "OMPI_COMM_WORLD_RANK", "2", NULL });
	cr_assert_eq(h.rank_label, 2, "a number only");
	read_with((const char *[]){ "RANK", " 4", NULL });
	cr_assert_eq(h.rank_label, 4, "spaces before it are not");
	read_with((const char *[]){ NULL });
	cr_assert_eq(h.rank_label, -1);
	cr_assert_eq(h.world_size_label, -1);
	cr_assert_str_eq(h.rank_label_source, "");
}

Test(agent_labels, names_the_job_as_its_scheduler_does)
{
	static const struct {
		const char *env[12];
		const char *label;
	} cases[] = {
		{ { "COLLWATCH_JOB", "mine", "SLURM_JOB_ID", "1" }, "name:mine" },
		{ { "SLURM_JOB_ID", "4711", "SLURM_STEP_ID", "3" }, "slurm:4711.3" },
		{ { "SLURM_JOB_ID", "4713", "SLURM_ARRAY_JOB_ID", "4711", "SLURM_ARRAY_TASK_ID",
		    "2" },
		  "slurm:4711_2.0" },
		{ { "PBS_JOBID", "12.host" }, "pbs:12.host" },
		{ { "LSB_JOBID", "12" }, "lsf:12" },
		{ { "TORCHELASTIC_RUN_ID", "abc", "TORCHELASTIC_RESTART_COUNT", "2" },
		  "torchelastic:abc#2" },
		{ { "TORCHELASTIC_RUN_ID", "none", "MASTER_ADDR", "h", "MASTER_PORT", "29500" },
		  "master:h:29500" },
		{ { "PMIX_NAMESPACE", "ns" }, "pmix:ns" },
		{ { "HOME", "/" }, "" },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_with(cases[i].env);
		cr_assert_str_eq(h.job_label, cases[i].label);
	}
}

/* Names and addresses repeat between namespaces, and in nearly every pod the user is 0. */
Test(agent_labels, names_the_job_within_the_namespace_of_its_pod)
{
	static const struct {
		const char *env[12];
		const char *label;
	} cases[] = {
		{ { "COLLWATCH_POD_NAMESPACE", "ml", "MASTER_ADDR", "train-0", "MASTER_PORT",
		    "29500" },
		  "master:ml/train-0:29500" },
		{ { "POD_NAMESPACE", "ops", "MASTER_ADDR", "train-0", "MASTER_PORT", "29500" },
		  "master:ops/train-0:29500" },
		{ { "COLLWATCH_POD_NAMESPACE", "ml", "COLLWATCH_JOB", "train" }, "name:ml/train" },
		{ { "COLLWATCH_POD_NAMESPACE", "ml", "COLLWATCH_JOB", "ml/train" },
		  "name:ml/train" },
		{ { "COLLWATCH_POD_NAMESPACE", "ml", "COLLWATCH_JOB", "mlx/a" }, "name:ml/mlx/a" },
		{ { "COLLWATCH_POD_NAMESPACE", "ml", "SLURM_JOB_ID", "7" }, "slurm:ml/7.0" },
		{ { "COLLWATCH_POD_NAMESPACE", "ml", "TORCHELASTIC_RUN_ID", "r" },
		  "torchelastic:ml/r#0" },
		{ { "COLLWATCH_POD_NAMESPACE", "ml" }, "" },
		/* No name of Kubernetes's */
		{ { "COLLWATCH_POD_NAMESPACE", "a/b", "COLLWATCH_JOB", "train" }, "name:train" },
		{ { "COLLWATCH_POD_NAMESPACE", "-a", "COLLWATCH_JOB", "train" }, "name:train" },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_with(cases[i].env);
		cr_expect_str_eq(h.job_label, cases[i].label);
	}
}

Test(agent_labels, tells_long_names_apart_that_begin_alike)
{
	char name[256], first[sizeof(h.job_label)];

	memset(name, 'x', sizeof(name));
	name[254] = '1';
	name[255] = '\0';
	read_with((const char *[]){ "COLLWATCH_JOB", name, NULL });
	memcpy(first, h.job_label, sizeof(first));
	cr_expect_eq(strlen(first), sizeof(first) - 1);
	name[254] = '2';
	read_with((const char *[]){ "COLLWATCH_JOB", name, NULL });
	cr_expect_str_neq(first, h.job_label);
	cr_expect_eq(strlen(h.job_label), sizeof(first) - 1);
}

Test(agent_labels, names_the_pod_as_its_template_does)
{
	read_with((const char *[]){ "COLLWATCH_POD_NAME", "train-0", "COLLWATCH_POD_NAMESPACE",
				    "ml", "COLLWATCH_CONTAINER", "trainer", NULL });
	cr_expect_str_eq(h.pod, "train-0");
	cr_expect_str_eq(h.pod_namespace, "ml");
	cr_expect_str_eq(h.container, "trainer");
	read_with((const char *[]){ "COLLWATCH_POD_NAME", "no pod", NULL });
	cr_expect_str_eq(h.pod, "");
}

Test(agent_labels, cuts_what_is_too_long)
{
	char longer[4096];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	read_with((const char *[]){ "COLLWATCH_JOB", longer, "MASTER_ADDR", longer,
				    "COLLWATCH_POLICY", longer, NULL });
	cr_assert_eq(strlen(h.job_label), sizeof(h.job_label) - 1);
	cr_assert_eq(strlen(h.job_policy), sizeof(h.job_policy) - 1);
}

Test(agent_labels, hashes_what_must_agree_and_not_what_may_differ)
{
	uint64_t ring;

	read_with((const char *[]){ NULL });
	cr_assert_eq(h.env_hash, 0);
	read_with((const char *[]){ "NCCL_DEBUG", "INFO", "NCCL_SOCKET_IFNAME", "eth0",
				    "NCCL_HOSTID", "7", NULL });
	cr_assert_eq(h.env_hash, 0, "may differ between healthy ranks");
	read_with((const char *[]){ "NCCL_ALGO", "Ring", NULL });
	ring = h.env_hash;
	cr_assert_neq(ring, 0);
	read_with((const char *[]){ "NCCL_ALGO", "Tree", NULL });
	cr_assert_neq(h.env_hash, ring);
	read_with((const char *[]){ "NCCL_PROTO", "Ring", NULL });
	cr_assert_neq(h.env_hash, ring);
}

Test(agent_labels, takes_the_jobs_time_out_where_it_is_a_time)
{
	read_with((const char *[]){ "COLLWATCH_JOB_TIMEOUT", "30min", NULL });
	cr_expect_eq(h.job_timeout_ns, UINT64_C(1800) * 1000000000);
	cr_expect_eq(h.is_timeout_assumed, 0);
	cr_expect_str_eq(h.job_timeout_source, "COLLWATCH_JOB_TIMEOUT in its environment");
	read_with((const char *[]){ "COLLWATCH_JOB_TIMEOUT", "1800", NULL });
	cr_expect_eq(h.job_timeout_ns, 0, "of what?");
	read_with((const char *[]){ "COLLWATCH_JOB_TIMEOUT", "-3s", NULL });
	cr_expect_eq(h.job_timeout_ns, 0);
	read_with((const char *[]){ NULL });
	cr_expect_eq(h.job_timeout_ns, 0);
}

Test(agent_labels, reckons_how_long_the_network_tries_from_what_nccl_is_told)
{
	static const struct {
		const char *env[5];
		uint64_t ns;
	} cases[] = {
		{ { NULL }, 0 }, /* not set: NCCL's own 34 s */
		{ { "NCCL_IB_TIMEOUT", "22", NULL }, UINT64_C(137438953472) },
		{ { "NCCL_IB_RETRY_CNT", "3", NULL }, UINT64_C(17179869184) },
		{ { "NCCL_IB_TIMEOUT", "14", "NCCL_IB_RETRY_CNT", "0", NULL }, 67108864 },
		{ { "NCCL_IB_TIMEOUT", "31", "NCCL_IB_RETRY_CNT", "7", NULL },
		  UINT64_C(70368744177664) },
		{ { "NCCL_IB_TIMEOUT", "0", NULL }, 0 }, /* no limit */
		{ { "NCCL_IB_TIMEOUT", "64", NULL }, 0 },
		{ { "NCCL_IB_TIMEOUT", "22", "NCCL_IB_RETRY_CNT", "many", NULL }, 0 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_with(cases[i].env);
		cr_expect_eq(h.net_retry_ns, cases[i].ns, "case %u: %llu", i,
			     (unsigned long long)h.net_retry_ns);
	}
}

Test(agent_labels, tells_jobs_with_a_constant_unique_id_apart)
{
	ncclUniqueId id = { { 1 } };
	uint64_t plain, first;

	read_with((const char *[]){ "COLLWATCH_JOB", "a", NULL });
	plain = cw_comm_id_of(&id, 1);
	read_with((const char *[]){ "COLLWATCH_JOB", "b", NULL });
	cr_assert_eq(cw_comm_id_of(&id, 1), plain, "a real unique id says it all");
	read_with((const char *[]){ "COLLWATCH_JOB", "a", "NCCL_COMM_ID", "1.2.3.4:5", NULL });
	first = cw_comm_id_of(&id, 1);
	read_with((const char *[]){ "COLLWATCH_JOB", "b", "NCCL_COMM_ID", "1.2.3.4:5", NULL });
	cr_assert_neq(cw_comm_id_of(&id, 1), first);
}

Test(agent_labels, knows_when_the_process_started)
{
	read_with((const char *[]){ NULL });
	cr_assert_gt(h.process_start_ticks, 0);
	cr_assert_gt(h.created_wall_ns, 0);
}

Test(agent_labels, names_the_variables_of_nccl)
{
	struct cw_rec_variables variables;

	read_with((const char *[]){ "HOME", "/", "NCCL_PROTO", "LL", "NCCL_ALGO", "Ring", NULL });
	cw_labels_read_variables(&variables);
	cr_expect_str_eq(variables.text, "NCCL_ALGO=Ring NCCL_PROTO=LL");
	cr_expect_eq(variables.omitted, 0);
}
