/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs/numerics_join.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "report/doc/looks_doc.h"

static const char *name_of(struct cw_arena *arena, const char *path, const char *node, int32_t pid)
{
	char text[256];

	if (path)
		return cw_arena_strdup(arena, path);
	(void)snprintf(text, sizeof(text), "process %d on %s", (int)pid, node);
	return cw_arena_strdup(arena, text);
}

/* Of the ranks that were taken, which come behind those that were there. */
static int take_sources(struct cw_numerics_input *in, const struct cw_looks_source *from,
			const bool *taken, const char *path, const char *node)
{
	uint32_t n = in->looks.n_ranks, before = in->job.n_ranks;
	struct cw_numerics_source *all =
		cw_arena_new_array(&in->arena, struct cw_numerics_source, n);

	if (!all)
		return -ENOMEM;
	if (before)
		memcpy(all, in->sources, before * sizeof(*all));
	for (uint32_t i = before, k = 0; i < n; k++) {
		if (!taken[k])
			continue;
		all[i] = (struct cw_numerics_source){
			.path = name_of(&in->arena, path, node, from[k].pid),
			.rank = from[k].rank,
			.pid = from[k].pid,
			.world_size = from[k].world_size,
			.has_summaries = true,
			.n_ops = from[k].n_ops,
			.n_looks = from[k].n_looks,
			.n_kept = from[k].n_kept,
			.n_dropped = from[k].n_dropped,
		};
		if (!all[i++].path)
			return -ENOMEM;
	}
	in->sources = all;
	return 0;
}

int numerics_join(struct cw_numerics_input *in, const json_t *doc, const char *path,
		  const char *node, struct cw_err *err)
{
	_cleanup_(cw_arena_fini) struct cw_arena read = { 0 };
	_cleanup_(freep) bool *taken = NULL;
	struct cw_looks_source *sources = NULL;
	struct cw_numerics_job more;
	int r = cw_looks_doc_read(doc, &read, &more, &sources, err);

	if (r < 0)
		return r;
	taken = calloc((size_t)more.n_ranks + 1, sizeof(*taken));
	if (!taken)
		return -ENOMEM;
	r = cw_looks_join(&in->looks, &more, taken);
	if (r == -E2BIG)
		return cw_err_set(err, E2BIG, "there are too many tensor summaries");
	if (r == 0)
		r = take_sources(in, sources, taken, path, node);
	in->job = cw_looks_job(&in->looks);
	return r;
}
