# SPDX-License-Identifier: Apache-2.0
LINK-main/test_control := mem_store
