/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's side noted about a process (bpf/process_facts.h), judged: how it ended and the
 * sentence that says who or what had a hand in it. Claims no more than what is noted: a signal that
 * does not fit the exit status was not the cause.
 *
 * Any thread; nothing blocks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bpf/process_facts.h"
#include "daemon/kernel/liveness.h"
#include "model/facts.h"

#define CW_CAUSE_BYTES 160

/* How it ended; CW_LIVENESS_AGAIN when the kernel has not seen it end. */
int cw_kernel_facts_ending(const struct cw_facts_process *facts, struct cw_ending *ret);

/*
 * How long ago it began to end, at monotonic_ns (CLOCK_MONOTONIC): before its peers could
 * notice, for its sockets are closed after that (do_exit() in kernel/exit.c). -1 = it lives, or
 * the numbers make no sense, as in another time namespace.
 */
int64_t cw_kernel_facts_ended_age_ns(const struct cw_facts_process *facts, int64_t monotonic_ns);

/* Whose doing its end was. *ret_sender: a pid, or 0. */
enum cw_end_by cw_kernel_facts_end_by(const struct cw_facts_process *facts, int32_t *ret_sender);

/* Appends "python3 (pid 4242, uid 1000)". The process chooses the name itself. */
void cw_kernel_facts_add_process(const struct cw_facts_signal *s, char *buf, size_t len);

/*
 * Why the process is in the state it is in, as what follows "rank 4 was": "killed by SIGKILL sent
 * by pid 4242 (python3, uid 1000)", "exited with status 1", "stopped by SIGSTOP …". is_stopped:
 * it lives and is stopped. page_bytes: of this machine. Printable ASCII; empty when there is
 * nothing to say. buf: CW_CAUSE_BYTES.
 */
void cw_kernel_facts_say(const struct cw_facts_process *facts, bool is_stopped, int64_t page_bytes,
			 char *buf, size_t len);
