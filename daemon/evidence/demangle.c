/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/demangle.h"

#include <stddef.h>

#ifdef CW_DEMANGLE_H
#include CW_DEMANGLE_H

char *cw_demangle(const char *symbol)
{
	return cplus_demangle(symbol, DMGL_AUTO);
}
#else
char *cw_demangle(const char *symbol)
{
	(void)symbol;
	return NULL;
}
#endif
