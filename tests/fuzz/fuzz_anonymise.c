/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any JSON as a document to make anonymous: a host's name stays in no text of it, and the result
 * is a document again.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "report/anonymise/anonymise.h"
#include "tests/fuzz/fuzz.h"

#define HOST "zqx17host"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *doc = json_loadb((const char *)data, size, 0, NULL), *host;
	char *text;

	if (!doc)
		return 0;
	host = json_pack("{s:s, s:s, s:[{s:s, s:[{s:s, s:i, s:i}, {s:s, s:i}, {s:s, s:s}]}]}",
			 "host", HOST, "summary", "rank 3 (" HOST ") is away", "summary_said",
			 "saying", "never_reached", "args", "host", HOST, "rank", 3, "pid", 7,
			 "call", "all_reduce", "seq", 9, "comm", "0x1", "comm_name", HOST);
	FUZZ_CHECK(host);
	doc = json_pack("[o, o]", doc, host);
	FUZZ_CHECK(doc && cw_anonymise(&doc, 1) == 0);
	text = json_dumps(doc, JSON_ENCODE_ANY);
	FUZZ_CHECK(text);
	free(text);
	text = json_dumps(json_array_get(doc, 1), 0);
	FUZZ_CHECK(text && !strstr(text, HOST));
	free(text);
	json_decref(doc);
	return 0;
}
