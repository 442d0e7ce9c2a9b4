/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment variables of agent and command line, as data. The manual page is generated from
 * this table, and tests/e2e/agent/test_agent_table.py compares it with the sources.
 */
#pragma once

#include <stddef.h>

struct cw_variable {
	const char *name;
	const char *value; /* the accepted values, in scdoc's markup; may be empty */
	const char *help;
};

extern const struct cw_variable cw_environment[];
extern const size_t cw_environment_count;
