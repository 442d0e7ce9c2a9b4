/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal's message ids of incidents. Each class has its own id, so that a site can filter and
 * catalog them. The ids never change; collwatchd(8) lists them. Pure.
 */
#pragma once

#define CW_MESSAGE_ID_NOTICE "5f0d7c62be1a4f3c9a8e21d4b7603e95"
/* Message id of the post-mortem of a failed job (leader/postmortem.h). */
#define CW_MESSAGE_ID_POSTMORTEM "5f0e2c7b8d1a4d3c9a61e07b3c94d2f8"
/* Message id of a rank that is late while its job makes progress (leader/late_ranks.h). */
#define CW_MESSAGE_ID_LATE_RANK "b83b64cfe4164e5a9a05949efe3cfd06"
#define CW_MESSAGE_ID_RESOLVED "b2a4c1d97e634f58a0c35de9174f86ab"

/* Returns the message id for an enum cw_class: 32 hex digits. */
const char *cw_incident_journal_id(unsigned verdict_class);
