/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of gantryd; see options.h. */
#include "main/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_FORCE = 256, OPT_IF_ABSENT, OPT_REPLACE_STORE, OPT_REPAIR, OPT_YES, OPT_READY_FILE, OPT_ACTION };

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "check-config", no_argument, NULL, OPT_ACTION + ACTION_CHECK_CONFIG },
	{ "print-config", no_argument, NULL, OPT_ACTION + ACTION_PRINT_CONFIG },
	{ "print-keys", no_argument, NULL, OPT_ACTION + ACTION_PRINT_KEYS },
	{ "print-metrics", no_argument, NULL, OPT_ACTION + ACTION_PRINT_METRICS },
	{ "list-devices", no_argument, NULL, OPT_ACTION + ACTION_LIST_DEVICES },
	{ "format", no_argument, NULL, OPT_ACTION + ACTION_FORMAT },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "if-absent", no_argument, NULL, OPT_IF_ABSENT },
	{ "replace-store", required_argument, NULL, OPT_REPLACE_STORE },
	{ "fsck", no_argument, NULL, OPT_ACTION + ACTION_FSCK },
	{ "upgrade", no_argument, NULL, OPT_ACTION + ACTION_UPGRADE },
	{ "forget", required_argument, NULL, OPT_ACTION + ACTION_FORGET },
	{ "add", required_argument, NULL, OPT_ACTION + ACTION_ADD },
	{ "reload", no_argument, NULL, OPT_ACTION + ACTION_RELOAD },
	{ "repair", no_argument, NULL, OPT_REPAIR },
	{ "yes", no_argument, NULL, OPT_YES },
	{ "ready-file", required_argument, NULL, OPT_READY_FILE },
	{ "version", no_argument, NULL, OPT_ACTION + ACTION_VERSION },
	{ "help", no_argument, NULL, OPT_ACTION + ACTION_HELP },
	{ NULL, 0, NULL, 0 },
};

static const char *
action_name(enum action action)
{
	for (const struct option *o = long_options; o->name; o++) {
		if (o->val == OPT_ACTION + (int)action)
			return o->name;
	}
	return "";
}

static int
set_action(struct options *o, enum action action, FILE *err)
{
	if (o->action != ACTION_RUN && o->action != action) {
		fprintf(err, "gantryd: --%s and --%s do not go together\n", action_name(o->action),
			action_name(action));
		return -EINVAL;
	}
	o->action = action;
	return 0;
}

static int
forget(struct options *o, const char *text, FILE *err)
{
	if (o->forget_nr == CONF_DISKS_MAX || uuid_parse(text, o->forget[o->forget_nr]) < 0) {
		fprintf(err, "gantryd: --forget wants the UUID of a disk, not \"%s\"\n", text);
		return -EINVAL;
	}
	/* Twice the same is one. */
	for (int i = 0; i < o->forget_nr; i++) {
		if (memcmp(o->forget[i], o->forget[o->forget_nr], UUID_BYTES) == 0)
			return set_action(o, ACTION_FORGET, err);
	}
	o->forget_nr++;
	return set_action(o, ACTION_FORGET, err);
}

/* Takes the value of an option that has one value. */
static int
take_text(const char **member, const char *name, FILE *err)
{
	if (*member) {
		fprintf(err, "gantryd: --%s is given twice: %s, %s\n", name, *member, optarg);
		return -EINVAL;
	}
	*member = optarg;
	return 0;
}

static int
take_replaced(struct options *o, FILE *err)
{
	if (o->replaces) {
		fprintf(err, "gantryd: --replace-store is given twice\n");
		return -EINVAL;
	}
	o->replaces = true;
	if (uuid_parse(optarg, o->replace_store) == 0)
		return 0;
	fprintf(err, "gantryd: --replace-store wants the UUID of a store, not \"%s\"\n", optarg);
	return -EINVAL;
}

static int
one_option(struct options *o, int c, char **argv, FILE *err)
{
	switch (c) {
	case 'c':
		return take_text(&o->file, "config", err);
	case 'o':
		if (o->override_nr == OVERRIDES_MAX) {
			fprintf(err, "gantryd: more than %d options -o\n", OVERRIDES_MAX);
			return -EINVAL;
		}
		o->overrides[o->override_nr++].text = optarg;
		return 0;
	case 'h':
		return set_action(o, ACTION_HELP, err);
	case 'V':
		return set_action(o, ACTION_VERSION, err);
	case OPT_FORCE:
		o->force = true;
		return 0;
	case OPT_IF_ABSENT:
		o->if_absent = true;
		return 0;
	case OPT_REPLACE_STORE:
		return take_replaced(o, err);
	case OPT_REPAIR:
		o->repair = true;
		return 0;
	case OPT_YES:
		o->yes = true;
		return 0;
	case OPT_READY_FILE:
		return take_text(&o->ready_file, "ready-file", err);
	case OPT_ACTION + ACTION_FORGET:
		return forget(o, optarg, err);
	case OPT_ACTION + ACTION_ADD:
		return take_text(&o->add, "add", err) < 0 ? -EINVAL : set_action(o, ACTION_ADD, err);
	case ':':
		fprintf(err, "gantryd: %s needs a value\n", argv[optind - 1]);
		return -EINVAL;
	case '?':
		if (optopt && optopt < 256)
			fprintf(err, "gantryd: unknown option -%c; see gantryd --help\n", optopt);
		else
			fprintf(err, "gantryd: unknown option %s; see gantryd --help\n", argv[optind - 1]);
		return -EINVAL;
	default:
		return set_action(o, (enum action)(c - OPT_ACTION), err);
	}
}

/* Returns true if an option was given, together with other options, without an effect; writes a line to err. */
static bool
is_unused(const struct options *o, FILE *err)
{
#define BIT(action) (1u << ACTION_##action)
	const unsigned no_config = BIT(PRINT_KEYS) | BIT(PRINT_METRICS) | BIT(VERSION) | BIT(HELP);
	const struct {
		bool is_given;
		const char *name;
		unsigned uses;    /* actions that use the option */
		bool is_shut_out; /* by another option */
		const char *rule; /* NULL: it is used by most actions */
	} all[] = {
		{ o->force, "force", BIT(FORMAT) | BIT(FORGET) | BIT(ADD), false,
		  "goes with --format, --forget and --add" },
		{ o->if_absent, "if-absent", BIT(FORMAT), false, "goes with --format" },
		{ o->replaces, "replace-store", BIT(FORMAT), o->if_absent,
		  "goes with --format, without --if-absent" },
		{ o->force, "force", BIT(FORMAT) | BIT(FORGET) | BIT(ADD), o->if_absent,
		  "and --if-absent do not go together" },
		{ o->yes, "yes", BIT(FSCK), !o->repair, "goes with --fsck --repair" },
		{ o->repair, "repair", BIT(FSCK), false, "goes with --fsck" },
		{ o->ready_file, "ready-file", BIT(RUN), false, NULL },
		{ o->file, "config", ~no_config, false, NULL },
		{ o->override_nr > 0, "o", ~no_config, false, NULL },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		const char *dashes = all[i].name[1] ? "--" : "-";

		if (!all[i].is_given || (all[i].uses >> o->action & 1 && !all[i].is_shut_out))
			continue;
		if (all[i].rule)
			fprintf(err, "gantryd: %s%s %s\n", dashes, all[i].name, all[i].rule);
		else
			fprintf(err, "gantryd: %s%s does not go with --%s\n", dashes, all[i].name,
				action_name(o->action));
		return true;
	}
	return false;
#undef BIT
}

int
options_parse(int argc, char **argv, struct options *ret_options, FILE *err)
{
	struct options o = { 0 };
	int c;

	opterr = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, ":c:o:hV", long_options, NULL)) != -1) {
		if (one_option(&o, c, argv, err) < 0)
			return -EINVAL;
	}
	if (optind < argc) {
		fprintf(err, "gantryd: unexpected \"%s\"; see gantryd --help\n", argv[optind]);
		return -EINVAL;
	}
	if (is_unused(&o, err))
		return -EINVAL;
	*ret_options = o;
	return 0;
}

void
options_say(FILE *out, const char *prefix, const char *message)
{
	/* Remedies begin their lines: the last resort with what it loses. */
	fprintf(out, "%s%s\n", prefix, message);
}

void
options_help(FILE *out)
{
	fputs("gantryd: object storage over HTTP, with payloads moved by RDMA\n"
	      "\n"
	      "  gantryd [-c FILE] [-o KEY=VALUE]...             serve\n"
	      "  gantryd [-c FILE] [-o KEY=VALUE]... ACTION\n"
	      "\n"
	      "  -c, --config FILE     configuration (" CONF_DEFAULT_FILE ", and conf.d/*.yaml beside it)\n"
	      "  -o KEY=VALUE          set one key, for instance -o rdma.devices=none\n"
	      "      --ready-file FILE write the ready line there too\n"
	      "\n"
	      "  --check-config        read the configuration and report its errors\n"
	      "  --print-config        show every value and where it came from\n"
	      "  --list-devices        show RDMA devices, ports and addresses, and what they would be used "
	      "for\n"
	      "  --format [--force]    make a new store on the disks (--force: even over existing data)\n"
	      "  --format --if-absent  make one where there is none; where there is one, do nothing\n"
	      "  --format --replace-store UUID\n"
	      "                        make one although this daemon has served that store, which is given "
	      "up\n"
	      "  --fsck                check the store\n"
	      "  --fsck --repair       list what a repair would lose, ask (or --yes), then cut damage and "
	      "make lost files again\n"
	      "  --upgrade             bring a store of an earlier version to the format of this one\n"
	      "  --forget UUID         give up a missing disk of the store for good (--force: without "
	      "asking)\n"
	      "  --add DISK            add a disk to the store (--force: even over existing data)\n"
	      "  --reload              have the running daemon read its configuration again; fails as the "
	      "daemon does\n"
	      "  --print-keys          list all keys: name, values, default, reload, help, class\n"
	      "  --print-metrics       list all metrics: name, type, labels, help\n"
	      "  -V, --version\n"
	      "  -h, --help\n"
	      "\n"
	      "Exit status: 0 good, 1 failed while running, 2 usage, 69 a listener or device is missing or "
	      "in use,\n"
	      "74 the store is damaged or foreign, 78 bad configuration.\n"
	      "Manual: gantryd(8), gantryd.yaml(5).\n",
	      out);
}

/* ---- exit codes ---- */

int
exit_of_store(int error)
{
	switch (-error) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
	case ENOTDIR:
	case EBUSY: /* there, but somebody else has it */
		return EXIT_MISSING;
	case EINVAL:
	case EACCES:
	case EPERM:
	case EROFS:
	case EOPNOTSUPP:
	case EPROTONOSUPPORT: /* of another version, which has to be started instead */
		return EXIT_CONFIG;
	/* The machine is short of something just now. */
	case EAGAIN:
	case EINTR:
	case ENOMEM:
	case ENOBUFS:
	case EMFILE:
	case ENFILE:
	case ETIMEDOUT:
		return EXIT_RUNTIME;
	default:
		return EXIT_STORE;
	}
}
