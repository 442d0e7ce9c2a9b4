/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/peer_key_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "transport/secret_file.h"

#define MAX_FILE_BYTES 512u

static int digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

static int parse(const char *text, size_t len, const char *path, struct cw_peer_key *key,
		 struct cw_err *err)
{
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)text[i]))
			return cw_err_set(err, EINVAL,
					  "%s: not a key: something else than hex "
					  "digits in it",
					  path);
	if (len % 2 || len < CW_PEER_KEY_MIN_BYTES * 2 || len > CW_PEER_KEY_MAX_BYTES * 2)
		return cw_err_set(err, EINVAL, "%s: %zu hex digits are no key: it takes %u to %u",
				  path, len, CW_PEER_KEY_MIN_BYTES * 2, CW_PEER_KEY_MAX_BYTES * 2);
	for (size_t i = 0; i < len; i += 2)
		key->bytes[i / 2] = (uint8_t)(digit(text[i]) << 4 | digit(text[i + 1]));
	key->len = len / 2;
	return 0;
}

static struct cw_peer_key *alloc_key(void)
{
	void *page = mmap(NULL, sizeof(struct cw_peer_key), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, sizeof(struct cw_peer_key), MADV_WIPEONFORK) < 0) {
		(void)munmap(page, sizeof(struct cw_peer_key));
		return NULL;
	}
	/*
	 * Ignore errors of both calls. A low limit on locked memory is no reason to refuse to
	 * start.
	 */
	(void)madvise(page, sizeof(struct cw_peer_key), MADV_DONTDUMP);
	(void)mlock(page, sizeof(struct cw_peer_key));
	return page;
}

int cw_peer_key_load(const char *file, struct cw_peer_key **ret, struct cw_err *err)
{
	char where[CW_SECRET_FILE_PATH_BYTES];
	const char *path = cw_secret_file_where(file, where);
	/* Use O_NONBLOCK, because open() would block on a FIFO. The check below refuses a FIFO. */
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char text[MAX_FILE_BYTES];
	struct cw_peer_key *key;
	ssize_t n;
	int r;

	if (fd < 0)
		return cw_err_set(err, errno, "%s: %m", path);
	r = cw_secret_file_check(fd, path, CW_SECRET_FILE_KEY, err);
	if (r < 0)
		return r;
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return cw_err_set(err, errno, "%s: %m", path);
	key = alloc_key();
	r = key ? parse(text, (size_t)n, path, key, err) : cw_err_set(err, ENOMEM, "out of memory");
	OPENSSL_cleanse(text, sizeof(text));
	if (r < 0) {
		cw_peer_key_free(key);
		return r;
	}
	*ret = key;
	return 0;
}

struct cw_peer_key *cw_peer_key_free(struct cw_peer_key *key)
{
	if (!key)
		return NULL;
	OPENSSL_cleanse(key, sizeof(*key));
	(void)munmap(key, sizeof(*key));
	return NULL;
}
