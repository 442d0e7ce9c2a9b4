/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process/fdstore.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/parse.h"
#include "daemon/process/process.h"
#include "loop/sd_notify.h"
#include "model/facts.h"

#define PREFIX "rank."
#define VERSION 1u
/*
 * Count of numbers in a name: VERSION, PID, START, UID, GID. The name of a dead process has four
 * more.
 */
#define N_NUMBERS 5u
#define N_NUMBERS_DEAD 9u

/* ---- names ---- */

static void name_of(const struct cw_process *p, char *buf)
{
	int n = snprintf(buf, CW_FDSTORE_NAME_BYTES, PREFIX "%u.%d.%" PRIu64 ".%u.%u", VERSION,
			 (int)cw_process_pid(p), p->key.start_ticks, (unsigned)p->uid,
			 (unsigned)p->gid);

	if (cw_process_is_dead(p))
		(void)snprintf(buf + n, (size_t)(CW_FDSTORE_NAME_BYTES - n), ".%u.%d.%d.%" PRId64,
			       (unsigned)p->end.liveness, p->end.exit_code, p->end.term_signal,
			       p->ended_ns);
}

/* Parses up to max numbers with dots between them. Returns their count, -EINVAL or -ERANGE. */
static int parse_numbers(const char *text, uint64_t *numbers, unsigned max)
{
	char copy[CW_FDSTORE_NAME_BYTES], *rest = copy, *word;
	unsigned n = 0;
	int r;

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	while ((word = strsep(&rest, "."))) {
		if (n == max)
			return -EINVAL;
		r = cw_parse_u64(word, 0, INT64_MAX, &numbers[n]);
		if (r < 0)
			return r;
		n++;
	}
	return (int)n;
}

int cw_fdstore_parse(const char *name, struct cw_fdstore_entry *ret)
{
	uint64_t v[N_NUMBERS_DEAD] = { 0 };
	int n;

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return -EINVAL;
	n = parse_numbers(name + strlen(PREFIX), v, N_NUMBERS_DEAD);
	if (n < 0)
		return n;
	if ((n != N_NUMBERS && n != N_NUMBERS_DEAD) || v[0] != VERSION)
		return -EINVAL;
	if (v[1] == 0 || v[1] > INT32_MAX || v[3] > UINT32_MAX || v[4] > UINT32_MAX ||
	    v[5] >= CW_LIVE__MAX || v[6] > 255 || v[7] > 127)
		return -ERANGE;
	if (n == N_NUMBERS_DEAD && !cw_liveness_is_dead((uint32_t)v[5]))
		return -EINVAL;
	*ret = (struct cw_fdstore_entry){
		.pid = (pid_t)v[1],
		.start_ticks = v[2],
		.uid = (uid_t)v[3],
		.gid = (gid_t)v[4],
		.is_dead = n == N_NUMBERS_DEAD,
		.end = { (uint32_t)v[5], (int)v[6], (int)v[7] },
		.ended_ns = (int64_t)v[8],
		.record_fd = -1,
		.pidfd = -1,
	};
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	return 0;
}

/* ---- restoring ---- */

void cw_fdstore_free(struct cw_fdstore_entry *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		closep(&list[i].record_fd);
		closep(&list[i].pidfd);
	}
	free(list);
}

static bool is_memfd(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

static bool is_pidfd(int fd)
{
	/* Send signal 0, which does nothing. Only a pidfd gives success, ESRCH or EPERM. */
	return syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0 || errno == ESRCH ||
	       errno == EPERM;
}

/*
 * Returns the entry with this name. The manager passes descriptors of the same name one after the
 * other. If the last entry has another name, we therefore add a new one.
 */
static struct cw_fdstore_entry *entry_for(struct cw_fdstore_entry *list, size_t *n,
					  const char *name)
{
	struct cw_fdstore_entry *last = *n ? &list[*n - 1] : NULL;

	if (last && strcmp(last->name, name) == 0)
		return last;
	if (cw_fdstore_parse(name, &list[*n]) < 0)
		return NULL;
	return &list[(*n)++];
}

static bool put_into(struct cw_fdstore_entry *to, int fd)
{
	int *place = is_memfd(fd) ? &to->record_fd : is_pidfd(fd) ? &to->pidfd : NULL;

	if (!place || *place >= 0)
		return false;
	*place = fd;
	return true;
}

int cw_fdstore_group(struct cw_passed_fd *passed, size_t n_passed, const struct cw_clock *clock,
		     struct cw_fdstore_entry **ret, size_t *ret_n)
{
	struct cw_fdstore_entry *list = calloc(n_passed + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < n_passed; i++) {
		struct cw_fdstore_entry *to = list ? entry_for(list, &n, passed[i].name) : NULL;

		if (!to || !put_into(to, passed[i].fd))
			(void)close(passed[i].fd); /* the descriptor belongs to no entry */
		if (list && !to)
			(void)cw_notify_remove_fds(clock,
						   passed[i].name); /* on error, retry next start */
		free(passed[i].name);
	}
	free(passed);
	if (!list)
		return -ENOMEM;
	*ret = list;
	*ret_n = n;
	return 0;
}

int cw_fdstore_take(const struct cw_clock *clock, struct cw_fdstore_entry **ret, size_t *ret_n)
{
	struct cw_passed_fd *passed;
	size_t n;
	int r = cw_notify_passed_fds(PREFIX, &passed, &n);

	return r < 0 ? r : cw_fdstore_group(passed, n, clock, ret, ret_n);
}

void cw_fdstore_give_up(const struct cw_fdstore_entry *entry, const struct cw_clock *clock)
{
	/* If this fails, the next start tries again. */
	(void)cw_notify_remove_fds(clock, entry->name);
}

/* ---- storing ---- */

int cw_fdstore_put(struct cw_process *p, const struct cw_clock *clock)
{
	int fds[] = { cw_record_fd(p->record), p->pidfd };
	char name[CW_FDSTORE_NAME_BYTES];
	int r;

	name_of(p, name);
	if (p->fdstore_ino == p->record_ino && strcmp(name, p->fdstore_name) == 0)
		return 0;
	cw_fdstore_remove(p, clock); /* first, because the old and the new name may be the same */
	r = cw_notify_store_fds(clock, name, fds, p->pidfd >= 0 ? 2 : 1);
	if (r < 0)
		return r;
	strcpy(p->fdstore_name, name);
	p->fdstore_ino = p->record_ino;
	return 0;
}

void cw_fdstore_remove(struct cw_process *p, const struct cw_clock *clock)
{
	/*
	 * If this fails, the manager passes the entry again at the next start. The next daemon then
	 * decides about it.
	 */
	if (p->fdstore_name[0])
		(void)cw_notify_remove_fds(clock, p->fdstore_name);
	p->fdstore_name[0] = '\0';
}
