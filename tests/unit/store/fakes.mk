# SPDX-License-Identifier: Apache-2.0
LINK-store/test_mem_store := mem_store store_contract
