/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL begins each connection with a magic (8 bytes) and the connection's type (4 bytes). We read
 * the type from the data that pass. If LAB_SOCKETS names a file, we append a line for each socket
 *of the network transport, with the address at which the receiver listens:
 *
 *	RANK connect|accept ADDRESS
 *	RANK sends ADDRESS
 *
 * The last line follows once the socket has sent more than the first bytes: NCCL makes connections
 * that no op of the program uses.
 *
 * LAB_STALL_FILE serves the demo. Once this file exists, the first connection stalls that sends
 * data to another rank.
 */
#include "lab/nccl/device/socket_fault.h"
#include "lab/nccl/faults.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace lab
{

namespace
{

constexpr int MAX_FDS = 4096;
constexpr size_t HEADER_BYTES = 12;
constexpr uint64_t FIRST_BYTES = 512;
constexpr uint64_t NS_PER_S = 1000000000;
/* ncclSocketTypeNetSocket of src/include/socket.h */
constexpr uint32_t TYPE_NET = 3;
constexpr uint64_t LOOK_EVERY_NS = NS_PER_S / 20;

enum Role { NONE, CONNECTS, ACCEPTS };

struct Socket {
	Role role;
	size_t n_header;
	unsigned char header[HEADER_BYTES];
	uint32_t type;
	uint64_t address;
	/* the fault in force, its begin, and the bytes that the socket has moved since */
	uint32_t fault;
	uint64_t since_ns, moved;
	uint64_t sent;
};

Socket sockets[MAX_FDS];

uint64_t now_ns()
{
	timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

void begin(int fd, Role role)
{
	if (fd < 0 || fd >= MAX_FDS)
		return;
	sockets[fd] = {};
	sockets[fd].role = role;
}

Socket *socket_of(int fd, Role role)
{
	return fd >= 0 && fd < MAX_FDS && sockets[fd].role == role ? &sockets[fd] : nullptr;
}

void list(const Socket &s, const char *what)
{
	static const char *const path = getenv("LAB_SOCKETS");
	static const char *const rank = getenv("RANK");
	char line[96];
	int fd, n;

	if (!path)
		return;
	n = snprintf(line, sizeof(line), "%s %s %llu\n", rank ? rank : "?", what,
		     (unsigned long long)s.address);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	(void)!write(fd, line, (size_t)n);
	(void)close(fd);
}

/* Returns the address at which the receiver listens; 0 = this is no IPv4 socket. */
uint64_t address_of(int fd, Role role)
{
	sockaddr_in in = {};
	socklen_t len = sizeof(in);
	int r = role == CONNECTS ? getpeername(fd, (sockaddr *)&in, &len)
				 : getsockname(fd, (sockaddr *)&in, &len);

	if (r < 0 || in.sin_family != AF_INET)
		return 0;
	return (uint64_t)ntohl(in.sin_addr.s_addr) << 16 | ntohs(in.sin_port);
}

void read_header(int fd, Socket &s, const void *data, size_t len)
{
	size_t n = std::min(HEADER_BYTES - s.n_header, len);

	if (n == 0)
		return;
	memcpy(s.header + s.n_header, data, n);
	s.n_header += n;
	if (s.n_header < HEADER_BYTES)
		return;
	memcpy(&s.type, s.header + HEADER_BYTES - sizeof(s.type), sizeof(s.type));
	if (s.type != TYPE_NET)
		return;
	s.address = address_of(fd, s.role);
	list(s, s.role == CONNECTS ? "connect" : "accept");
}

bool stalls_by_file(const Socket &s)
{
	static const char *const path = getenv("LAB_STALL_FILE");
	static uint64_t stalled;
	static uint64_t looked_ns;
	struct stat st;

	if (!path || !s.address)
		return false;
	if (!stalled && now_ns() - looked_ns > LOOK_EVERY_NS) {
		looked_ns = now_ns();
		if (stat(path, &st) == 0)
			stalled = s.address;
	}
	return stalled == s.address;
}

/* Returns how many of `len` bytes may pass. The faults of the other direction do not count. */
size_t may_move(Socket &s, bool is_send, size_t len)
{
	static const lab_faults *const faults = lab_faults_map();
	uint32_t n = faults ? __atomic_load_n(&faults->n_sockets, __ATOMIC_ACQUIRE) : 0;

	if (!s.address)
		return len;
	for (uint32_t i = 0; i < n && i < LAB_FAULTS_MAX_SOCKETS; i++) {
		uint32_t fault = faults->sockets[i].fault;
		uint64_t may = faults->sockets[i].bytes;

		if (faults->sockets[i].address != s.address ||
		    is_send != (fault != LAB_SOCKET_RECEIVES_NOTHING))
			continue;
		if (s.fault != fault) {
			s.fault = fault;
			s.since_ns = now_ns();
			s.moved = 0;
		}
		if (fault == LAB_SOCKET_SENDS_SLOWLY)
			may = (now_ns() - s.since_ns) / 1000 * may / 1000000;
		return std::min<uint64_t>(len, may > s.moved ? may - s.moved : 0);
	}
	s.fault = 0;
	return len;
}

} // namespace

void socket_connecting(int fd)
{
	begin(fd, CONNECTS);
}

void socket_accepted(int fd)
{
	begin(fd, ACCEPTS);
}

void socket_sent(int fd, const void *data, size_t len)
{
	Socket *s = socket_of(fd, CONNECTS);

	if (!s)
		return;
	s->moved += len;
	read_header(fd, *s, data, len);
	if (s->address && s->sent <= FIRST_BYTES && s->sent + len > FIRST_BYTES)
		list(*s, "sends");
	s->sent += len;
}

void socket_received(int fd, const void *data, size_t len)
{
	Socket *s = socket_of(fd, ACCEPTS);

	if (!s)
		return;
	s->moved += len;
	read_header(fd, *s, data, len);
}

size_t socket_may_send(int fd, size_t len)
{
	Socket *s = socket_of(fd, CONNECTS);

	if (!s)
		return len;
	return stalls_by_file(*s) ? 0 : may_move(*s, true, len);
}

size_t socket_may_receive(int fd, size_t len)
{
	Socket *s = socket_of(fd, ACCEPTS);

	return s ? may_move(*s, false, len) : len;
}

} // namespace lab
