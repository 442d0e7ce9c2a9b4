/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/base/features.h"

#include <stddef.h>

static const struct cw_feature *features;
static unsigned n_features;

void cw_features_set(const struct cw_feature *table, unsigned count)
{
	features = table;
	n_features = count;
}

#define EACH(what, ...)                                                                            \
	for (unsigned i = 0; i < n_features; i++) {                                                \
		if (features[i].what)                                                              \
			features[i].what(__VA_ARGS__);                                             \
	}

void cw_features_start(void)
{
	EACH(start);
}

void cw_features_armed(void)
{
	EACH(armed);
}

void cw_features_comm_ready(int c)
{
	EACH(comm_ready, c);
}

void cw_features_comm_forget(int c)
{
	EACH(comm_forget, c);
}

void cw_features_beat(void)
{
	EACH(beat);
}
