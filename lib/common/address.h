/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses "host:port" and checks the names of nodes. Pure: we check only the form of a host name and
 * never look it up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/err.h"

/* The size of a host name with its NUL. RFC 1035 allows names of 253 characters. */
#define CW_ADDRESS_MAX_HOST 254u
#define CW_NODE_NAME_MAX 64u

struct cw_address {
	char host[CW_ADDRESS_MAX_HOST]; /* without the brackets of "[fd00::1]" */
	uint16_t port;
	struct sockaddr_storage numeric; /* the host's address, with the port */
	socklen_t len;                   /* length of `numeric`; 0 = the host is a name */
};

/*
 * Parses "10.0.0.1:7411", "[fd00::1]:7411" or "node-a.example.org:7411". Returns 0, or -EINVAL with
 * err set.
 */
int cw_address_parse(const char *text, struct cw_address *ret, struct cw_err *err);
/* Returns whether the host is 127.0.0.0/8 or ::1. Always false for a host name. */
bool cw_address_is_loopback(const struct cw_address *address);
/*
 * Returns whether the host is 0.0.0.0 or ::. A server can listen on such an address, but a client
 * cannot connect to it.
 */
bool cw_address_is_any(const struct cw_address *address);

bool cw_sockaddr_is_loopback(const struct sockaddr *address);
/*
 * Returns the size of an address, which follows from its family. Returns 0 for families other than
 * AF_INET and AF_INET6.
 */
socklen_t cw_sockaddr_len(const struct sockaddr *address);

/*
 * Returns whether the name consists of letters, digits and ".-_", and has fewer than
 * CW_NODE_NAME_MAX bytes.
 */
bool cw_node_name_is_valid(const char *name, size_t len);
