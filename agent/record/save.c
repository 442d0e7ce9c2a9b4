/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the record while other threads write to it. A reader of the file cannot retry, so the copy
 * must be consistent. We therefore mark each slot that changed during the copy as empty, and copy
 * each changed communicator again.
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
/* The exiting thread waits this long for the end of the helper thread's own write. */
#define AT_EXIT_WAIT_NS UINT64_C(2000000000)
#define COPIES_OF_A_COMM 3

static struct {
	char path[PATH_MAX], temporary[PATH_MAX + 8];
	char *copy; /* NULL = we save no copies */
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

/* Returns the place in the copy that corresponds to a pointer into the record. */
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

/* Marks the copies of slots that changed during the copy, with an odd sequence number. */
static void drop_changed_connections(void)
{
	struct cw_rec_connection *copy = in_copy(cw_record.connections);

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	for (unsigned i = 0; i < CW_REC_CONNECTIONS; i++) {
		if (CW_LOAD(cw_record.connections[i].sequence) != copy[i].sequence)
			copy[i].sequence |= 1;
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
	/* The record's own ops_total is only as new as the last beat. */
	h->ops_total = h->ring_ticket;
	drop_changed(cw_record.ring, CW_REC_RING_OPS);
	drop_changed_connections();
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
 * Creates a new file. We never write to an existing one. Another user may have placed a FIFO at
 * this path, which would swallow the record or block us. The path may also be a link to another
 * file, or a file that others can read.
 */
static int create(const char *path)
{
	(void)unlink(path);
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

/*
 * Writes the copy to a temporary file first. rename() then replaces the whole file, so a reader
 * always sees one complete copy.
 */
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

/*
 * Saves a last copy at exit. Does nothing in a forked child: the child has no mapping of the
 * record, and the kernel has set the armed byte to 0 there.
 */
__attribute__((destructor)) static void save_at_exit(void)
{
	int saved_errno = errno;
	uint64_t until;

	if (!__atomic_load_n(&save.copy, __ATOMIC_ACQUIRE) || !cw_agent_is_armed())
		return;
	until = cw_now_ns() + AT_EXIT_WAIT_NS;
	while (__atomic_test_and_set(&save.is_busy, __ATOMIC_ACQUIRE)) {
		if (cw_now_ns() >= until) {
			errno = saved_errno;
			return;
		}
		(void)sched_yield();
	}
	save_now(); /* is_busy stays set, so the helper thread saves no further copy */
	errno = saved_errno;
}
