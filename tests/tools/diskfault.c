/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command whose disks fail, or hang, on demand:
 *
 *     diskfault FOLDER COMMAND [ARG...]
 *
 * A file of FOLDER says what is wrong with the directory of the same name, wherever that is: "FOLDER/disk1" is about files in
 * any "disk1".  Its words, of which the first letters count: read, write, flush, each of which fails with EIO; hang: they never end,
 * until the file is gone, and all three where none is named; only:NAME: all this is about files whose names begin with NAME.  io_uring
 * is forbidden (EPERM), so that all I/O is system calls, of which the kernel asks this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELD_MAX 4096
#define ASK_AGAIN_MS 5

static const char *folder;
static struct seccomp_notif held[HELD_MAX];
static int held_nr;

/* ---- what is wrong ---- */

/* What the file of the directory in which fd lies says; "": nothing. */
static void
words_of(pid_t pid, int fd, char words[64])
{
	char link[64], path[512], file[1100], *name, *only;
	ssize_t n;
	int f;

	words[0] = 0;
	snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, fd);
	n = readlink(link, path, sizeof path - 1);
	if (n <= 0)
		return;
	path[n] = 0;
	if (!strrchr(path, '/'))
		return;
	name = strrchr(path, '/') + 1;
	name[-1] = 0;
	snprintf(file, sizeof file, "%s/%s", folder, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	f = open(file, O_RDONLY | O_CLOEXEC);
	if (f < 0)
		return;
	n = read(f, words, 63);
	words[n < 0 ? 0 : n] = 0;
	close(f);
	only = strstr(words, "only:");
	if (only && strncmp(name, only + 5, strcspn(only + 5, " \n")) != 0)
		words[0] = 0;
}

static const char *
word_for(int nr)
{
	return nr == SYS_pread64 ? "read" : nr == SYS_pwrite64 ? "write" : "flush";
}

static bool
names_one(const char *words)
{
	return strstr(words, "read") || strstr(words, "write") || strstr(words, "flush");
}

/* False: it has to wait. */
static bool
answer(int listener, const struct seccomp_notif *req)
{
	struct seccomp_notif_resp resp = { .id = req->id };
	char words[64];

	words_of((pid_t)req->pid, (int)req->data.args[0], words);
	if (strstr(words, "hang") && (!names_one(words) || strstr(words, word_for(req->data.nr))))
		return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &req->id) != 0;
	if (!strstr(words, "hang") && strstr(words, word_for(req->data.nr)))
		resp.error = -EIO;
	else
		resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	/* Who asked may be dead. */
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	return true;
}

static void
serve(int listener)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };

	while (poll(&p, 1, held_nr ? ASK_AGAIN_MS : -1) >= 0 || errno == EINTR) {
		struct seccomp_notif req = { 0 };
		int left = 0;

		for (int i = 0; i < held_nr; i++) {
			if (!answer(listener, &held[i]))
				held[left++] = held[i];
		}
		held_nr = left;
		if (p.revents & POLLHUP)
			return;
		if (!(p.revents & POLLIN) || ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req) < 0)
			continue;
		if (!answer(listener, &req) && held_nr < HELD_MAX)
			held[held_nr++] = req;
	}
}

/* ---- the command ---- */

static int
install(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 2, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog prog = { sizeof code / sizeof *code, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
}

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static int
send_fd(int to, int fd)
{
	union control c = { .head = { 0 } };
	struct iovec iov = { "", 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c.bytes
	};

	c.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof fd),
				   .cmsg_level = SOL_SOCKET,
				   .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&c.head), &fd, sizeof fd);
	return sendmsg(to, &m, 0) == 1 ? 0 : -1;
}

static int
receive_fd(int from)
{
	union control c = { .head = { 0 } };
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c.bytes
	};
	int fd = -1;

	if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) == 1 && c.head.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&c.head), sizeof fd);
	return fd;
}

int
main(int argc, char **argv)
{
	int pair[2], listener, status = 0;
	pid_t child;

	if (argc < 3) {
		fprintf(stderr, "usage: diskfault FOLDER COMMAND [ARG...]\n");
		return 2;
	}
	folder = argv[1];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 || (child = fork()) < 0) {
		perror("diskfault");
		return 2;
	}
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		listener = install();
		if (listener < 0 || send_fd(pair[0], listener) < 0) {
			fprintf(stderr, "diskfault: cannot set a filter of system calls: %s\n",
				strerror(errno));
			_exit(2);
		}
		close(listener);
		execvp(argv[2], argv + 2);
		fprintf(stderr, "diskfault: %s: %s\n", argv[2], strerror(errno));
		_exit(127);
	}
	close(pair[0]);
	listener = receive_fd(pair[1]);
	if (listener >= 0)
		serve(listener);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
