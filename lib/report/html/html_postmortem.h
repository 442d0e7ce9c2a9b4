/* SPDX-License-Identifier: Apache-2.0 */
/* Writes how a failed job ended, as a part of the page of its incident. */
#pragma once

#include <stdio.h>

#include "model/incident_list.h"

/* Writes the sections about the end. An incident whose job goes on has none. */
void html_put_postmortem(FILE *out, const struct cw_incident_facts *incident);
