/* SPDX-License-Identifier: Apache-2.0 */
#include "report/cause.h"

#include <stddef.h>
#include <string.h>

const char *cw_cause_verb(const char *cause)
{
	static const char *const verbs[] = { "exited", "killed itself" };

	if (!cause || !*cause)
		return "";
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strncmp(cause, verbs[i], strlen(verbs[i])) == 0)
			return "";
	return "was ";
}
