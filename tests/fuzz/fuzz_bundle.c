/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bundle from anywhere, as `collwatch report DIRECTORY` and `collwatch analyze DIRECTORY` read
 * it. The input is its files one after the other, each ended by a NUL: incident, snapshot,
 * evidence, stacks, post-mortem, ops, summaries, those of another node.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "analysis/verdict.h"
#include "numerics/doc/tensor_samples_doc.h"
#include "numerics/judge/numerics.h"
#include "report/bundle.h"
#include "report/doc/incident_doc.h"
#include "report/doc/incident_facts.h"
#include "report/doc/snapshot_doc.h"
#include "report/html/render_html.h"
#include "report/text/render_text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/report/markup.h"

static const char *const files[] = { "incident.json",   "snapshot.json", "evidence.json",
				     "stacks.json",     "ops.json",      "summaries.json",
				     "summaries-1.json" };
/* Of snapshots with more places than this, which take a hundredfold, one in so many is judged. */
#define MANY_PLACES 8192
#define ONE_IN 16u
#define N_FILES (sizeof(files) / sizeof(files[0]))

static char dir[] = "/dev/shm/cw-fuzz-bundle-XXXXXX";
static int dirfd_ = -1;
static FILE *nowhere;

static void remove_files(void)
{
	for (size_t i = 0; i < N_FILES; i++)
		(void)unlinkat(dirfd_, files[i], 0); /* may not be there */
}

static void remove_dir(void)
{
	remove_files();
	(void)rmdir(dir);
}

static void open_dir(void)
{
	nowhere = fopen("/dev/null", "w");
	FUZZ_CHECK(nowhere && mkdtemp(dir) && atexit(remove_dir) == 0);
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_CHECK(dirfd_ >= 0);
}

/* The next of the input's files: without the NUL. */
static size_t next_len(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, '\0', size) : NULL;

	return end ? (size_t)(end - data) : size;
}

/* Empty ones are missing ones. */
static void write_bundle(const uint8_t *data, size_t size)
{
	if (dirfd_ < 0)
		open_dir();
	remove_files();
	for (size_t i = 0; i < N_FILES; i++) {
		size_t len = next_len(data, size), used = len < size ? len + 1 : len;
		int fd = -1;

		if (len > 0) {
			fd = openat(dirfd_, files[i], O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC,
				    0600);
			FUZZ_CHECK(fd >= 0 && write(fd, data, len) == (ssize_t)len);
			(void)close(fd); /* on tmpfs: nothing is left to be written */
		}
		data += used;
		size -= used;
	}
}

/* For each content of the bundle, it is text in the page, and the page is whole. */
static void show_page(const struct cw_bundle *bundle, int expected)
{
	const char *at;
	char *page = NULL;
	size_t len;
	FILE *out = open_memstream(&page, &len);

	FUZZ_CHECK(out && cw_render_html(out, bundle) == expected);
	FUZZ_CHECK(fclose(out) == 0);
	if (expected == 0)
		FUZZ_CHECK(markup_is_harmless(page, &at));
	free(page);
}

/* As a report, folded and not. A document without its fields is refused, not shown. */
static void show(const struct cw_bundle *bundle)
{
	for (int all = 0; all < 2; all++) {
		struct cw_render_opts opts = { .all_frames = all, .color = all };
		int r = cw_render_text(nowhere, bundle, &opts);

		FUZZ_CHECK(r == 0 || r == -EBADMSG);
		if (all)
			show_page(bundle, r);
	}
}

/* A snapshot that was read can be written, and reads as the same. */
static void check_round_trip(const struct cw_snapshot *snap)
{
	json_t *doc = cw_snapshot_doc(snap), *again;
	struct cw_snapshot *copy = NULL;
	struct cw_err err = { "" };

	FUZZ_CHECK(doc && cw_snapshot_from_doc(doc, &copy, &err) == 0);
	again = cw_snapshot_doc(copy);
	FUZZ_CHECK(again && json_equal(doc, again));
	json_decref(doc);
	json_decref(again);
	(void)cw_snapshot_free(copy); /* always NULL */
}

static void decide_again(const struct cw_bundle *bundle)
{
	struct cw_incident_info info = { .id = "fuzz" };
	struct cw_incident_facts facts;
	struct cw_arena arena = { 0 };
	struct cw_bundle shown = { .evidence = json_incref(bundle->evidence) };
	struct cw_snapshot *snap = NULL;
	struct cw_err err = { "" };
	struct cw_verdict v;

	if (cw_snapshot_from_doc(bundle->snapshot, &snap, &err) < 0) {
		FUZZ_CHECK(err.text[0]);
	} else {
		check_round_trip(snap);
		FUZZ_CHECK(cw_verdict_compute(snap, &v) == 0);
		shown.incident = cw_incident_doc(snap, &v, &info);
		FUZZ_CHECK(shown.incident);
		FUZZ_CHECK(cw_incident_facts_read(shown.incident, &arena, &facts, NULL, &err) == 0);
		if (shown.evidence)
			FUZZ_CHECK(cw_incident_facts_add_evidence(&facts, &arena, shown.evidence) ==
				   0);
		json_decref(shown.incident);
		shown.incident = cw_incident_facts_write(&facts);
		cw_arena_fini(&arena);
		FUZZ_CHECK(shown.incident);
		FUZZ_CHECK(cw_render_text(nowhere, &shown, &(struct cw_render_opts){ 0 }) == 0);
		cw_verdict_fini(&v);
		(void)cw_snapshot_free(snap); /* always NULL */
	}
	cw_bundle_fini(&shown);
}

/* As `numerics` does. */
static void judge_again(const json_t *summaries)
{
	struct cw_numerics_report said = { .ranks = NULL };
	struct cw_arena arena = { 0 };
	struct cw_tensor_samples_source *sources;
	struct cw_numerics_job job;
	struct cw_err err = { "" };
	json_t *again;

	if (cw_tensor_samples_doc_read(summaries, &arena, &job, &sources, &err) < 0) {
		FUZZ_CHECK(err.text[0]);
	} else {
		again = cw_tensor_samples_doc(&(struct cw_tensor_samples_head){ .node = "" }, &job,
					      sources);
		FUZZ_CHECK(json_array_size(json_object_get(again, "samples")) == job.n_samples);
		json_decref(again);
		FUZZ_CHECK(cw_numerics_judge(&job, &said) == 0);
		cw_numerics_report_fini(&said);
	}
	cw_arena_fini(&arena);
}

static json_int_t places_of(const json_t *snapshot)
{
	const json_t *comms = json_object_get(snapshot, "comms");
	json_int_t places = 0;

	for (size_t i = 0; i < json_array_size(comms); i++) {
		json_int_t n =
			json_integer_value(json_object_get(json_array_get(comms, i), "nranks"));

		if (n > MANY_PLACES)
			return n;
		places += n > 0 ? n : 0;
	}
	return places;
}

/* By its bytes: an input does the same each time. */
static bool is_omitted(const json_t *snapshot, const uint8_t *data, size_t size)
{
	unsigned sum = 0;

	for (size_t i = 0; i < size; i++)
		sum = sum * 31 + data[i];
	return (sum >> 8) % ONE_IN != 0 && places_of(snapshot) > MANY_PLACES;
}

/*
 * ---- mutations ---- Bytes changed at random are hardly ever JSON: most inputs would end in the
 * parser, which is not ours. So half of the time we change a value somewhere in one of the
 * documents, and the result is JSON again.
 */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static json_t *odd_value(unsigned *seed)
{
	static const json_int_t odd[] = { 0,         1,         -1,         2,
					  255,       256,       65535,      65536,
					  INT32_MAX, INT32_MIN, UINT32_MAX, INT64_C(1) << 32,
					  INT64_MAX, INT64_MIN };
	static const char *const texts[] = {
		"",          "0x0",          "0xffffffffffffffff",
		"\n\033[2J", "world",        "\"'><script>alert(1)</script>",
		"0-3,7",     "</title><!--", "mismatch",
		"deadlock"
	};

	switch (rand_r(seed) % 8) {
	case 0:
		return json_array();
	case 1:
		return json_object();
	case 2:
		return json_null();
	case 3:
		return json_real(1e300);
	case 4:
		return json_string(
			texts[(unsigned)rand_r(seed) % (sizeof(texts) / sizeof(*texts))]);
	default:
		return json_integer(odd[(unsigned)rand_r(seed) % (sizeof(odd) / sizeof(*odd))]);
	}
}

/* Changes one of its values, takes it away, or adds another like it. */
static void change_array(json_t *array, size_t at, unsigned *seed)
{
	switch (rand_r(seed) % 4) {
	case 0:
		(void)json_array_remove(array, at);
		return;
	case 1:
		(void)json_array_insert_new(array, at, json_deep_copy(json_array_get(array, at)));
		return;
	default:
		(void)json_array_set_new(array, at, odd_value(seed));
	}
}

static void change_object(json_t *object, const char *key, unsigned *seed)
{
	if (rand_r(seed) % 4 == 0)
		(void)json_object_del(object, key);
	else
		(void)json_object_set_new(object, key, odd_value(seed));
}

static void change_somewhere(json_t *doc, unsigned *seed)
{
	json_t *value;
	const char *key;
	void *iter;
	size_t at;

	for (;;) {
		bool is_object = json_is_object(doc);
		size_t n = is_object ? json_object_size(doc) : json_array_size(doc);

		if (n == 0)
			return;
		at = (size_t)rand_r(seed) % n;
		iter = is_object ? json_object_iter(doc) : NULL;
		for (size_t i = 0; is_object && i < at; i++)
			iter = json_object_iter_next(doc, iter);
		key = is_object ? json_object_iter_key(iter) : NULL;
		value = is_object ? json_object_iter_value(iter) : json_array_get(doc, at);
		if ((json_is_object(value) || json_is_array(value)) && rand_r(seed) % 8 != 0) {
			doc = value;
			continue;
		}
		if (is_object)
			change_object(doc, key, seed);
		else
			change_array(doc, at, seed);
		return;
	}
}

/* Replaces `len` bytes at `at` by others. The new size; 0 = no room. */
static size_t replace(uint8_t *data, size_t size, size_t max_size, size_t at, size_t len,
		      const char *text)
{
	size_t text_len = strlen(text);

	if (size - len + text_len > max_size)
		return 0;
	memmove(data + at + text_len, data + at + len, size - at - len);
	memcpy(data + at, text, text_len);
	return size - len + text_len;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	size_t which = (size_t)rand_r(&seed) % N_FILES, at = 0, len, new_size = 0;
	json_t *doc = NULL;
	char *text = NULL;

	for (size_t i = 0; i < which && at < size; i++)
		at += next_len(data + at, size - at) + 1;
	if (rand_r(&seed) % 2 && at < size) {
		len = next_len(data + at, size - at);
		doc = json_loadb((const char *)data + at, len, 0, NULL);
		for (int n = rand_r(&seed) % 4; doc && n >= 0; n--)
			change_somewhere(doc, &seed);
		text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
		if (text)
			new_size = replace(data, size, max_size, at, len, text);
	}
	free(text);
	json_decref(doc);
	return new_size ? new_size : LLVMFuzzerMutate(data, size, max_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cw_bundle bundle = { 0 };
	struct cw_err err = { "" };

	write_bundle(data, size);
	if (cw_bundle_read(dir, &bundle, &err) < 0) {
		FUZZ_CHECK(err.text[0]);
		return 0;
	}
	show(&bundle);
	if (bundle.snapshot && !is_omitted(bundle.snapshot, data, size))
		decide_again(&bundle);
	if (bundle.summaries)
		judge_again(bundle.summaries);
	if (bundle.remote_summaries)
		judge_again(json_array_get(bundle.remote_summaries, 0));
	cw_bundle_fini(&bundle);
	return 0;
}
