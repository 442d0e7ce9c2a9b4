/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/record/own_memory.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/record/record.h"

/* The smallest page size. Each border of a larger page is also a border of 4096-byte pages. */
#define PAGE 4096u

/*
 * Returns the number of bytes read up to the first unmapped page. header->pid is our own pid,
 * because this process made the record.
 */
static size_t read_own(const struct iovec *to, unsigned long n_to, const struct iovec *from,
		       unsigned long n_from)
{
	int saved_errno = errno;
	long n = syscall(SYS_process_vm_readv, (long)cw_record.header->pid, to, n_to, from, n_from,
			 0UL);

	errno = saved_errno;
	return n > 0 ? (size_t)n : 0;
}

static struct iovec piece(uint64_t at, size_t len)
{
	return (struct iovec){ (void *)(uintptr_t)at, len };
}

bool cw_own_read(uint64_t from, void *to, size_t len)
{
	struct iovec there = piece(from, len), here = { to, len };

	return read_own(&here, 1, &there, 1) == len;
}

/*
 * A read ends at the first unmapped page. We therefore read the last piece first and then the bytes
 * before it.
 */
size_t cw_own_read_before(uint64_t end, void *buf, size_t len, size_t least)
{
	struct iovec here[2], there[2];
	size_t last = (end - least) % PAGE + least, n;

	if (end < len || last > len)
		last = len;
	if (end < len)
		return 0;
	there[0] = piece(end - last, last);
	here[0] = (struct iovec){ (char *)buf + (len - last), last };
	there[1] = piece(end - len, len - last);
	here[1] = (struct iovec){ buf, len - last };
	n = read_own(here, 2, there, 2);
	if (n == len)
		return len;
	return n >= last ? last : 0;
}

bool cw_own_read_many(const uint64_t from[], unsigned n, void *to, size_t len)
{
	struct iovec there[CW_OWN_READ_MANY], here = { to, n * len };

	for (unsigned i = 0; i < n; i++)
		there[i] = piece(from[i], len);
	return read_own(&here, 1, there, n) == n * len;
}
