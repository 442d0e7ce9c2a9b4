/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/cli/numerics_bundle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/text.h"
#include "numerics/cli/numerics_gather.h"
#include "numerics/doc/tensor_samples_doc.h"
#include "report/bundle.h"
#include "report/json_util.h"

#define NODE_BYTES 128

bool numerics_bundle_is(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static const char *node_of(const json_t *doc)
{
	return cw_json_str(doc, "node", "");
}

/* True for the last page of a node, which says how many ranks of the node are missing. */
static bool is_last_page(const json_t *docs, size_t i)
{
	for (size_t k = i + 1; k < json_array_size(docs); k++)
		if (strcmp(node_of(json_array_get(docs, k)), node_of(json_array_get(docs, i))) == 0)
			return false;
	return true;
}

/*
 * Adds a document like a node's answer. The document says which processes were alive at its time.
 */
static int add_doc(struct numerics_gather *g, const json_t *doc, struct numerics_page *ret,
		   struct cw_err *err)
{
	char node[NODE_BYTES];

	(void)snprintf(node, sizeof(node), "%s", cw_json_str(doc, "node", "?"));
	cw_text_sanitise_line(node);
	return numerics_gather_doc(g, doc, NULL, node, ret, err);
}

static void name_silent(const json_t *doc, struct numerics_silent *silent)
{
	const json_t *names = json_object_get(doc, "silent"), *name;
	const char *why = cw_json_str(doc, "why", "");
	size_t i;

	json_array_foreach (names, i, name)
		numerics_gather_silent(silent,
				       json_is_string(name) ? json_string_value(name) : "?");
	if (cw_json_int(doc, "silent_count", 0) > (json_int_t)json_array_size(names))
		numerics_gather_silent(silent, "others");
	if (strcmp(why, CW_TENSOR_SAMPLES_DOC_ASKING) == 0)
		numerics_gather_silent(silent, "nodes that had not answered yet");
	else if (strcmp(why, CW_TENSOR_SAMPLES_DOC_TOO_MUCH) == 0)
		numerics_gather_silent(silent,
				       "nodes whose tensor summaries were too large for a copy");
}

/* Adds other nodes' documents. An error in one document does not affect the others. */
static int add_pages(struct numerics_gather *g, const json_t *docs, struct cw_numerics_input *in,
		     struct numerics_silent *silent)
{
	const json_t *doc;
	size_t i;

	json_array_foreach (docs, i, doc) {
		struct cw_err why = { "" };
		struct numerics_page page;
		char text[NODE_BYTES + sizeof(why.text)];
		int r = add_doc(g, doc, &page, &why);

		if (r == 0 && is_last_page(docs, i))
			in->n_omitted += page.n_omitted;
		if (r < 0) {
			(void)snprintf(text, sizeof(text), "%s (%s)", cw_json_str(doc, "node", "?"),
				       why.text);
			numerics_gather_silent(silent, text);
		}
	}
	return 0;
}

static bool has_rank(const json_t *doc, const json_t *rank)
{
	const json_t *ranks = json_object_get(doc, "ranks"), *r;
	size_t i;

	json_array_foreach (ranks, i, r)
		if (json_equal(json_object_get(r, "pid"), json_object_get(rank, "pid")) &&
		    json_equal(json_object_get(r, "created_ns"),
			       json_object_get(rank, "created_ns")))
			return true;
	return false;
}

enum pages {
	PAGES_NONE,     /* no page with ranks */
	PAGES_OTHERS,   /* pages of other nodes only */
	PAGES_ALL,      /* pages of the bundle's own node too */
	PAGES_ANOTHERS, /* pages of the bundle's own node, but without the bundle's ranks */
};

/*
 * Classifies the pages in the bundle. The bundle's own node wrote its summaries when it made the
 * bundle. Later the leader queried all nodes including its own, to have all answers from one time.
 * By then the job may have been restarted.
 */
static enum pages whose_pages(const struct cw_bundle *bundle)
{
	const json_t *own = json_object_get(bundle->summaries, "ranks"), *doc, *rank;
	enum pages found = PAGES_NONE;
	bool is_same = !json_array_size(own);
	size_t i, k;

	json_array_foreach (bundle->remote_summaries, i, doc) {
		if (!json_array_size(json_object_get(doc, "ranks")))
			continue;
		if (found == PAGES_NONE)
			found = PAGES_OTHERS;
		if (strcmp(node_of(doc), node_of(bundle->summaries)) != 0)
			continue;
		found = PAGES_ALL;
		json_array_foreach (own, k, rank)
			is_same = is_same || has_rank(doc, rank);
	}
	return found == PAGES_ALL && !is_same ? PAGES_ANOTHERS : found;
}

static int add_own(struct numerics_gather *g, const struct cw_bundle *bundle, const char *path,
		   struct cw_numerics_input *in, struct cw_err *err)
{
	struct numerics_page page = { .n_omitted = 0 };
	int r = path ? numerics_gather_doc(g, bundle->summaries, path, NULL, &page, err)
		     : add_doc(g, bundle->summaries, &page, err);

	in->n_omitted += page.n_omitted;
	return r;
}

static int add_all(struct numerics_gather *g, const struct cw_bundle *bundle, const char *path,
		   struct cw_numerics_input *in, struct cw_err *err)
{
	struct numerics_silent silent = { 0 };
	enum pages pages = whose_pages(bundle);
	bool has_others = pages == PAGES_OTHERS || pages == PAGES_ALL;
	const json_t *doc;
	size_t i;
	int r = 0;

	json_array_foreach (bundle->remote_summaries, i, doc)
		name_silent(doc, &silent);
	if (bundle->n_remote_summaries_omitted)
		numerics_gather_silent(&silent,
				       "nodes whose tensor summaries are too large to read");
	if (pages == PAGES_ANOTHERS)
		numerics_gather_silent(
			&silent,
			"other nodes, which were queried after the job had been restarted");
	if (bundle->summaries && pages != PAGES_ALL)
		r = add_own(g, bundle, has_others ? NULL : path, in, err);
	if (r == 0 && pages != PAGES_ANOTHERS)
		r = add_pages(g, bundle->remote_summaries, in, &silent);
	if (*silent.names)
		in->silent = cw_arena_strdup(&in->arena, silent.names);
	return r == 0 && *silent.names && !in->silent ? -ENOMEM : r;
}

int numerics_bundle_read(const char *path, struct cw_numerics_input *ret, struct cw_err *err)
{
	_cleanup_(cw_bundle_fini) struct cw_bundle bundle = { 0 };
	_cleanup_(numerics_gather_fini) struct numerics_gather g = { NULL };
	struct cw_err why = { "" };
	int r = cw_bundle_read(path, &bundle, err);

	*ret = (struct cw_numerics_input){ .uid = -1 };
	if (r < 0)
		return r; /* err names the bundle */
	r = add_all(&g, &bundle, path, ret, &why);
	if (r == 0)
		r = numerics_gather_end(&g, ret);
	if (r == 0 && !ret->job.n_ranks)
		return cw_err_set(
			err, ENODATA,
			"%s: no tensor summaries in this bundle: the job ran without "
			"COLLWATCH_SUMMARY, no node could be asked for its ranks', or they were too "
			"much for a copy: ask on the node that keeps the bundle%s%s",
			path, ret->silent ? "; no answer from " : "",
			ret->silent ? ret->silent : "");
	if (r < 0)
		return cw_err_set(err, -r, "%s: %s", path, why.text[0] ? why.text : strerror(-r));
	return 0;
}
