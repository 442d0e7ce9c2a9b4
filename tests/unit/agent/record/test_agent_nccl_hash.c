/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's own hash of a communicator. The numbers come from NCCL's functions with these arguments.
 */
#include <criterion/criterion.h>

#include "agent/record/nccl_hash.h"

static ncclUniqueId sample(void)
{
	ncclUniqueId id;

	for (int i = 0; i < NCCL_UNIQUE_ID_BYTES; i++)
		id.internal[i] = (char)(i * 7 + 3);
	return id;
}

Test(agent_nccl_hash, equals_that_of_nccl)
{
	ncclUniqueId id = sample();
	struct cw_nccl_hashes h = cw_nccl_hash_of(&id);

	cr_assert_eq(h.now, 0x343193647d986d6e);
#ifdef __x86_64__ /* where a char has a sign */
	cr_assert_eq(h.once, 0x7cf8d8b1c466da05);
#endif
	cr_assert_eq(cw_nccl_hash_of_child(h.now, 2, 5), 0x84a448b334c99a42);
}

Test(agent_nccl_hash, depends_on_every_byte)
{
	ncclUniqueId id = sample();
	struct cw_nccl_hashes before = cw_nccl_hash_of(&id), after;

	for (int i = 0; i < NCCL_UNIQUE_ID_BYTES; i++) {
		id.internal[i] ^= 1;
		after = cw_nccl_hash_of(&id);
		cr_assert_neq(after.now, before.now, "byte %d", i);
		cr_assert_neq(after.once, before.once, "byte %d", i);
		id.internal[i] ^= 1;
	}
}
