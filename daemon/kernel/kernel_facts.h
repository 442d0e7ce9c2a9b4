/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interprets the kernel's notes about a process (bpf/process_facts.h): how it ended, and the cause.
 * We claim no more than the notes show: a signal that does not match the exit status was not the
 * cause.
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

/* Decodes how the process ended. CW_LIVENESS_AGAIN: the kernel has not noted an end. */
int cw_kernel_facts_ending(const struct cw_facts_process *facts, struct cw_ending *ret);

/*
 * Returns how many ns before monotonic_ns (CLOCK_MONOTONIC) the process began to end. Its peers
 * notice the end later, because the kernel closes its sockets after that (do_exit() in
 * kernel/exit.c). -1 = it lives, or the numbers make no sense, as in another time namespace.
 */
int64_t cw_kernel_facts_ended_age_ns(const struct cw_facts_process *facts, int64_t monotonic_ns);

/* Names the party that ended the process. *ret_sender is a pid, or 0. */
enum cw_end_by cw_kernel_facts_end_by(const struct cw_facts_process *facts, int32_t *ret_sender);

/* Sets the process that sent the signal in *cause: its pid, user and name, as printable ASCII. */
void cw_kernel_facts_set_process(const struct cw_facts_signal *s, struct cw_cause *cause);

/*
 * Explains the process's state. is_stopped: the process lives and is stopped. page_bytes is this
 * machine's page size. The kind is CW_CAUSE_UNKNOWN if there is nothing to say.
 */
struct cw_cause cw_kernel_facts_cause(const struct cw_facts_process *facts, bool is_stopped,
				      uint64_t page_bytes);
