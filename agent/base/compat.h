/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before everything else in the agent (-include): binds the functions glibc 2.32-2.34
 * moved between libraries to their oldest versions, so that one build runs on glibc 2.28 and newer
 * (agent/check-abi.sh names what is missing here).
 * The price: libdl.so.2 and libpthread.so.0 must be NEEDED by name, which agent/meson.build does.
 * Off in sanitizer builds, whose interceptors have no versions.
 */
#pragma once

#if defined(__ASSEMBLER__)
/* the stub needs none of this */
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
