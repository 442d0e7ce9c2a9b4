/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/header_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cluster/secret_file.h"
#include "common/cleanup.h"

int cw_header_file_read(const char *path, char *buf, size_t len, struct cw_err *err)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = -1;
	int r;

	if (fd < 0)
		return cw_err_set(err, errno, "webhook_header_file %s: %m", path);
	r = cw_secret_file_check(fd, path, CW_SECRET_FILE_HEADER, err);
	if (r < 0)
		return r;
	n = read(fd, buf, len);
	if (n < 0)
		return cw_err_set(err, errno, "webhook_header_file %s: %m", path);
	if ((size_t)n == len)
		return cw_err_set(err, EFBIG, "webhook_header_file %s: larger than %zu KiB", path,
				  len >> 10);
	buf[n] = '\0';
	return 0;
}
