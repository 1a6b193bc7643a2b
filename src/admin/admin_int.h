/* Private to admin/: what the pages need of the thread. */
#ifndef GANTRY_ADMIN_ADMIN_INT_H
#define GANTRY_ADMIN_ADMIN_INT_H

#include "admin/admin.h"

#define REASONS_MAX 64

struct admin_reasons {
	int nr; /* may be more than are kept */
	char text[REASONS_MAX][192];
};

struct page {
	int status;
	const char *type; /* Content-Type */
	char *body;       /* the taker frees it */
	size_t len;
};

/* Fills *ret_page for a GET of that path.  0 or -ENOMEM.  Admin thread. */
int admin_page(const struct admin_env *env, const char *path, struct page *ret_page);
/* {"error":"..."} */
int admin_error_page(int status, const char *text, struct page *ret_page);

#endif
