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
};

static int load(struct cw_kernel_threads *k, struct cw_err *err)
{
	uint32_t ns = 0;
	int r = cw_kernel_bpf_prepare(&ns, err);

	if (r < 0)
		return r;
	k->skeleton = thread_facts__open();
	if (!k->skeleton)
		return cw_err_set(err, errno, "BPF programs: %s", strerror(errno));
	k->skeleton->rodata->own_pid_ns = ns;
	r = thread_facts__load(k->skeleton);
	return r < 0 ? cw_err_set(err, -r, "%s", cw_kernel_bpf_reason(r)) : 0;
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

/*
 * Attaches the iterator to one process, if the kernel can do so (6.1). Otherwise the iterator
 * visits all processes, and the BPF program filters by pid.
 */
static struct bpf_link *attach(struct cw_kernel_threads *k, pid_t pid)
{
	union bpf_iter_link_info info = { .task = { .pid = (uint32_t)pid } };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	struct bpf_link *link = bpf_program__attach_iter(k->skeleton->progs.dump_thread, &opts);

	return link ? link : bpf_program__attach_iter(k->skeleton->progs.dump_thread, NULL);
}

ssize_t cw_kernel_threads_read(struct cw_kernel_threads *k, pid_t pid, char *buf, size_t len)
{
	struct bpf_link *link;
	ssize_t n;
	int fd;

	if (!k)
		return -ENOTSUP;
	k->skeleton->bss->wanted_pid = (uint32_t)pid;
	link = attach(k, pid);
	if (!link)
		return errno == ESRCH ? 0 : -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	n = fd < 0 ? fd : cw_procfs_read_fd(fd, buf, len);
	closep(&fd);
	(void)bpf_link__destroy(link); /* we can do nothing about a failure */
	return n;
}
