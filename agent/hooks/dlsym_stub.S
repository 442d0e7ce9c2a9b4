/* SPDX-License-Identifier: Apache-2.0 */
/*
 * void *dlsym(void *handle, const char *name)
 *
 * The stub offers names that start with "nccl", "cuG" or "cuS" to cw_dlsym_nccl(). For every other
 * name it makes a tail jump to the next dlsym, so that the latter sees the caller's return address.
 * We compare byte by byte, because a short name may end at the end of a page.
 */
	.text
	.globl	dlsym
	.type	dlsym, %function
	.hidden	cw_next_dlsym
	.hidden	cw_dlsym_nccl
	.hidden	cw_dlsym_bootstrap
	.p2align 4

#if defined(__x86_64__)
dlsym:
	.cfi_startproc
	endbr64
	testq	%rsi, %rsi
	jz	.Lnext
	cmpb	$'n', (%rsi)
	jne	.Lcuda
	cmpb	$'c', 1(%rsi)
	jne	.Lnext
	cmpb	$'c', 2(%rsi)
	jne	.Lnext
	cmpb	$'l', 3(%rsi)
	jne	.Lnext
.Lours:
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	cw_dlsym_nccl
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%rax, %rax
	jz	.Lnext
	cmpq	$-1, %rax
	je	.Labsent
	ret
.Labsent:
	xorl	%eax, %eax
	ret
.Lcuda:
	cmpb	$'c', (%rsi)
	jne	.Lnext
	cmpb	$'u', 1(%rsi)
	jne	.Lnext
	cmpb	$'G', 2(%rsi)
	je	.Lours
	cmpb	$'S', 2(%rsi)
	je	.Lours
.Lnext:
	movq	cw_next_dlsym(%rip), %rax
	testq	%rax, %rax
	jz	.Lbootstrap
	jmp	*%rax
.Lbootstrap:
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	cw_dlsym_bootstrap
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%rax, %rax
	jz	.Labsent
	jmp	*%rax
	.cfi_endproc

#elif defined(__aarch64__)
dlsym:
	.cfi_startproc
	hint	#34			/* bti c */
	cbz	x1, .Lnext
	ldrb	w9, [x1]
	cmp	w9, #'n'
	b.ne	.Lcuda
	ldrb	w9, [x1, #1]
	cmp	w9, #'c'
	b.ne	.Lnext
	ldrb	w9, [x1, #2]
	cmp	w9, #'c'
	b.ne	.Lnext
	ldrb	w9, [x1, #3]
	cmp	w9, #'l'
	b.ne	.Lnext
.Lours:
	stp	x29, x30, [sp, #-32]!
	.cfi_adjust_cfa_offset 32
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	stp	x0, x1, [sp, #16]
	mov	x29, sp
	bl	cw_dlsym_nccl
	mov	x9, x0
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_adjust_cfa_offset -32
	.cfi_restore x29
	.cfi_restore x30
	cbz	x9, .Lnext
	cmn	x9, #1
	b.eq	.Labsent
	mov	x0, x9
	ret
.Labsent:
	mov	x0, #0
	ret
.Lcuda:
	cmp	w9, #'c'
	b.ne	.Lnext
	ldrb	w9, [x1, #1]
	cmp	w9, #'u'
	b.ne	.Lnext
	ldrb	w9, [x1, #2]
	cmp	w9, #'G'
	b.eq	.Lours
	cmp	w9, #'S'
	b.eq	.Lours
	b	.Lnext
.Lnext:
	adrp	x16, cw_next_dlsym
	ldr	x16, [x16, :lo12:cw_next_dlsym]
	cbz	x16, .Lbootstrap
	br	x16
.Lbootstrap:
	stp	x29, x30, [sp, #-32]!
	.cfi_adjust_cfa_offset 32
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	stp	x0, x1, [sp, #16]
	mov	x29, sp
	bl	cw_dlsym_bootstrap
	mov	x16, x0
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_adjust_cfa_offset -32
	.cfi_restore x29
	.cfi_restore x30
	cbz	x16, .Labsent
	br	x16
	.cfi_endproc
#else
#error "the agent knows x86-64 and aarch64"
#endif
	.size	dlsym, . - dlsym
	.section .note.GNU-stack, "", %progbits
