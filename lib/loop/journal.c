/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/journal.h"

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/cleanup.h"

/*
 * The largest entry that we send, which is enough for a log line with all its fields. A longer
 * datagram would need a memfd.
 */
#define ENTRY_MAX_BYTES 65536u

struct entry {
	size_t len;
	char bytes[ENTRY_MAX_BYTES];
};

static int append(struct entry *e, const void *bytes, size_t len)
{
	if (len > sizeof(e->bytes) - e->len)
		return -EMSGSIZE;
	memcpy(e->bytes + e->len, bytes, len);
	e->len += len;
	return 0;
}

/*
 * Appends "NAME=value\n". A value with several lines needs another form: "NAME\n", the length of
 * the value as a 64-bit number, the value, and "\n".
 */
static int append_field(struct entry *e, const char *field, size_t len)
{
	const char *value = memchr(field, '=', len);
	size_t name_len;
	uint64_t size;
	int r;

	if (!value)
		return -EINVAL;
	name_len = (size_t)(value - field);
	value++;
	if (!memchr(value, '\n', len - name_len - 1)) {
		r = append(e, field, len);
	} else {
		size = htole64(len - name_len - 1);
		r = append(e, field, name_len);
		r = r ? r : append(e, "\n", 1);
		r = r ? r : append(e, &size, sizeof(size));
		r = r ? r : append(e, value, len - name_len - 1);
	}
	return r ? r : append(e, "\n", 1);
}

int cw_journal_send_to(const char *socket_path, const struct iovec *fields, unsigned n)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_(closep) int fd = -1;
	struct entry e = { .len = 0 };
	size_t len = strlen(socket_path);
	int r;

	if (len >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, socket_path, len + 1);
	for (unsigned i = 0; i < n; i++) {
		r = append_field(&e, fields[i].iov_base, fields[i].iov_len);
		if (r < 0)
			return r;
	}
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, e.bytes, e.len, MSG_NOSIGNAL | MSG_DONTWAIT,
			     (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return 0;
}

int cw_journal_send(const struct iovec *fields, unsigned n)
{
	return cw_journal_send_to("/run/systemd/journal/socket", fields, n);
}
