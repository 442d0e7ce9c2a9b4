/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangles C++ and Rust names to source form, such as "c10d::ProcessGroupNCCL::allreduce". We omit
 * the parameters, because they do not help to find the position of a rank. libiberty does the work.
 * The names come from ELF files that may be hostile, so call this only in the unwinding child.
 */
#pragma once

/*
 * Returns the demangled name, which the caller frees. NULL = it is not a mangled name or cannot be
 * demangled, or the build has no libiberty. Any thread.
 */
char *cw_demangle(const char *symbol);
