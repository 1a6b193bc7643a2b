#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The dying device of device.sh, with connections of RC in the place of DC.
TRANSPORT=rc exec "$(dirname "$0")/device.sh"
