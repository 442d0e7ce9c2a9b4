/* SPDX-License-Identifier: Apache-2.0 */
/* The words of verdicts, as they stand in incidents, bundles and on terminals. */
#include <string.h>

#include "analysis/verdict.h"

static const char *const class_names[CW_CLASS__MAX] = {
	[CW_CLASS_HEALTHY] = "healthy",
	[CW_CLASS_PROCESS_DEAD] = "process_dead",
	[CW_CLASS_NODE_UNREACHABLE] = "node_unreachable",
	[CW_CLASS_NEVER_ENTERED] = "never_entered",
	[CW_CLASS_MISMATCH] = "mismatch",
	[CW_CLASS_DEADLOCK] = "deadlock",
	[CW_CLASS_P2P_UNMATCHED] = "p2p_unmatched",
	[CW_CLASS_INIT_STUCK] = "init_stuck",
	[CW_CLASS_DEVICE_STALLED] = "device_stalled",
	[CW_CLASS_IN_COLLECTIVE] = "in_collective",
	[CW_CLASS_SLOW] = "slow",
	[CW_CLASS_UNKNOWN] = "unknown",
};

static const char *const confidence_names[] = {
	[CW_CONFIDENCE_POSSIBLE] = "possible",
	[CW_CONFIDENCE_LIKELY] = "likely",
	[CW_CONFIDENCE_CERTAIN] = "certain",
};

#define N_CONFIDENCES (sizeof(confidence_names) / sizeof(confidence_names[0]))

static int find_name(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; name && i < n; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

const char *cw_class_name(unsigned klass)
{
	return klass < CW_CLASS__MAX ? class_names[klass] : "unknown";
}

const char *cw_confidence_name(unsigned confidence)
{
	return confidence < N_CONFIDENCES ? confidence_names[confidence] : "possible";
}

int cw_class_from_name(const char *name)
{
	return find_name(class_names, CW_CLASS__MAX, name);
}

int cw_confidence_from_name(const char *name)
{
	return find_name(confidence_names, N_CONFIDENCES, name);
}
