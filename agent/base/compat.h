/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiler includes this file before all other files of the agent (-include). glibc 2.32-2.34
 * moved several functions from one library to another. This file binds those functions to their
 * oldest versions, so that one build runs on glibc 2.28 and newer. If a function is missing here,
 * agent/check-abi.sh names it.
 *
 * The bound versions live in libdl.so.2 and libpthread.so.0, so agent/meson.build makes both
 * libraries NEEDED by name. Sanitizer builds do not bind, because the sanitizers' interceptors have
 * no versions.
 */
#pragma once

#if defined(__ASSEMBLER__)
/* The assembly stub calls none of these functions. */
#elif defined(CW_OLD_GLIBC) && defined(__x86_64__)
#define CW_GLIBC_BASE "GLIBC_2.2.5"
#define CW_GLIBC_DLADDR "GLIBC_2.2.5"
#elif defined(CW_OLD_GLIBC) && defined(__aarch64__)
#define CW_GLIBC_BASE "GLIBC_2.17"
#define CW_GLIBC_DLADDR "GLIBC_2.17"
#endif

#ifdef CW_GLIBC_BASE
__asm__(".symver dlopen,dlopen@" CW_GLIBC_BASE);
__asm__(".symver dlclose,dlclose@" CW_GLIBC_BASE);
__asm__(".symver dlerror,dlerror@" CW_GLIBC_BASE);
__asm__(".symver dlvsym,dlvsym@" CW_GLIBC_BASE);
__asm__(".symver dladdr,dladdr@" CW_GLIBC_DLADDR);
__asm__(".symver pthread_create,pthread_create@" CW_GLIBC_BASE);
__asm__(".symver pthread_sigmask,pthread_sigmask@" CW_GLIBC_BASE);
__asm__(".symver pthread_attr_setstacksize,pthread_attr_setstacksize@" CW_GLIBC_BASE);
#endif
