/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal's own protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): one datagram of fields. So
 * machines without systemd need no library of it.
 */
#pragma once

#include <sys/uio.h>

/*
 * Sends n fields, each "NAME=value"; a value may have several lines. Does not wait. Returns 0, or
 * -errno if the journal got nothing. -EAGAIN: the journal has not read the earlier entries.
 */
int cw_journal_send(const struct iovec *fields, unsigned n);
/* The same for a journal that listens on another socket. */
int cw_journal_send_to(const char *socket_path, const struct iovec *fields, unsigned n);
