/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of softnicctl. A function ctl_cmd_*() runs a command with the words after
 * its name, and returns the exit status of the program. */
#ifndef SOFTNIC_CTL_H
#define SOFTNIC_CTL_H

#include "softnic/fabric.h"

/* ---- common functions: ctl_common.c; the names of status values: ctl_rule.c ---- */

int ctl_usage(void); /* Prints the usage and returns the exit status 2. */
/* Refuses a word that the command cmd does not use. Returns the exit status 2. word NULL: a word is missing. */
int ctl_refuse(const char *cmd, const char *word);
/* Returns true, after writing a line to stderr, if word i, such as "away=1s", has the key of an earlier word. */
bool ctl_is_again(const char *cmd, char **argv, int i);
/* Maps the fabric, which must exist. Returns 0, or -errno after writing a line to stderr. */
int ctl_open(struct fabric **ret_f, int *ret_fd);
/* Parses a duration such as "20ms", "1.5s" or "300us". Returns true; false: the text is invalid, or the
 * duration is 0 or more than a day. */
bool ctl_duration(const char *s, uint64_t *ret_ns);
int ctl_dev(const char *s); /* Returns the index of a device by its name or number; -1: there is no such
                             * device. */
const char *ctl_status_name(unsigned status);

/* Prints a duration as " KEY=20ms"; prints nothing for 0. */
void ctl_print_duration(const char *key, uint64_t ns);

/* ---- commands ---- */

/* Runs the command `softnicctl port DEV WORD...`. */
int ctl_port_word(int dev, int argc, char **argv);
int ctl_cmd_gid(int argc, char **argv);
int ctl_cmd_firmware(int argc, char **argv);
int ctl_cmd_profile(int argc, char **argv);
int ctl_cmd_reach(int argc, char **argv);
int ctl_cmd_route(int argc, char **argv);
int ctl_cmd_rule(int argc, char **argv);
int ctl_cmd_trace(int argc, char **argv);

#endif
