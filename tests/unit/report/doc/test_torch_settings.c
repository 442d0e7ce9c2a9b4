/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/torch_settings.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void add(json_t *evidence, int rank, const char *a, const char *b)
{
	json_t *list = json_array();

	(void)json_array_append_new(list, json_string(a));
	if (b)
		(void)json_array_append_new(list, json_string(b));
	cr_assert_eq(json_array_append_new(evidence, json_pack("{s:i, s:{s:o}}", "rank", rank,
							       "proc", "torch_settings", list)),
		     0);
}

static void expect(const json_t *sentences, size_t i, const char *text)
{
	const char *is = json_string_value(json_array_get(sentences, i));

	cr_assert_not_null(is);
	cr_expect_str_eq(is, text, "%s", is);
}

Test(torch_settings, tells_who_has_them_and_first_those_whose_meaning_is_known)
{
	json_t *evidence = json_array(), *sentences;

	add(evidence, 0, "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=1800", "TORCH_FR_BUFFER_SIZE=0");
	add(evidence, 1, "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=1800", "TORCH_FR_BUFFER_SIZE=2000");
	add(evidence, 3, "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=1800", NULL);
	sentences = cw_torch_setting_sentences(evidence);
	cr_assert_eq(json_array_size(sentences), 3);
	expect(sentences, 1,
	       "TORCH_FR_BUFFER_SIZE=0 (rank 0): PyTorch's Flight Recorder is off, so no dump can "
	       "show the calls; with 2000 it keeps the last 2,000 calls");
	expect(sentences, 0,
	       "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=1800 (ranks 0-1,3): seconds that a watchdog may "
	       "be stuck before PyTorch ends its rank");
	expect(sentences, 2, "TORCH_FR_BUFFER_SIZE=2000 (rank 1)");
	json_decref(sentences);
	json_decref(evidence);
}

/* getCvarBool() of pytorch/pytorch takes these, in any case. */
Test(torch_settings, reads_values_as_pytorch_does)
{
	static const struct {
		const char *setting;
		bool has_meaning;
	} cases[] = {
		{ "TORCH_NCCL_DUMP_ON_TIMEOUT=0", true },
		{ "TORCH_NCCL_DUMP_ON_TIMEOUT=False", true },
		{ "TORCH_NCCL_DUMP_ON_TIMEOUT=1", false },
		{ "TORCH_NCCL_BLOCKING_WAIT=YES", true },
		{ "TORCH_NCCL_BLOCKING_WAIT=0", false },
		{ "NCCL_BLOCKING_WAIT=1", true },
		{ "TORCH_NCCL_ASYNC_ERROR_HANDLING=0", true },
		{ "TORCH_NCCL_ASYNC_ERROR_HANDLING=3", false },
		{ "TORCH_NCCL_ENABLE_MONITORING=n", true },
		{ "TORCH_NCCL_TRACE_BUFFER_SIZE=", false },
		{ "NCCL_TIMEOUT=3600", true },
		{ "TORCH_NCCL_TIMEOUT_SEC=3600", true },
		{ "TORCH_NCCL_TIMEOUT=", false },
		{ "TORCH_NCCL_TRACE_BUFFER_SIZE", false },
		{ "TORCH_NCCL_TRACE_BUFFER_SIZE_MB=0", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *evidence = json_array(), *sentences;
		const char *text;

		add(evidence, 5, cases[i].setting, NULL);
		sentences = cw_torch_setting_sentences(evidence);
		text = json_string_value(json_array_get(sentences, 0));
		cr_assert_not_null(text);
		cr_expect_eq(strstr(text, "(rank 5): ") != NULL, cases[i].has_meaning, "%s", text);
		json_decref(sentences);
		json_decref(evidence);
	}
}

Test(torch_settings, leaves_out_what_is_too_much_or_no_setting)
{
	json_t *evidence = json_array(), *sentences;
	char setting[64];

	for (int i = 0; i < 1000; i++) {
		(void)snprintf(setting, sizeof(setting), "TORCH_NCCL_X=%d", i);
		add(evidence, i % 7, setting, "TORCH_NCCL_X=0");
	}
	(void)json_array_append_new(evidence, json_null());
	(void)json_array_append_new(
		evidence, json_pack("{s:i, s:{s:[i, n]}}", "rank", 1, "proc", "torch_settings", 7));
	(void)json_array_append_new(
		evidence, json_pack("{s:s, s:{s:s}}", "rank", "1", "proc", "torch_settings", "x"));
	sentences = cw_torch_setting_sentences(evidence);
	cr_expect_eq(json_array_size(sentences), CW_TORCH_SETTINGS_MAX);
	expect(sentences, 0, "TORCH_NCCL_X=0 (ranks 0-6)");
	json_decref(sentences);
	json_decref(evidence);
	sentences = cw_torch_setting_sentences(NULL);
	cr_expect_eq(json_array_size(sentences), 0);
	json_decref(sentences);
}
