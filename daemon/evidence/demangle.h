/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangles C++ and Rust names to source form, such as "c10d::ProcessGroupNCCL::allreduce". We drop
 * the parameters: they say nothing about the position of a rank. libiberty does the work. The names
 * come from ELF files, whose authors may be hostile, so we only call this in the unwinding child.
 */
#pragma once

/*
 * Returns the demangled name, which the caller frees. NULL if it is not a mangled name, is
 * unreadable, or the build has no libiberty. Any thread.
 */
char *cw_demangle(const char *symbol);
