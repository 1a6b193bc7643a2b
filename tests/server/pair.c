/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server and a client as two programs of others would be: by the two public headers and the two libraries.  The
 * client is this program, executed again; it registers memory, mints tokens and looks at its bytes, the server
 * moves them.
 */
#include <gantry.h>
#include <gantry_server.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE ((size_t)3 << 20)
#define AT 12345

#define must(x)                                                                                              \
	do {                                                                                                 \
		if (!(x)) {                                                                                  \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                              \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

static unsigned char *mem;

static void
fill(unsigned seed)
{
	for (size_t i = 0; i < SIZE; i++) {
		seed = seed * 1664525u + 1013904223u;
		mem[i] = (unsigned char)(seed >> 24);
	}
}

static int
is_filled(unsigned seed)
{
	for (size_t i = 0; i < SIZE; i++) {
		seed = seed * 1664525u + 1013904223u;
		if (mem[i] != (unsigned char)(seed >> 24))
			return 0;
	}
	return 1;
}

/* ---- the client: a word a line on standard input ---- */

static void
client(void)
{
	struct gantry_options o = { .size = sizeof o, .config_file = "" };
	struct gantry *g;
	char word[32], *token = NULL;
	unsigned seed;

	must(gantry_open(&o, &g) == 0);
	must(gantry_register(g, mem, SIZE, 0) == 0);
	while (scanf("%31s %u", word, &seed) == 2) {
		if (strcmp(word, "token") == 0) {
			must(gantry_token_get(g, mem, SIZE, 0, seed ? GANTRY_OP_PUT : GANTRY_OP_GET, &token,
					      NULL) == 0);
			printf("%s\n", token);
		} else if (strcmp(word, "drop") == 0) {
			must(gantry_token_drop(g, token, (int)seed) == 0);
			printf("ok\n");
		} else if (strcmp(word, "fill") == 0) {
			fill(seed);
			printf("ok\n");
		} else {
			printf("%s\n", is_filled(seed) ? "ok" : "other bytes");
		}
		fflush(stdout);
	}
	must(gantry_deregister(g, mem) == 0);
	gantry_close(g);
}

/* ---- the server ---- */

static FILE *to, *from;

/* Has the client do something; returns its answer. */
static char *
ask(const char *word, unsigned seed)
{
	static char line[256];

	fprintf(to, "%s %u\n", word, seed);
	fflush(to);
	must(fgets(line, sizeof line, from));
	line[strcspn(line, "\n")] = 0;
	return line;
}

#define client_does(word, seed) must(strcmp(ask(word, seed), "ok") == 0)

static void
start_client(const char *self)
{
	int in[2], out[2];

	must(pipe(in) == 0 && pipe(out) == 0);
	if (fork() == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		for (int i = 0; i < 2; i++) {
			close(in[i]);
			close(out[i]);
		}
		execl(self, self, "client", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	to = fdopen(in[1], "w");
	from = fdopen(out[0], "r");
	must(to && from);
}

static void
on_line(void *cookie, enum gantry_server_log level, const char *text)
{
	fprintf(stderr, "%d %s\n", (int)level, text);
}

int
main(int argc, char **argv)
{
	struct gantry_server_params p;
	struct gantry_server *s;
	struct gantry_region *r;
	struct gantry_channel *c;
	struct gantry_piece piece;
	struct gantry_done done[16];
	char token[128];
	unsigned long long remote;
	int status = 0, n = 0;

	mem = gantry_host_alloc(SIZE);
	must(mem);
	memset(mem, 0, SIZE);
	if (argc > 1) {
		client();
		free(mem);
		return 0;
	}
	start_client(argv[0]);
	gantry_server_defaults(&p, sizeof p);
	p.address = "127.0.0.1";
	p.allow = "loopback";
	p.timeout = 12;
	p.retry_cnt = 1;
	p.log = on_line;
	must(gantry_server_open(&p, &s) == 0 && gantry_server_is_alive(s));
	must(gantry_region_add(s, mem, SIZE, &r) == 0 && gantry_channel_new(s, &c) == 0);
	piece = (struct gantry_piece){ r, mem, SIZE };

	/* Its GET. */
	snprintf(token, sizeof token, "%s", ask("token", 0));
	must(sscanf(token, "%llx", &remote) == 1);
	fill(1);
	must(gantry_channel_move(c, GANTRY_PUSH, &piece, 1, remote, token, GANTRY_INTERVAL, &status) ==
	     (ssize_t)SIZE);
	must(status == IBV_WC_SUCCESS);
	client_does("is", 1);
	/* Its PUT. */
	client_does("fill", 2);
	must(gantry_channel_move(c, GANTRY_PULL, &piece, 1, remote, token, GANTRY_INTERVAL, NULL) ==
	     (ssize_t)SIZE);
	must(is_filled(2));
	/* Sixteen at once, last first, and in pieces that lie anyhow. */
	fill(3);
	for (int i = 15; i >= 0; i--) {
		size_t len = SIZE / 16, at = len * (size_t)i;
		struct gantry_piece two[2] = { { r, mem + at, AT }, { r, mem + at + AT, len - AT } };

		must(gantry_channel_start(c, GANTRY_PUSH, two, 2, remote + at, token, mem + at) == 0);
	}
	while (n < 16) {
		int k = gantry_channel_poll(c, done, 16);

		must(k >= 0);
		for (int i = 0; i < k; i++)
			must(done[i].error == 0 && done[i].bytes == SIZE / 16);
		n += k;
	}
	client_does("is", 3);
	/* A token that was withdrawn is good for nothing, and another one is good. */
	client_does("drop", 1);
	must(gantry_channel_move(c, GANTRY_PULL, &piece, 1, remote, token, GANTRY_INTERVAL, &status) == -EIO);
	must(status == IBV_WC_RETRY_EXC_ERR);
	snprintf(token, sizeof token, "%s", ask("token", 1));
	must(sscanf(token, "%llx", &remote) == 1);
	client_does("fill", 4);
	must(gantry_channel_move(c, GANTRY_PULL, &piece, 1, remote, token, GANTRY_INTERVAL, NULL) ==
	     (ssize_t)SIZE);
	must(is_filled(4));

	must(gantry_channel_free(c) == 0 && gantry_region_del(r) == 0);
	gantry_server_close(s);
	fclose(to);
	must(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	fclose(from);
	free(mem);
	return 0;
}
