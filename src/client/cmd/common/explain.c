/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a request failed before any S3 was spoken: the wrong address, the wrong scheme, the wrong port.  The library
 * says what it saw; here the address is asked once more, to tell people what to write instead.
 */
#include "base/printable.h"
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PROBE_MS 2000L

/* The message gets new words; the old ones follow in parentheses, as far as there is room. */
static void __attribute__((format(printf, 2, 3))) reword(struct outcome *o, const char *fmt, ...)
{
	char was[sizeof o->res.message];
	va_list ap;
	size_t n;

	memcpy(was, o->res.message, sizeof was);
	va_start(ap, fmt);
	vsnprintf(o->res.message, sizeof o->res.message, fmt, ap);
	va_end(ap);
	printable(o->res.message, "");
	n = strlen(o->res.message);
	if (*was && n + strlen(was) + 4 < sizeof o->res.message)
		snprintf(o->res.message + n, sizeof o->res.message - n, " (%s)", was);
}

static size_t
drop(char *bytes, size_t size, size_t n, void *cookie)
{
	return n;
}

/* Tells whether the server that listens there finishes a TLS handshake, or with http answers in HTTP. */
static bool
speaks(const char *scheme, const char *authority)
{
	CURL *c = curl_easy_init();
	curl_off_t handshake_us = 0;
	char url[512];
	long status = 0;

	if (!c)
		return false;
	snprintf(url, sizeof url, "%s://%s/", scheme, authority);
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, PROBE_MS);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, drop);
	/* Nothing is sent that matters, and nothing of the answer is believed. */
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
	curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_APPCONNECT_TIME_T, &handshake_us);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(c);
	return !strcmp(scheme, "https") ? handshake_us > 0 : status > 0;
}

/* gantryd's admin listener answers for all its listeners. */
static void
explain_admin(struct outcome *o, const char *scheme, const char *authority)
{
	char name[512], err[512], s3[160] = "";
	const json_t *listeners;
	json_t *status;

	snprintf(name, sizeof name, "%s://%s", scheme, authority);
	if (admin_json(name, "/status", &status, NULL, err, sizeof err) < 0)
		return;
	listeners = json_object_get(status, "listeners");
	if (!json_object_get(status, "phase") || !json_is_array(listeners)) {
		json_decref(status);
		return;
	}
	for (size_t i = 0; i < json_array_size(listeners) && !*s3; i++) {
		const json_t *l = json_array_get(listeners, i);

		if (strcmp(json_text_at(l, "dialect", ""), "s3") == 0)
			snprintf(s3, sizeof s3, "; its s3 listener is %s", json_text_at(l, "address", "?"));
	}
	json_decref(status);
	o->error = -EPROTO; /* its 404 says nothing of the object */
	reword(o, "this is gantryd's admin port, which is for operators%s", s3);
}

void
explain(struct outcome *o)
{
	const char *colon = strstr(o->url, "://");
	char authority[400], host[400];
	bool tls = colon == o->url + 5;
	int e = o->error;

	if (!e || o->is_local || !colon)
		return;
	snprintf(authority, sizeof authority, "%.*s", (int)strcspn(colon + 3, "/?"), colon + 3);
	snprintf(host, sizeof host, "%.*s", (int)strcspn(authority, *authority == '[' ? "]" : ":"),
		 authority + (*authority == '['));
	if (o->res.status) {
		/* What libgantry says of an answer without a request's id. */
		if (strstr(o->res.message, "not as S3 does"))
			explain_admin(o, tls ? "https" : "http", authority);
	} else if (e == -EHOSTUNREACH) {
		reword(o, "the name %s does not resolve: is it spelled right, do DNS or /etc/hosts know it?",
		       host);
	} else if (e == -ECONNREFUSED) {
		reword(o,
		       "no answer at %s: does gantryd run there and listen at this port, and no "
		       "firewall stand between?",
		       authority);
	} else if (e != -EPIPE && e != -EIO) {
		return;
	} else if (tls && speaks("http", authority)) {
		reword(o, "that port speaks plain HTTP: write http://%s", authority);
	} else if (!tls && speaks("https", authority)) {
		reword(o, "that port speaks TLS: write https://%s", authority);
	}
}
