/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct part {
	const char *what;
	const char *from_exe[3]; /* relative to this executable's directory; ends with NULL */
	const char *installed;
};

static const struct part parts[CW_PART__MAX] = {
	[CW_PART_AGENT] = { "the agent", { "../agent/libcollwatch.so" }, CW_AGENT_PATH },
	[CW_PART_DAEMON] = { "the daemon", { "../daemon/collwatchd" }, CW_DAEMON_PATH },
	[CW_PART_SIM] = { "the simulated device", { "../lab/sim" }, CW_SIM_DIR },
	[CW_PART_TRAIN_C] = { "the demo's training program",
			      { "../lab/programs/train_loop" },
			      CW_DEMO_DIR "/train_loop" },
	[CW_PART_TRAIN_PY] = { "the demo's Python training program",
			       { "../lab/programs/train_loop.py" },
			       CW_DEMO_DIR "/train_loop.py" },
	[CW_PART_LAB] = { "the laboratory", { "../lab/collwatch-lab" }, CW_LAB_PATH },
	[CW_PART_TORCH] = { "real PyTorch", { "../../lab/real-torch" }, NULL },
	[CW_PART_REAL_NCCL] = { "NVIDIA's NCCL", { "../../lab/real-nccl" }, NULL },
};

/* Returns the directory of this executable, without a final slash. */
static int exe_dir(char dir[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", dir, PATH_MAX - 1);
	char *slash;

	if (n < 0)
		return -errno;
	dir[n] = '\0';
	slash = strrchr(dir, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

int cw_paths_find(enum cw_part part, char path[PATH_MAX], struct cw_err *err)
{
	const struct part *p = &parts[part];
	char dir[PATH_MAX], candidate[2 * PATH_MAX];

	if (exe_dir(dir) == 0) {
		for (const char *const *rel = p->from_exe; *rel; rel++) {
			snprintf(candidate, sizeof(candidate), "%s/%s", dir, *rel);
			if (realpath(candidate, path))
				return 0;
		}
	}
	if (!p->installed)
		return cw_err_set(err, ENOENT,
				  "%s is part of the source tree only: there is no %s/%s", p->what,
				  dir, p->from_exe[0]);
	if (realpath(p->installed, path))
		return 0;
	return cw_err_set(err, ENOENT, "%s is missing: there is neither %s/%s nor %s", p->what, dir,
			  p->from_exe[0], p->installed);
}

int cw_paths_find_program(const char *program, char path[PATH_MAX])
{
	const char *list = getenv("PATH");

	if (strchr(program, '/')) {
		snprintf(path, PATH_MAX, "%s", program);
		return access(path, X_OK) == 0 ? 0 : -ENOENT;
	}
	while (list && *list) {
		size_t len = strcspn(list, ":");
		int n = snprintf(path, PATH_MAX, "%.*s/%s", (int)len, list, program);

		if (n > 0 && n < PATH_MAX && access(path, X_OK) == 0)
			return 0;
		list += len;
		list += *list == ':';
	}
	return -ENOENT;
}
