/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_agent.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/paths.h"
#include "cli/program.h"
#include "cli/run/run_asan.h"
#include "cli/test_load.h"
#include "common/cleanup.h"

/* Returns "[libasan:]existing:agent" as the value of LD_PRELOAD; the caller frees it. */
static char *preload_list(const char *agent, const char *program)
{
	const char *existing = getenv("LD_PRELOAD");
	char asan[NAME_MAX], *list;
	int n;

	if (existing && !*existing)
		existing = NULL;
	if (!run_asan_needed(program, asan, sizeof(asan)) || (existing && strstr(existing, asan)))
		asan[0] = '\0';
	n = asprintf(&list, "%s%s%s%s%s", asan, *asan ? ":" : "", existing ? existing : "",
		     existing ? ":" : "", agent);
	return n < 0 ? NULL : list;
}

/*
 * Fills `agent` with the agent's path, or err with the reason. We reject a path with blanks or
 * colons, because the loader splits LD_PRELOAD at them.
 */
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

/*
 * Returns why the program gains rights when it starts; NULL = it gains none. The kernel tells the
 * loader of such a program about it (AT_SECURE). The loader then ignores LD_PRELOAD and removes it
 * from the environment. root gains no rights. A file system or process that forbids such gains
 * prevents them for every user.
 */
static const char *gained_rights(const char *path)
{
	struct statvfs fs;
	struct stat st;

	if (stat(path, &st) < 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
	    (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID)))
		return NULL;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
		return "is set-user-ID";
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid())
		return "is set-group-ID";
	if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
		return "has file capabilities";
	return NULL;
}

int cw_run_agent_load(const char *wanted, const char *program, char agent[PATH_MAX],
		      struct cw_err *err)
{
	_cleanup_(freep) char *list = NULL;
	char why[CW_TEST_LOAD_WHY], path[PATH_MAX];
	bool is_found = cw_program_resolve(program, path) == 0;
	const char *rights = is_found ? gained_rights(path) : NULL;
	int r = find_agent(wanted, agent, err);

	if (r < 0)
		return r;
	if (rights)
		return cw_err_set(err, EPERM,
				  "%s %s, so the loader does not load the agent into it or into "
				  "programs that it starts: put \"collwatch run\" after it",
				  path, rights);
	list = preload_list(agent, program);
	if (list && cw_test_load(program, list, agent, why) < 0)
		return cw_err_set(err, ENOEXEC, "agent %s cannot be loaded into %s: %s", agent,
				  program, why);
	if (!list || setenv("LD_PRELOAD", list, 1) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	if (!is_found || !cw_program_is_static(path))
		return 0;
	(void)cw_err_set(err, 0,
			 "%s is linked statically, so the agent cannot be loaded into it: only "
			 "programs that it starts are watched",
			 path);
	return RUN_AGENT_STATIC;
}
