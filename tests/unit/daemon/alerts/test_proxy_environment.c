/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/alerts/proxy_environment.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static void clear(void)
{
	static const char *const names[] = { "http_proxy",  "HTTP_PROXY", "https_proxy",
					     "HTTPS_PROXY", "all_proxy",  "ALL_PROXY",
					     "no_proxy",    "NO_PROXY" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

TestSuite(proxy_environment, .init = clear);

Test(proxy_environment, variables_are_read_as_curl_reads_them)
{
	cr_assert_str_eq(cw_proxy_for("https", "h"), "");
	setenv("ALL_PROXY", "all", 1);
	cr_assert_str_eq(cw_proxy_for("https", "h"), "all");
	cr_assert_str_eq(cw_proxy_for("http", "h"), "all");
	setenv("HTTPS_PROXY", "upper", 1);
	setenv("HTTP_PROXY", "from a request", 1);
	cr_assert_str_eq(cw_proxy_for("https", "h"), "upper");
	cr_assert_str_eq(cw_proxy_for("http", "h"), "all");
	setenv("https_proxy", "lower", 1);
	setenv("http_proxy", "plain", 1);
	cr_assert_str_eq(cw_proxy_for("https", "h"), "lower");
	cr_assert_str_eq(cw_proxy_for("http", "h"), "plain");
	setenv("https_proxy", "", 1); /* as good as none */
	cr_assert_str_eq(cw_proxy_for("https", "h"), "upper");
	setenv("NO_PROXY", "h", 1);
	cr_assert_str_eq(cw_proxy_for("https", "h"), "");
	setenv("no_proxy", "other", 1);
	cr_assert_str_eq(cw_proxy_for("https", "h"), "upper");
}

Test(proxy_environment, no_proxy_matches_names_domains_and_networks)
{
	static const struct {
		const char *list, *host;
		bool is_bypassed;
	} rows[] = {
		{ "*", "a.example.org", true },
		{ "*", "10.0.0.1", true },
		{ "", "a.example.org", false },
		{ "example.org", "example.org", true },
		{ "example.org", "EXAMPLE.ORG.", true },
		{ "example.org.", "a.example.org", true },
		{ ".example.org", "a.example.org", true },
		{ ".example.org", "example.org", true },
		{ "example.org", "badexample.org", false },
		{ "example.org", "example.org.evil.net", false },
		{ "a.example.org", "example.org", false },
		{ "localhost, ,example.org", "example.org", true },
		{ "localhost example.org", "example.org", true },
		{ ".", "example.org", false },
		{ "10.0.0.1", "10.0.0.1", true },
		{ "10.0.0.1", "110.0.0.1", false },
		{ "0.0.1", "10.0.0.1", false },
		{ "10.0.0.0/8,x", "10.200.0.1", true },
		{ "10.0.0.0/8", "11.0.0.1", false },
		{ "192.168.4.0/22", "192.168.7.255", true },
		{ "192.168.4.0/22", "192.168.8.0", false },
		{ "0.0.0.0/0", "8.8.8.8", true },
		{ "10.0.0.0/33", "10.0.0.0", false },
		{ "10.0.0.0/", "10.0.0.0", false },
		{ "10.0.0.0/8", "fd00::1", false },
		{ "fd00::/8", "fd12::1", true },
		{ "fd00::/8", "fe00::1", false },
		{ "fd00:0::1", "fd00::1", true },
		{ "2001:db8::/127", "2001:db8::1", true },
		{ "2001:db8::/127", "2001:db8::2", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(cw_proxy_is_bypassed(rows[i].list, rows[i].host), rows[i].is_bypassed,
			     "%s, %s", rows[i].list, rows[i].host);
}
