/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We rule out most processes by the owner of one file, and nearly all others by their environment.
 * We read the remaining ones by pid. So we check afterwards that the pid still belongs to the same
 * process, and that the user may still see it. If several processes have the environment of one
 * rank, we choose among those whose parent is not one of them. The oldest of these is the rank.
 */
#include "daemon/node/unregistered_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/job_env.h"
#include "common/parse.h"
#include "daemon/kernel/mapped_memory.h"
#include "daemon/kernel/procfs.h"
#include "daemon/kernel/procstat.h"
#include "loop/children.h"
#include "record/record_layout.h"

/*
 * Maximum size of an environment that we read. Environments usually have a few KiB, but the kernel
 * allows 128 KiB for one variable.
 */
#define MAX_ENVIRONMENT_BYTES (256u << 10)
/* Maximum number of processes of a job on one node, with all workers. */
#define MAX_CANDIDATES 1024u
#define AGENT_FILE "/libcollwatch.so"

/* ---- environment ---- */

struct block {
	const char *text;
	size_t len;
};

/*
 * Returns the value of the variable. Each string of the block ends inside the block:
 * cw_unregistered_scan_env_matches() has checked this.
 */
static const char *get_from_block(const char *name, const void *user)
{
	const struct block *b = user;
	size_t n = strlen(name);

	for (const char *p = b->text; p < b->text + b->len; p += strlen(p) + 1)
		if (strncmp(p, name, n) == 0 && p[n] == '=')
			return p + n + 1;
	return NULL;
}

bool cw_unregistered_scan_env_matches(const char *environment, size_t len,
				      const struct cw_unregistered_scan_query *query,
				      struct cw_unregistered_scan_found *ret)
{
	struct block block = { environment, len };
	struct cw_env env = { .get = get_from_block, .user = &block };
	char label[CW_JOB_ENV_LABEL_BYTES];
	struct cw_job_env_rank rank;
	const char *socket;

	if (len == 0 || environment[len - 1] != '\0')
		return false; /* the text was cut, or the process has overwritten it */
	cw_job_env_label(&env, label, sizeof(label));
	cw_job_env_rank(&env, &rank);
	socket = cw_env_get(&env, "COLLWATCH_SOCKET");
	if (!label[0] || strcmp(label, query->label) != 0 || rank.rank < 0 ||
	    cw_parse_agent_is_off(cw_env_get(&env, "COLLWATCH"),
				  cw_env_get(&env, "COLLWATCH_DISABLE")) ||
	    strcmp(socket ? socket : CW_DEFAULT_AGENT_SOCKET, query->socket) != 0)
		return false;
	ret->rank = rank.rank;
	ret->world_size = rank.world_size;
	ret->local_rank = rank.local_rank;
	(void)snprintf(ret->source, sizeof(ret->source), "%s", rank.source);
	cw_pod_of_environment(&env, &ret->pod);
	return true;
}

static bool read_environment(pid_t pid, char *buf, const struct cw_unregistered_scan_query *query,
			     struct cw_unregistered_scan_found *ret)
{
	ssize_t n = cw_mapped_memory_has_local_start(pid)
			    ? cw_procfs_read(pid, "environ", buf, MAX_ENVIRONMENT_BYTES)
			    : 0;

	return n > 0 && cw_unregistered_scan_env_matches(buf, (size_t)n, query, ret);
}

/* ---- mappings ---- */

void cw_unregistered_scan_read_map(const char *line,
				   struct cw_unregistered_scan_candidate *candidate)
{
	const char *agent = strstr(line, AGENT_FILE);

	if (strstr(line, "/memfd:" CW_RECORD_NAME))
		candidate->has_record = true;
	else if (agent && strchr("\n .", agent[strlen(AGENT_FILE)]))
		candidate->has_agent = true;
}

static void read_maps(pid_t pid, struct cw_unregistered_scan_candidate *candidate)
{
	_cleanup_(freep) char *line = NULL;
	char path[64];
	size_t size = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return; /* we cannot see whether it has the agent, so we skip it */
	while (getline(&line, &size, f) > 0)
		cw_unregistered_scan_read_map(line, candidate);
	(void)fclose(f);
}

/* ---- a process ---- */

static bool is_shell(const char *name)
{
	static const char *const names[] = { "sh",  "bash", "dash", "ksh",     "zsh",
					     "csh", "tcsh", "fish", "busybox", "timeout" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/*
 * True if the user owns the process. Most processes belong to other users, which the owner of one
 * file shows quickly.
 */
static bool is_of(int proc_fd, uid_t uid, gid_t *ret_gid)
{
	struct stat st;

	if (fstatat(proc_fd, "status", &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_uid != uid)
		return false;
	*ret_gid = st.st_gid;
	return cw_procfs_may_see(proc_fd, 0, uid);
}

static bool look_at(pid_t pid, const struct cw_unregistered_scan_query *query, char *buf,
		    struct cw_unregistered_scan_candidate *ret)
{
	_cleanup_(closep) int proc_fd = cw_procstat_open(pid);
	struct cw_procstat st;
	gid_t gid;
	ssize_t n;

	*ret = (struct cw_unregistered_scan_candidate){ .found.pid = pid };
	if (proc_fd < 0 || !is_of(proc_fd, query->uid, &ret->found.gid) ||
	    !read_environment(pid, buf, query, &ret->found))
		return false;
	if (cw_procstat_read(proc_fd, &st) < 0)
		return false;
	ret->found.start_ticks = st.start_ticks;
	ret->ppid = st.ppid;
	ret->is_shell = is_shell(st.comm);
	n = cw_procfs_read(pid, "cmdline", ret->found.command, sizeof(ret->found.command));
	ret->found.command_len = n > 0 ? (uint32_t)n : 0;
	read_maps(pid, ret);
	/*
	 * We have read by pid. Check that the pid still belongs to the same process, and that the
	 * user may still see it.
	 */
	return is_of(proc_fd, query->uid, &gid);
}

/* ---- choosing the ranks ---- */

static bool has_reached_nccl(const struct cw_unregistered_scan_candidate *v, uint32_t n,
			     int32_t rank)
{
	for (uint32_t i = 0; i < n; i++)
		if (v[i].found.rank == rank && v[i].has_record)
			return true;
	return false;
}

static bool may_be_rank(const struct cw_unregistered_scan_candidate *c)
{
	return c->has_agent && !c->is_shell;
}

/*
 * True if c may be the rank, and its parent may not. A data loader worker, for example, has the
 * rank as its parent.
 */
static bool is_top(const struct cw_unregistered_scan_candidate *v, uint32_t n,
		   const struct cw_unregistered_scan_candidate *c)
{
	if (!may_be_rank(c))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (v[i].found.pid == c->ppid && v[i].found.rank == c->found.rank &&
		    may_be_rank(&v[i]))
			return false;
	return true;
}

static bool is_older(const struct cw_unregistered_scan_found *a,
		     const struct cw_unregistered_scan_found *b)
{
	return a->start_ticks != b->start_ticks ? a->start_ticks < b->start_ticks : a->pid < b->pid;
}

/*
 * True if c is the oldest process for which is_top() is true. If the parent of a worker has exited,
 * is_top() is true for the worker, too. The rank is older than its workers.
 */
static bool is_oldest_top(const struct cw_unregistered_scan_candidate *v, uint32_t n,
			  const struct cw_unregistered_scan_candidate *c)
{
	if (!is_top(v, n, c))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (v[i].found.rank == c->found.rank && is_older(&v[i].found, &c->found) &&
		    is_top(v, n, &v[i]))
			return false;
	return true;
}

uint32_t cw_unregistered_scan_choose(struct cw_unregistered_scan_candidate *v, uint32_t n)
{
	bool is_chosen[MAX_CANDIDATES];
	uint32_t kept = 0;

	if (n > MAX_CANDIDATES)
		n = MAX_CANDIDATES;
	for (uint32_t i = 0; i < n; i++)
		is_chosen[i] =
			is_oldest_top(v, n, &v[i]) && !has_reached_nccl(v, n, v[i].found.rank);
	for (uint32_t i = 0; i < n; i++)
		if (is_chosen[i])
			v[kept++] = v[i];
	return kept;
}

/* ---- scanning /proc ---- */

int cw_unregistered_scan_main(int out_fd, const void *arg)
{
	const struct cw_unregistered_scan_query *query = arg;
	struct cw_unregistered_scan_candidate *v = calloc(MAX_CANDIDATES, sizeof(*v));
	char *buf = malloc(MAX_ENVIRONMENT_BYTES);
	DIR *proc = opendir("/proc");
	uint32_t n = 0;
	struct dirent *entry;

	if (!v || !buf || !proc)
		return 1; /* no need to free, because the child exits */
	while (n < MAX_CANDIDATES && (entry = readdir(proc))) {
		int64_t pid;

		if (cw_parse_i64(entry->d_name, 1, INT32_MAX, &pid) == 0 &&
		    look_at((pid_t)pid, query, buf, &v[n]))
			n++;
	}
	n = cw_unregistered_scan_choose(v, n);
	for (uint32_t i = 0; i < n && i < CW_UNREGISTERED_SCAN_MAX_RANKS; i++)
		if (write(out_fd, &v[i].found, sizeof(v[i].found)) != sizeof(v[i].found))
			return 1;
	return 0;
}

int cw_unregistered_scan_child(int fd)
{
	return cw_child_run(fd, cw_unregistered_scan_main);
}
