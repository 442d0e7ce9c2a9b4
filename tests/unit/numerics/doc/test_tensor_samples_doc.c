/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "numerics/doc/tensor_samples_doc.h"

static struct cw_arena arena;

static void tear_down(void)
{
	cw_arena_fini(&arena);
}

TestSuite(tensor_samples_doc, .fini = tear_down);

static struct cw_numerics_sample samples[2] = {
	{ .rank = 1,
	  .comm = 0,
	  .order = UINT32_MAX,
	  .root_or_peer = -1,
	  .seq = UINT64_MAX,
	  .step = -1,
	  .at_ns = INT64_C(1795796971939123457),
	  .elements = 7,
	  .offered = UINT64_C(1) << 40,
	  .nans = 1,
	  .infs = 2,
	  .zeros = 3,
	  .abs_max = 0.1,
	  .abs_min = 5e-324,
	  .l2 = 1.7976931348623157e308,
	  .checksum = UINT64_C(0xfedcba9876543210),
	  .at_limit = 0.3f,
	  .denormal = 1,
	  .stride = 8,
	  .kind = 3,
	  .dtype = 255,
	  .redop = 9,
	  .is_output = 1,
	  .site = "train.py:9 in \"step\"" },
	{ .rank = 0, .comm = 0, .step = 12, .abs_max = -0.0 },
};
static const struct cw_numerics_comm comms[] = { { .id = 0x77, .name = "dp", .nranks = 2 },
						 { .name = "", .is_uncounted = true } };
static const struct cw_numerics_rank ranks[] = { { .rank = 0,
						   .is_whole = true,
						   .device = "NVIDIA H100 80GB HBM3",
						   .cuda_driver = UINT32_MAX,
						   .nccl = 22703 },
						 { .rank = 5 } };
static const struct cw_tensor_samples_source sources[] = {
	{ .rank = 0, .pid = 12, .world_size = -1, .n_ops = 4, .n_samples = 3, .n_kept = 1 },
	{ .rank = 5, .pid = 13, .world_size = 8, .n_dropped = UINT64_MAX },
};

static json_t *make(void)
{
	const struct cw_tensor_samples_head head = { "node-a", INT64_C(1795796971939000000), 3 };
	struct cw_numerics_job job = { samples, 2, comms, 2, ranks, 2 };
	json_t *doc;

	samples[0].mean = NAN;
	samples[1].abs_min = INFINITY;
	doc = cw_tensor_samples_doc(&head, &job, sources);
	cr_assert_not_null(doc);
	return doc;
}

static int read_doc(const json_t *doc, struct cw_numerics_job *ret,
		    struct cw_tensor_samples_source **s)
{
	struct cw_err err = { "" };
	int r = cw_tensor_samples_doc_read(doc, &arena, ret, s, &err);

	cr_assert(r == 0 || *err.text, "it says why");
	return r;
}

static void assert_same(const struct cw_numerics_sample *a, const struct cw_numerics_sample *b)
{
	struct cw_numerics_sample x = *a, y = *b;

	cr_assert((!x.site && !y.site) || strcmp(x.site, y.site) == 0);
	x.site = y.site = NULL;
	cr_assert(isnan(x.mean) == isnan(y.mean));
	if (isnan(x.mean))
		x.mean = y.mean = 0;
	cr_assert_eq(memcmp(&x, &y, sizeof(x)), 0, "bit for bit");
}

Test(tensor_samples_doc, what_is_read_is_what_was_written)
{
	json_t *doc = make(), *again;
	char *text = json_dumps(doc, JSON_COMPACT);
	struct cw_tensor_samples_source *s;
	struct cw_numerics_job job;

	again = json_loads(text, 0, NULL);
	cr_assert_eq(read_doc(again, &job, &s), 0);
	cr_assert_eq(job.n_samples, 2);
	assert_same(&job.samples[0], &samples[0]);
	assert_same(&job.samples[1], &samples[1]);
	cr_assert_eq(job.n_comms, 2);
	cr_assert_eq(job.comms[0].id, 0x77);
	cr_assert_str_eq(job.comms[0].name, "dp");
	cr_assert(!job.comms[0].is_uncounted && job.comms[1].is_uncounted);
	cr_assert_eq(job.n_ranks, 2);
	cr_assert(job.ranks[0].is_whole && !job.ranks[1].is_whole);
	cr_assert_eq(job.ranks[1].rank, 5);
	cr_assert_str_eq(job.ranks[0].device, "NVIDIA H100 80GB HBM3");
	cr_assert_eq(job.ranks[0].cuda_driver, UINT32_MAX);
	cr_assert_eq(job.ranks[0].nccl, 22703);
	cr_assert_str_eq(job.ranks[1].device, "");
	cr_assert_eq(memcmp(s, sources, sizeof(sources)), 0);
	cr_assert_eq(cw_tensor_samples_doc_omitted(again), 3);
	free(text);
	json_decref(doc);
	json_decref(again);
}

/* A document of an attacker. */
Test(tensor_samples_doc, what_a_rank_runs_on_may_be_missing_or_anything)
{
	static char long_model[1000];
	json_t *doc = make(), *first = json_array_get(json_object_get(doc, "ranks"), 0);
	json_t *second = json_array_get(json_object_get(doc, "ranks"), 1);
	struct cw_tensor_samples_source *s;
	struct cw_numerics_job job;

	json_object_del(first, "device_model");
	json_object_del(first, "cuda_driver_version");
	json_object_del(first, "nccl_version");
	memset(long_model, 'x', sizeof(long_model) - 1);
	memcpy(long_model, "a\x1b[2J\n", 6);
	json_object_set_new(second, "device_model", json_string(long_model));
	json_object_set_new(second, "cuda_driver_version", json_integer(-1));
	json_object_set_new(second, "nccl_version", json_string("2.27"));
	cr_assert_eq(read_doc(doc, &job, &s), 0);
	cr_assert_str_eq(job.ranks[0].device, "");
	cr_assert_eq(job.ranks[0].cuda_driver, 0);
	cr_assert_eq(job.ranks[0].nccl, 0);
	cr_assert_eq(strlen(job.ranks[1].device), CW_TENSOR_SAMPLES_DOC_MODEL_BYTES - 1);
	cr_assert_eq(strncmp(job.ranks[1].device, "a?[2J?x", 7), 0);
	cr_assert_eq(job.ranks[1].cuda_driver, 0);
	cr_assert_eq(job.ranks[1].nccl, 0);
	json_decref(doc);
}

Test(tensor_samples_doc, text_is_fit_for_a_terminal)
{
	json_t *doc = make();
	struct cw_tensor_samples_source *s;
	struct cw_numerics_job job;

	json_object_set_new(json_array_get(json_object_get(doc, "comms"), 0), "name",
			    json_string("a\x1b[2Jb\nc"));
	json_array_set_new(json_array_get(json_object_get(doc, "samples"), 0),
			   json_array_size(json_object_get(doc, "columns")) - 1,
			   json_string("x\x1b]0;y"));
	cr_assert_eq(read_doc(doc, &job, &s), 0);
	cr_assert(!strpbrk(job.comms[0].name, "\x1b\n") && !strchr(job.samples[0].site, 0x1b));
	json_decref(doc);
}

Test(tensor_samples_doc, long_call_sites_are_cut)
{
	static char site[5000];
	json_t *doc;
	struct cw_tensor_samples_source *s;
	struct cw_numerics_job job;

	memset(site, 'x', sizeof(site) - 1);
	samples[0].site = site;
	doc = make();
	cr_assert_eq(read_doc(doc, &job, &s), 0);
	cr_assert_eq(strlen(job.samples[0].site), CW_TENSOR_SAMPLES_DOC_SITE_BYTES - 1);
	json_decref(doc);
}

/* Each field of a sample, rank and communicator in turn is something else, or not there. */
static json_t *wrong(unsigned which)
{
	return which == 0   ? json_object()
	       : which == 1 ? json_integer(-2000000000000)
	       : which == 2 ? json_real(1.5)
	       : which == 3 ? json_string("Infinity")
			    : json_true();
}

Test(tensor_samples_doc, any_field_may_be_anything)
{
	struct cw_tensor_samples_source *s;
	struct cw_numerics_job job;

	for (size_t i = 0; i < 25; i++)
		for (unsigned which = 0; which < 5; which++) {
			json_t *doc = make(),
			       *sample = json_array_get(json_object_get(doc, "samples"), 1);

			json_array_set_new(sample, i, wrong(which));
			(void)read_doc(doc, &job, &s); /* sanitizers look on */
			json_decref(doc);
		}
}

static void assert_refused(json_t *doc, int error)
{
	struct cw_tensor_samples_source *s;
	struct cw_numerics_job job;

	cr_assert_eq(read_doc(doc, &job, &s), error);
	json_decref(doc);
}

Test(tensor_samples_doc, what_points_elsewhere_is_refused)
{
	json_t *doc = make();

	json_array_set_new(json_array_get(json_object_get(doc, "samples"), 0), 0, json_integer(2));
	assert_refused(doc, -EBADMSG);
	doc = make();
	json_array_set_new(json_array_get(json_object_get(doc, "samples"), 0), 1, json_integer(2));
	assert_refused(doc, -EBADMSG);
	doc = make();
	json_array_set_new(json_array_get(json_object_get(doc, "samples"), 0), 21, json_real(1.01));
	assert_refused(doc, -EBADMSG);
	doc = make();
	json_array_set_new(json_array_get(json_object_get(doc, "samples"), 0), 23, json_integer(3));
	assert_refused(doc, -EBADMSG);
	doc = make();
	json_object_set_new(doc, "schema", json_string("collwatch.summaries/2"));
	assert_refused(doc, -EBADMSG);
	doc = make();
	json_object_set_new(doc, "samples", json_null());
	assert_refused(doc, -EBADMSG);
	assert_refused(json_array(), -EBADMSG);
}

Test(tensor_samples_doc, an_entry_that_lacks_a_member_is_refused)
{
	static const char *const lacks[][2] = { { "comms", "id" },       { "comms", "nranks" },
						{ "comms", "instance" }, { "ranks", "pid" },
						{ "ranks", "lives" },    { "ranks", "created_ns" },
						{ "ranks", "ended_ns" } };

	for (size_t i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++) {
		json_t *doc = make();

		cr_assert_eq(json_object_del(json_array_get(json_object_get(doc, lacks[i][0]), 1),
					     lacks[i][1]),
			     0);
		assert_refused(doc, -EBADMSG);
	}
}

Test(tensor_samples_doc, too_many_are_refused)
{
	json_t *doc = make(), *list = json_object_get(doc, "ranks");

	for (unsigned i = 0; i <= CW_TENSOR_SAMPLES_DOC_MAX_RANKS; i++)
		json_array_append_new(list, json_null());
	assert_refused(doc, -E2BIG);
}
