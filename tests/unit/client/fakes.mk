# SPDX-License-Identifier: Apache-2.0
LINK-client/test_transfer := client_rig
LINK-client/test_memory := client_rig
LINK-client/test_list := client_rig
