/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's description of how a process ended ("killed by SIGTERM sent by …"), used in
 * a sentence.
 */
#pragma once

/*
 * The verb between the process and this description: "was ", or "" if the description has its own
 * verb ("exited …", "killed itself …") or is empty. cause may be NULL. Pure.
 */
const char *cw_cause_verb(const char *cause);
