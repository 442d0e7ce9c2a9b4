/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of single connections below NCCL's sockets (lab/nccl/faults.h). To NCCL, such a connection
 * looks like one whose network takes or brings no data. Each socket has one thread at a time.
 */
#pragma once

#include <cstddef>

namespace lab
{

/* Call these after the calls that they name. */
void socket_connecting(int fd);
void socket_accepted(int fd);
void socket_sent(int fd, const void *data, size_t len);
void socket_received(int fd, const void *data, size_t len);

/* Return how many of `len` bytes the socket may move now. */
size_t socket_may_send(int fd, size_t len);
size_t socket_may_receive(int fd, size_t len);

} // namespace lab
