/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket of the `collwatch run` that started this program, if there is one
 * (proto/run_report.h).
 */
#pragma once

/*
 * Reports to `collwatch run` that the record exists (0), or the errno that prevented it. Sends one
 * datagram without blocking. The datagram is lost if no process receives it. A thread of the
 * application calls this function once. Changes errno.
 */
void cw_run_socket_report(int error);
