/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/asan.h"
#include "cli/paths.h"
#include "cli/test_load.h"
#include "common/cleanup.h"

/* [libasan:]existing:agent, in fresh memory */
static char *preload_list(const char *agent, const char *program)
{
	const char *existing = getenv("LD_PRELOAD");
	char asan[NAME_MAX], *list;
	int n;

	if (existing && !*existing)
		existing = NULL;
	if (!cw_asan_needed(program, asan, sizeof(asan)) || (existing && strstr(existing, asan)))
		asan[0] = '\0';
	n = asprintf(&list, "%s%s%s%s%s", asan, *asan ? ":" : "", existing ? existing : "",
		     existing ? ":" : "", agent);
	return n < 0 ? NULL : list;
}

/* Fills agent; says why not in err. The loader splits its list at blanks and colons. */
static int find_agent(const char *wanted, char agent[PATH_MAX], struct cw_err *err)
{
	if (!wanted) {
		int r = cw_paths_find(CW_PART_AGENT, agent, err);

		if (r < 0)
			return r;
	} else if (!realpath(wanted, agent)) {
		return cw_err_set(err, errno, "agent %s: %s", wanted, strerror(errno));
	}
	if (access(agent, R_OK) < 0)
		return cw_err_set(err, errno, "agent %s: %s", agent, strerror(errno));
	if (strpbrk(agent, " :"))
		return cw_err_set(err, EINVAL,
				  "agent %s: a path with blanks or colons cannot be preloaded",
				  agent);
	return 0;
}

int run_agent_load(const char *wanted, const char *program, char agent[PATH_MAX],
		   struct cw_err *err)
{
	_cleanup_(freep) char *list = NULL;
	char why[CW_TEST_LOAD_WHY];
	int r = find_agent(wanted, agent, err);

	if (r < 0)
		return r;
	list = preload_list(agent, program);
	if (list && cw_test_load(program, list, agent, why) < 0)
		return cw_err_set(err, ENOEXEC, "agent %s cannot be loaded into %s: %s", agent,
				  program, why);
	if (!list || setenv("LD_PRELOAD", list, 1) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	return 0;
}
