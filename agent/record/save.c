/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy is taken while other threads write. Slots that changed meanwhile are marked empty in it,
 * communicators are copied again: a reader of the file has no second look.
 */
#include "agent/record/save.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/base/file_size.h"
#include "agent/base/log.h"
#include "agent/base/state.h"
#include "agent/record/record.h"

#define EVERY_NS 1000000000u
#define AT_EXIT_WAIT_NS UINT64_C(2000000000) /* for the helper thread's own writing */
#define COPIES_OF_A_COMM 3

static struct {
	char path[PATH_MAX], temporary[PATH_MAX + 8];
	char *copy; /* NULL: nothing is to be saved */
	uint64_t next_ns;
	unsigned char is_busy;
} save;

void cw_save_start(void)
{
	const char *dir = getenv("COLLWATCH_RECORD");
	char host[65] = "";
	void *copy;
	int n;

	if (!dir || !dir[0])
		return;
	if (dir[0] != '/') {
		cw_log("COLLWATCH_RECORD: not an absolute path");
		return;
	}
	if (gethostname(host, sizeof(host) - 1) < 0 || strchr(host, '/'))
		strcpy(host, "localhost");
	n = snprintf(save.path, sizeof(save.path), "%s/%s-%ld.record", dir, host,
		     (long)syscall(SYS_getpid));
	if (n < 0 || (size_t)n >= sizeof(save.path)) {
		cw_log("COLLWATCH_RECORD is too long");
		return;
	}
	(void)snprintf(save.temporary, sizeof(save.temporary), "%s.tmp", save.path);
	copy = mmap(NULL, cw_record.total_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED) {
		cw_log("COLLWATCH_RECORD: %s", strerror(errno));
		return;
	}
	(void)madvise(copy, cw_record.total_bytes, MADV_DONTFORK);
	__atomic_store_n(&save.copy, copy, __ATOMIC_RELEASE);
}

static void copy_words(void *to, const void *from, size_t bytes)
{
	uint64_t *t = to;
	const uint64_t *f = from;

	for (size_t i = 0; i < bytes / sizeof(*t); i++)
		t[i] = __atomic_load_n(&f[i], __ATOMIC_RELAXED);
}

/* Where something of the record lies in the copy. */
static void *in_copy(const void *at)
{
	return save.copy + ((const char *)at - (const char *)cw_record.header);
}

static void drop_changed(const struct cw_rec_op *ring, unsigned count)
{
	struct cw_rec_op *copy = in_copy(ring);

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	for (unsigned i = 0; i < count; i++) {
		if (CW_LOAD(ring[i].publish) != copy[i].publish)
			copy[i].publish = 0;
	}
}

static void settle_comm(const struct cw_rec_comm *rc)
{
	struct cw_rec_comm *copy = in_copy(rc);

	for (unsigned i = 0; i < COPIES_OF_A_COMM; i++) {
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(copy->seqlock & 1) && CW_LOAD(rc->seqlock) == copy->seqlock)
			break;
		copy_words(copy, rc, sizeof(*rc));
	}
	drop_changed(rc->ops, CW_REC_COMM_OPS);
}

static void take_copy(void)
{
	struct cw_rec_header *h = (void *)save.copy;

	copy_words(save.copy, cw_record.header, cw_record.total_bytes);
	h->ops_total = h->ring_ticket; /* brought up to date by the helper thread's beat only */
	drop_changed(cw_record.ring, CW_REC_RING_OPS);
	for (unsigned i = 0; i < CW_REC_COMMS; i++)
		settle_comm(&cw_record.comms[i]);
}

static bool write_all(int fd, const char *from, size_t bytes)
{
	while (bytes > 0) {
		ssize_t n = cw_write(fd, from, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		from += n;
		bytes -= (size_t)n;
	}
	return true;
}

/*
 * A new file each time: what has the name already may be somebody's FIFO, which would take the
 * record or hold us up, a link to another file, or open to others.
 */
static int create(const char *path)
{
	(void)unlink(path);
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

/* The file is replaced as a whole: whoever reads it meanwhile has one moment of the record. */
static void write_copy(void)
{
	static bool has_failed;
	int fd = create(save.temporary);
	bool ok;

	cw_record_io_begin(cw_record.total_bytes);
	ok = fd >= 0 && write_all(fd, save.copy, cw_record.total_bytes);
	cw_record_io_end(cw_record.total_bytes);

	if (fd >= 0 && close(fd) < 0)
		ok = false;
	ok = ok && rename(save.temporary, save.path) == 0;
	if (!ok && !has_failed)
		cw_log("%s cannot be written: %s", save.path, strerror(errno));
	if (!ok && fd >= 0)
		(void)unlink(save.temporary);
	has_failed = !ok;
}

static void save_now(void)
{
	take_copy();
	write_copy();
}

void cw_save_step(void)
{
	uint64_t now = cw_now_ns();

	if (!save.copy || now < save.next_ns ||
	    __atomic_test_and_set(&save.is_busy, __ATOMIC_ACQUIRE))
		return;
	save.next_ns = now + EVERY_NS;
	save_now();
	__atomic_clear(&save.is_busy, __ATOMIC_RELEASE);
}

/* Not in a forked child: there the record is not mapped, and the armed byte is wiped. */
__attribute__((destructor)) static void save_at_exit(void)
{
	int saved_errno = errno;
	uint64_t until;

	if (!__atomic_load_n(&save.copy, __ATOMIC_ACQUIRE) || !cw_agent_is_armed())
		return;
	until = cw_now_ns() + AT_EXIT_WAIT_NS;
	while (__atomic_test_and_set(&save.is_busy, __ATOMIC_ACQUIRE)) {
		if (cw_now_ns() >= until)
			return;
		(void)sched_yield();
	}
	save_now(); /* is_busy stays set: the helper thread has nothing more to do */
	errno = saved_errno;
}
