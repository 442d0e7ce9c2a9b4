/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal's own protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): one datagram of fields. We link
 * to no library of systemd, so we also run on machines without systemd.
 */
#pragma once

#include <sys/uio.h>

/*
 * Sends n fields to the journal, each "NAME=value". A value may have several lines. Does not wait.
 * Returns 0, or -errno if the journal got nothing. -EAGAIN means that the journal has not yet read
 * earlier entries.
 */
int cw_journal_send(const struct iovec *fields, unsigned n);
/* Like cw_journal_send(), but for a journal that listens on another socket. */
int cw_journal_send_to(const char *socket_path, const struct iovec *fields, unsigned n);
