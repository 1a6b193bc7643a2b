/* SPDX-License-Identifier: Apache-2.0 */
/* page.html and docs/runbook.md inside the program, for GET / and /runbook.  The Makefile knows that this file depends on them. */
#include "admin/admin_int.h"

__asm__(".section .rodata\n"
	".global admin_html\n"
	".global admin_html_end\n"
	"admin_html:\n"
	".incbin \"src/admin/page.html\"\n"
	"admin_html_end:\n"
	".byte 0\n"
	".global admin_runbook\n"
	".global admin_runbook_end\n"
	"admin_runbook:\n"
	".incbin \"docs/runbook.md\"\n"
	"admin_runbook_end:\n"
	".byte 0\n"
	".previous\n");
