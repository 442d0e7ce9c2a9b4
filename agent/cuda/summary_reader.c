/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cuda/summary_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "agent/base/state.h"
#include "agent/record/record.h"
#include "record/summary_taken.h"

#define PATIENCE_NS UINT64_C(10000000000)
#define PAUSE_NS 200000

/* The file that we share with the reader; NULL = no reader. */
static const struct cw_summary_taken *taken;

bool cw_summary_reader_wait(uint64_t since_ns)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	if (!cw_agent_is_armed() || cw_now_ns() - since_ns >= PATIENCE_NS)
		return false;
	/*
	 * A direct system call: a thread that the program cancels inside the library would keep our
	 * locks.
	 */
	(void)syscall(SYS_nanosleep, &pause, NULL);
	return true;
}

/*
 * Maps the shared file, which must be a plain file of this user. The file must be long enough,
 * because a read beyond its end would kill the process. Returns NULL on an error. With errno ENOENT
 * the file does not exist yet.
 */
static const struct cw_summary_taken *map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	const struct cw_summary_taken *found;
	void *at = MAP_FAILED;
	struct stat st;

	if (fd < 0)
		return NULL;
	/* A direct system call: fstat@GLIBC_2.33 would be the newest symbol of the library. */
	if (syscall(SYS_fstat, fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    st.st_size >= (off_t)sizeof(*found))
		at = mmap(NULL, sizeof(*found), PROT_READ, MAP_SHARED, fd, 0);
	(void)close(fd);
	errno = EBADF;
	if (at == MAP_FAILED)
		return NULL;
	found = at;
	if (found->magic == CW_SUMMARY_TAKEN_MAGIC)
		return found;
	(void)munmap(at, sizeof(*found));
	errno = EBADF;
	return NULL;
}

static const struct cw_summary_taken *find(const char *dir)
{
	const struct cw_rec_header *h = cw_record.header;
	const struct cw_summary_taken *found;
	uint64_t since_ns = cw_now_ns();
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/" CW_SUMMARY_TAKEN_NAME, dir, h->pid,
		     (unsigned long long)h->created_wall_ns) >= (int)sizeof(path))
		return NULL;
	do {
		found = map(path);
	} while (!found && errno == ENOENT && access(dir, F_OK) == 0 &&
		 cw_summary_reader_wait(since_ns));
	return found;
}

void cw_summary_reader_meet(void)
{
	static unsigned char asked, is_over;
	const char *dir = getenv("COLLWATCH_COMPLETE");
	const struct cw_summary_taken *found;
	uint64_t since_ns = cw_now_ns();

	if (!dir || !*dir)
		return;
	if (__atomic_test_and_set(&asked, __ATOMIC_ACQ_REL)) {
		while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE) &&
		       cw_summary_reader_wait(since_ns))
			;
		return;
	}
	found = find(dir);
	if (found) {
		__atomic_store_n(&taken, found, __ATOMIC_RELEASE);
		(void)__atomic_fetch_or(&cw_record.header->has, CW_REC_HAS_READER,
					__ATOMIC_RELAXED);
	} else {
		cw_log("COLLWATCH_COMPLETE=%.200s: no reader of this record's summaries there: "
		       "they are overwritten unread",
		       dir);
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
}

bool cw_summary_reader_is_there(void)
{
	return __atomic_load_n(&taken, __ATOMIC_ACQUIRE);
}

bool cw_summary_reader_has(uint64_t publish)
{
	const struct cw_summary_taken *of = __atomic_load_n(&taken, __ATOMIC_ACQUIRE);

	return !of || __atomic_load_n(&of->newest[publish % CW_REC_SUMMARY_RING],
				      __ATOMIC_ACQUIRE) >= publish;
}
