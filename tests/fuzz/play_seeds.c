/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for the fuzzer: gives a target each file of the directories named, once. So a target
 * that can no longer run is seen by the first tests, with any compiler, and not by the last ones.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

/* libFuzzer's own, which a target's mutator calls: nothing is mutated here. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
	return size;
}

static void play(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	uint8_t *data;
	struct stat st;

	FUZZ_CHECK(fd >= 0 && fstat(fd, &st) == 0);
	/* Of its own size: a sanitizer sees a read past the end. */
	data = malloc(st.st_size ? (size_t)st.st_size : 1);
	FUZZ_CHECK(data && read(fd, data, (size_t)st.st_size) == st.st_size);
	(void)close(fd);
	(void)fprintf(stderr, "%s\n", name); /* the last one is to blame */
	(void)LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
	free(data);
}

static unsigned play_all(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	if (!dir) {
		(void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	for (const struct dirent *e; (e = readdir(dir));)
		if (e->d_name[0] != '.') {
			play(dirfd(dir), e->d_name);
			n++;
		}
	(void)closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	unsigned n = 0;

	for (int i = 1; i < argc; i++)
		n += play_all(argv[i]);
	(void)fprintf(stderr, "%u inputs\n", n);
	return n ? 0 : 1;
}
