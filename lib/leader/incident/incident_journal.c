/* SPDX-License-Identifier: Apache-2.0 */
#include "leader/incident/incident_journal.h"

#include "model/verdict_types.h"

const char *cw_incident_journal_id(unsigned verdict_class)
{
	static const char *const ids[CW_CLASS__MAX] = {
		[CW_CLASS_PROCESS_DEAD] = "11880e379ace4525ac7bf896176ebc15",
		[CW_CLASS_NODE_UNREACHABLE] = "abf77be7732345c3aace673767b5917c",
		[CW_CLASS_NEVER_ENTERED] = "a0fd266d5879403ba8c163ecc810b00a",
		[CW_CLASS_MISMATCH] = "a7cf40ae5f974388a2c3f9a0ab781f11",
		[CW_CLASS_DEADLOCK] = "2d395adbba084ac2a96102f81e6b14a2",
		[CW_CLASS_P2P_UNMATCHED] = "244ffe8abd314b3fa4e1f001af298c5f",
		[CW_CLASS_INIT_STUCK] = "668b5cb8034e494ca42695a433599504",
		[CW_CLASS_DEVICE_STALLED] = "75614c4c89ed44aca61759eecceef9d6",
		[CW_CLASS_IN_COLLECTIVE] = "54a25166c3474f7fa02b8b7f6cdf6bd3",
		[CW_CLASS_SLOW] = "ea8852a09c7a474ca4d4937f138e6884",
		[CW_CLASS_UNKNOWN] = "6d0f3e5b0f5c4d0e9c1f4b7a52d8e391",
	};

	/* A newer engine may use a class that we do not know. The verdict is still an incident. */
	return verdict_class < CW_CLASS__MAX && ids[verdict_class] ? ids[verdict_class]
								   : ids[CW_CLASS_UNKNOWN];
}
