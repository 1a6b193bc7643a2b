/* SPDX-License-Identifier: Apache-2.0 */
/*
 * s3sign: sends one signed S3 request, or a deliberately wrong one, and says what came back.  For the system
 * tests; it shares no code with the daemon.
 *
 *     s3sign -s HOST:PORT [option ...] METHOD TARGET [NAME:VALUE ...]
 *
 *     -k KEY -p SECRET -t TOKEN      credentials (-k none: unsigned)
 *     -r REGION -S SERVICE -T SECS   what is signed for; the clock's difference
 *     -P SECS                        a presigned URL instead of Authorization
 *     -m hash|unsigned|empty|signed|signed-trailer|unsigned-trailer      what x-amz-content-sha256 says
 *     -b FILE -c BYTES               the body; size of a chunk (default 65536)
 *     -x crc32|crc32c|crc64nvme|sha1|sha256          the trailer; -w sends a wrong value
 *     -u NAME:VALUE                  a header that is sent and not signed
 *     -X N | -Y N                    one bit of the body's byte N is turned over: of the payload, of what is
 * sent -E FROM=>TO                    the same number of bytes of the head, after signing -o FILE where the
 * answer's body goes -U                             prints the presigned URL's target, and sends nothing
 *
 * Prints the status, and <Code> of an error.  Exit: 0 an answer came, 1 none did, 2 usage.
 */
#include "sign/signer.h"

#include <netdb.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct {
	const char *server, *token, *mode, *body_file, *out, *sum, *edit;
	struct signer s;
	long offset, presign, flip_payload, flip_sent;
	size_t chunk;
	bool wrong_sum, only_url;
	struct sg_header h[SG_HEADERS_MAX];
	int nr;
	char *body;
	size_t body_len;
} o = { .mode = "hash",
	.s = { .region = "us-east-1", .service = "s3" },
	.flip_payload = -1,
	.flip_sent = -1,
	.chunk = 65536 };

static void
usage(const char *what)
{
	fprintf(stderr, "s3sign: %s\n", what);
	exit(2);
}

/* Memory goes with the process: nothing is freed one by one, and no sanitizer should look for it. */
static _Noreturn void
finish(int rc)
{
	_exit(fflush(stdout) == 0 ? rc : 1);
}

static void
header(const char *name, const char *value, bool is_unsigned)
{
	if (o.nr == SG_HEADERS_MAX)
		usage("too many headers");
	o.h[o.nr++] = (struct sg_header){ strdup(name), strdup(value), is_unsigned };
}

static void
header_arg(const char *text, bool is_unsigned)
{
	char *copy = strdup(text), *colon = strchr(copy, ':');

	if (!colon)
		usage("a header is NAME:VALUE");
	*colon = 0;
	header(copy, colon + 1, is_unsigned);
	free(copy);
}

static void
read_body(const char *path)
{
	FILE *f = fopen(path, "r"), *to = open_memstream(&o.body, &o.body_len);
	char buf[65536];
	size_t n;

	if (!f || !to)
		usage("cannot read the body");
	while ((n = fread(buf, 1, sizeof buf, f)) > 0)
		fwrite(buf, 1, n, to);
	fclose(f);
	fclose(to);
}

/* ---- checksums ---- */

/* A reflected CRC, one bit after the other: short bodies only. */
static uint64_t
crc(uint64_t poly, int bits, const char *p, size_t len)
{
	uint64_t all = bits == 64 ? ~0ull : (1ull << bits) - 1, c = all;

	for (size_t i = 0; i < len; i++) {
		c ^= (unsigned char)p[i];
		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ poly : c >> 1;
	}
	return c ^ all;
}

/* Base64 of the checksum of the body. */
static void
checksum(const char *name, char out[64])
{
	uint8_t v[32] = { 0 };
	unsigned n = 0;
	int bits = 0;
	uint64_t c = 0;

	if (strcmp(name, "crc32") == 0)
		c = crc(0xedb88320, bits = 32, o.body, o.body_len);
	else if (strcmp(name, "crc32c") == 0)
		c = crc(0x82f63b78, bits = 32, o.body, o.body_len);
	else if (strcmp(name, "crc64nvme") == 0)
		c = crc(0x9a6c9329ac4bc9b5, bits = 64, o.body, o.body_len);
	else
		EVP_Digest(o.body, o.body_len, v, &n, strcmp(name, "sha1") == 0 ? EVP_sha1() : EVP_sha256(),
			   NULL);
	for (int i = 0; i < bits / 8; i++)
		v[n++] = (uint8_t)(c >> (bits - 8 - 8 * i));
	if (o.wrong_sum)
		v[0] ^= 1;
	EVP_EncodeBlock((unsigned char *)out, v, (int)n);
}

/* ---- the request ---- */

static bool
streams(void)
{
	return strcmp(o.mode, "signed") == 0 || strcmp(o.mode, "signed-trailer") == 0 ||
	       strcmp(o.mode, "unsigned-trailer") == 0;
}

static void
payload_text(char out[80])
{
	if (strcmp(o.mode, "hash") == 0)
		sg_sha(o.body, o.body_len, out);
	else if (strcmp(o.mode, "empty") == 0)
		sg_sha("", 0, out);
	else
		snprintf(out, 80, "%s",
			 strcmp(o.mode, "signed") == 0 ? "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
			 : strcmp(o.mode, "signed-trailer") == 0
				 ? "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
			 : strcmp(o.mode, "unsigned-trailer") == 0 ? "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
								   : "UNSIGNED-PAYLOAD");
}

/* How long frames() will be: signatures are all of one length. */
static size_t
frames_len(bool is_signed, const char *trailer)
{
	size_t n = 0, at = 0, part;

	do {
		part = o.body_len - at < o.chunk ? o.body_len - at : o.chunk;
		n += (size_t)snprintf(NULL, 0, "%zx", part) + (is_signed ? 17 + 64 : 0) + 2 + part +
		     (part ? 2 : 0);
		at += part;
	} while (part);
	if (*trailer)
		n += strlen(trailer) + 2;
	if (strcmp(o.mode, "signed-trailer") == 0)
		n += strlen("x-amz-trailer-signature:") + 64 + 2;
	return n + 2;
}

static void
frames(FILE *f, const char *trailer, const char *seed)
{
	bool is_signed = strcmp(o.mode, "unsigned-trailer") != 0;
	char previous[65], sig[65], line[256];
	size_t at = 0, n;

	memcpy(previous, seed, 65);
	do {
		n = o.body_len - at < o.chunk ? o.body_len - at : o.chunk;
		fprintf(f, "%zx", n);
		if (is_signed) {
			sg_chunk(&o.s, false, o.body + at, n, previous, sig);
			fprintf(f, ";chunk-signature=%s", sig);
			memcpy(previous, sig, 65);
		}
		fputs("\r\n", f);
		fwrite(o.body + at, 1, n, f);
		fputs(n ? "\r\n" : "", f);
		at += n;
	} while (n);
	if (*trailer)
		fprintf(f, "%s\r\n", trailer);
	if (strcmp(o.mode, "signed-trailer") == 0) {
		snprintf(line, sizeof line, "%s%s", trailer, *trailer ? "\n" : "");
		sg_chunk(&o.s, true, line, strlen(line), previous, sig);
		fprintf(f, "x-amz-trailer-signature:%s\r\n", sig);
	}
	fputs("\r\n", f);
}

static void
encode(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (strchr("-_.~", *text) || (*text >= '0' && *text <= '9') ||
		    (*text >= 'A' && *text <= 'Z') || (*text >= 'a' && *text <= 'z'))
			putc(*text, f);
		else
			fprintf(f, "%%%02X", (unsigned char)*text);
	}
}

/* The query of a presigned URL, with what was there before in front. */
static char *
presigned(const char *query)
{
	char *text, scope[160], list[1024] = "", credential[400];
	size_t len;
	FILE *f = open_memstream(&text, &len);

	sg_scope(&o.s, scope);
	snprintf(credential, sizeof credential, "%s/%s", o.s.access_key, scope);
	fprintf(f, "%s%sX-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=", query, *query ? "&" : "");
	encode(f, credential);
	fprintf(f, "&X-Amz-Date=%s&X-Amz-Expires=%ld&X-Amz-SignedHeaders=", o.s.stamp, o.presign);
	sg_signed_headers(o.h, o.nr, list, sizeof list);
	encode(f, list);
	if (o.token) {
		fputs("&X-Amz-Security-Token=", f);
		encode(f, o.token);
	}
	fclose(f);
	return text;
}

static void
edit_head(char *head)
{
	char *from = strdup(o.edit), *to = strstr(from, "=>"), *at;

	if (!to || strlen(to + 2) != (size_t)(to - from))
		usage("-E FROM=>TO, both of the same length");
	*to = 0;
	to += 2;
	at = strstr(head, from);
	if (!at)
		usage("-E: the head has no such text");
	memcpy(at, to, strlen(to));
	free(from);
}

static void
common_headers(const char *payload, const char *trailer)
{
	char text[32];

	if (!o.presign || strcmp(o.mode, "unsigned") != 0)
		header("x-amz-content-sha256", payload, false);
	if (!o.presign && o.s.access_key)
		header("x-amz-date", o.s.stamp, false);
	if (o.token && !o.presign)
		header("x-amz-security-token", o.token, false);
	if (!streams())
		return;
	header("content-encoding", "aws-chunked", false);
	snprintf(text, sizeof text, "%zu", o.body_len);
	header("x-amz-decoded-content-length", text, false);
	if (*trailer) {
		char name[64];

		snprintf(name, sizeof name, "x-amz-checksum-%s", o.sum);
		header("x-amz-trailer", name, false);
	}
}

/* The whole request, ready to go. */
static void
build(const char *method, char *target, char **ret_text, size_t *ret_len)
{
	char payload[80], trailer[160] = "", sum[64], sig[65] = "", list[2048] = "", scope[160];
	char *query = strchr(target, '?');
	size_t body_len = o.body_len, head_len;
	FILE *f = open_memstream(ret_text, ret_len);

	if (query)
		*query++ = 0;
	else
		query = (char *)"";
	if (o.sum) {
		checksum(o.sum, sum);
		snprintf(trailer, sizeof trailer, "x-amz-checksum-%s:%s", o.sum, sum);
	}
	payload_text(payload);
	common_headers(payload, trailer);
	if (streams())
		body_len = frames_len(strcmp(o.mode, "unsigned-trailer") != 0, trailer);
	if (o.presign)
		query = presigned(query);
	if (o.s.access_key)
		sg_sign(&o.s, method, target, query, o.h, o.nr, payload, sig);
	fprintf(f, "%s %s%s%s%s%s HTTP/1.1\r\n", method, target, *query ? "?" : "", query,
		o.presign ? "&X-Amz-Signature=" : "", o.presign ? sig : "");
	if (o.only_url) {
		printf("%s?%s&X-Amz-Signature=%s\n", target, query, sig);
		finish(0);
	}
	for (int i = 0; i < o.nr; i++)
		fprintf(f, "%s: %s\r\n", o.h[i].name, o.h[i].value);
	if (o.s.access_key && !o.presign) {
		sg_signed_headers(o.h, o.nr, list, sizeof list);
		sg_scope(&o.s, scope);
		fprintf(f,
			"Authorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, "
			"Signature=%s\r\n",
			o.s.access_key, scope, list, sig);
	}
	if (o.body || strcmp(method, "PUT") == 0)
		fprintf(f, "Content-Length: %zu\r\n", body_len);
	fputs("Connection: close\r\n\r\n", f);
	fflush(f);
	head_len = *ret_len;
	if (streams())
		frames(f, trailer, sig);
	else if (o.body)
		fwrite(o.body, 1, o.body_len, f);
	fclose(f);
	if (o.edit)
		edit_head(*ret_text);
	if (o.flip_sent >= 0 && (size_t)o.flip_sent < *ret_len - head_len)
		(*ret_text)[head_len + (size_t)o.flip_sent] ^= 1;
	if (o.flip_payload >= 0) {
		/* Where it lies among the frames: the last so many bytes
		 * that are equal to the body's first. */
		size_t at = head_len;

		if (streams())
			at = (size_t)(strstr(*ret_text + head_len, "\r\n") - *ret_text) + 2;
		(*ret_text)[at + (size_t)o.flip_payload] ^= 1;
	}
}

/* ---- the wire ---- */

static int
dial(void)
{
	char *host = strdup(o.server), *port = strrchr(host, ':');
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	int fd;

	if (!port)
		usage("-s HOST:PORT");
	*port++ = 0;
	if (getaddrinfo(host, port, &hints, &ai) != 0)
		usage("cannot find the server");
	fd = socket(ai->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen) < 0) {
		perror("s3sign: connect");
		exit(1);
	}
	freeaddrinfo(ai);
	free(host);
	return fd;
}

/* Reads the answer to its end and prints what it says. */
static int
answer(int fd)
{
	char *text, buf[65536], *body, *code, *end;
	size_t len;
	ssize_t n;
	FILE *f = open_memstream(&text, &len);

	while ((n = read(fd, buf, sizeof buf)) > 0)
		fwrite(buf, 1, (size_t)n, f);
	fclose(f);
	body = len ? memmem(text, len, "\r\n\r\n", 4) : NULL;
	if (!body || strncmp(text, "HTTP/1.1 ", 9) != 0)
		return 1;
	if (strncmp(text, "HTTP/1.1 100", 12) == 0)
		usage("an interim answer");
	body += 4;
	printf("%.3s", text + 9);
	if (o.out) {
		f = fopen(o.out, "w");
		if (!f)
			usage("cannot write the answer's body");
		fwrite(body, 1, len - (size_t)(body - text), f);
		fclose(f);
	}
	code = strstr(body, "<Code>");
	end = code ? strstr(code, "</Code>") : NULL;
	if (end && text[9] >= '4')
		printf(" %.*s", (int)(end - code - 6), code + 6);
	putchar('\n');
	free(text);
	return 0;
}

int
main(int argc, char **argv)
{
	const char *host = NULL;
	char *text;
	time_t now;
	size_t len;
	int c, fd, rc;

	while ((c = getopt(argc, argv, "+s:k:p:t:r:S:T:P:m:b:c:x:wu:X:Y:E:o:H:U")) != -1) {
		switch (c) {
		case 's':
			o.server = optarg;
			break;
		case 'k':
			o.s.access_key = strcmp(optarg, "none") ? optarg : NULL;
			break;
		case 'p':
			o.s.secret = optarg;
			break;
		case 't':
			o.token = optarg;
			break;
		case 'r':
			o.s.region = optarg;
			break;
		case 'S':
			o.s.service = optarg;
			break;
		case 'T':
			o.offset = atol(optarg);
			break;
		case 'P':
			o.presign = atol(optarg);
			break;
		case 'm':
			o.mode = optarg;
			break;
		case 'b':
			o.body_file = optarg;
			break;
		case 'c':
			o.chunk = (size_t)atol(optarg);
			break;
		case 'x':
			o.sum = optarg;
			break;
		case 'w':
			o.wrong_sum = true;
			break;
		case 'u':
			header_arg(optarg, true);
			break;
		case 'X':
			o.flip_payload = atol(optarg);
			break;
		case 'Y':
			o.flip_sent = atol(optarg);
			break;
		case 'E':
			o.edit = optarg;
			break;
		case 'o':
			o.out = optarg;
			break;
		case 'H':
			host = optarg;
			break;
		case 'U':
			o.only_url = true;
			break;
		default:
			usage("see the head of its source");
		}
	}
	if (argc - optind < 2 || !o.server || (o.s.access_key && !o.s.secret))
		usage("s3sign -s HOST:PORT -k KEY -p SECRET [option ...] METHOD TARGET [NAME:VALUE ...]");
	now = time(NULL) + o.offset;
	strftime(o.s.stamp, sizeof o.s.stamp, "%Y%m%dT%H%M%SZ", gmtime(&now));
	if (o.body_file)
		read_body(o.body_file);
	header("Host", host ? host : o.server, false);
	for (int i = optind + 2; i < argc; i++)
		header_arg(argv[i], false);
	build(argv[optind], strdup(argv[optind + 1]), &text, &len);
	fd = dial();
	/* An answer may come before all was taken. */
	for (size_t at = 0; at < len;) {
		ssize_t n = send(fd, text + at, len - at, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	rc = answer(fd);
	if (rc)
		fprintf(stderr, "s3sign: no answer\n");
	finish(rc);
}
