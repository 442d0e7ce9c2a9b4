/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs/numerics_bundle.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "report/bundle.h"
#include "report/doc/looks_doc.h"

bool numerics_bundle_is(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int take_sources(const char *path, const struct cw_looks_source *from,
			struct cw_numerics_input *in)
{
	in->sources = cw_arena_new_array(&in->arena, struct cw_numerics_source, in->job.n_ranks);
	if (!in->sources)
		return -ENOMEM;
	for (uint32_t i = 0; i < in->job.n_ranks; i++)
		in->sources[i] = (struct cw_numerics_source){
			.path = path,
			.rank = from[i].rank,
			.pid = from[i].pid,
			.world_size = from[i].world_size,
			.has_summaries = true,
			.n_ops = from[i].n_ops,
			.n_looks = from[i].n_looks,
			.n_kept = from[i].n_kept,
			.n_dropped = from[i].n_dropped,
		};
	return 0;
}

static int take(const char *path, const json_t *summaries, struct cw_numerics_input *in,
		struct cw_err *err)
{
	struct cw_looks_source *sources = NULL;
	int r = cw_looks_doc_read(summaries, &in->arena, &in->job, &sources, err);

	if (r == 0)
		r = take_sources(path, sources, in);
	in->n_left_out = cw_looks_doc_left_out(summaries);
	return r;
}

int numerics_bundle_read(const char *path, struct cw_numerics_input *ret, struct cw_err *err)
{
	_cleanup_(cw_bundle_fini) struct cw_bundle bundle = { 0 };
	struct cw_err why = { "" };
	int r = cw_bundle_read(path, &bundle, &why);

	*ret = (struct cw_numerics_input){ .sources = NULL };
	if (r == 0 && !bundle.summaries)
		return cw_err_set(
			err, ENODATA,
			"%s: no tensor summaries in this bundle: the job ran without "
			"COLLWATCH_SUMMARY, its leader had none of its ranks, or they were too "
			"much for a copy: ask on the node that keeps the bundle",
			path);
	if (r == 0)
		r = take(path, bundle.summaries, ret, &why);
	if (r < 0)
		return cw_err_set(err, -r, "%s: %s", path, why.text[0] ? why.text : strerror(-r));
	return 0;
}
