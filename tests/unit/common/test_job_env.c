/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "common/job_env.h"

Test(job_env, a_label_of_loopback_is_of_one_host)
{
	static const char *const one[] = {
		"master:127.0.0.1:29500", "master:127.1.2.3:1",        "master:localhost:29500",
		"master:LocalHost:",      "master:ml/localhost:29500", "master:ml/::1:1",
		"master:::1:29500",       "master:[::1]:29500",
	};
	static const char *const many[] = {
		"master:10.127.0.1:29500",
		"master:127.example.org:29500",
		"master:node-a:29500",
		"master:localhost",
		"master:localhost/train-0:29500",
		"name:localhost:29500",
		"master:",
		"master::29500",
		"master:localhos:29500",
		"",
	};

	for (unsigned i = 0; i < sizeof(one) / sizeof(one[0]); i++)
		cr_expect(cw_job_env_is_of_one_host(one[i]), "%s", one[i]);
	for (unsigned i = 0; i < sizeof(many) / sizeof(many[0]); i++)
		cr_expect_not(cw_job_env_is_of_one_host(many[i]), "%s", many[i]);
}
