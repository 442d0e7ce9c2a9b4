/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions, as linkers have them and as people wrote them. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/evidence/demangle.h"

static void expect(const char *symbol, const char *expected)
{
	char *name = cw_demangle(symbol);

	if (expected)
		cr_expect_str_eq(name ? name : "(none)", expected);
	else
		cr_expect_null(name, "%s is %s", symbol, name);
	free(name);
}

Test(demangle, names_are_those_that_were_written)
{
	char *name = cw_demangle("_ZN5torch8autogradL16THPVariable_itemEP7_objectS2_");

	if (!name)
		cr_skip_test("built without libiberty");
	free(name);
	expect("_ZL19socketProgressStateP10ncclSocket", "socketProgressState");
	expect("_ZN5torch8autogradL16THPVariable_itemEP7_objectS2_",
	       "torch::autograd::THPVariable_item");
	expect("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function");
}

Test(demangle, what_is_none_stays)
{
	static const char *const symbols[] = { "",           "main", "ncclAllReduce",
					       "_Z",         "_ZN",  "_R",
					       "_ZN5torchE", "?",    "__libc_start_main" };

	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		char *name = cw_demangle(symbols[i]);

		cr_expect(!name || strcmp(symbols[i], "_ZN5torchE") == 0, "%s", symbols[i]);
		free(name);
	}
}

/* Each level of it is a level of the reader's own stack. */
Test(demangle, nesting_without_end_is_refused, .timeout = 60)
{
	enum { DEPTH = 200000 };
	char *symbol = malloc(DEPTH + 16);

	cr_assert_not_null(symbol);
	memcpy(symbol, "_Z1f", 4);
	memset(symbol + 4, 'P', DEPTH);
	memcpy(symbol + 4 + DEPTH, "i", 2);
	free(cw_demangle(symbol));
	free(symbol);
}
