/* SPDX-License-Identifier: Apache-2.0 */
/* Files are mapped under other files' names: a file's name identifies the caller of NCCL. */
#include "agent/record/modules.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/record/record.h"

#define MAPPED_BYTES 8192u
#define S UINT64_C(1000000000)

static void call_from(const char *name)
{
	char dir[] = "/tmp/collwatch-modules-XXXXXX", path[128];
	uint16_t module;
	uint32_t offset;
	void *map;
	int fd;

	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert(fd >= 0 && ftruncate(fd, MAPPED_BYTES) == 0);
	map = mmap(NULL, MAPPED_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert_neq(map, MAP_FAILED);
	cw_module_find(map, &module, &offset);
	cw_modules_resolve();
	cw_module_find(map, &module, &offset);
	cr_assert_neq(module, CW_REC_NO_SLOT, "%s was not found", name);
	(void)unlink(path);
	(void)rmdir(dir);
	(void)close(fd);
}

static void setup(void)
{
	cr_assert_eq(cw_record_create(false), 0);
}

TestSuite(agent_modules, .init = setup);

Test(agent_modules, assumes_the_default_time_out_where_pytorch_makes_the_calls)
{
	const struct cw_rec_header *h = cw_record.header;

	call_from("libnccl_wrapper.so");
	cr_expect_eq(h->job_timeout_ns, 0, "whose default is not known");
	call_from("libtorch_cuda.so");
	cr_expect_eq(h->job_timeout_ns, 600 * S);
	cr_expect_eq(h->is_timeout_assumed, 1);
}

Test(agent_modules, assumes_no_time_out_where_one_was_given)
{
	cw_record.header->job_timeout_ns = 1800 * S;
	call_from("libtorch_cuda.so");
	cr_expect_eq(cw_record.header->job_timeout_ns, 1800 * S);
	cr_expect_eq(cw_record.header->is_timeout_assumed, 0);
}

Test(agent_modules, assumes_no_time_out_where_what_was_given_says_none)
{
	strcpy(cw_record.header->job_timeout_source, "--ddp_timeout 60 in its arguments");
	call_from("libtorch_cuda.so");
	cr_expect_eq(cw_record.header->job_timeout_ns, 0);
	cr_expect_eq(cw_record.header->is_timeout_assumed, 0);
}
