/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs/numerics_bundle.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/verbs/numerics_gather.h"
#include "common/cleanup.h"
#include "report/bundle.h"
#include "report/doc/looks_doc.h"

bool numerics_bundle_is(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int numerics_bundle_read(const char *path, struct cw_numerics_input *ret, struct cw_err *err)
{
	_cleanup_(cw_bundle_fini) struct cw_bundle bundle = { 0 };
	_cleanup_(numerics_gather_fini) struct numerics_gather g = { NULL };
	struct numerics_page page;
	struct cw_err why = { "" };
	int r = cw_bundle_read(path, &bundle, &why);

	*ret = (struct cw_numerics_input){ .uid = -1 };
	if (r == 0 && !bundle.summaries)
		return cw_err_set(
			err, ENODATA,
			"%s: no tensor summaries in this bundle: the job ran without "
			"COLLWATCH_SUMMARY, its leader had none of its ranks, or they were too "
			"much for a copy: ask on the node that keeps the bundle",
			path);
	if (r == 0)
		r = numerics_gather_doc(&g, bundle.summaries, path, NULL, &page, &why);
	if (r == 0)
		r = numerics_gather_end(&g, ret);
	if (r == 0)
		ret->n_left_out = page.n_left_out;
	if (r < 0)
		return cw_err_set(err, -r, "%s: %s", path, why.text[0] ? why.text : strerror(-r));
	return 0;
}
