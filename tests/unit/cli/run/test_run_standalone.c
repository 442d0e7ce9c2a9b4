/* SPDX-License-Identifier: Apache-2.0 */
/* The output of `run --standalone` while an incident's bundle changes. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run/run_standalone.h"
#include "report/bundle.h"

#define ID "0123456789abcdef"

static struct run_standalone own;
static int incidents = -1;

static void setup(void)
{
	char path[PATH_MAX + 32];

	(void)strcpy(own.dir, "/tmp/cw-own-XXXXXX");
	cr_assert_not_null(mkdtemp(own.dir));
	(void)snprintf(path, sizeof(path), "%s/state", own.dir);
	cr_assert_eq(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/state/incidents", own.dir);
	cr_assert_eq(mkdir(path, 0700), 0);
	incidents = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(incidents, 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void teardown(void)
{
	cr_expect_eq(nftw(own.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	(void)close(incidents);
}

TestSuite(run_standalone, .init = setup, .fini = teardown);

/* closed_as: NULL = it is open. */
static void write_bundle(const char *severity, const char *summary, const char *closed_as)
{
	struct cw_bundle bundle = {
		.incident = json_pack("{s:s, s:s, s:s, s:s, s:s*}", "schema",
				      "collwatch.incident/1", "id", ID, "severity", severity,
				      "summary", summary, "closed_as", closed_as),
	};

	cr_assert_not_null(bundle.incident);
	cr_assert_eq(cw_bundle_write(incidents, ID, &bundle, NULL), 0);
	cw_bundle_fini(&bundle);
}

/* The output of one look. */
static const char *printed(void)
{
	static char text[4096];
	int saved = dup(STDERR_FILENO);
	FILE *f = tmpfile();
	size_t n;

	cr_assert_not_null(f);
	(void)fflush(stderr);
	cr_assert_geq(dup2(fileno(f), STDERR_FILENO), 0);
	run_standalone_print(&own);
	(void)fflush(stderr);
	cr_assert_geq(dup2(saved, STDERR_FILENO), 0);
	(void)close(saved);
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	(void)fclose(f);
	return text;
}

static void expect_printed(const char *summary)
{
	const char *text = printed();

	cr_expect(strstr(text, summary), "\"%s\" has no \"%s\"", text, summary);
	cr_expect(strstr(text, "collwatch: more: collwatch report "), "%s", text);
}

Test(run_standalone, a_notice_that_becomes_a_page_is_printed_again)
{
	write_bundle("notice", "rank 3 is outside NCCL", NULL);
	expect_printed("rank 3 is outside NCCL");
	cr_expect_str_eq(printed(), "");
	write_bundle("page", "rank 3 is outside NCCL", NULL);
	expect_printed("rank 3 is outside NCCL");
	cr_expect_str_eq(printed(), "");
}

Test(run_standalone, a_postmortem_is_no_hang)
{
	write_bundle("failed", "rank 4 was the first to fail", "job_ended");
	expect_printed("rank 4 was the first to fail");
	cr_expect_eq(own.printed[0].severity, CW_SEVERITY_FAILED);
	cr_expect_str_eq(printed(), "");
	/* Its job's alert comes late, and ends before its delivery. */
	write_bundle("page", "rank 3 is outside NCCL", NULL);
	expect_printed("rank 3 is outside NCCL");
	write_bundle("notice", "seen while it lasted", "job_ended");
	expect_printed("seen while it lasted");
	cr_expect_eq(own.printed[0].severity, CW_SEVERITY_PAGE);
}

Test(run_standalone, a_summary_that_changes_is_printed_again)
{
	write_bundle("notice", "rank 3 is outside NCCL", NULL);
	expect_printed("rank 3 is outside NCCL");
	write_bundle("notice", "rank 3 is stuck in read (train.py:4)", NULL);
	expect_printed("stuck in read (train.py:4)");
	write_bundle("notice", "rank 3 is stuck in read (train.py:4)", NULL);
	cr_expect_str_eq(printed(), "", "written anew, and the same");
}

Test(run_standalone, a_job_that_goes_on_is_printed_once)
{
	write_bundle("notice", "rank 3 is outside NCCL", NULL);
	expect_printed("rank 3 is outside NCCL");
	write_bundle("notice", "rank 3 is outside NCCL", "slow");
	expect_printed("goes on");
	cr_expect_str_eq(printed(), "");
}
