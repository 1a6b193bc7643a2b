#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The clients of the field, by their own rules, against declines, rules of rdma.decline_2xx and faults of requests: no client counts as done
# what was not (claim TM12; item 37, item 67, item 103, item 104, item 118).  Sixteen at once: make check-clients.
QUICK=1 exec "$(dirname "$0")/../clients/rdma/play.sh"
