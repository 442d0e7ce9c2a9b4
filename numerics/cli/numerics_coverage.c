/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/cli/numerics_coverage.h"

#include <inttypes.h>

#include "common/text.h"

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

char *numerics_coverage_text(const struct cw_numerics_input *in,
			     const struct cw_numerics_report *said, char *buf, size_t len)
{
	uint64_t n_ops = 0, n_samples = 0, n_kept = 0, n_dropped = 0;
	int32_t world_size = -1;

	for (uint32_t i = 0; i < in->job.n_ranks; i++) {
		n_ops += in->sources[i].n_ops;
		n_samples += in->sources[i].n_samples;
		n_kept += in->sources[i].n_kept;
		n_dropped += in->sources[i].n_dropped;
		if (in->sources[i].world_size > world_size)
			world_size = in->sources[i].world_size;
	}
	buf[0] = '\0';
	cw_text_append(buf, len, "%u", in->job.n_ranks);
	if (world_size > 0 && (uint32_t)world_size > in->job.n_ranks)
		cw_text_append(buf, len, " of %d ranks", world_size);
	else
		cw_text_append(buf, len, " rank%s", plural(in->job.n_ranks));
	cw_text_append(buf, len,
		       ", %" PRIu64 " call%s, %" PRIu64 " tensor%s looked at, of which the last "
		       "%" PRIu64 " %s here; copies compared in %" PRIu64
		       " call%s, sums in %" PRIu64,
		       n_ops, plural(n_ops), n_samples, plural(n_samples), n_kept,
		       n_kept == 1 ? "is" : "are", said->n_replicas_checked,
		       plural(said->n_replicas_checked), said->n_sums_checked);
	if (in->n_omitted)
		cw_text_append(buf, len, "; %u rank%s had no place in %s", in->n_omitted,
			       plural(in->n_omitted), in->is_living ? "an answer" : "the bundle");
	if (in->n_set_aside)
		cw_text_append(buf, len, "; %u rank%s of an earlier run set aside%s",
			       in->n_set_aside, plural(in->n_set_aside),
			       in->is_bad_set_aside ? ", with NaN or Inf" : "");
	if (in->silent)
		cw_text_append(buf, len, "; no answer from %s", in->silent);
	if (n_dropped)
		cw_text_append(buf, len, "; %" PRIu64 " tensor%s left out for want of a place",
			       n_dropped, n_dropped == 1 ? " was" : "s were");
	return buf;
}
