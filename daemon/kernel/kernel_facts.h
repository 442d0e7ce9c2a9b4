/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interprets the kernel's notes about a process (bpf/process_facts.h): how it ended, and why. We
 * claim no more than the notes show. For example, a signal that does not match the exit status was
 * not the cause.
 *
 * Any thread; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpf/process_facts.h"
#include "daemon/kernel/liveness.h"
#include "model/cause.h"
#include "model/facts.h"

/*
 * Tells how the process ended. Returns 0 with *ret set, or CW_LIVENESS_AGAIN if the kernel has
 * noted no end.
 */
int cw_kernel_facts_ending(const struct cw_facts_process *facts, struct cw_ending *ret);

/*
 * Returns the time from the beginning of the process's end to monotonic_ns (CLOCK_MONOTONIC), in
 * ns. The kernel closes the process's sockets afterwards (do_exit() in kernel/exit.c), so the other
 * ranks notice the end later. -1 = the process lives, or the numbers make no sense. The latter
 * happens in another time namespace.
 */
int64_t cw_kernel_facts_ended_age_ns(const struct cw_facts_process *facts, int64_t monotonic_ns);

/*
 * Returns the party that ended the process, such as the process itself, the kernel, its parent or
 * another process. *ret_sender: the pid of the sender; 0 = there is none.
 */
enum cw_end_by cw_kernel_facts_end_by(const struct cw_facts_process *facts, int32_t *ret_sender);

/*
 * Stores the process that sent the signal in *cause: its pid, its user, and its name as printable
 * ASCII.
 */
void cw_kernel_facts_set_process(const struct cw_facts_signal *s, struct cw_cause *cause);

/*
 * Explains the state of the process. is_stopped: the process lives, but is stopped. page_bytes:
 * this machine's page size. The kind is CW_CAUSE_UNKNOWN if the notes explain nothing.
 */
struct cw_cause cw_kernel_facts_cause(const struct cw_facts_process *facts, bool is_stopped,
				      uint64_t page_bytes);
