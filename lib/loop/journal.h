/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal's own protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): one datagram of fields, so that
 * no library of systemd's is needed where there is no systemd.
 */
#pragma once

#include <sys/uio.h>

/*
 * Sends n fields, "NAME=value" each, whose values may have several lines. Does not wait:
 * 0 or -errno, nothing was taken; -EAGAIN: the journal has not read what came before.
 */
int cw_journal_send(const struct iovec *fields, unsigned n);
/* The same to a journal that listens elsewhere. */
int cw_journal_send_to(const char *socket_path, const struct iovec *fields, unsigned n);
