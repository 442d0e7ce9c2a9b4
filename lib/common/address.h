/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parse "host:port" and check the names of nodes. Pure: we check only the form of a host name and
 * never look it up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/err.h"

/* RFC 1035: 253 characters. */
#define CW_ADDRESS_MAX_HOST 254u
#define CW_NODE_NAME_MAX 64u

struct cw_address {
	char host[CW_ADDRESS_MAX_HOST]; /* without brackets */
	uint16_t port;
	struct sockaddr_storage numeric; /* with the port */
	socklen_t len;                   /* of numeric; 0 = host is a name */
};

/* "10.0.0.1:7411", "[fd00::1]:7411", "node-a.example.org:7411". -EINVAL with err set. */
int cw_address_parse(const char *text, struct cw_address *ret, struct cw_err *err);
/* 127.0.0.0/8 and ::1; a host name never is. */
bool cw_address_is_loopback(const struct cw_address *address);
/* 0.0.0.0 or ::. A server can listen on it, but a client cannot connect to it. */
bool cw_address_is_any(const struct cw_address *address);

bool cw_sockaddr_is_loopback(const struct sockaddr *address);
/* The size of the sockaddr of its family; 0 for families other than AF_INET and AF_INET6. */
socklen_t cw_sockaddr_len(const struct sockaddr *address);

/* Names consist of letters, digits and ".-_", and have fewer than CW_NODE_NAME_MAX bytes. */
bool cw_node_name_is_valid(const char *name, size_t len);
