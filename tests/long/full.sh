#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kinds of full that take longer than system/full.sh may: each on a disk of its own.
KINDS=${KINDS:-data uploads attributes index log parts} exec "$(dirname "$0")/../system/full.sh"
