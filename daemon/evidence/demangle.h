/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangles C++ and Rust names to source form, such as "c10d::ProcessGroupNCCL::allreduce". We drop
 * the parameters: they say nothing about the position of a rank. libiberty does the work. The names
 * come from ELF files, whose authors may be hostile, so we only call this in the unwinding child.
 */
#pragma once

/*
 * NULL: not a mangled name, or unreadable, or a build without libiberty. The caller frees it.
 * Any thread.
 */
char *cw_demangle(const char *symbol);
