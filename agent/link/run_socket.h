/* SPDX-License-Identifier: Apache-2.0 */
/* The `collwatch run` above this process, if there is one (proto/run_report.h). */
#pragma once

/*
 * Reports that there is a record (0), or for which errno there is none. One datagram that waits for
 * nothing; it is lost where nothing receives it. A thread of the application, once. Changes errno.
 */
void cw_run_socket_report(int error);
