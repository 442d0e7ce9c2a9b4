/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "model/death.h"

#ifdef __GLIBC_PREREQ
#define HAS_SIGABBREV __GLIBC_PREREQ(2, 32)
#else
#define HAS_SIGABBREV 0
#endif

#if !HAS_SIGABBREV
#define sigabbrev_np cw_signal_name
#endif

Test(death, names_signals_as_the_c_library_does)
{
	for (int sig = -1; sig < 128; sig++) {
		const char *own = cw_signal_name(sig), *libc = sigabbrev_np(sig);

		cr_expect_eq(!own, !libc, "signal %d", sig);
		if (own && libc)
			cr_expect_str_eq(own, libc, "signal %d", sig);
	}
	cr_expect_str_eq(cw_signal_name(9), "KILL");
	cr_expect_null(cw_signal_name(0));
}
