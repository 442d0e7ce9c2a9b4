/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/peer_uid.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/*
 * Formats one end of the connection as /proc/net/tcp does: the words of the address in host order,
 * then the port.
 */
static void format_end(const struct sockaddr_storage *a, char *buf, size_t len)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;
	uint32_t w[4];

	if (a->ss_family == AF_INET) {
		(void)snprintf(buf, len, "%08X:%04X", in4->sin_addr.s_addr, ntohs(in4->sin_port));
		return;
	}
	memcpy(w, &in6->sin6_addr, sizeof(w));
	(void)snprintf(buf, len, "%08X%08X%08X%08X:%04X", w[0], w[1], w[2], w[3],
		       ntohs(in6->sin6_port));
}

int cw_peer_uid(int fd, uid_t *ret_uid)
{
	struct sockaddr_storage here = { 0 }, there = { 0 };
	socklen_t here_len = sizeof(here), there_len = sizeof(there);
	char from[64], to[64], pair[160], line[512];
	const char *found;
	unsigned state, uid;
	int r = -ENOENT;
	FILE *f;

	if (getsockname(fd, (struct sockaddr *)&here, &here_len) < 0 ||
	    getpeername(fd, (struct sockaddr *)&there, &there_len) < 0)
		return -errno;
	format_end(&there, from, sizeof(from));
	format_end(&here, to, sizeof(to));
	/* The start of the row that describes the other end. */
	(void)snprintf(pair, sizeof(pair), " %s %s ", from, to);
	f = fopen(there.ss_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "re");
	if (!f)
		return -errno;
	while (r < 0 && fgets(line, sizeof(line), f)) {
		found = strstr(line, pair);
		/*
		 * The fields are state, queues, timer, retransmits and uid. Accept only an
		 * established socket: the kernel shows a closed one as root's, regardless of its
		 * owner.
		 */
		if (found && sscanf(found + strlen(pair), "%x %*s %*s %*s %u", &state, &uid) == 2 &&
		    state == TCP_ESTABLISHED) {
			*ret_uid = uid;
			r = 0;
		}
	}
	(void)fclose(f); /* harmless: we only read the file */
	return r;
}
