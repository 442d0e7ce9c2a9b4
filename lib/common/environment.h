/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment variables of agent and command line, as data. We generate the manual page from
 * this table. tests/e2e/agent/test_agent_table.py compares the table with the sources.
 */
#pragma once

#include <stddef.h>

struct cw_variable {
	const char *name;
	const char *value; /* accepted values, in scdoc's markup; may be empty */
	const char *help;
};

extern const struct cw_variable cw_environment[];
extern const size_t cw_environment_count;
