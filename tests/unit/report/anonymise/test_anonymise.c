/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences, names and frames; tests/e2e/documents/test_anonymise.py has whole bundles. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "report/anonymise/anonymise.h"

/* The anonymised document; static. */
static const char *anonymised(const char *text)
{
	static char result[2048];
	json_t *doc = json_loads(text, 0, NULL);
	char *said;

	cr_assert_not_null(doc, "%s", text);
	cr_assert_eq(cw_anonymise(&doc, 1), 0);
	said = json_dumps(doc, JSON_COMPACT);
	(void)snprintf(result, sizeof(result), "%s", said);
	free(said);
	json_decref(doc);
	return result;
}

#define EXPECT(text, expected)                                                                     \
	do {                                                                                       \
		const char *seen = anonymised(text);                                               \
		cr_expect_str_eq(seen, expected, "%s: %s", text, seen);                            \
	} while (0)

Test(anonymise, keeps_our_sentences_and_numbers)
{
	EXPECT("{\"summary\":\"rank 3 never reached all_reduce #31. The other 7 ranks (0-2,4-7) "
	       "have been waiting for 10 s, 2.5 s or 0x7f00.\"}",
	       "{\"summary\":\"rank 3 never reached all_reduce #31. The other 7 ranks (0-2,4-7) "
	       "have been waiting for 10 s, 2.5 s or 0x7f00.\"}");
	EXPECT("{\"confirmed\":\"2026-11-21T07:53:33.123Z\",\"dtype\":\"fp32\"}",
	       "{\"confirmed\":\"2026-11-21T07:53:33.123Z\",\"dtype\":\"fp32\"}");
}

Test(anonymise, calls_one_name_the_same_wherever_it_stands)
{
	EXPECT("{\"summary\":\"gpu17 waits for gpu18.\",\"host\":\"gpu18\",\"leader\":\"gpu17\"}",
	       "{\"summary\":\"node-2 waits for node-1.\",\"host\":\"node-1\",\"leader\":\"node-2\"}");
}

Test(anonymise, takes_words_that_are_not_ours_out)
{
	EXPECT("[\"sent by zorgle (pid 7)\"]", "[\"sent by name-1 (pid 7)\"]");
	EXPECT("[\"zorgle-17.corp → --zorgle=über\"]", "[\"name-1 → --name-2=name-3\"]");
	EXPECT("[\"at 10.0.0.3:4711, fe80::1 and 2.27.1\"]",
	       "[\"at address-1:4711, address-2 and 2.27.1\"]");
	EXPECT("[\"c10d::ranks\"]", "[\"name-1::ranks\"]");
	EXPECT("[\"in /home/zorgle/p/zig.py:41 (zig.py)\"]",
	       "[\"in /path-1/file-1.py:41 (file-1.py)\"]");
}

Test(anonymise, masks_a_host_that_is_called_like_a_word_of_ours)
{
	EXPECT("{\"host\":\"leader\",\"summary\":\"leader (ranks 0-3) has not been heard from\"}",
	       "{\"host\":\"node-1\",\"summary\":\"node-1 (ranks 0-3) has not been heard from\"}");
	EXPECT("{\"summary\":\"rank 3 on rank\",\"nodes\":[{\"name\":\"rank\"}]}",
	       "{\"summary\":\"node-1 3 on node-1\",\"nodes\":[{\"name\":\"node-1\"}]}");
}

Test(anonymise, masks_users_jobs_and_pods_that_are_called_like_words_of_ours)
{
	EXPECT("{\"user\":\"network\",\"notes\":[\"the job of network\"]}",
	       "{\"user\":\"user-1\",\"notes\":[\"the job of user-1\"]}");
	EXPECT("{\"job\":\"slurm:train\",\"notes\":[\"rank 3 of train waits\"]}",
	       "{\"job\":\"slurm:job-1\",\"notes\":[\"rank 3 of job-1 waits\"]}");
	EXPECT("{\"pod\":\"world\",\"notes\":[\"pod world waits\"]}",
	       "{\"pod\":\"pod-1\",\"notes\":[\"pod pod-1 waits\"]}");
	EXPECT("{\"cause\":\"killed by SIGKILL sent by slow (pid 7, root)\",\"cause_command\":\"slow\","
	       "\"cause_group\":\"/docker/zorgle\"}",
	       "{\"cause\":\"killed by SIGKILL sent by command-1 (pid 7, root)\",\"cause_command\":"
	       "\"command-1\",\"cause_group\":\"/path-1/file-1\"}");
	/* Each machine has it. */
	EXPECT("{\"user\":\"root\",\"notes\":[\"needs root to look\"]}",
	       "{\"user\":\"user-1\",\"notes\":[\"needs root to look\"]}");
}

Test(anonymise, masks_such_names_in_files_labels_and_paths)
{
	EXPECT("{\"host\":\"leader\",\"notes\":[\"in /data/leader.py:41 and leader.py\"]}",
	       "{\"host\":\"node-1\",\"notes\":[\"in /path-1/file-1.py:41 and file-1.py\"]}");
	EXPECT("{\"comm_name\":\"leader ranks\",\"host\":\"leader\"}",
	       "{\"comm_name\":\"comm-1\",\"host\":\"node-1\"}");
	EXPECT("{\"host\":\"leader\",\"path\":\"/leader\"}",
	       "{\"host\":\"node-1\",\"path\":\"/node-1\"}");
}

Test(anonymise, keeps_enumerators_and_schemas_that_hosts_are_called_like)
{
	EXPECT("{\"host\":\"unknown\",\"class\":\"unknown\"}",
	       "{\"host\":\"node-1\",\"class\":\"unknown\"}");
	EXPECT("{\"schema\":\"collwatch.incident/1\",\"host\":\"incident\"}",
	       "{\"schema\":\"collwatch.incident/1\",\"host\":\"node-1\"}");
}

Test(anonymise, keeps_models_of_devices_and_nothing_else_in_their_place)
{
	EXPECT("{\"device_model\":\"NVIDIA A100-SXM4-80GB MIG 1g.10gb\"}",
	       "{\"device_model\":\"NVIDIA A100-SXM4-80GB MIG 1g.10gb\"}");
	EXPECT("[{\"device_model\":\"Zorgle 1\"},{\"device_model\":\"\"},{\"device_model\":\"Zargle\"},"
	       "{\"device_model\":\"Zorgle 1\"}]",
	       "[{\"device_model\":\"device-1\"},{\"device_model\":\"\"},{\"device_model\":\"device-2\"},"
	       "{\"device_model\":\"device-1\"}]");
	EXPECT("{\"device_model\":\"NVIDIA /home/zorgle 4\"}", "{\"device_model\":\"device-1\"}");
	EXPECT("{\"device_model\":\"NVIDIA of gpu17\",\"host\":\"gpu17\"}",
	       "{\"device_model\":\"device-1\",\"host\":\"node-1\"}");
}

Test(anonymise, counts_users)
{
	EXPECT("{\"uid\":4711,\"notes\":[\"uid 4711\",\"uid 4712 at 4711\"]}",
	       "{\"uid\":1,\"notes\":[\"uid 1\",\"uid 2 at 4711\"]}");
	EXPECT("{\"uid\":0}", "{\"uid\":0}");
}

Test(anonymise, keeps_functions_that_everybody_has)
{
	EXPECT("{\"frames\":[{\"function\":\"_zorgle\",\"file\":"
	       "\"/home/u/v/lib/python3.11/site-packages/torch/zig.py\",\"line\":3},"
	       "{\"function\":\"_zargle\",\"file\":\"/home/u/zag.py\",\"line\":4}],"
	       "\"sits_in\":\"_zorgle (zig.py:3), called by _zargle (zag.py:4)\"}",
	       "{\"frames\":[{\"function\":\"_zorgle\",\"file\":\"torch/zig.py\",\"line\":3},"
	       "{\"function\":\"function-1\",\"file\":\"/path-1/file-1.py\",\"line\":4}],"
	       "\"sits_in\":\"_zorgle (zig.py:3), called by function-1 (file-1.py:4)\"}");
	EXPECT("{\"symbol\":\"a1::b1<c1>\",\"module\":\"/opt/zorgle/libzorgle.so\",\"file\":null}",
	       "{\"symbol\":\"function-1\",\"module\":\"/path-1/file-1.so\",\"file\":null}");
	EXPECT("{\"kernel_stack\":[\"folio_zorg\"],\"kernel\":\"in folio_zorg\"}",
	       "{\"kernel_stack\":[\"folio_zorg\"],\"kernel\":\"in folio_zorg\"}");
}

Test(anonymise, takes_labels_apart)
{
	EXPECT("[{\"job\":\"slurm:99812\"},{\"job\":\"zorgle\"},{\"note\":\"job 99812\"}]",
	       "[{\"job\":\"slurm:job-1\"},{\"job\":\"job-2\"},{\"note\":\"job job-1\"}]");
	EXPECT("[{\"comm_name\":\"world\"},{\"comm_name\":\"zorgle_tp\"}]",
	       "[{\"comm_name\":\"world\"},{\"comm_name\":\"comm-1\"}]");
	EXPECT("[{\"command\":\"collwatch report 0123456789abcdef\"},{\"command\":\"./x --y\"},"
	       "{\"id\":\"0123456789abcdef\"}]",
	       "[{\"command\":\"collwatch report 0123456789abcdef\"},{\"command\":\"command-1\"},"
	       "{\"id\":\"0123456789abcdef\"}]");
}

Test(anonymise, says_so_where_a_document_is_too_deep)
{
	json_t *doc = json_array(), *inner = doc;

	for (unsigned i = 0; i < 5000; i++) {
		json_t *next = json_array();

		cr_assert_eq(json_array_append_new(inner, next), 0);
		inner = next;
	}
	cr_expect_lt(cw_anonymise(&doc, 1), 0, "what was not gone through must not be shown");
	json_decref(doc);
}

/* Many addresses begin there, and none is whole: each would be looked at up to the same end. */
Test(anonymise, text_that_is_almost_an_address_takes_no_longer, .timeout = 60)
{
	enum { COLONS = 4000000 };
	char *text = malloc(COLONS + 2);
	json_t *doc;

	cr_assert_not_null(text);
	memset(text, ':', COLONS);
	memcpy(text + COLONS, "g", 2);
	doc = json_pack("[s]", text);
	cr_assert_eq(cw_anonymise(&doc, 1), 0);
	cr_expect_eq(json_string_length(json_array_get(doc, 0)), COLONS + strlen("name-1"));
	json_decref(doc);
	free(text);
}

/* Any word of ours may be a host's name, and no host's name may show in our sentences. */
Test(anonymise, sentences_do_not_depend_on_names)
{
	static const char *const hosts[] = {
		"storage", "rank", "ranks", "never",      "node",
		"leader",  "pid",  "tp",    "all_reduce", "zorgle-17"
	};
	const char *const format =
		"{\"culprits\":[{\"host\":\"%s\"}],\"summary\":\"rank 3 (%s, pid 812) never reached "
		"all_reduce #31 on tp\",\"summary_said\":[{\"saying\":\"never_reached\",\"args\":[{"
		"\"rank\":3,\"host\":\"%s\",\"pid\":812},{\"call\":\"all_reduce\",\"seq\":31},{"
		"\"comm\":\"0x7\",\"comm_name\":\"%s\"}]}]}";
	char text[1024];

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		(void)snprintf(text, sizeof(text), format, hosts[i], hosts[i], hosts[i], "world");
		EXPECT(text,
		       "{\"culprits\":[{\"host\":\"node-1\"}],\"summary\":\"rank 3 (node-1, pid "
		       "812) never reached all_reduce #31 on world\",\"summary_said\":[{\"saying\":"
		       "\"never_reached\",\"args\":[{\"rank\":3,\"host\":\"node-1\",\"pid\":812},{"
		       "\"call\":\"all_reduce\",\"seq\":31},{\"comm\":\"0x0000000000000007\","
		       "\"comm_name\":\"world\"}]}]}");
	}
}

/* A list of sentences has a list of sayings; one that we do not know loses its strange words. */
Test(anonymise, sayings_of_a_later_version_hide_their_names_too)
{
	EXPECT("{\"host\":\"gpu17\",\"ruled_out\":[\"no gpu17\",\"all zorgle\"],"
	       "\"ruled_out_said\":[[{\"saying\":\"node_silent\",\"args\":[{\"host\":\"gpu17\"},{"
	       "\"ranks\":\"0\",\"count\":1}]}],[{\"saying\":\"zorgle\",\"args\":[{\"host\":"
	       "\"gpu17\"}]}]]}",
	       "{\"host\":\"node-1\",\"ruled_out\":[\"node-1 (rank 0) has stopped reporting\",\"all "
	       "name-1\"],\"ruled_out_said\":[[{\"saying\":\"node_silent\",\"args\":[{\"host\":"
	       "\"node-1\"},{\"ranks\":\"0\",\"count\":1}]}],[{\"saying\":\"name-1\",\"args\":[{"
	       "\"host\":\"node-1\"}]}]]}");
}

/* The names of NCCL's variables are public; interfaces, devices and files in their values are not.
 */
Test(anonymise, variables_of_nccl_keep_their_names_and_lose_their_values)
{
	EXPECT("{\"also\":[\"NCCL_SOCKET_IFNAME differs: corp0 on rank 0, 7 on rank 1\"],"
	       "\"also_said\":[[{\"saying\":\"variable_differs\",\"args\":[{\"text\":"
	       "\"NCCL_SOCKET_IFNAME\"},{\"said\":[{\"saying\":\"value_on\",\"args\":[{\"text\":"
	       "\"corp0\"},{\"ranks\":\"0\",\"count\":1}]},{\"saying\":\"comma_value_on\",\"args\":["
	       "{\"text\":\"7\"},{\"ranks\":\"1\",\"count\":1}]}]}]}]]}",
	       "{\"also\":[\"NCCL_SOCKET_IFNAME differs: name-1 on rank 0, 7 on rank 1\"],"
	       "\"also_said\":[[{\"saying\":\"variable_differs\",\"args\":[{\"text\":"
	       "\"NCCL_SOCKET_IFNAME\"},{\"said\":[{\"saying\":\"value_on\",\"args\":[{\"text\":"
	       "\"name-1\"},{\"ranks\":\"0\",\"count\":1}]},{\"saying\":\"comma_value_on\",\"args\":["
	       "{\"text\":\"7\"},{\"ranks\":\"1\",\"count\":1}]}]}]}]]}");
	EXPECT("{\"nccl_variables\":\"NCCL_ALGO=Ring NCCL_TOPO_FILE=/home/alice/topo.xml "
	       "NCCL_IB_HCA=zorgle_0\"}",
	       "{\"nccl_variables\":\"NCCL_ALGO=Ring NCCL_TOPO_FILE=/path-1/file-1 "
	       "NCCL_IB_HCA=name-1\"}");
}
