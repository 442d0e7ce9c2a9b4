/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's words for how a process ended ("killed by SIGTERM sent by …"), in a sentence. */
#pragma once

/*
 * What goes between the process and the words: "was ", or "" where they have a verb of their own
 * ("exited …", "killed itself …") and where there are none. cause may be NULL. Pure.
 */
const char *cw_cause_verb(const char *cause);
