# SPDX-License-Identifier: Apache-2.0
LINK-server/test_channel := dc_peer
LINK-server/test_repair := dc_peer
