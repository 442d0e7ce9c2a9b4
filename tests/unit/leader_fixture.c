/* SPDX-License-Identifier: Apache-2.0 */
#include "leader_fixture.h"

#include <string.h>

struct cluster c;

void leader_setup(void)
{
	cluster_init(&c, 3, 9);
	cluster_run(&c, 5);
}

void leader_teardown(void)
{
	cluster_fini(&c);
}

double leader_alert_delay_s(const struct cluster_alert *a)
{
	return (double)(a->at_ns - c.fault_ns) / 1e9;
}

bool leader_alert_has_note(const struct cluster_alert *a, const char *text)
{
	json_t *note;
	size_t i;

	json_array_foreach (json_object_get(json_object_get(a->doc, "coverage"), "notes"), i, note)
		if (strstr(json_string_value(note), text))
			return true;
	return false;
}
