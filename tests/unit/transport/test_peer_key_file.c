/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/peer_key_file.h"
#include "transport/secret_file.h"

#define HEX16 "00112233445566778899aAbBcCdDeEfF"

static char dir[] = "/tmp/cw-key-XXXXXX";
static char path[64];

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/key", dir);
}

static void teardown(void)
{
	(void)unlink(path);
	cr_assert_eq(rmdir(dir), 0);
}

static void put(const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	cr_assert_not_null(f);
	cr_assert_geq(fputs(text, f), 0);
	cr_assert_eq(fchmod(fileno(f), mode), 0);
	cr_assert_eq(fclose(f), 0);
}

static int load(struct cw_err *err)
{
	struct cw_peer_key *key = NULL;
	int r;

	err->text[0] = '\0';
	r = cw_peer_key_load(path, &key, err);
	cr_assert_eq(r == 0, key != NULL);
	cw_peer_key_free(key);
	return r;
}

TestSuite(peer_key, .init = setup, .fini = teardown);

Test(peer_key, hex_of_enough_bytes_is_a_key)
{
	struct cw_peer_key *key = NULL;
	struct cw_err err = { "" };

	put(HEX16 HEX16 "\n", 0600);
	cr_assert_eq(cw_peer_key_load(path, &key, &err), 0, "%s", err.text);
	cr_assert_eq(key->len, 32);
	cr_assert_eq(key->bytes[0], 0);
	cr_assert_eq(key->bytes[10], 0xaa);
	cr_assert_eq(key->bytes[31], 0xff);
	cw_peer_key_free(key);
	put(HEX16 HEX16 HEX16 HEX16, 0400);
	cr_assert_eq(load(&err), 0, "%s", err.text);
}

Test(peer_key, what_is_no_key_is_refused_with_the_reason)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "0 hex digits" },
		{ HEX16 "\n", "32 hex digits are no key" },
		{ HEX16 HEX16 "a", "65 hex digits" },
		{ HEX16 HEX16 HEX16 HEX16 "aa", "130 hex digits" },
		{ HEX16 HEX16 "zz", "something else than hex" },
		{ HEX16 "\n" HEX16, "something else than hex" },
	};
	struct cw_err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put(cases[i].text, 0600);
		cr_assert_eq(load(&err), -EINVAL, "case %zu", i);
		cr_assert_not_null(strstr(err.text, cases[i].says), "case %zu: %s", i, err.text);
		cr_assert_null(strstr(err.text, "0011"), "a key must not get into logs");
	}
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(load(&err), -ENOENT);
	cr_assert_not_null(strstr(err.text, path), "%s", err.text);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(load(&err), -EINVAL);
	cr_assert_not_null(strstr(err.text, "not a regular file"), "%s", err.text);
}

Test(peer_key, file_that_others_can_get_at_is_refused)
{
	static const mode_t modes[] = { 0640, 0604, 0620, 0660, 0644, 0601, 0777 };
	struct cw_err err;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		put(HEX16 HEX16, modes[i]);
		cr_assert_eq(load(&err), -EACCES, "%o", modes[i]);
		cr_assert_not_null(strstr(err.text, "chmod 600"), "%s", err.text);
	}
}

Test(peer_key, file_of_another_user_is_refused)
{
	struct cw_err err;

	if (geteuid() != 0)
		cr_skip_test("needs root to give a file away");
	put(HEX16 HEX16, 0600);
	cr_assert_eq(chown(path, 65534, 65534), 0);
	cr_assert_eq(load(&err), -EACCES);
	cr_assert_not_null(strstr(err.text, "belongs to user 65534"), "%s", err.text);
}

Test(peer_key, credentials_of_the_service_manager_may_show_the_groups_bit)
{
	struct cw_err err;

	cr_assert_eq(setenv("CREDENTIALS_DIRECTORY", dir, 1), 0);
	put(HEX16 HEX16, 0440);
	cr_assert_eq(load(&err), 0, "%s", err.text);
	put(HEX16 HEX16, 0444);
	cr_assert_eq(load(&err), -EACCES);
	cr_assert_eq(setenv("CREDENTIALS_DIRECTORY", "/tmp/cw-key", 1), 0);
	put(HEX16 HEX16, 0440);
	cr_assert_eq(load(&err), -EACCES); /* the name only begins alike */
}

/* As in the check before a reload: systemd 252 shows it no credentials. */
Test(peer_key, credential_that_is_not_at_its_place_is_read_where_the_service_manager_says)
{
	char where[CW_SECRET_FILE_PATH_BYTES];

	cr_assert_eq(unsetenv("CREDENTIALS_DIRECTORY"), 0);
	cr_expect_str_eq(cw_secret_file_where("/run/credentials/no.service/a", where),
			 "/run/credentials/no.service/a");
	cr_assert_eq(setenv("CREDENTIALS_DIRECTORY", "/proc/1/root/run/credentials/x", 1), 0);
	cr_expect_str_eq(cw_secret_file_where("/run/credentials/no.service/a", where),
			 "/proc/1/root/run/credentials/x/a");
	cr_expect_str_eq(cw_secret_file_where("/run/credentials/a", where), "/run/credentials/a");
	cr_expect_str_eq(cw_secret_file_where("/etc/nothing/here/a", where), "/etc/nothing/here/a");
	cr_assert_eq(unsetenv("CREDENTIALS_DIRECTORY"), 0);
}

Test(peer_key, children_do_not_inherit_it)
{
	struct cw_peer_key *key = NULL;
	struct cw_err err = { "" };
	int status;
	pid_t pid;

	put(HEX16 HEX16, 0600);
	cr_assert_eq(cw_peer_key_load(path, &key, &err), 0, "%s", err.text);
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < sizeof(key->bytes); i++)
			if (key->bytes[i])
				_exit(1);
		_exit(0);
	}
	cr_assert_gt(pid, 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	cr_assert_eq(key->bytes[31], 0xff);
	cw_peer_key_free(key);
}
