/* SPDX-License-Identifier: Apache-2.0 */
/* The store's own allocator (src/extent/disk/alloc.c), with a hook where it says that there is no space. */
#ifndef TESTS_FAKE_HOOK_ALLOC_H
#define TESTS_FAKE_HOOK_ALLOC_H

/* Called once, by the thread that is about to be told so; NULL: nothing. */
extern void (*hook_alloc_full)(void);

#endif
