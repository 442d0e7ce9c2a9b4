/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's registers of a thread by their DWARF numbers, as the unwinder reads them. Pure. */
#pragma once

#include <stdint.h>
#include <string.h>
#include <sys/user.h>

/* Number of registers that cw_stack_registers() may write. */
#define CW_STACK_REGISTERS 32u

/* Writes the first registers of `regs`: 16 on x86-64, 32 on aarch64. */
static inline void cw_stack_registers(const struct user_regs_struct *u,
				      uint64_t regs[static CW_STACK_REGISTERS], uint64_t *ret_sp,
				      uint64_t *ret_pc)
{
#if defined(__x86_64__)
	const uint64_t in_order[] = { u->rax, u->rdx, u->rcx, u->rbx, u->rsi, u->rdi,
				      u->rbp, u->rsp, u->r8,  u->r9,  u->r10, u->r11,
				      u->r12, u->r13, u->r14, u->r15 };

	memcpy(regs, in_order, sizeof(in_order));
	*ret_sp = u->rsp;
	*ret_pc = u->rip;
#elif defined(__aarch64__)
	memcpy(regs, u->regs, sizeof(u->regs));
	regs[31] = u->sp;
	*ret_sp = u->sp;
	*ret_pc = u->pc;
#else
#error "which registers does this machine have?"
#endif
}
