/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of C++ and Rust functions as people wrote them, "c10d::ProcessGroupNCCL::allreduce":
 * without parameters, which say nothing about where a rank is. By libiberty, which has the names
 * that ELF files hold; whoever writes those may be hostile, so it is called in the unwinding child
 * alone.
 */
#pragma once

/* NULL: it is none, or cannot be read, or libiberty is not part of this build. To be freed. Any
 * thread. */
char *cw_demangle(const char *symbol);
