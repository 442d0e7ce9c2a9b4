/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/programs/train_place.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

static const char *const ranks[] = { "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", NULL };
static const char *const worlds[] = { "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", NULL };
static const char *const local_ranks[] = { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
					   "SLURM_LOCALID", NULL };

const char *train_env(const char *name, const char *otherwise)
{
	const char *v = getenv(name);

	return v && *v ? v : otherwise;
}

int train_number(const char *text, long *ret)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v < 0 || v > 1000000000)
		return -EINVAL;
	*ret = v;
	return 0;
}

/* Reads the first variable that is set. Returns NULL or its name, if it contains no number. */
static const char *read_first(const char *const *names, int *ret)
{
	long v;

	for (; *names; names++) {
		const char *text = train_env(*names, NULL);

		if (!text)
			continue;
		if (train_number(text, &v) < 0)
			return *names;
		*ret = (int)v;
		return NULL;
	}
	return NULL;
}

const char *train_place_read(struct train_place *ret)
{
	struct train_place place = { .world = 1 };
	const char *bad = read_first(ranks, &place.rank);

	if (!bad)
		bad = read_first(worlds, &place.world);
	if (!bad)
		bad = read_first(local_ranks, &place.local_rank);
	if (!bad)
		*ret = place;
	return bad;
}
