#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All cases of tests/system/wire.sh, in an order and with places that SEED= decides, for SECS= seconds.
WIRE=all exec "$(dirname "$0")/../system/wire.sh"
