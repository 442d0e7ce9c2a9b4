/* SPDX-License-Identifier: Apache-2.0 */
#include "leader_fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/frame.h"

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

void leader_hear(struct network_node *n, const struct cw_message *sent)
{
	struct cw_message *msg;
	uint8_t *bytes;
	size_t len;

	cr_assert_eq(cw_message_encode(sent, &bytes, &len), 0);
	cr_assert_eq(
		cw_message_decode(bytes + CW_FRAME_HEADER_BYTES, len - CW_FRAME_HEADER_BYTES, &msg),
		0);
	cr_assert(cw_leader_message(n->leader, n->name, &msg));
	cw_message_free(msg);
	free(bytes);
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
