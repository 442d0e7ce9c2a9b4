/* SPDX-License-Identifier: Apache-2.0 */
/* Prints how a failed job ended, as a part of the report of its incident. */
#pragma once

#include "model/incident_list.h"
#include "report/text.h"

/* Prints the facts about the end. An incident whose job goes on has none, and prints nothing. */
void cw_render_postmortem(const struct cw_text *t, const struct cw_incident_facts *incident);
