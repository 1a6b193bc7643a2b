# SPDX-License-Identifier: Apache-2.0
LINK-server/test_channel := peer
LINK-server/test_repair := peer
