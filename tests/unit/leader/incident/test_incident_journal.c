/* SPDX-License-Identifier: Apache-2.0 */
#include "leader/incident/incident_journal.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/verdict_types.h"

static char *read_page(void)
{
	FILE *f = fopen(CW_DAEMON_PAGE, "r");
	char *text = calloc(1, 1 << 16);

	cr_assert_not_null(f);
	cr_assert_gt(fread(text, 1, (1 << 16) - 1, f), 0);
	cr_assert_eq(fclose(f), 0);
	return text;
}

Test(incident_journal, every_class_has_an_id_of_its_own_that_the_manual_page_lists)
{
	char *page = read_page();

	for (unsigned i = CW_CLASS_HEALTHY + 1; i < CW_CLASS__MAX; i++) {
		const char *id = cw_incident_journal_id(i);

		cr_assert_eq(strspn(id, "0123456789abcdef"), 32, "%s", id);
		cr_assert_eq(strlen(id), 32);
		cr_assert_not_null(strstr(page, id), "%s", cw_class_name(i));
		for (unsigned k = i + 1; k < CW_CLASS__MAX; k++)
			cr_assert_str_neq(id, cw_incident_journal_id(k));
	}
	cr_assert_not_null(strstr(page, CW_MESSAGE_ID_RESOLVED));
	cr_assert_not_null(strstr(page, CW_MESSAGE_ID_NOTICE));
	cr_assert_not_null(strstr(page, CW_MESSAGE_ID_POSTMORTEM));
	cr_assert_not_null(strstr(page, CW_MESSAGE_ID_LATE_RANK));
	free(page);
}

Test(incident_journal, ids_are_those_sites_filter_by)
{
	cr_assert_str_eq(cw_incident_journal_id(CW_CLASS_NEVER_ENTERED),
			 "a0fd266d5879403ba8c163ecc810b00a");
	cr_assert_str_eq(cw_incident_journal_id(CW_CLASS__MAX),
			 cw_incident_journal_id(CW_CLASS_UNKNOWN));
}
