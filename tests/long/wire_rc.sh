#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# wire.sh of this folder, with connections of RC in the place of DC.
TRANSPORT=rc exec "$(dirname "$0")/wire.sh"
