/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "host:port" as people write it, and the names of nodes. Pure: a host name is only checked for its
 * form here, never looked up.
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
/* 0.0.0.0 or ::, which one can listen on but not connect to. */
bool cw_address_is_any(const struct cw_address *address);

bool cw_sockaddr_is_loopback(const struct sockaddr *address);
/* The address family's own length; 0 for one that is not of the internet. */
socklen_t cw_sockaddr_len(const struct sockaddr *address);

/* Letters, digits, ".-_"; fewer than CW_NODE_NAME_MAX. */
bool cw_node_name_is_valid(const char *name, size_t len);
