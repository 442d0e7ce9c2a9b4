/* SPDX-License-Identifier: Apache-2.0 */
#include "report/bundle.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/test_bundle.XXXXXX";
static int dirfd_ = -1;

static void setup(void)
{
	umask(0);
	cr_assert_not_null(mkdtemp(dir));
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(dirfd_, 0);
}

static void teardown(void)
{
	char command[128];

	close(dirfd_);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(bundle, .init = setup, .fini = teardown);

static struct cw_bundle sample(int n)
{
	return (struct cw_bundle){
		.incident = json_pack("{s:s, s:i}", "schema", "collwatch.incident/1", "n", n),
		.snapshot = json_pack("{s:s}", "schema", "collwatch.snapshot/1"),
		.evidence = json_pack("[{s:i}]", "pid", 812),
	};
}

static char *path_of(const char *name, const char *file)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s%s%s", dir, name, file ? "/" : "", file ? file : "");
	return path;
}

static void put(int n)
{
	struct cw_bundle bundle = sample(n);
	struct cw_err err = { "" };

	cr_assert_eq(cw_bundle_write(dirfd_, "inc", &bundle, &err), 0, "%s", err.text);
	cw_bundle_fini(&bundle);
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert_not_null(f);
	fputs(text, f);
	cr_assert_eq(fclose(f), 0);
}

static unsigned count_entries(void)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	cr_assert_not_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2; /* . and .. */
}

Test(bundle, what_was_written_is_read_back)
{
	struct cw_bundle bundle = sample(7), back = { 0 };

	put(7);
	cr_assert_eq(cw_bundle_read(path_of("inc", NULL), &back, NULL), 0);
	cr_assert(json_equal(back.incident, bundle.incident));
	cr_assert(json_equal(back.snapshot, bundle.snapshot));
	cr_assert(json_equal(back.evidence, bundle.evidence));
	cw_bundle_fini(&back);
	cw_bundle_fini(&bundle);
}

Test(bundle, snapshot_may_be_given_as_its_text)
{
	struct cw_bundle bundle = sample(7), back = { 0 };
	json_t *object = bundle.snapshot;
	char *text = json_dumps(object, JSON_COMPACT);
	struct cw_err err = { "" };

	bundle.snapshot = json_string(text);
	cr_assert_eq(cw_bundle_write(dirfd_, "inc", &bundle, &err), 0, "%s", err.text);
	cr_assert_eq(cw_bundle_read(path_of("inc", NULL), &back, &err), 0, "%s", err.text);
	cr_expect(json_equal(back.snapshot, object));
	cr_assert_eq(cw_bundle_parse_texts(&bundle), 0);
	cr_expect(json_equal(bundle.snapshot, object));
	cr_assert_eq(cw_bundle_parse_texts(&bundle), 0, "it is an object already");
	free(text);
	json_decref(object);
	cw_bundle_fini(&bundle);
	cw_bundle_fini(&back);
}

static int read_up_to(size_t bytes, struct cw_bundle *ret)
{
	const struct cw_bundle_limits limits = { bytes, bytes };

	return cw_bundle_read_up_to(path_of("inc", NULL), &limits, ret, NULL);
}

/*
 * Facts about calls and tensors are at hand when the bundle is new; later there may be no source.
 */
Test(bundle, ops_and_summaries_stay_when_it_is_written_anew)
{
	struct cw_bundle bundle = sample(7), back = { 0 };
	struct cw_err err = { "" };

	bundle.ops = json_pack("{s:i}", "rows", 1);
	bundle.summaries = json_string("{\"samples\":2}");
	cr_assert_eq(cw_bundle_write(dirfd_, "inc", &bundle, &err), 0, "%s", err.text);
	put(8);
	cr_assert_eq(cw_bundle_read(path_of("inc", NULL), &back, &err), 0, "%s", err.text);
	cr_expect(json_equal(back.ops, bundle.ops));
	cr_expect_eq(json_integer_value(json_object_get(back.summaries, "samples")), 2);
	cw_bundle_fini(&back);
	write_text(path_of("inc", "ops.json"), "[]");
	cr_expect_eq(cw_bundle_read(path_of("inc", NULL), &back, &err), -EBADMSG);
	write_text(path_of("inc", "ops.json"), "{}");
	write_text(path_of("inc", "summaries.json"), "7");
	cr_expect_eq(cw_bundle_read(path_of("inc", NULL), &back, &err), -EBADMSG);
	cw_bundle_fini(&bundle);
}

static void add_remote_summaries(const char *name, unsigned n, const char *text, int want)
{
	json_t *doc = json_string(text);

	cr_expect_eq(cw_bundle_add_remote_summaries(dirfd_, name, n, doc, NULL), want);
	json_decref(doc);
}

Test(bundle, what_other_nodes_gave_comes_behind_the_rest_and_stays)
{
	struct cw_bundle back = { 0 }, copy = { 0 };
	struct cw_err err = { "" };

	add_remote_summaries("inc", 1, "{}", -ENOENT);
	put(7);
	add_remote_summaries("inc", 1, "{\"node\":\"b\"}", 0);
	add_remote_summaries("inc", 2, "{\"node\":\"x\"}", 0);
	add_remote_summaries("inc", 2, "{\"node\":\"c\"}", 0);
	add_remote_summaries("inc", 0, "{}", -EINVAL);
	add_remote_summaries("inc", CW_BUNDLE_MAX_REMOTE_SUMMARIES + 1, "{}", -EINVAL);
	put(8);
	cr_assert_eq(cw_bundle_read(path_of("inc", NULL), &back, &err), 0, "%s", err.text);
	cr_assert_eq(json_array_size(back.remote_summaries), 2);
	cr_expect_str_eq(json_string_value(
				 json_object_get(json_array_get(back.remote_summaries, 1), "node")),
			 "c");
	cr_assert_eq(cw_bundle_write(dirfd_, "copy", &back, &err), 0, "%s", err.text);
	cr_assert_eq(cw_bundle_read(path_of("copy", NULL), &copy, &err), 0, "%s", err.text);
	cr_expect(json_equal(copy.remote_summaries, back.remote_summaries));
	cw_bundle_fini(&copy);
	cw_bundle_fini(&back);
	cr_assert_eq(read_up_to(16, &back), 0);
	cr_expect_null(back.remote_summaries, "each is shorter than that, both together are not");
	cr_expect_eq(back.n_remote_summaries_omitted, 2);
	cw_bundle_fini(&back);
}

/* As after a power failure, or from an attacker: the rest of the bundle is no worse for it. */
Test(bundle, what_another_node_gave_and_cannot_be_read_is_named)
{
	static const char *const bad[] = { "", "[]", "7", "{\"a\":1,\"a\":2}", "{\"node\":" };
	struct cw_bundle back = { 0 };
	struct cw_err err = { "" };

	put(7);
	add_remote_summaries("inc", 2, "{\"node\":\"c\"}", 0);
	for (size_t i = 0; i <= sizeof(bad) / sizeof(bad[0]); i++) {
		(void)unlinkat(dirfd_, "inc/summaries-1.json", 0);
		if (i < sizeof(bad) / sizeof(bad[0]))
			write_text(path_of("inc", "summaries-1.json"), bad[i]);
		else
			cr_assert_eq(
				symlinkat("/proc/self/environ", dirfd_, "inc/summaries-1.json"), 0);
		cr_assert_eq(cw_bundle_read(path_of("inc", NULL), &back, &err), 0, "%s", err.text);
		cr_assert_eq(json_array_size(back.remote_summaries), 2);
		cr_expect_str_eq(json_string_value(json_object_get(
					 json_array_get(back.remote_summaries, 0), "node")),
				 "summaries-1.json");
		cr_expect_eq(json_object_size(json_array_get(back.remote_summaries, 0)), 1);
		cw_bundle_fini(&back);
	}
}

Test(bundle, more_of_other_nodes_than_can_be_read_is_omitted_and_counted)
{
	struct cw_bundle back = { 0 };
	struct cw_err err = { "" };

	put(7);
	add_remote_summaries("inc", 1, "{}", 0);
	add_remote_summaries("inc", 2, "{}", 0);
	cr_assert_eq(
		truncate(path_of("inc", "summaries-2.json"), CW_BUNDLE_MAX_REMOTE_SUMMARIES_BYTES),
		0);
	cr_assert_eq(cw_bundle_read(path_of("inc", NULL), &back, &err), 0, "%s", err.text);
	cr_expect_null(back.remote_summaries);
	cr_expect_eq(back.n_remote_summaries_omitted, 2);
	cw_bundle_fini(&back);
}

Test(bundle, snapshot_above_a_limit_is_omitted)
{
	struct cw_bundle back = { 0 };

	put(7);
	cr_assert_eq(read_up_to(8, &back), 0);
	cr_expect_null(back.snapshot);
	cr_expect_not_null(back.evidence);
	cw_bundle_fini(&back);
	cr_assert_eq(read_up_to(4096, &back), 0);
	cr_expect_not_null(back.snapshot);
	cw_bundle_fini(&back);
}

/* The daemon writes a bundle anew, and removes the older one, while people read it. */
Test(bundle, is_whole_to_whoever_reads_it_meanwhile)
{
	struct cw_bundle bundle = sample(7);
	pid_t writer;

	bundle.ops = json_pack("{s:i}", "rows", 1);
	bundle.summaries = json_string("{\"samples\":2}");
	cr_assert_eq(cw_bundle_write(dirfd_, "inc", &bundle, NULL), 0);
	writer = fork();
	cr_assert_geq(writer, 0);
	while (writer == 0)
		if (cw_bundle_write(dirfd_, "inc", &bundle, NULL) < 0)
			_exit(1);
	for (unsigned i = 0; i < 2000; i++) {
		struct cw_bundle back = { 0 };
		struct cw_err err = { "" };
		int r = cw_bundle_read(path_of("inc", NULL), &back, &err);

		cr_expect(r == 0 || r == -EAGAIN, "%s", err.text);
		cr_expect(r < 0 || (back.snapshot && back.evidence && back.ops && back.summaries));
		cw_bundle_fini(&back);
	}
	cr_expect_eq(waitpid(writer, NULL, WNOHANG), 0, "it still writes");
	(void)kill(writer, SIGKILL);
	(void)waitpid(writer, NULL, 0);
	cw_bundle_fini(&bundle);
}

/* System calls that write, of this process so far. */
static long count_writes(void)
{
	char line[128];
	long n = -1;
	FILE *f = fopen("/proc/self/io", "re");

	cr_assert_not_null(f);
	while (n < 0 && fgets(line, sizeof(line), f))
		(void)sscanf(line, "syscw: %ld", &n);
	fclose(f);
	cr_assert_geq(n, 0);
	return n;
}

Test(bundle, a_large_one_is_written_in_few_pieces)
{
	struct cw_bundle bundle = sample(1), back = { 0 };
	struct cw_err err = { "" };
	json_t *ops = json_array();
	long before;

	for (int i = 0; i < 20000; i++)
		json_array_append_new(ops, json_pack("{s:i, s:s}", "seq", i, "kind", "all_reduce"));
	json_object_set_new(bundle.snapshot, "ops", ops);
	before = count_writes();
	cr_assert_eq(cw_bundle_write(dirfd_, "inc", &bundle, &err), 0, "%s", err.text);
	cr_expect_lt(count_writes() - before, 100);
	cr_assert_eq(cw_bundle_read(path_of("inc", NULL), &back, &err), 0, "%s", err.text);
	cr_expect(json_equal(back.snapshot, bundle.snapshot));
	cw_bundle_fini(&bundle);
	cw_bundle_fini(&back);
}

Test(bundle, is_readable_by_its_group_only)
{
	struct stat st;

	put(1);
	cr_assert_eq(stat(path_of("inc", NULL), &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0750);
	cr_assert_eq(stat(path_of("inc", "incident.json"), &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0640);
}

Test(bundle, a_newer_one_replaces_the_older_and_leaves_nothing_beside)
{
	struct cw_bundle back = { 0 };

	put(1);
	put(2);
	cr_assert_eq(cw_bundle_read(path_of("inc", NULL), &back, NULL), 0);
	cr_assert_eq(json_integer_value(json_object_get(back.incident, "n")), 2);
	cr_assert_eq(count_entries(), 1);
	cw_bundle_fini(&back);
}

Test(bundle, what_a_killed_writer_left_is_swept)
{
	cr_assert_eq(mkdir(path_of(".inc.new", NULL), 0750), 0);
	write_text(path_of(".inc.new", "incident.json"), "{");
	put(1);
	cr_assert_eq(count_entries(), 1);
}

Test(bundle, names_cannot_leave_the_directory)
{
	struct cw_bundle bundle = sample(1);

	cr_assert_eq(cw_bundle_write(dirfd_, "../evil", &bundle, NULL), -EINVAL);
	cr_assert_eq(cw_bundle_write(dirfd_, "..", &bundle, NULL), -EINVAL);
	cr_assert_eq(cw_bundle_write(dirfd_, "", &bundle, NULL), -EINVAL);
	cw_bundle_fini(&bundle);
}

Test(bundle, snapshot_and_evidence_may_be_missing)
{
	struct cw_bundle back = { 0 };

	put(1);
	cr_assert_eq(unlink(path_of("inc", "snapshot.json")), 0);
	cr_assert_eq(unlink(path_of("inc", "evidence.json")), 0);
	cr_assert_eq(cw_bundle_read(path_of("inc", NULL), &back, NULL), 0);
	cr_assert_null(back.snapshot);
	cr_assert_null(back.evidence);
	cw_bundle_fini(&back);
}

Test(bundle, hostile_files_are_refused)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{\"schema\":\"collwatch.incident/1\"",
		"{\"schema\":\"collwatch.incident/1\",\"a\":1,\"a\":2}",
		"{\"schema\":\"something/1\"}",
		"{\"schema\":7}",
		"{\"schema\":\"collwatch.incident/1\"} trailing",
		"{\"schema\":\"collwatch.incident/1\",\"a\":\"\xff\"}",
	};

	put(1);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct cw_bundle back = { 0 };
		struct cw_err err = { "" };

		write_text(path_of("inc", "incident.json"), texts[i]);
		cr_assert_eq(cw_bundle_read(path_of("inc", NULL), &back, &err), -EBADMSG,
			     "accepted: %s", texts[i]);
		cr_assert_neq(err.text[0], '\0');
	}
}

Test(bundle, deep_nesting_is_refused)
{
	size_t deep = 100000;
	char *text = malloc(deep + 1);
	struct cw_bundle back = { 0 };

	put(1);
	cr_assert_not_null(text);
	memset(text, '[', deep);
	text[deep] = '\0';
	write_text(path_of("inc", "evidence.json"), text);
	cr_assert_eq(cw_bundle_read(path_of("inc", NULL), &back, NULL), -EBADMSG);
	free(text);
}

Test(bundle, only_regular_files_are_opened)
{
	struct cw_bundle back = { 0 };

	put(1);
	cr_assert_eq(unlink(path_of("inc", "snapshot.json")), 0);
	cr_assert_eq(mkfifo(path_of("inc", "snapshot.json"), 0600), 0);
	cr_assert_eq(cw_bundle_read(path_of("inc", NULL), &back, NULL), -EBADMSG);
	cr_assert_eq(unlink(path_of("inc", "snapshot.json")), 0);
	cr_assert_eq(symlink("/etc/passwd", path_of("inc", "snapshot.json")), 0);
	cr_assert_eq(cw_bundle_read(path_of("inc", NULL), &back, NULL), -ELOOP);
	cr_assert_eq(cw_bundle_read("/nowhere/at/all", &back, NULL), -ENOENT);
}
