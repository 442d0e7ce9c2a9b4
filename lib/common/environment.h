/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment variables of agent and command line, as data: the manual page is made from it,
 * and tests/e2e/agent/test_agent_table.py holds it against what the sources read.
 */
#pragma once

#include <stddef.h>

struct cw_variable {
	const char *name;
	const char *value; /* what it takes, in scdoc's markup; may be empty */
	const char *help;
};

extern const struct cw_variable cw_environment[];
extern const size_t cw_environment_count;
