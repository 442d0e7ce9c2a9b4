/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a command line: the same time-out of the job for each division into pieces, no
 * longer than a day, with one line of plain text that names its source.
 */
#include <string.h>

#include "agent/record/job_timeout.h"
#include "tests/fuzz/fuzz.h"

static const char *no_variable(const char *name, const void *user)
{
	return NULL;
}

static struct cw_job_timeout of_pieces(const uint8_t *data, size_t size, size_t piece)
{
	static const struct cw_env none = { .get = no_variable };
	struct cw_job_arguments args = { 0 };
	struct cw_job_timeout timeout;

	for (size_t at = 0; at < size; at += piece)
		cw_job_arguments_feed(&args, (const char *)data + at,
				      size - at < piece ? size - at : piece);
	cw_job_timeout_of(&none, &args, &timeout);
	return timeout;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cw_job_timeout whole = of_pieces(data, size, size + 1);
	struct cw_job_timeout pieces = of_pieces(data, size, size % 5 + 1);

	FUZZ_CHECK(whole.ns == pieces.ns && strcmp(whole.source, pieces.source) == 0);
	FUZZ_CHECK(whole.ns <= UINT64_C(86400) * 1000000000);
	FUZZ_CHECK(!whole.ns || strstr(whole.source, " in its arguments"));
	FUZZ_CHECK(memchr(whole.source, 0, sizeof(whole.source)));
	for (const char *p = whole.source; *p; p++)
		FUZZ_CHECK(*p >= ' ' && *p <= '~');
	return 0;
}
