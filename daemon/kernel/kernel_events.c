/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/kernel_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <process_facts.skel.h>

#include "common/log.h"
#include "daemon/kernel/closed_files.h"
#include "daemon/kernel/kernel_bpf.h"

/*
 * Maximum number of tries of a read. A program in the kernel writes for a few hundred ns, so a
 * single write cannot make this many reads fail.
 */
#define READ_ATTEMPTS 8

struct cw_kernel_events {
	struct process_facts *skeleton;
	int map_fd;
};

static int load(struct cw_kernel_events *k, struct cw_err *err)
{
	uint32_t ns = 0;
	int r = cw_kernel_bpf_prepare(&ns, err);

	if (r < 0)
		return r;
	k->skeleton = process_facts__open();
	if (!k->skeleton)
		return cw_err_set(err, errno, "BPF programs: %s", strerror(errno));
	k->skeleton->rodata->own_pid_ns = ns;
	r = process_facts__load(k->skeleton);
	if (r < 0)
		return cw_err_set(err, -r, "%s", cw_kernel_bpf_reason(r));
	r = process_facts__attach(k->skeleton);
	if (r < 0)
		return cw_err_set(err, -r, "%s", cw_kernel_bpf_reason(r));
	k->map_fd = bpf_map__fd(k->skeleton->maps.processes);
	return 0;
}

int cw_kernel_events_new(struct cw_kernel_events **ret, struct cw_err *err)
{
	struct cw_kernel_events *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return cw_err_set(err, ENOMEM, "out of memory");
	r = load(k, err);
	if (r < 0) {
		(void)cw_kernel_events_free(k); /* always NULL */
		return r;
	}
	*ret = k;
	return 0;
}

struct cw_kernel_events *cw_kernel_events_free(struct cw_kernel_events *k)
{
	if (!k)
		return NULL;
	process_facts__destroy(k->skeleton); /* takes NULL */
	free(k);
	return NULL;
}

void cw_kernel_events_watch(struct cw_kernel_events *k, pid_t pid)
{
	static const struct cw_facts_process none;

	int r = k ? cw_closed_map_update(k->map_fd, (uint32_t)pid, &none, sizeof(none)) : 0;

	if (r < 0)
		log_debug("pid=%d: no BPF exit facts: %s", (int)pid, strerror(-r));
}

void cw_kernel_events_forget(struct cw_kernel_events *k, pid_t pid)
{
	if (k)
		/* Fails if the map never had this process. */
		(void)cw_closed_map_delete(k->map_fd, (uint32_t)pid);
}

int cw_kernel_events_read(const struct cw_kernel_events *k, pid_t pid, struct cw_facts_process *ret)
{
	struct cw_facts_process before, after;
	uint32_t key = (uint32_t)pid;

	if (!k || cw_closed_map_lookup(k->map_fd, key, &before, sizeof(before)) < 0)
		return -ENOENT;
	/*
	 * Compare two readings. If they are equal and no program was writing, nothing changed in
	 * between.
	 */
	for (unsigned i = 0; i < READ_ATTEMPTS; i++) {
		if (cw_closed_map_lookup(k->map_fd, key, &after, sizeof(after)) < 0)
			return -ENOENT;
		if (after.changes == before.changes && !(after.changes & 1)) {
			*ret = after;
			return 0;
		}
		before = after;
	}
	return -EAGAIN;
}
