/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/header_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "transport/secret_file.h"

int cw_header_file_read(const char *file, char *buf, size_t len, struct cw_err *err)
{
	char where[CW_SECRET_FILE_PATH_BYTES];
	const char *path = cw_secret_file_where(file, where);
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t have = 0;
	ssize_t n;
	int r;

	if (fd < 0)
		return cw_err_set(err, errno, "webhook_header_file %s: %m", path);
	r = cw_secret_file_check(fd, path, CW_SECRET_FILE_HEADER, err);
	if (r < 0)
		return r;
	/* A file system in user space or on a server may return less than we request. */
	do {
		n = read(fd, buf + have, len - have);
		if (n < 0 && errno != EINTR)
			return cw_err_set(err, errno, "webhook_header_file %s: %m", path);
		have += n > 0 ? (size_t)n : 0;
	} while (n && have < len);
	if (have == len)
		return cw_err_set(err, EFBIG, "webhook_header_file %s: larger than %zu KiB", path,
				  len >> 10);
	buf[have] = '\0';
	return 0;
}
