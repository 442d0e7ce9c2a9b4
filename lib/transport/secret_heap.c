/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/secret_heap.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

/*
 * Size of the heap, a power of two. Each TLS handshake, also for the webhook, takes some hundred
 * bytes for its ephemeral key. This size suffices for handshakes with all peers of a list at once.
 */
#define HEAP_BYTES (1u << 20)
#define SMALLEST_BYTES 32u

/*
 * Finds the memory mapping of OpenSSL's secure heap. OpenSSL does not reveal where its heap begins.
 * The heap has guard pages on both sides, so it is a mapping of its own.
 */
static int find_mapping(const void *address, uintptr_t *ret_start, uintptr_t *ret_end)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uintptr_t wanted = (uintptr_t)address, start, end;
	char line[512];
	int r = -ENOENT;

	if (!f)
		return -errno;
	while (r < 0 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) == 2 && wanted >= start &&
		    wanted < end)
			r = 0;
	}
	(void)fclose(f);
	if (r == 0) {
		*ret_start = start;
		*ret_end = end;
	}
	return r;
}

static int hide_from_children(struct cw_err *err)
{
	void *inside = OPENSSL_secure_malloc(SMALLEST_BYTES);
	uintptr_t start, end;
	int r;

	if (!inside || !CRYPTO_secure_allocated(inside)) {
		OPENSSL_secure_free(inside); /* takes NULL */
		return cw_err_set(err, ENOMEM, "no memory for private keys");
	}
	r = find_mapping(inside, &start, &end);
	OPENSSL_secure_free(inside);
	if (r < 0 || end - start != HEAP_BYTES)
		return cw_err_set(err, r < 0 ? -r : EINVAL, "cannot find the heap of private keys");
	if (madvise((void *)start, end - start, MADV_WIPEONFORK) < 0)
		return cw_err_set(err, errno, "private keys cannot be hidden from children: %m");
	/* May fail: OpenSSL has made this call already. */
	(void)madvise((void *)start, end - start, MADV_DONTDUMP);
	return 0;
}

int cw_secret_heap_open(struct cw_err *err)
{
	static int result = 1; /* 1 = not tried yet */

	if (result > 0) {
		/*
		 * OpenSSL returns 2 if it could not lock the heap in memory. We accept this,
		 * because a low limit on locked memory is no reason to refuse to start.
		 */
		if (!CRYPTO_secure_malloc_initialized() &&
		    CRYPTO_secure_malloc_init(HEAP_BYTES, SMALLEST_BYTES) == 0)
			return cw_err_set(err, ENOMEM, "no memory for private keys");
		result = hide_from_children(err);
		return result;
	}
	return result < 0 ? cw_err_set(err, -result, "private keys cannot be hidden from children")
			  : 0;
}
