/* SPDX-License-Identifier: Apache-2.0 */
/* page.html inside the program, for GET /.  The Makefile knows that this file depends on it. */
#include "admin/admin_int.h"

__asm__(".section .rodata\n"
	".global admin_html\n"
	".global admin_html_end\n"
	"admin_html:\n"
	".incbin \"src/admin/page.html\"\n"
	"admin_html_end:\n"
	".byte 0\n"
	".previous\n");
