/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents and bundles are whole or not there when memory runs out, and made the next time.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/slow/slow.h"
#include "report/anonymise/anonymise.h"
#include "report/bundle.h"
#include "report/doc/incident_doc.h"
#include "report/doc/incident_facts.h"
#include "report/doc/slow_doc.h"
#include "report/doc/snapshot_doc.h"
#include "report/doc/snapshot_text.h"
#include "report/html/render_html.h"
#include "report/incident_filter.h"
#include "report/nonfinite_inputs.h"
#include "report/rank_sets.h"
#include "report/stacks/stack_tree.h"
#include "report/text/render_text.h"
#include "tests/support/memory/no_memory.h"
#include "tests/support/report/report_fixture.h"

static struct cw_snapshot *snap;
static struct cw_verdict verdict;
static json_t *evidence, *incident, *snapshot, *stacks, *postmortem;
static json_t *few; /* instead of a snapshot, where only files matter */
static char dir[] = "/tmp/cw-no-memory-XXXXXX";
static int dir_fd = -1;

static json_t *make_stacks(void)
{
	struct cw_stack_tree *tree = cw_stack_tree_new(false);
	json_t *doc = NULL;
	int r = tree ? 0 : -ENOMEM;

	for (int i = 0; r == 0 && i < 2; i++)
		r = cw_stack_tree_add(tree, 3 + 2 * i, json_array_get(evidence, (size_t)i));
	if (r == 0)
		r = cw_stack_tree_not_collected(tree, 4, "its node does not answer");
	if (r == 0)
		doc = cw_stack_tree_doc(tree, 1);
	cw_stack_tree_free(tree);
	return doc;
}

static void set_up(void)
{
	(void)setenv("TZ", "UTC", 1);
	(void)umask(0);
	snap = fixture_snapshot();
	fixture_verdict(&verdict);
	snap->ranks[1].job_timeout_ns = INT64_C(1800000000000);
	cr_assert_eq(cw_snapshot_add_stack(snap, "libtorch.so+0x1\n/x/train.py:7 in step",
					   &verdict.sides[0].op.stack),
		     0);
	evidence = fixture_evidence();
	incident = cw_incident_doc(snap, &verdict, &fixture_info);
	snapshot = cw_snapshot_doc(snap);
	few = json_pack("{s:s, s:[i,i]}", "schema", "collwatch.snapshot/1", "ranks", 1, 2);
	stacks = make_stacks();
	postmortem = fixture_postmortem();
	cr_assert(incident && snapshot && stacks && postmortem);
	incident = fixture_add_evidence(incident, evidence);
	cr_assert_not_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(dir_fd, 0);
}

static void tear_down(void)
{
	char command[128];

	json_decref(incident);
	json_decref(snapshot);
	json_decref(few);
	json_decref(stacks);
	json_decref(postmortem);
	json_decref(evidence);
	free(verdict.victims);
	cw_snapshot_free(snap);
	close(dir_fd);
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(report_no_memory, .init = set_up, .fini = tear_down);

/* Makes a document that is whole or NULL, and whole in the next attempt. */
struct maker {
	json_t *(*make)(void);
	json_t *right;
};

static void make_doc(void *userdata)
{
	const struct maker *m = userdata;
	json_t *doc;

	no_memory_begin();
	doc = m->make();
	no_memory_end();
	if (doc == NULL) {
		cr_assert(no_memory_happened());
		doc = m->make();
	}
	cr_assert(json_equal(doc, m->right));
	json_decref(doc);
}

static void expect_whole(const char *scenario, json_t *(*make)(void))
{
	struct maker m = { .make = make, .right = make() };

	cr_assert_not_null(m.right, "%s", scenario);
	no_memory_walk(scenario, make_doc, &m);
	json_decref(m.right);
}

static json_t *the_incident(void)
{
	return cw_incident_doc(snap, &verdict, &fixture_info);
}

static json_t *the_snapshot(void)
{
	return cw_snapshot_doc(snap);
}

static json_t *that_it_is_healthy(void)
{
	return cw_healthy_doc(snap, INT64_C(60000000000));
}

static json_t *the_folded_stacks(void)
{
	const json_t *trees = json_object_get(stacks, "trees");

	return cw_stack_tree_fold(json_object_get(json_array_get(trees, 0), "roots"));
}

static json_t *who_is_late(void)
{
	static const struct cw_slow_list list = {
		.v = { { .rank = 2, .n_ops = 9 }, { .rank = 5, .n_ops = 9 } }, .n = 2
	};

	return cw_slow_doc(snap, &list);
}

static json_t *what_was_fed(void)
{
	struct cw_incident_facts facts = { 0 };
	struct cw_arena arena = { 0 };
	json_t *sentences = NULL;

	if (cw_nonfinite_inputs_collect(snap, &arena, &facts) == 0)
		sentences = cw_nonfinite_inputs_sentences(&facts);
	cw_arena_fini(&arena);
	return sentences;
}

static json_t *the_hosts(void)
{
	struct cw_incident_culprit culprit = { .host = "node-a" };
	const struct cw_incident_facts facts = { .culprits = &culprit, .n_culprits = 1 };

	return cw_incident_filter_hosts(&facts);
}

static json_t *the_filter(void)
{
	static const struct cw_incident_filter filter = {
		.since_wall_ns = 1, .class = "process_dead", .node = "node-a", .job = "name:train"
	};

	return cw_incident_filter_write(&filter);
}

Test(report_no_memory, documents_are_whole_or_none)
{
	expect_whole("incident", the_incident);
	expect_whole("snapshot", the_snapshot);
	expect_whole("healthy", that_it_is_healthy);
	expect_whole("stacks", make_stacks);
	expect_whole("folded stacks", the_folded_stacks);
	expect_whole("slow", who_is_late);
	expect_whole("fed tensors", what_was_fed);
	expect_whole("hosts", the_hosts);
	expect_whole("filter", the_filter);
}

/*
 * The positions of culprits may be incomplete after a failure. A second attempt completes
 * them, once.
 */
static void add_positions(void *userdata)
{
	json_t *before = cw_incident_doc(snap, &verdict, &fixture_info), *doc;
	struct cw_incident_facts facts;
	struct cw_arena arena = { 0 };
	int r;

	cr_assert_eq(cw_incident_facts_read(before, &arena, &facts, NULL, NULL), 0);
	no_memory_begin();
	r = cw_incident_facts_add_evidence(&facts, &arena, evidence);
	no_memory_end();
	if (r != 0) {
		cr_assert_eq(r, -ENOMEM);
		cr_assert(no_memory_happened());
		cr_assert_eq(cw_incident_facts_add_evidence(&facts, &arena, evidence), 0);
	}
	doc = cw_incident_facts_write(&facts);
	cr_assert(json_equal(doc, incident));
	cw_arena_fini(&arena);
	json_decref(before);
	json_decref(doc);
}

Test(report_no_memory, positions_are_said_the_next_time)
{
	no_memory_walk("positions", add_positions, NULL);
}

static void read_snapshot(void *userdata)
{
	struct cw_snapshot *back = NULL;
	struct cw_err err = { "" };
	json_t *again;
	int r;

	no_memory_begin();
	r = cw_snapshot_from_doc(snapshot, &back, &err);
	no_memory_end();
	if (r != 0) {
		cr_assert_eq(r, -ENOMEM, "%d: %s", r, err.text);
		cr_assert(no_memory_happened());
		cr_assert_null(back);
		cr_assert_eq(cw_snapshot_from_doc(snapshot, &back, &err), 0);
	}
	again = cw_snapshot_doc(back);
	cr_assert(json_equal(again, snapshot));
	json_decref(again);
	cw_snapshot_free(back);
}

Test(report_no_memory, a_snapshot_is_read_whole_or_not)
{
	no_memory_walk("reading a snapshot", read_snapshot, NULL);
}

static json_t *snapshot_text(int *ret)
{
	struct cw_snapshot_text *t = cw_snapshot_text_new(snap, NULL);
	json_t *text = NULL;

	*ret = t ? 0 : -ENOMEM;
	while (*ret == 0)
		*ret = cw_snapshot_text_step(t, snap, 3);
	if (*ret > 0)
		text = cw_snapshot_text_take(t);
	cw_snapshot_text_free(t);
	return text;
}

static void write_snapshot_text(void *userdata)
{
	json_t *text, *doc;
	int r;

	no_memory_begin();
	text = snapshot_text(&r);
	no_memory_end();
	if (text == NULL) {
		cr_assert(r == -ENOMEM || r > 0, "%d", r);
		cr_assert(no_memory_happened());
		text = snapshot_text(&r);
	}
	doc = json_loads(json_string_value(text), 0, NULL);
	cr_assert(json_equal(doc, snapshot));
	json_decref(doc);
	json_decref(text);
}

Test(report_no_memory, so_is_its_text)
{
	no_memory_walk("text of a snapshot", write_snapshot_text, NULL);
}

static void make_sets(void *userdata)
{
	const uint32_t culprit = FIXTURE_CULPRIT;
	struct rank_sets sets;
	int r;

	no_memory_begin();
	r = rank_sets_make(snap, &culprit, 1, &sets);
	no_memory_end();
	if (r != 0) {
		cr_assert_eq(r, -ENOMEM);
		cr_assert(no_memory_happened());
		rank_sets_fini(&sets);
		cr_assert_eq(rank_sets_make(snap, &culprit, 1, &sets), 0);
	}
	cr_assert_eq(sets.n_sets, 2);
	cr_assert_eq(sets.sets[1].n_ranks, FIXTURE_RANKS - 1);
	rank_sets_fini(&sets);
}

Test(report_no_memory, sets_of_ranks_are_whole_or_none)
{
	no_memory_walk("sets of ranks", make_sets, NULL);
}

static struct cw_bundle bundle_of(json_t *inc)
{
	return (struct cw_bundle){
		.incident = json_incref(inc),
		.snapshot = json_incref(few),
		.evidence = json_incref(evidence),
		.stacks = json_incref(stacks),
	};
}

static bool bundle_is(const char *name, const json_t *inc)
{
	struct cw_bundle back = { 0 };
	struct cw_err err = { "" };
	char path[128];
	bool is;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	cr_assert_eq(cw_bundle_read(path, &back, &err), 0, "%s", err.text);
	is = json_equal(back.incident, inc) && json_equal(back.snapshot, few) &&
	     json_equal(back.evidence, evidence) && json_equal(back.stacks, stacks);
	cw_bundle_fini(&back);
	return is;
}

/* Removes the entries of a directory that end so ("" = all), and says how many others there are. */
static unsigned empty(const char *path, const char *end)
{
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned others = 0;

	cr_assert_not_null(d, "%s", path);
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name), len_end = strlen(end);

		if (e->d_name[0] == '.' && strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0)
			others++;
		else if (len >= len_end && strcmp(e->d_name + len - len_end, end) == 0)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	}
	closedir(d);
	return others;
}

/* Takes the bundle "b" away: anything else that lies there would be half a bundle. */
static void remove_bundle(void)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/b", dir);
	cr_assert_eq(empty(path, ".json"), 0, "something is left in %s", path);
	cr_assert_eq(rmdir(path), 0, "something is left in %s", path);
	cr_assert_eq(empty(dir, ".json"), 0, "something is left in %s", dir);
}

/* The old one, or the new one, whole. */
static void replace_bundle(void *userdata)
{
	json_t *older = json_pack("{s:s, s:s}", "schema", "collwatch.incident/1", "id", "older");
	struct cw_bundle before = bundle_of(older), after = bundle_of(incident);
	struct cw_err err = { "" };
	int r;

	cr_assert_eq(cw_bundle_write(dir_fd, "b", &before, &err), 0, "%s", err.text);
	no_memory_begin();
	r = cw_bundle_write(dir_fd, "b", &after, &err);
	no_memory_end();
	cr_assert(r == 0 || no_memory_happened(), "%d: %s", r, err.text);
	cr_assert(bundle_is("b", r == 0 ? incident : older));
	if (r != 0)
		cr_assert_eq(cw_bundle_write(dir_fd, "b", &after, &err), 0, "%s", err.text);
	cr_assert(bundle_is("b", incident));
	cw_bundle_fini(&before);
	cw_bundle_fini(&after);
	json_decref(older);
	remove_bundle();
}

static void update_bundle(void *userdata)
{
	json_t *older = json_pack("{s:s, s:s}", "schema", "collwatch.incident/1", "id", "older");
	struct cw_bundle before = bundle_of(older);
	struct cw_err err = { "" };
	int updated;

	cr_assert_eq(cw_bundle_write(dir_fd, "b", &before, &err), 0, "%s", err.text);
	no_memory_begin();
	updated = cw_bundle_update_incident(dir_fd, "b", incident, &err);
	no_memory_end();
	cr_assert(updated == 0 || no_memory_happened(), "%s", err.text);
	cr_assert(bundle_is("b", updated == 0 ? incident : older));
	cr_assert_eq(cw_bundle_update_incident(dir_fd, "b", incident, &err), 0, "%s", err.text);
	cr_assert(bundle_is("b", incident));
	cw_bundle_fini(&before);
	json_decref(older);
	remove_bundle();
}

static void read_bundle(void *userdata)
{
	struct cw_bundle back = { 0 };
	struct cw_err err = { "" };
	char path[128];
	int r;

	(void)snprintf(path, sizeof(path), "%s/b", dir);
	no_memory_begin();
	r = cw_bundle_read(path, &back, &err);
	no_memory_end();
	if (r != 0) {
		cr_assert(no_memory_happened(), "%d: %s", r, err.text);
		cr_assert_null(back.incident);
		cr_assert_eq(cw_bundle_read(path, &back, &err), 0, "%s", err.text);
	}
	cr_assert(json_equal(back.incident, incident));
	cr_assert(json_equal(back.snapshot, few));
	cr_assert(json_equal(back.evidence, evidence));
	cr_assert(json_equal(back.stacks, stacks));
	cw_bundle_fini(&back);
}

Test(report_no_memory, a_bundle_on_disk_is_the_old_one_or_the_new_one)
{
	no_memory_walk("writing a bundle", replace_bundle, NULL);
	no_memory_walk("updating a bundle", update_bundle, NULL);
}

Test(report_no_memory, a_bundle_is_read_whole_or_not)
{
	struct cw_bundle bundle = bundle_of(incident);
	struct cw_err err = { "" };

	cr_assert_eq(cw_bundle_write(dir_fd, "b", &bundle, &err), 0, "%s", err.text);
	cw_bundle_fini(&bundle);
	no_memory_walk("reading a bundle", read_bundle, NULL);
}

static void anonymise(void *userdata)
{
	const json_t *right = userdata;
	json_t *copy = json_deep_copy(incident);
	int r;

	no_memory_begin();
	r = cw_anonymise(&copy, 1);
	no_memory_end();
	if (r != 0) {
		cr_assert_eq(r, -ENOMEM);
		cr_assert(no_memory_happened());
		json_decref(copy);
		copy = json_deep_copy(incident);
		cr_assert_eq(cw_anonymise(&copy, 1), 0);
	}
	cr_assert(json_equal(copy, right));
	json_decref(copy);
}

/* A document must not appear unless it is certainly anonymous. */
Test(report_no_memory, names_are_taken_out_or_it_says_that_they_are_not)
{
	json_t *right = json_deep_copy(incident);

	cr_assert_eq(cw_anonymise(&right, 1), 0);
	no_memory_walk("anonymise", anonymise, right);
	json_decref(right);
}

/* A report, as text or as a page: a truncated one is not called complete. */
struct rendering {
	int (*render)(FILE *out, const struct cw_bundle *bundle);
	const struct cw_bundle *bundle;
	char right[256 << 10], now[256 << 10];
};

static int as_text(FILE *out, const struct cw_bundle *bundle)
{
	static const struct cw_render_opts opts = { .width = 100 };

	return cw_render_text(out, bundle, &opts);
}

static int rendered(const struct rendering *x, char *buf, size_t size)
{
	FILE *out;
	int r;

	memset(buf, 0, size);
	out = fmemopen(buf, size, "w");
	cr_assert_not_null(out);
	no_memory_begin();
	r = x->render(out, x->bundle);
	no_memory_end();
	(void)fclose(out);
	return r;
}

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

static void render(void *userdata)
{
	struct rendering *x = userdata;
	int r = rendered(x, x->now, sizeof(x->now));

	cr_assert(r == 0 || no_memory_happened(), "%d", r);
	/* Pictures may be missing, and ranks in them be counted only: the page says so. */
	if (r == 0 && !strstr(x->now, "out of memory") && !strstr(x->now, "rank ?") &&
	    !strstr(x->now, "ranks ?") && count(x->now, " process") == count(x->right, " process"))
		cr_assert_str_eq(x->now, x->right);
}

static void expect_reports(const char *what, const struct cw_bundle *bundle)
{
	static struct rendering x;

	x.bundle = bundle;
	x.render = as_text;
	cr_assert_eq(rendered(&x, x.right, sizeof(x.right)), 0);
	cr_assert_gt(strlen(x.right), 100, "%s", what);
	no_memory_walk("text", render, &x);
	x.render = cw_render_html;
	cr_assert_eq(rendered(&x, x.right, sizeof(x.right)), 0);
	cr_assert_gt(strlen(x.right), 1000, "%s", what);
	no_memory_walk("page", render, &x);
}

Test(report_no_memory, a_report_is_whole_or_says_that_it_is_not)
{
	struct cw_bundle bundle = bundle_of(incident);

	json_decref(bundle.snapshot);
	bundle.snapshot = json_incref(snapshot);
	expect_reports("incident", &bundle);
	cw_bundle_fini(&bundle);
}

Test(report_no_memory, so_is_one_of_a_job_that_died)
{
	struct cw_bundle bundle = { .incident = json_incref(postmortem) };

	expect_reports("postmortem", &bundle);
	cw_bundle_fini(&bundle);
}
