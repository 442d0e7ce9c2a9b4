/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/kernel_threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <thread_facts.skel.h>

#include "common/cleanup.h"
#include "daemon/kernel/kernel_bpf.h"
#include "daemon/kernel/procfs.h"

struct cw_kernel_threads {
	struct thread_facts *skeleton;
	bool is_filtered; /* the kernel can iterate over one process (Linux 6.1) */
};

/* Attaches the iterator to one process. Returns a descriptor or -errno. */
static int attach(int program, pid_t pid)
{
	union bpf_iter_link_info info = { .task = { .pid = (uint32_t)pid } };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &info, .iter_info_len = sizeof(info));

	return bpf_link_create(program, 0, BPF_TRACE_ITER, &opts);
}

static int load(struct cw_kernel_threads *k, struct cw_err *err)
{
	_cleanup_(closep) int link = -1;
	uint32_t ns = 0;
	int r = cw_kernel_bpf_prepare(&ns, err);

	if (r < 0)
		return r;
	k->skeleton = thread_facts__open();
	if (!k->skeleton)
		return cw_err_set(err, errno, "BPF programs: %s", strerror(errno));
	k->skeleton->rodata->own_pid_ns = ns;
	r = thread_facts__load(k->skeleton);
	if (r < 0)
		return cw_err_set(err, -r, "%s", cw_kernel_bpf_reason(r));
	link = attach(bpf_program__fd(k->skeleton->progs.dump_thread), getpid());
	k->is_filtered = link >= 0;
	return 0;
}

int cw_kernel_threads_new(struct cw_kernel_threads **ret, struct cw_err *err)
{
	struct cw_kernel_threads *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return cw_err_set(err, ENOMEM, "out of memory");
	r = load(k, err);
	if (r < 0) {
		(void)cw_kernel_threads_free(k); /* always NULL */
		return r;
	}
	*ret = k;
	return 0;
}

struct cw_kernel_threads *cw_kernel_threads_free(struct cw_kernel_threads *k)
{
	if (!k)
		return NULL;
	thread_facts__destroy(k->skeleton); /* takes NULL */
	free(k);
	return NULL;
}

int cw_kernel_threads_program(struct cw_kernel_threads *k, pid_t pid)
{
	if (!k)
		return -1;
	k->skeleton->bss->wanted_pid = k->is_filtered ? 0 : (uint32_t)pid;
	return bpf_program__fd(k->skeleton->progs.dump_thread);
}

bool cw_kernel_threads_is_exclusive(const struct cw_kernel_threads *k)
{
	return k && !k->is_filtered;
}

ssize_t cw_kernel_threads_read(int program, pid_t pid, char *buf, size_t len)
{
	_cleanup_(closep) int link = attach(program, pid);
	_cleanup_(closep) int fd = -1;

	/* Without the kernel's filter, the BPF program filters by pid. */
	if (link == -E2BIG || link == -EINVAL)
		link = bpf_link_create(program, 0, BPF_TRACE_ITER, NULL);
	if (link < 0)
		return link == -ESRCH ? 0 : link;
	fd = bpf_iter_create(link);
	return fd < 0 ? fd : cw_procfs_read_fd(fd, buf, len);
}
