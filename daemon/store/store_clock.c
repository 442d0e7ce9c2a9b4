/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/store_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/store/state_file.h"

#define FILE_NAME "clock"
#define FILE_NAME_NEW ".clock.new"
#define BOOT_ID_BYTES 37 /* a UUID as text, with NUL */

/*
 * Reads text from a descriptor, and closes it. Returns false if the descriptor is negative or the
 * file is empty.
 */
static bool read_text(int opened, char *buf, size_t len)
{
	_cleanup_(closep) int fd = opened;
	ssize_t n = fd >= 0 ? read(fd, buf, len - 1) : -1;

	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static bool read_boot_id(char buf[BOOT_ID_BYTES])
{
	return read_text(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC), buf,
			 BOOT_ID_BYTES);
}

static bool load(int state_fd, int64_t *ret_to_wall_ns)
{
	char text[96], boot[BOOT_ID_BYTES], now[BOOT_ID_BYTES];

	return read_text(cw_state_file_open(state_fd, FILE_NAME), text, sizeof(text)) &&
	       read_boot_id(now) && sscanf(text, "%36s %" SCNd64, boot, ret_to_wall_ns) == 2 &&
	       strcmp(boot, now) == 0;
}

/* Saves the difference of the clocks. If this fails, the next daemon must run for an hour again. */
static void save(int state_fd, int64_t to_wall_ns)
{
	_cleanup_(closep) int fd = -1;
	char boot[BOOT_ID_BYTES];

	if (!read_boot_id(boot))
		return;
	fd = cw_state_file_create(state_fd, FILE_NAME_NEW);
	if (fd < 0 || dprintf(fd, "%s %" PRId64 "\n", boot, to_wall_ns) < 0 ||
	    renameat(state_fd, FILE_NAME_NEW, state_fd, FILE_NAME) < 0)
		log_info("store: its clock cannot be kept: %m, ignoring");
}

void cw_store_clock_open(struct cw_store_clock *c, int state_fd, const struct cw_clock *clock)
{
	*c = (struct cw_store_clock){ .clock = clock,
				      .state_fd = state_fd,
				      .opened_ns = cw_clock_now_ns(clock) };
	c->is_settled = load(state_fd, &c->to_wall_ns);
}

bool cw_store_clock_now(struct cw_store_clock *c, int64_t *ret_ns)
{
	int64_t now = cw_clock_now_ns(c->clock);

	if (!c->is_settled) {
		c->to_wall_ns = cw_clock_wall_ns(c->clock) - now;
		c->is_settled = now - c->opened_ns >= CW_STORE_CLOCK_SETTLES_NS;
		if (c->is_settled)
			save(c->state_fd, c->to_wall_ns);
	}
	*ret_ns = now + c->to_wall_ns;
	return c->is_settled;
}
