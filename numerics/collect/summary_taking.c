/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/collect/summary_taking.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"

/*
 * We write the bytes and do not just extend the file. On a full file system this causes an error
 * here. An extended file would cause a signal (SIGBUS) later.
 */
static int write_empty(int fd)
{
	const struct cw_summary_taken empty = { .magic = CW_SUMMARY_TAKEN_MAGIC };
	ssize_t n = write(fd, &empty, sizeof(empty));

	return n == (ssize_t)sizeof(empty) ? 0 : n < 0 ? -errno : -ENOSPC;
}

int cw_summary_taking_start(const char *dir, const struct cw_rec_header *header,
			    struct cw_summary_taken **ret)
{
	char path[PATH_MAX], made[PATH_MAX];
	_cleanup_(closep) int fd = -1;
	void *at = MAP_FAILED;
	int r;

	if (snprintf(path, sizeof(path), "%s/" CW_SUMMARY_TAKEN_NAME, dir, header->pid,
		     (unsigned long long)header->created_wall_ns) >= (int)sizeof(path) ||
	    snprintf(made, sizeof(made), "%s.new", path) >= (int)sizeof(made))
		return -ENAMETOOLONG;
	fd = open(made, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_empty(fd);
	if (r == 0) {
		at = mmap(NULL, sizeof(**ret), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		r = at == MAP_FAILED ? -errno : 0;
	}
	/* We rename the file last. A rank may map it as soon as it has this name. */
	if (r == 0 && rename(made, path) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlink(made);
		cw_summary_taking_end(at == MAP_FAILED ? NULL : at);
		return r;
	}
	*ret = at;
	return 0;
}

void cw_summary_taking_update(struct cw_summary_taken *taken, const uint64_t newest[])
{
	for (uint32_t i = 0; i < CW_REC_SUMMARY_RING; i++)
		__atomic_store_n(&taken->newest[i], newest[i], __ATOMIC_RELEASE);
}

void cw_summary_taking_end(struct cw_summary_taken *taken)
{
	if (!taken)
		return;
	for (uint32_t i = 0; i < CW_REC_SUMMARY_RING; i++)
		__atomic_store_n(&taken->newest[i], UINT64_MAX, __ATOMIC_RELEASE);
	(void)munmap(taken, sizeof(*taken));
}
